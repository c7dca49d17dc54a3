"""What went through a queue in a span of time: how many jobs, and how long each took. No clock.

Latencies are counted in buckets about a tenth wide, so that those of any number of spans can be
added, and percentiles be read from the sum.
"""

from __future__ import annotations

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Buckets = dict[int, int]

MINUTE = "m"
HOUR = "h"
"""The spans that are kept."""
MINUTE_US = 60_000_000
MINUTES = 60
"""Those of an hour."""
KEPT = {MINUTE: 1_500, HOUR: 50}
"""So many of each are kept of a queue, the newest: more than those of a day, or of two.

Not all within a day of the newest: one event of a clock that is wrong would then drop the rest.
"""
COUNTS = ("enqueued", "leased", "completed", "failed", "died")

_FINE = 8
"""Buckets for each doubling, so that the middle of one is at most 1/16 off."""


class Traffic(_Fields):
    """Numbers of events of a queue, and latencies, in one or more spans of time."""

    __slots__ = ("completed", "died", "enqueued", "failed", "leased", "waits", "works")

    def __init__(self) -> None:
        self.enqueued = 0
        self.leased = 0
        self.completed = 0
        self.failed = 0
        """Attempts that failed, or whose holder was lost."""
        self.died = 0
        self.waits: Buckets = {}
        """How long jobs waited, from when they could be taken to the lease, by bucket."""
        self.works: Buckets = {}
        """How long they took, from the lease to their completion, by bucket."""

    def add(self, other: Traffic) -> None:
        """Add what happened in another span."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for mine, more in ((self.waits, other.waits), (self.works, other.works)):
            for bucket, number in more.items():
                mine[bucket] = mine.get(bucket, 0) + number

    def to_row(self) -> list[Any]:
        """Return plain values, from which `from_row` makes the same."""
        counts: list[Any] = [getattr(self, name) for name in COUNTS]
        return [*counts, *(_flat(buckets) for buckets in (self.waits, self.works))]

    @classmethod
    def from_row(cls, row: list[Any]) -> Traffic:
        """Return what `to_row` was of. Raises ValueError for a row of another shape."""
        made = cls()
        *counts, waits, works = row
        for name, value in zip(COUNTS, counts, strict=True):
            setattr(made, name, value)
        made.waits = dict(zip(waits[::2], waits[1::2], strict=True))
        made.works = dict(zip(works[::2], works[1::2], strict=True))
        return made


def note(buckets: Buckets, span_us: int) -> None:
    """Count one latency; less than none, of clocks that differ, counts as none."""
    bucket = bucket_of(max(0, span_us))
    buckets[bucket] = buckets.get(bucket, 0) + 1


def bucket_of(span_us: int) -> int:
    """Return the bucket of a latency. Whole numbers only: the same on every machine (G8).

    >>> [bucket_of(n) for n in (0, 7, 15, 16, 17, 18, 1_000_000)]
    [0, 7, 15, 16, 16, 17, 143]
    """
    shift = max(0, span_us.bit_length() - _FINE.bit_length())
    return shift * _FINE + (span_us >> shift)


def middle_of(bucket: int) -> int:
    """Return the latency that stands for a bucket.

    >>> [middle_of(bucket_of(n)) for n in (0, 7, 15, 1_000_000)]
    [0, 7, 15, 1015808]
    """
    shift = max(0, bucket // _FINE - 1)
    return (bucket - shift * _FINE << shift) + (1 << shift) // 2


def percentile(buckets: Buckets, share: float) -> int | None:
    """Return the latency that so many of all do not exceed, within a tenth; None without any.

    >>> percentile({bucket_of(n): 1 for n in (10, 20, 30, 40)}, 0.5)
    21
    """
    rest = share * sum(buckets.values())
    for bucket in sorted(buckets):
        rest -= buckets[bucket]
        if rest <= 0:
            return middle_of(bucket)
    return None


def _flat(buckets: Buckets) -> list[int]:
    """Return buckets in one order, whatever order they were counted in."""
    return [value for pair in sorted(buckets.items()) for value in pair]
