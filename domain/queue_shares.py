"""How one bound is shared out among several queues. No I/O, no clock."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def shares(available: Mapping[str, int], most: int) -> dict[str, int]:
    """Return how many each queue may have of `most` in all, where so many are there.

    Each that has any gets at least one while `most` allows, in the order given; the rest is
    split evenly, and what a queue does not need goes to the others.

    >>> shares({"memory": 101, "summary": 3}, 50)
    {'memory': 47, 'summary': 3}
    >>> shares({"memory": 5, "summary": 5, "empty": 0}, 3)
    {'memory': 2, 'summary': 1, 'empty': 0}
    """
    given = dict.fromkeys(available, 0)
    left = most
    needing = [queue for queue, number in available.items() if number > 0]
    while left > 0 and needing:
        even = max(1, left // len(needing))
        for queue in needing:
            more = min(even, available[queue] - given[queue], left)
            given[queue] += more
            left -= more
        needing = [queue for queue in needing if given[queue] < available[queue]]
    return given
