"""A set of batch indexes kept as ranges, so that 100,000 finished batches are one pair."""

from __future__ import annotations


class IndexSet:
    """A growing set of non-negative integers.

    >>> done = IndexSet()
    >>> for index in (0, 1, 2, 5):
    ...     done.add(index)
    >>> done.ranges, len(done), 1 in done, list(done.missing(7))
    ([[0, 2], [5, 5]], 4, True, [3, 4, 6])
    """

    __slots__ = ("ranges",)

    def __init__(self, ranges: list[list[int]] | None = None) -> None:
        self.ranges = ranges if ranges is not None else []

    def __contains__(self, index: int) -> bool:
        place = self._place(index)
        return place > 0 and index <= self.ranges[place - 1][1]

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexSet) and self.ranges == other.ranges

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        return f"IndexSet({self.ranges})"

    def add(self, index: int) -> None:
        """Add an index; adding it again changes nothing."""
        ranges = self.ranges
        place = self._place(index)
        joins_left = place > 0 and ranges[place - 1][1] >= index - 1
        joins_right = place < len(ranges) and ranges[place][0] == index + 1
        if joins_left and joins_right:
            ranges[place - 1][1] = ranges[place][1]
            del ranges[place]
        elif joins_left:
            ranges[place - 1][1] = max(index, ranges[place - 1][1])
        elif joins_right:
            ranges[place][0] = index
        else:
            ranges.insert(place, [index, index])

    def missing(self, total: int, most: int | None = None) -> list[int]:
        """Return the indexes below `total` that are not in the set, in order; `most` at most."""
        absent: list[int] = []
        for first, last in self.missing_ranges(total):
            if most is not None and len(absent) + last - first >= most:
                absent.extend(range(first, first + most - len(absent)))
                break
            absent.extend(range(first, last + 1))
        return absent

    def count_missing(self, total: int) -> int:
        """Return how many indexes below `total` are not in the set, without listing them.

        >>> IndexSet([[0, 1], [5, 9]]).count_missing(1_000_000_000)
        999999993
        """
        return sum(last - first + 1 for first, last in self.missing_ranges(total))

    def missing_ranges(self, total: int) -> list[list[int]]:
        """Return the indexes below `total` that are not in the set, as [first, last].

        >>> IndexSet([[0, 1], [5, 9]]).missing_ranges(12)
        [[2, 4], [10, 11]]
        """
        absent: list[list[int]] = []
        start = 0
        for first, last in [*self.ranges, [total, total]]:
            end = min(first, total)
            if start < end:
                absent.append([start, end - 1])
            start = last + 1
        return absent

    def _place(self, index: int) -> int:
        """Return how many ranges start at or before the index (binary search)."""
        low, high = 0, len(self.ranges)
        if high and self.ranges[-1][0] <= index:  # the usual case: batches finish in order
            return high
        while low < high:
            middle = (low + high) // 2
            if self.ranges[middle][0] <= index:
                low = middle + 1
            else:
                high = middle
        return low
