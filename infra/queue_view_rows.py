"""The rows of the view of queues: which tables, keys and values it is kept in. Opens no file.

Keys are of fixed kinds: 16-byte digests of the names of queues, times, and the 16 bytes of the
id of a job.
"""

from __future__ import annotations

from struct import Struct

from tachograph.domain.queued_job import CANCELLED, COMPLETED, DEAD, LEASED, PRUNED, QueuedJob
from tachograph.infra.layout import U64, name_key
from tachograph.infra.queue_rows import id_key, id_text
from tachograph.infra.view_rows import (
    QUEUE_DUE,
    QUEUE_JOBS,
    QUEUE_ORDER,
    QUEUE_TRAFFIC,
    QUEUES,
)
from tachograph.projections import queue_health as health
from tachograph.projections.queue_traffic import HOUR, MINUTE, MINUTE_US, MINUTES, Traffic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.infra.view_rows import Rows
    from tachograph.projections.queue_health import Counts, Entry, Span

    Found = tuple[bytes, bytes]

_LISTS = {
    health.WAITING: b"w",
    health.SCHEDULED: b"s",
    health.FAILED: b"f",
    LEASED: b"l",
    COMPLETED: b"c",
    DEAD: b"d",
    CANCELLED: b"x",
    PRUNED: b"p",
    health.AT_WORK: b"a",
    health.ERRORS: b"e",
}
"""Stands for each list in keys."""
_WAITING = (health.WAITING, health.SCHEDULED, health.FAILED, health.AT_WORK)
_PLACE = Struct(">16scQ16s")
"""Digest of the queue, list, time in µs, id of the job."""
_LEVEL = Struct(">16sBQ")
"""Digest of the queue, level, number of the span of time."""
_SPAN = Struct(">16scQ")
"""Digest of the queue, length, number of the span."""
_SHIFTS = (26, 34, 42, 50)
"""Jobs that are due are counted in spans of 2^26 µs (67 s), and in ones that are 256 of those
below: to count all from a moment on, at most 255 numbers of each level have to be read."""
_ID = 16
_DIGITS = frozenset("0123456789abcdef")


