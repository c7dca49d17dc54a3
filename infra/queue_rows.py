"""The rows of the queue index: which keys and values it is kept in. Opens no file itself.

One ordered table holds everything; the first byte of a key says what it is. All of it follows
from the log. What eligibility moves about (jobs that became due, or that have to wait for room
under their concurrency key) changes no answer, only the time that finding it takes.
"""

from __future__ import annotations

import struct
from struct import Struct

from tachograph.domain.errors import MalformedValueError
from tachograph.domain.queued_job import COMPLETED, LEASED, PRUNED, QueuedJob
from tachograph.domain.records import _Fields
from tachograph.infra.layout import U64, encode_text

try:
    from _blake2 import blake2b  # hashlib costs a short command 2 ms and is the same function
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any, Protocol

    from tachograph.infra.codec import Codec

    Pair = tuple[bytes, bytes]

    class OrderedTable(Protocol):
        """Keys and values in the order of the keys, as one transaction sees them."""

        writable: bool

        def get(self, key: bytes) -> bytes | None:
            """Return a value, or None."""
            ...

        def put(self, key: bytes, value: bytes) -> None:
            """Set a value."""
            ...

        def delete(self, key: bytes) -> None:
            """Remove a value, if it is there."""
            ...

        def at_or_after(self, key: bytes) -> Pair | None:
            """Return the first entry whose key is not before a key."""
            ...

        def before(self, key: bytes) -> Pair | None:
            """Return the last entry whose key is before a key."""
            ...

        def clear(self) -> None:
            """Remove everything."""
            ...


VERSION = 1
"""Raised whenever the rows change for the same log: stored ones are then made anew."""
MARK = b"m"
"""-> version, position of the last event that was folded, era."""
_JOB = b"j"
"""Job id -> row of a live job."""
_READY = b"r"
"""Queue, type, order -> job id: it can be taken."""
_DUE = b"s"
"""Queue, time, position -> job id: it waits for a time."""
_PARKED = b"p"
"""Queue, digest of a concurrency key, type, order -> job id: its key had no room when met."""
_LEASED = b"l"
"""Queue, position -> job id."""
_TRIED = b"a"
"""Queue, position -> id of a pending job that was leased before."""
_ROOM = b"c"
"""Queue, digest of a concurrency key -> number of its jobs that are leased."""
_PER_KEY = b"q"
"""Queue -> number of jobs per concurrency key that was last allowed."""
_KEY = b"k"
"""Digest of queue and unique key -> job id, time until which it is held; 0: while it lives."""
_WINDOW = b"x"
"""Time, digest of queue and unique key: when a key that outlives its job is free."""
_METERED = b"t"
"""Queue, number -> time of a lease that counts towards the rate."""

_MOVED = (_READY, _DUE, _PARKED, _PER_KEY, _WINDOW, MARK)
"""Kinds of rows that do not follow from the log alone."""

MOST_METERED = 10_000
"""Leases that are remembered for the rate of a queue: the largest count a rate may have."""
MOST_MOVED = 2_000
"""Jobs that became due which one commit moves."""
_PURGED = 20
_ORDER = Struct(">IQ")
_HELD = Struct(">16sQ")
_COUNT = Struct(">I")
_ID_SIZE = 16
_MARK = Struct(">IQQ")
_HIGHEST = 1 << 31
_END = b"\xff"


class Mark(_Fields):
    """How far the index is: every event of a job up to `position` is in it.

    `era` tells an index from the one that was made anew after it: what a process knows of the
    one does not hold for the other.
    """

    __slots__ = ("era", "position")

    def __init__(self, position: int, era: int) -> None:
        self.position = position
        self.era = era


class IndexDamagedError(Exception):
    """The index does not hold together: make it anew from the log."""


class MoreIsDueError(Exception):
    """More jobs became due than one commit moves: keep what was moved, and run again."""


