"""How long ago an event was, by clocks that nobody sets. No I/O, no clock.

An event holds the wall time, which is set forward and back, and goes on while a laptop sleeps. A
watchdog writes down now and then what each clock of the machine shows; from that, how long the
machine was awake since an event follows.
"""

from __future__ import annotations

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Moment(_Fields):
    """What the clocks showed at one moment, in microseconds.

    `wall_us` is the wall time, `boot_us` counts since the machine was started, `awake_us` counts
    only while it was awake.
    """

    __slots__ = ("awake_us", "boot_us", "wall_us")

    def __init__(self, wall_us: int, boot_us: int, awake_us: int) -> None:
        self.wall_us = wall_us
        self.boot_us = boot_us
        self.awake_us = awake_us


STEP_US = 60_000_000
"""A wall clock that is off by more than this was set, and did not merely drift."""


def awake_age_us(event_us: int, now: Moment, seen: Sequence[Moment]) -> int:
    """Return how long the machine has been awake since an event of this boot; never below zero.

    `seen` are earlier moments of this boot, in their order. An event from before all of them is
    taken to be no older than the wall clock says, nor than the machine is awake.

    >>> now = Moment(wall_us=9_000, boot_us=900, awake_us=500)
    >>> awake_age_us(8_000, now, [Moment(7_900, 700, 300)])
    100
    """
    seen_at = _last_before(event_us, now, seen)
    if seen_at is not None:
        age_us = (now.awake_us - seen_at.awake_us) - (event_us - seen_at.wall_us)
    elif seen:
        first = seen[0]
        age_us = (now.awake_us - first.awake_us) + (first.wall_us - event_us)
    else:
        age_us = now.wall_us - event_us
    return max(0, min(age_us, now.awake_us))


def age_us(event_us: int, now: Moment, seen: Sequence[Moment]) -> int:
    """Return how long ago an event was, asleep or awake; never below zero.

    Only what the wall clock was set before the first moment of this boot counts as time.
    """
    seen_at = _last_before(event_us, now, seen) or (seen[0] if seen else now)
    return max(0, (now.boot_us - seen_at.boot_us) - (event_us - seen_at.wall_us))


def _last_before(event_us: int, now: Moment, seen: Sequence[Moment]) -> Moment | None:
    """Return the last moment before an event; None when it was before all of them.

    A moment of a clock that was set back shows less than the event without being before it: what
    counts is whether its clock could show the time of the event before the next moment.
    """
    if not seen:
        return None
    ends = [*seen[1:], now]
    for moment, end in zip(reversed(seen), reversed(ends), strict=True):
        if 0 <= event_us - moment.wall_us <= end.boot_us - moment.boot_us:
            return moment
    if event_us < seen[0].wall_us:
        return None
    return [moment for moment in seen if moment.wall_us <= event_us][-1]


def was_set(now: Moment, seen: Sequence[Moment]) -> bool:
    """Say whether the wall clock was set since the last moment of this boot that was seen."""
    if not seen:
        return False
    last = seen[-1]
    passed = (now.wall_us - last.wall_us) - (now.boot_us - last.boot_us)
    return abs(passed) > STEP_US