class QueueViewRows:
    """The view of queues within one transaction. Satisfies QueuesView and QueuesWriter."""

    __slots__ = ("_digests", "_rows", "_tables")

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._tables = rows._tables
        self._digests: dict[str, bytes] = {}

    # Reading.

    def names(self) -> list[str]:
        """Return every queue that a job was ever put in, in order of their names."""
        return sorted(self._rows._unpack(value)[0] for _, value in self._tables.scan(QUEUES))

    def counts(self, queue: str, now_us: int) -> Counts:
        """Return how many jobs are in which state; at a cost that no number of jobs raises."""
        tally = self.tally(queue)
        not_due = self._not_due(queue, now_us) if tally[health.SCHEDULED] else 0
        return health.Counts(tally, not_due)

    def job(self, job_id: str) -> QueuedJob | None:
        """Return a job, a pruned one too; None when there is none of this id."""
        try:
            key = id_key(job_id)
        except ValueError:  # no id
            return None
        row = self._rows._get(QUEUE_JOBS, key) if len(key) == _ID else None
        return None if row is None else self._job(row)

    def find(self, prefix: str, limit: int) -> list[str]:
        """Return at most so many ids that begin so, pruned jobs' too, in their order."""
        digits = prefix.lower().replace("-", "")
        if not _DIGITS.issuperset(digits) or len(digits) > 2 * _ID:
            return []
        low = bytes.fromhex(digits.ljust(2 * _ID, "0"))
        found: list[str] = []
        for key, _ in self._tables.scan(QUEUE_JOBS, low):
            if len(found) == limit or not key.hex().startswith(digits):
                break
            found.append(id_text(key))
        dashed = "-" in prefix
        return [text for text in found if not dashed or text.startswith(prefix.lower())]

    def jobs(
        self,
        queue: str | None = None,
        status: str | None = None,
        *,
        older_than_us: int | None = None,
        reverse: bool = False,
    ) -> Iterator[QueuedJob]:
        """Yield jobs in the order of the event that matters, the longest ago first."""
        names = self.names() if queue is None else [queue]
        lists = [
            self._list(name, each, before_us=older_than_us, reverse=reverse)
            for name in names
            for each in health.LISTS[status]
        ]
        for key, _ in lists[0] if len(lists) == 1 else _merged(lists, reverse=reverse):
            yield self._need_job(key)

    def waits_since_us(self, queue: str) -> int | None:
        """Return since when the job waits that waited first, leased or not; None for none."""
        firsts = [next(self._list(queue, name), None) for name in _WAITING]
        return min([_PLACE.unpack(found[0])[2] for found in firsts if found], default=None)

    def last_error(self, queue: str) -> str | None:
        """Return the latest error among jobs that are pending, leased or dead, else None."""
        found = next(self._list(queue, health.ERRORS, reverse=True), None)
        return None if found is None else self._need_job(found[0]).error

    def traffic(self, queue: str, since_us: int, until_us: int) -> Traffic:
        """Return what happened in a span of time, in whole minutes, of at most two days."""
        total = Traffic()
        low, high = max(0, since_us) // MINUTE_US, max(0, until_us) // MINUTE_US + 1
        first, last = -(-low // MINUTES), high // MINUTES
        if first < last:
            spans = [
                (MINUTE, low, first * MINUTES),
                (HOUR, first, last),
                (MINUTE, last * MINUTES, high),
            ]
        else:
            spans = [(MINUTE, low, high)]
        for length, start, end in spans:
            for value in self._spans(queue, length, start, end):
                total.add(value)
        return total

    # Changing.

    def put_job(self, job: QueuedJob) -> None:
        """Keep a job."""
        self._rows._put(QUEUE_JOBS, id_key(job.id), job.to_row())

    def drop_job(self, job_id: str) -> None:
        """Drop a job."""
        self._tables.delete(QUEUE_JOBS, id_key(job_id))

    def put_entry(self, queue: str, entry: Entry, job_id: str) -> None:
        """Add a job to a list; where it is SCHEDULED, to those that are due at a time, too."""
        self._tables.put(QUEUE_ORDER, self._place(queue, entry, job_id), b"")
        if entry[0] == health.SCHEDULED:
            self._add_due(queue, entry[1], 1)

    def drop_entry(self, queue: str, entry: Entry, job_id: str) -> None:
        """Take a job out of a list, and of those that are due at a time."""
        self._tables.delete(QUEUE_ORDER, self._place(queue, entry, job_id))
        if entry[0] == health.SCHEDULED:
            self._add_due(queue, entry[1], -1)

    def tally(self, queue: str) -> dict[str, int]:
        """Return how many jobs are in which list, and how many spans are kept."""
        value = self._tables.get(QUEUES, self._digest(queue))
        if value is None:
            return dict.fromkeys(health.TALLIED, 0)
        _, *numbers = self._rows._unpack(value)
        return self._rows._named(health.TALLIED, numbers)

    def put_tally(self, queue: str, tally: dict[str, int]) -> None:
        """Keep these numbers."""
        numbers = [tally[name] for name in health.TALLIED]
        self._rows._put(QUEUES, self._digest(queue), [queue, *numbers])

    def span(self, span: Span) -> Traffic | None:
        """Return the traffic of a span, or None."""
        value = self._tables.get(QUEUE_TRAFFIC, self._span_key(*span))
        return None if value is None else self._traffic(value)

    def put_span(self, span: Span, traffic: Traffic) -> None:
        """Keep the traffic of a span."""
        self._rows._put(QUEUE_TRAFFIC, self._span_key(*span), traffic.to_row())

    def drop_first_span(self, queue: str, length: str) -> None:
        """Drop the earliest span of this length."""
        low = self._span_key(queue, length, 0)
        key = next(iter(self._tables.scan(QUEUE_TRAFFIC, low)))[0]
        self._tables.delete(QUEUE_TRAFFIC, key)

    # Jobs that are not due yet.

    def _add_due(self, queue: str, due_us: int, step: int) -> None:
        for level, shift in enumerate(_SHIFTS):
            key = _LEVEL.pack(self._digest(queue), level, due_us >> shift)
            value = self._tables.get(QUEUE_DUE, key)
            number = step + (0 if value is None else U64.unpack(value)[0])
            if number:
                self._tables.put(QUEUE_DUE, key, U64.pack(number))
            else:
                self._tables.delete(QUEUE_DUE, key)

    def _not_due(self, queue: str, now_us: int) -> int:
        """Return how many scheduled jobs are due later than now."""
        now_us = max(0, now_us)
        number = self._not_due_soon(queue, now_us)
        for level, shift in enumerate(_SHIFTS):
            here = now_us >> shift
            end = None
            if level + 1 < len(_SHIFTS):
                above = _SHIFTS[level + 1]
                end = ((now_us >> above) + 1) << (above - shift)
            number += self._sum_due(queue, level, here + 1, end)
        return number

    def _sum_due(self, queue: str, level: int, first: int, end: int | None) -> int:
        digest = self._digest(queue)
        low = _LEVEL.pack(digest, level, first)
        high = _LEVEL.pack(digest, level + 1, 0) if end is None else _LEVEL.pack(digest, level, end)
        return sum(U64.unpack(value)[0] for _, value in self._tables.scan(QUEUE_DUE, low, high))

    def _not_due_soon(self, queue: str, now_us: int) -> int:
        """Return how many of the jobs due in the span that it is now are due later than now.

        Read from both ends at once: all may be due at the same moment.
        """
        span = now_us >> _SHIFTS[0]
        value = self._tables.get(QUEUE_DUE, _LEVEL.pack(self._digest(queue), 0, span))
        number = 0 if value is None else int(U64.unpack(value)[0])
        first, end = span << _SHIFTS[0], (span + 1) << _SHIFTS[0]
        over = self._list(queue, health.SCHEDULED, since_us=first, before_us=now_us + 1)
        later = self._list(
            queue, health.SCHEDULED, since_us=now_us + 1, before_us=end, reverse=True
        )
        for read in range(number):
            if next(over, None) is None:
                return number - read
            if next(later, None) is None:
                return read
        return 0

    # Rows.

    def _list(
        self,
        queue: str,
        name: str,
        *,
        since_us: int = 0,
        before_us: int | None = None,
        reverse: bool = False,
    ) -> Iterator[Found]:
        """Yield the entries of a list of a queue."""
        prefix = self._digest(queue) + _LISTS[name]
        low = prefix + U64.pack(since_us)
        high = self._digest(queue) + bytes([_LISTS[name][0] + 1])
        if before_us is not None and before_us < 2**63:
            high = prefix + U64.pack(max(0, before_us))
        return self._tables.scan(QUEUE_ORDER, low, high, reverse=reverse)

    def _spans(self, queue: str, length: str, start: int, end: int) -> Iterator[Traffic]:
        low, high = self._span_key(queue, length, start), self._span_key(queue, length, end)
        for _, value in self._tables.scan(QUEUE_TRAFFIC, low, high):
            yield self._traffic(value)

    def _need_job(self, place: bytes) -> QueuedJob:
        return self._job(self._rows._need(QUEUE_JOBS, place[-_ID:]))

    def _job(self, row: Any) -> QueuedJob:
        try:
            return QueuedJob.from_row(row)
        except (TypeError, ValueError) as error:
            raise self._rows._odd(error) from error

    def _traffic(self, value: bytes) -> Traffic:
        try:
            return Traffic.from_row(self._rows._unpack(value))
        except (TypeError, ValueError) as error:
            raise self._rows._odd(error) from error

    def _place(self, queue: str, entry: Entry, job_id: str) -> bytes:
        return _PLACE.pack(self._digest(queue), _LISTS[entry[0]], entry[1], id_key(job_id))

    def _span_key(self, queue: str, length: str, number: int) -> bytes:
        return _SPAN.pack(self._digest(queue), length.encode(), number)

    def _digest(self, queue: str) -> bytes:
        found = self._digests.get(queue)
        if found is None:
            found = self._digests[queue] = name_key(queue)
        return found


def _merged(lists: list[Iterator[Found]], *, reverse: bool) -> Iterator[Found]:
    """Yield the entries of several lists in the order of their times, one read ahead of each."""
    from heapq import merge

    return merge(*lists, key=lambda found: found[0][_ID + 1 :], reverse=reverse)