class QueueRows:
    """The live jobs as one transaction sees them. Satisfies the QueueIndex port, but for `save`."""

    def __init__(self, table: OrderedTable, codec: Codec) -> None:
        self._table = table
        self._codec = codec
        self._seen: dict[bytes, list[Any]] = {}
        """Rows that were read: putting a job needs again what it was."""

    # How far it is.

    def mark(self) -> Mark | None:
        """Return how far it is; None when the rows have to be made anew."""
        value = self._table.get(MARK)
        if value is None or len(value) != _MARK.size:
            return None
        version, position, era = _MARK.unpack(value)
        return Mark(position, era) if version == VERSION and era else None

    def put_mark(self, mark: Mark) -> None:
        """Keep how far it is."""
        self._table.put(MARK, _MARK.pack(VERSION, mark.position, mark.era))

    # Reading.

    def job(self, job_id: str) -> QueuedJob | None:
        """Return a live job; None for one that has ended or never was, or for what is no id."""
        try:
            job_key = id_key(job_id)
        except ValueError:
            return None
        return self._load(job_key) if len(job_key) == _ID_SIZE else None

    def eligible(
        self, queue: str, types: Collection[str] | None, now_us: int, per_key: int
    ) -> Iterator[QueuedJob]:
        """Yield pending jobs whose time has come: higher priority first, then the oldest."""
        if self._table.writable:
            self._allow(queue, per_key)
            self._move_due(queue, now_us)
        taken: dict[bytes, int] = {}
        heads: list[tuple[bytes, bytes, bytes]] = []
        for kind in self._types(queue) if types is None else dict.fromkeys(types):
            self._push(heads, _lane(queue, kind), b"")
        while heads:
            heads.sort()
            order, lane, job_key = heads.pop(0)
            job = self._need(job_key)
            self._push(heads, lane, order + b"\0")
            if job.concurrency_key is not None:
                room = _room_key(queue, job.concurrency_key)
                at_work = self._counted(room)
                if at_work >= per_key:  # what is parked comes back when one of these ends
                    self._park(job, lane + order, job_key)
                if at_work + taken.get(room, 0) >= per_key:
                    continue
                taken[room] = taken.get(room, 0) + 1
            yield job

    def leased(self, queue: str | None = None) -> Iterator[QueuedJob]:
        """Yield the leased jobs, in the order in which they were enqueued, by queue."""
        prefix = _LEASED if queue is None else _named(_LEASED, queue)
        for _, job_key in self._scan(prefix):
            yield self._need(job_key)

    def leased_count(self, queue: str) -> int:
        """Return how many jobs of a queue are leased."""
        return sum(1 for _ in self._scan(_named(_LEASED, queue)))

    def tried(self, queue: str) -> Iterator[QueuedJob]:
        """Yield the pending jobs that were leased before, due or not, oldest first."""
        for _, job_key in self._scan(_named(_TRIED, queue)):
            yield self._need(job_key)

    def count(self) -> int:
        """Return how many live jobs there are, at the cost of looking at each."""
        return sum(1 for _ in self._scan(_JOB))

    def holder(self, queue: str, key: str, now_us: int) -> str | None:
        """Return the id of the job that a unique key belongs to, or still belongs to."""
        value = self._table.get(_unique(queue, key))
        if value is None:
            return None
        job_key, until_us = _read(_HELD, value)
        return None if until_us and until_us <= now_us else id_text(job_key)

    def metered_us(self, queue: str, number: int) -> int | None:
        """Return the time of the `number`-th last metered lease of a queue (1: the last one)."""
        last = self._last_metered(queue)
        if last < number:
            return None
        value = self._table.get(_named(_METERED, queue) + U64.pack(last - number + 1))
        return None if value is None else int(_read(U64, value)[0])

    def next_us(self, queue: str) -> int | None:
        """Return when the next job that waits for its time is due; None when none does."""
        prefix = _named(_DUE, queue)
        found = self._table.at_or_after(prefix)
        if found is None or not found[0].startswith(prefix):
            return None
        return int(U64.unpack_from(found[0], len(prefix))[0])

    # Changing.

    def put(self, job: QueuedJob) -> None:
        """Bring everything that is kept of a job from what it was to what it is."""
        job_key = id_key(job.id)
        row = self._seen.pop(job_key, None)
        old = self._load(job_key) if row is None else QueuedJob.from_row(row)
        self._seen.pop(job_key, None)
        if old is not None:
            self._remove(old, job)
        if job.live:
            self._table.put(_JOB + job_key, self._codec.pack(job.to_row(), "job"))
            self._add(job, job_key)
        elif old is not None:
            self._table.delete(_JOB + job_key)
        if job.key is not None:
            self._hold(job, job_key)
        if job.status == LEASED and job.metered and (old is None or old.epoch != job.epoch):
            self._meter(job)

    def clear(self, era: int) -> None:
        """Remove every row, and begin another era."""
        self._table.clear()
        self.put_mark(Mark(0, era))

    def drop(self, job_id: str) -> None:
        """Forget a job of which nobody can say any more what it is."""
        job = self.job(job_id)
        if job is not None:
            job.status = PRUNED
            self.put(job)

    # Comparing.

    def content(self) -> Iterator[Pair]:
        """Yield all rows that follow from the log alone, in their order, to compare two indexes."""
        return (pair for pair in self._scan(b"") if pair[0][:1] not in _MOVED)

    def misplaced(self) -> Iterator[tuple[bytes, bytes | None, bytes | None]]:
        """Yield what eligibility gets wrong: key, value there, and value that is to be there.

        A pending job is either ready, due at a time, or parked, and nothing else is any of these.
        Jobs whose row cannot be read are passed over.
        """
        for kind in (_READY, _DUE, _PARKED):
            for place, job_key in self._scan(kind):
                places = self._places(job_key)
                if places is not None and place not in places:
                    yield place, job_key, None
        for row, _ in self._scan(_JOB):
            places = self._places(row[1:]) or []
            found = [place for place in places if self._table.get(place) == row[1:]]
            if places and not found:
                yield places[0], None, row[1:]
            for place in found[1:]:
                yield place, row[1:], None

    def _places(self, job_key: bytes) -> list[bytes] | None:
        """Return where a job can be, the place that is always right first; None: nobody knows."""
        self._seen.clear()  # there may be a million of them
        try:
            job = self._load(job_key)
        except IndexDamagedError:
            return None
        if job is None or job.status == LEASED:
            return []
        places = [_lane(job.queue, job.type) + _order(job)]
        if job.available_us is not None:
            places.append(_due(job))
        if job.concurrency_key is not None:
            places.append(_parked(job) + _named(b"", job.type) + _order(job))
        return places

    def _remove(self, old: QueuedJob, new: QueuedJob) -> None:
        place = U64.pack(old.position)
        if old.status == LEASED:
            self._table.delete(_named(_LEASED, old.queue) + place)
            if old.concurrency_key is not None:
                room = _room_key(old.queue, old.concurrency_key)
                self._put_count(room, self._counted(room) - 1)
        else:
            self._table.delete(_lane(old.queue, old.type) + _order(old))
            if old.attempts:
                self._table.delete(_named(_TRIED, old.queue) + place)
            if old.available_us is not None:
                self._table.delete(_due(old))
            if old.concurrency_key is not None:
                self._table.delete(_parked(old) + _named(b"", old.type) + _order(old))
        if old.concurrency_key is not None and new.status != LEASED:
            self._unpark_first(_parked(old))

    def _add(self, job: QueuedJob, job_key: bytes) -> None:
        place = U64.pack(job.position)
        if job.status == LEASED:
            self._table.put(_named(_LEASED, job.queue) + place, job_key)
            if job.concurrency_key is not None:
                room = _room_key(job.queue, job.concurrency_key)
                self._put_count(room, self._counted(room) + 1)
            return
        if job.attempts:
            self._table.put(_named(_TRIED, job.queue) + place, job_key)
        if job.available_us is not None:
            self._table.put(_due(job), job_key)
        else:
            self._table.put(_lane(job.queue, job.type) + _order(job), job_key)

    def _hold(self, job: QueuedJob, job_key: bytes) -> None:
        """Let a job have its unique key while it lives, and after its success as it was asked."""
        unique = _unique(job.queue, job.key or "")
        stored = self._table.get(unique)
        if stored is not None and _read(_HELD, stored)[0] != job_key and not job.live:
            return  # another job has it by now
        if stored is not None:
            self._table.delete(_WINDOW + U64.pack(_read(_HELD, stored)[1]) + unique)
        if job.live:
            self._table.put(unique, _HELD.pack(job_key, 0))
        elif job.status == COMPLETED and job.key_window_us and job.ended_us is not None:
            until_us = max(1, job.ended_us + job.key_window_us)
            self._table.put(unique, _HELD.pack(job_key, until_us))
            self._table.put(_WINDOW + U64.pack(until_us) + unique, b"")
            self._purge(job.ended_us)
        elif stored is not None:
            self._table.delete(unique)

    def _purge(self, now_us: int) -> None:
        """Forget some of the keys whose time is over."""
        for _ in range(_PURGED):
            found = self._table.at_or_after(_WINDOW)
            if found is None or not _WINDOW + b"\0" <= found[0] < _WINDOW + U64.pack(now_us):
                return
            self._table.delete(found[0])
            unique = found[0][1 + U64.size :]
            held = self._table.get(unique)
            if held is not None and 0 < _read(_HELD, held)[1] < now_us:
                self._table.delete(unique)

    def _meter(self, job: QueuedJob) -> None:
        prefix = _named(_METERED, job.queue)
        number = self._last_metered(job.queue) + 1
        self._table.put(prefix + U64.pack(number), U64.pack(max(0, job.leased_us or 0)))
        if number > MOST_METERED:
            self._table.delete(prefix + U64.pack(number - MOST_METERED))

    def _last_metered(self, queue: str) -> int:
        prefix = _named(_METERED, queue)
        found = self._table.before(prefix + _END * (U64.size + 1))
        if found is None or not found[0].startswith(prefix):
            return 0
        return int(U64.unpack_from(found[0], len(prefix))[0])

    # What can be taken.

    def _types(self, queue: str) -> Iterator[str]:
        """Yield the types that have a ready job, with one look for each."""
        prefix = _named(_READY, queue)
        after = prefix
        while (found := self._table.at_or_after(after)) is not None:
            if not found[0].startswith(prefix):
                return
            kind = found[0][len(prefix) :].partition(b"\0")[0]
            yield kind.decode()
            after = prefix + kind + b"\x01"

    def _push(self, heads: list[tuple[bytes, bytes, bytes]], lane: bytes, after: bytes) -> None:
        found = self._table.at_or_after(lane + after)
        if found is not None and found[0].startswith(lane):
            heads.append((found[0][len(lane) :], lane, found[1]))

    def _move_due(self, queue: str, now_us: int) -> None:
        """Make what has become due ready. Raises MoreIsDueError when that is too much at once."""
        prefix = _named(_DUE, queue)
        end = prefix + U64.pack(max(0, now_us) + 1)
        for _ in range(MOST_MOVED):
            found = self._table.at_or_after(prefix)
            if found is None or not prefix <= found[0] < end:
                return
            self._table.delete(found[0])
            job = self._need(found[1])
            self._table.put(_lane(job.queue, job.type) + _order(job), found[1])
        raise MoreIsDueError

    def _allow(self, queue: str, per_key: int) -> None:
        """Look at every parked job again once another number per key is allowed."""
        key = _named(_PER_KEY, queue)
        stored = self._table.get(key)
        if stored is not None and _read(_COUNT, stored)[0] == per_key:
            return
        for place, job_key in list(self._scan(_named(_PARKED, queue))):
            self._unpark(place, job_key)
        self._table.put(key, _COUNT.pack(per_key))

    def _park(self, job: QueuedJob, ready: bytes, job_key: bytes) -> None:
        if self._table.writable:
            self._table.delete(ready)
            self._table.put(_parked(job) + _named(b"", job.type) + _order(job), job_key)

    def _unpark_first(self, prefix: bytes) -> None:
        """Look at the first job of each type again: who comes next may do one type only."""
        after = prefix
        while (found := self._table.at_or_after(after)) is not None:
            if not found[0].startswith(prefix):
                return
            self._unpark(*found)
            after = found[0][: found[0].index(b"\0", len(prefix))] + b"\x01"

    def _unpark(self, place: bytes, job_key: bytes) -> None:
        job = self._need(job_key)
        self._table.delete(place)
        self._table.put(_lane(job.queue, job.type) + _order(job), job_key)

    # Rows.

    def _load(self, job_key: bytes) -> QueuedJob | None:
        value = self._table.get(_JOB + job_key)
        if value is None:
            return None
        try:
            row = self._seen[job_key] = self._codec.unpack(value)
            return QueuedJob.from_row(row)
        except (MalformedValueError, ValueError, TypeError) as error:
            raise IndexDamagedError(id_text(job_key)) from error

    def _need(self, job_key: bytes) -> QueuedJob:
        job = self._load(job_key)
        if job is None:
            raise IndexDamagedError(id_text(job_key))
        return job

    def _counted(self, room: bytes) -> int:
        value = self._table.get(room)
        return 0 if value is None else int(_read(_COUNT, value)[0])

    def _put_count(self, room: bytes, count: int) -> None:
        if count > 0:
            self._table.put(room, _COUNT.pack(count))
        else:
            self._table.delete(room)

    def _scan(self, prefix: bytes) -> Iterator[Pair]:
        """Yield the entries whose keys begin so; the table may change meanwhile."""
        after = prefix
        while (found := self._table.at_or_after(after)) is not None:
            if not found[0].startswith(prefix):
                return
            yield found
            after = found[0] + b"\0"


