"""The rows of the views: which tables, keys and values they are kept in. Opens no file itself.

Keys are short and of fixed kinds: positions, versions, 16-byte digests of ids, and at most 64
bytes of an id. User strings never become keys, whose length LMDB limits.
"""

from __future__ import annotations

import sys
from struct import Struct

from tachograph.domain.errors import MalformedValueError, StoreCorruptError
from tachograph.domain.records import GENESIS_DIGEST
from tachograph.infra.layout import U64, decode_text, encode_text, name_key
from tachograph.projections import run_cards, run_summaries, watch_list
from tachograph.projections.maintenance_guards import Guard
from tachograph.projections.run_cards import is_open
from tachograph.projections.views import VERSIONS, Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol

    from tachograph.infra.codec import Codec
    from tachograph.infra.queue_view_rows import QueueViewRows

    _Watched = tuple[bytes | None, bytes | None, bytes | None]

    class Tables(Protocol):
        """Ordered tables of bytes, as one transaction sees them."""

        def get(self, table: bytes, key: bytes) -> bytes | None:
            """Return a value, or None."""
            ...

        def put(self, table: bytes, key: bytes, value: bytes) -> None:
            """Set a value."""
            ...

        def delete(self, table: bytes, key: bytes) -> None:
            """Remove a value, if it is there."""
            ...

        def count(self, table: bytes) -> int:
            """Return the number of keys in a table, at once."""
            ...

        def scan(
            self,
            table: bytes,
            low: bytes = b"",
            high: bytes | None = None,
            *,
            reverse: bool = False,
        ) -> Iterator[tuple[bytes, bytes]]:
            """Yield keys with `low` <= key < `high` and their values, in order."""
            ...


META = b"meta"
"""View name -> version, position, digest."""
NAMES = b"names"
"""First 64 bytes of the id, digest of the id -> position of the run's first event, id."""
SUMMARIES = b"summaries"
"""Position of the run's first event -> values of its summary, in the order of FIELDS.

Rows are then made in the order of their keys, and without names they are half as large.
"""
CARDS = b"cards"
"""Position of the run's first event -> values of its card: read backwards, the newest first."""
OPEN = b"open"
"""Position of the first event of every run that nothing has ended -> nothing."""
TOUCHED = b"touched"
"""Position of a run's last event -> position of its first, latest time in the log so far."""
DUE = b"due"
"""Time in µs, position of the first event of a run to look at by then -> nothing."""
PROCESSES = b"processes"
"""Digest of a process, position of the first event of a run that counts on it -> nothing."""
NEEDING = b"needing"
"""Position of the first event of every run that needs a person -> nothing."""
TIMELINES = b"timelines"
"""Digest of the id -> what the projection keeps of the run between two events."""
ENTRIES = b"entries"
"""Position of the run's first event, version -> entry of its timeline."""
GUARDS = b"guards"
"""Digest of a maintenance step's name, position of the event that granted it -> guard."""
QUEUES = b"queues"
"""Digest of a queue's name -> name, how many of its jobs are in which list, spans kept."""
QUEUE_JOBS = b"queue_jobs"
"""Id of a job -> values of it, in the order of its FIELDS."""
QUEUE_ORDER = b"queue_order"
"""Digest of a queue's name, list, time, id of a job in that list -> nothing."""
QUEUE_DUE = b"queue_due"
"""Digest of a queue's name, level, span of time -> number of scheduled jobs that are due in it."""
QUEUE_TRAFFIC = b"queue_traffic"
"""Digest of a queue's name, minute or hour, its number -> events and latencies in it."""
TABLES = (
    META,
    NAMES,
    SUMMARIES,
    CARDS,
    OPEN,
    TOUCHED,
    DUE,
    PROCESSES,
    NEEDING,
    TIMELINES,
    ENTRIES,
    GUARDS,
    QUEUES,
    QUEUE_JOBS,
    QUEUE_ORDER,
    QUEUE_DUE,
    QUEUE_TRAFFIC,
)

LONGEST_PREFIX = 64
_LATEST = b"latest_us"
_TOUCH = Struct(">Qq")
_ENTRY = Struct(">QQ")
_DUE = Struct(">QQ")
_GUARD = ("step", "run", "version", "time_us", "cadence", "once")
_MOST_NAMES = 10_000
"""Ids looked at for a prefix: a shorter prefix is ambiguous anyway."""