def _read(form: Struct, value: bytes) -> tuple[Any, ...]:
    """Return what a value holds. Raises IndexDamagedError for one of another length."""
    try:
        return form.unpack(value)
    except struct.error as error:
        raise IndexDamagedError(value.hex()) from error


def id_key(job_id: str) -> bytes:
    """Return the 16 bytes of a job's id."""
    return bytes.fromhex(job_id.replace("-", ""))


def id_text(job_key: bytes) -> str:
    """Return the id of a job from its 16 bytes.

    >>> id_text(bytes(range(16)))
    '00010203-0405-0607-0809-0a0b0c0d0e0f'
    """
    text = job_key.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _named(kind: bytes, *names: str) -> bytes:
    """Return the beginning of keys: names of queues and types are short, and hold no NUL."""
    return kind + b"".join(encode_text(name) + b"\0" for name in names)


def _lane(queue: str, kind: str) -> bytes:
    return _named(_READY, queue, kind)


def _order(job: QueuedJob) -> bytes:
    return _ORDER.pack(_HIGHEST - job.priority, job.position)


def _due(job: QueuedJob) -> bytes:
    return _named(_DUE, job.queue) + _due_time(job.available_us or 0) + U64.pack(job.position)


def _due_time(time_us: int) -> bytes:
    return U64.pack(max(0, min(time_us, 2**63)))


def _digest(text: str) -> bytes:
    return blake2b(encode_text(text), digest_size=16).digest()


def _room_key(queue: str, concurrency_key: str) -> bytes:
    return _named(_ROOM, queue) + _digest(concurrency_key)


def _parked(job: QueuedJob) -> bytes:
    return _named(_PARKED, job.queue) + _digest(job.concurrency_key or "")


def _unique(queue: str, key: str) -> bytes:
    return _KEY + _digest(f"{queue}\0{key}")