class Rows:
    """The content of all views within one transaction. Satisfies ViewReader and ViewWriter."""

    __slots__ = (
        "_codec",
        "_keys",
        "_packer",
        "_place",
        "_queues",
        "_tables",
        "_touched",
        "_watched",
    )

    def __init__(self, tables: Tables, codec: Codec, place: str) -> None:
        self._tables = tables
        self._codec = codec
        self._place = place
        """Names the views in errors."""
        self._packer: Any = None
        self._queues: QueueViewRows | None = None
        self._keys: dict[str, bytes] = {}
        """Digest of each id that was asked for."""
        self._touched: dict[str, int] = {}
        """Stored position of the last event, of each run that was loaded."""
        self._watched: dict[str, _Watched] = {}
        """Stored keys in the watch list, of each run that was loaded."""

    # How far each view is.

    def create(self) -> None:
        """Write the marks of empty views."""
        for name in VERSIONS:
            self.put_mark(name, Mark(0, GENESIS_DIGEST))

    def is_current(self) -> bool:
        """Whether all views are here, in the versions that this Tachograph makes."""
        stored = {name: self._get(META, name.encode()) for name in VERSIONS}
        return all(
            isinstance(row, list) and len(row) == 3 and row[0] == VERSIONS[name]
            for name, row in stored.items()
        )

    def mark(self, name: str) -> Mark:
        """Return how far a view is."""
        _, position, digest = self._need(META, name.encode())
        return Mark(position, digest)

    def put_mark(self, name: str, mark: Mark) -> None:
        """Keep how far a view is, in the same transaction as its content."""
        self._put(META, name.encode(), [VERSIONS[name], mark.position, mark.digest])

    def latest_us(self) -> int:
        """Return the latest time of any event folded so far."""
        time_us: int = self._get(META, _LATEST) or 0
        return time_us

    def put_latest_us(self, time_us: int) -> None:
        """Keep the latest time of any event folded so far."""
        self._put(META, _LATEST, time_us)

    # Summaries and cards.

    def summary(self, run_id: str) -> dict[str, Any] | None:
        """Return the summary of a run, or None. The caller may change what it gets."""
        named = self._tables.get(NAMES, self._name_key(run_id))
        if named is None:
            self._touched[run_id] = 0
            return None
        summary = self._named(run_summaries.FIELDS, self._need(SUMMARIES, named[: U64.size]))
        self._touched[run_id] = summary["updated_position"]
        self._watched[run_id] = _watched(summary)
        return summary

    def put_summary(self, summary: dict[str, Any]) -> None:
        """Keep a summary, and everything cut from it."""
        run_id = summary["id"]
        created = U64.pack(summary["created_position"])
        if run_id not in self._touched:
            self.summary(run_id)
        before, now = self._touched[run_id], summary["updated_position"]
        if before:
            self._tables.delete(TOUCHED, U64.pack(before))
        else:
            self._tables.put(NAMES, self._name_key(run_id), created + encode_text(run_id))
        touch = _TOUCH.pack(summary["created_position"], summary["latest_us"])
        self._tables.put(TOUCHED, U64.pack(now), touch)
        self._touched[run_id] = now
        self._put(SUMMARIES, created, [summary[name] for name in run_summaries.FIELDS])
        self._put(CARDS, created, run_cards.values(summary))
        if is_open(summary):
            self._tables.put(OPEN, created, b"")
        elif before:
            self._tables.delete(OPEN, created)
        self._watch(run_id, _watched(summary))

    def _watch(self, run_id: str, now: _Watched) -> None:
        """Bring the watch list from what is stored of a run to what it should be."""
        before = self._watched.get(run_id, (None, None, None))
        for table, old, new in zip((PROCESSES, DUE, NEEDING), before, now, strict=True):
            if old == new:
                continue
            if old is not None:
                self._tables.delete(table, old)
            if new is not None:
                self._tables.put(table, new, b"")
        self._watched[run_id] = now

    def cards(self) -> Iterator[dict[str, Any]]:
        """Yield the cards of all runs, latest created first."""
        for _, value in self._tables.scan(CARDS, reverse=True):
            yield self._named(run_cards.FIELDS, self._unpack(value))

    def open_cards(self) -> Iterator[dict[str, Any]]:
        """Yield the cards of runs that are open, latest created first."""
        for created, _ in self._tables.scan(OPEN, reverse=True):
            yield self._named(run_cards.FIELDS, self._need(CARDS, created))

    def touched(self) -> Iterator[tuple[int, int]]:
        """Yield (latest_us, created_position) of all runs, latest touched first."""
        for _, value in self._tables.scan(TOUCHED, reverse=True):
            created, latest_us = _TOUCH.unpack(value)
            yield latest_us, created

    def card_at(self, created_position: int) -> dict[str, Any]:
        """Return the card of the run created at a position."""
        return self._named(run_cards.FIELDS, self._need(CARDS, U64.pack(created_position)))

    def ids(self, prefix: str, limit: int) -> list[tuple[int, str]]:
        """Return (created_position, id) of runs whose id starts so, latest created first."""
        text = encode_text(prefix)
        low = text[:LONGEST_PREFIX]
        found: list[tuple[int, str]] = []
        for number, (_, value) in enumerate(self._tables.scan(NAMES, low, _after(low))):
            if number == _MOST_NAMES:
                break
            if value.startswith(text, U64.size):
                found.append((U64.unpack_from(value)[0], decode_text(value[U64.size :])))
        return sorted(found, reverse=True)[:limit]

    # The watch list.

    def watched_processes(self) -> Iterator[tuple[bytes, int]]:
        """Yield each process (or nobody in particular) that runs count on, and one of them."""
        low: bytes | None = b""
        while low is not None:
            found = next(self._tables.scan(PROCESSES, low), None)
            if found is None:
                return
            process = found[0][:16]
            yield process, U64.unpack_from(found[0], 16)[0]
            low = _after(process)

    def watched_by(self, process: bytes) -> Iterator[int]:
        """Yield the runs that count on a process."""
        for key, _ in self._tables.scan(PROCESSES, process, _after(process)):
            yield U64.unpack_from(key, 16)[0]

    def counting_on(self, process: dict[str, Any]) -> Iterator[int]:
        """Yield the runs that count on a process, given by its fields."""
        return self.watched_by(_process_key(process))

    def watched_count(self) -> int:
        """Return how many runs count on a process."""
        return self._tables.count(PROCESSES)

    def needing(self) -> Iterator[int]:
        """Yield the runs that need a person, earliest created first."""
        for key, _ in self._tables.scan(NEEDING):
            yield U64.unpack(key)[0]

    def due(self, now_us: int) -> Iterator[int]:
        """Yield the runs that should be looked at by a time, longest due first."""
        for key, _ in self._tables.scan(DUE, b"", U64.pack(max(0, now_us) + 1)):
            yield _DUE.unpack(key)[1]

    # Timelines.

    def timeline(self, run_id: str, *, newest: int | None = None) -> list[dict[str, Any]]:
        """Return the entries of a run in order; only the `newest` so many when given."""
        state = self.timeline_state(run_id)
        if state is None:
            return []
        low = U64.pack(state["created_position"])
        entries: list[dict[str, Any]] = []
        for _, value in self._tables.scan(ENTRIES, low, _after(low), reverse=True):
            if len(entries) == newest:
                break
            entries.append(self._unpack(value))
        entries.reverse()
        return entries

    def timeline_state(self, run_id: str) -> dict[str, Any] | None:
        """Return what the projection keeps of a run between two events, or None."""
        state: dict[str, Any] | None = self._get(TIMELINES, self._key(run_id))
        return state

    def timeline_entry(self, created_position: int, version: int) -> dict[str, Any]:
        """Return one entry. The caller may change what it gets."""
        found: dict[str, Any] = self._need(ENTRIES, _ENTRY.pack(created_position, version))
        return found

    def put_timeline(
        self, run_id: str, state: dict[str, Any], entries: Mapping[int, dict[str, Any]]
    ) -> None:
        """Keep the state of a run's timeline, and the entries (by version) that changed."""
        self._put(TIMELINES, self._key(run_id), state)
        created = state["created_position"]
        for version, entry in entries.items():
            self._put(ENTRIES, _ENTRY.pack(created, version), entry)

    def drop_entries(self, created_position: int) -> None:
        """Drop the timeline's entries of the run created at a position."""
        low = U64.pack(created_position)
        for key in [key for key, _ in self._tables.scan(ENTRIES, low, _after(low))]:
            self._tables.delete(ENTRIES, key)

    # Guards of maintenance steps.

    def guards(self, step: str) -> Iterator[Guard]:
        """Yield the guards of a step, latest granted first."""
        low = name_key(step)
        for key, value in self._tables.scan(GUARDS, low, _after(low), reverse=True):
            yield self._guard(key, value)

    def all_guards(self) -> Iterator[Guard]:
        """Yield every guard."""
        for key, value in self._tables.scan(GUARDS):
            yield self._guard(key, value)

    def put_guard(self, guard: Guard) -> None:
        """Keep a guard."""
        kept = [guard.step, guard.run, guard.version, guard.time_us, guard.cadence, guard.once]
        self._put(GUARDS, name_key(guard.step) + U64.pack(guard.position), kept)

    def drop_guard(self, guard: Guard) -> None:
        """Drop a guard."""
        self._tables.delete(GUARDS, name_key(guard.step) + U64.pack(guard.position))

    def _guard(self, key: bytes, value: bytes) -> Guard:
        named = self._named(_GUARD, self._unpack(value))
        return Guard(position=U64.unpack_from(key, 16)[0], **named)

    # Queues.

    @property
    def queues(self) -> QueueViewRows:
        """The view of queues."""
        if self._queues is None:
            from tachograph.infra.queue_view_rows import QueueViewRows

            self._queues = QueueViewRows(self)
        return self._queues

    # All of it.

    def rows(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield the whole content in order: table, key, bytes."""
        for table in sorted(TABLES):
            for key, value in self._tables.scan(table):
                yield table.decode(), key, value

    def _key(self, run_id: str) -> bytes:
        key = self._keys.get(run_id)
        if key is None:
            key = self._keys[run_id] = name_key(run_id)
        return key

    def _name_key(self, run_id: str) -> bytes:
        return encode_text(run_id)[:LONGEST_PREFIX] + self._key(run_id)

    def _named(self, names: tuple[str, ...], values: Any) -> dict[str, Any]:
        try:
            return dict(zip(names, values, strict=True))
        except (TypeError, ValueError) as error:
            raise self._odd(error) from error

    def _odd(self, error: Exception) -> StoreCorruptError:
        return StoreCorruptError(self._place, f"a row of its views is odd: {error}")

    def _get(self, table: bytes, key: bytes) -> Any:
        value = self._tables.get(table, key)
        return None if value is None else self._unpack(value)

    def _need(self, table: bytes, key: bytes) -> Any:
        value = self._get(table, key)
        if value is None:
            raise StoreCorruptError(self._place, f"a row of the table {table.decode()} is missing")
        return value

    def _put(self, table: bytes, key: bytes, value: Any) -> None:
        self._tables.put(table, key, self._pack(table, value))

    def _pack(self, table: bytes, value: Any) -> bytes:
        """Return the bytes that the codec gives, sooner where msgpack is at hand.

        Rows hold plain values, so the codec's scrutiny of each part would find nothing.
        """
        if self._packer is None and "msgpack" in sys.modules:
            from msgpack import Packer

            self._packer = Packer(strict_types=True)
        if self._packer is not None:
            try:
                packed: bytes = self._packer.pack(value)
                return packed
            except (TypeError, ValueError, OverflowError):
                self._packer = None  # what it had begun is in its buffer
        return self._codec.pack(value, table.decode())

    def _unpack(self, value: bytes) -> Any:
        try:
            return self._codec.unpack(value)
        except MalformedValueError as error:
            reason = f"a row of its views cannot be read: {error}"
            raise StoreCorruptError(self._place, reason) from error


def _watched(summary: dict[str, Any]) -> _Watched:
    """Return the keys of a run in the tables of the watch list; None where it has none."""
    created = U64.pack(summary["created_position"])
    process = watch_list.counts_on(summary)
    due_us = watch_list.due_us(summary)
    return (
        None if process is None else _process_key(process) + created,
        None if due_us is None else U64.pack(max(0, due_us)) + created,
        created if summary["attention"] else None,
    )


def _process_key(process: Mapping[str, Any]) -> bytes:
    """Return what stands for a process: 16 bytes that differ for any two of them."""
    names = ("kind", "host", "boot_id", "pid", "started", "pid_namespace")
    return name_key("\0".join(str(process.get(name)) for name in names))


def _after(prefix: bytes) -> bytes | None:
    """Return the first key after all that start with a prefix, None when there is none.

    >>> _after(b"ab"), _after(b"a" + bytes([255])), _after(b"")
    (b'ac', b'b', None)
    """
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
