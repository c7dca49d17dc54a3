"""The queues of a store: decide by an index that is as current as the log, in one commit.

The index is a database beside those of the log. It is derived: whatever is missing in it, because
it was recorded without it, is folded in first.
"""

from __future__ import annotations

import os

from tachograph.domain.errors import StoreNotFoundError, TachographError
from tachograph.domain.queue_events import QUEUE_EVENTS
from tachograph.infra.group_commit import Request
from tachograph.infra.layout import TYPE, U32, encode_text, pack_position
from tachograph.infra.lmdb_append import Append
from tachograph.infra.queue_folding import fold, is_of_a_job, stream_of
from tachograph.infra.queue_rows import IndexDamagedError, Mark, MoreIsDueError, QueueRows
from tachograph.infra.queue_tables import LMDBTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import Any, TypeVar

    from tachograph.domain.queued_job import QueuedJob
    from tachograph.domain.records import NewRecord, Record
    from tachograph.infra.codec import Codec
    from tachograph.infra.lmdb_environment import Environment, Transaction
    from tachograph.infra.lmdb_log import LMDBLog

    T = TypeVar("T")
    Records = Callable[[QueuedJob], Sequence[NewRecord]]

CHUNK = 2_000
"""Records that one transaction folds."""
_NEAR = 200
"""Records after what is known that the commit itself looks at."""
_FAR = 5_000
"""Records without any of a job after which the mark is moved for all."""


class LMDBQueues:
    """The queue index of a log. Satisfies the QueueStore port; may be shared by threads.

    `records_of` turns what a job recorded into records.
    """

    def __init__(
        self,
        environment: Environment,
        log: LMDBLog,
        codec: Codec,
        records_of: Records,
    ) -> None:
        self._environment = environment
        self._log = log
        self.tables = log.tables
        self.codec = codec
        self.records_of = records_of
        self.name = encode_text(f"{log.tables.name}.queues")
        self._known = 0, 0
        """An era of the index, and up to where it is known to have every event of a job."""

    def decide(self, work: Callable[[Index], T]) -> T:
        """Run `work` on the queues as they are, record all it has saved, or nothing if it raises.

        Durable on return.
        """
        self._open()
        near = _NEAR
        for mended in (False, True):
            try:
                while True:
                    self.catch_up(near)
                    request = _Decision(self, work)
                    try:
                        self._environment.group.submit(request)
                    except _BehindError:
                        near = 0
                        continue
                    if request.failure is not None:
                        raise request.failure
                    if not request.again:
                        return request.result  # type: ignore[no-any-return]
            except IndexDamagedError:
                if mended:
                    raise
                self.rebuild()
        raise AssertionError("unreachable: the second round returns or raises")

    def look(self, work: Callable[[Index], T]) -> T:
        """Run `work` on the queues as they are, to read only."""
        if not self._environment.open_databases(self.name, create=False):
            if not self._log.head().position or self._environment.readonly:
                return work(Index(_rows_of_nothing(self.codec), self))
            self._open()
        self.catch_up(0)
        try:
            return self._read_rows(lambda rows: work(Index(rows, self)))
        except IndexDamagedError:
            self.rebuild()
        return self._read_rows(lambda rows: work(Index(rows, self)))

    def last_transaction(self) -> int:
        """Return a number that changes with every write to the log, by any process."""
        return self._log.last_transaction()

    def rebuild(self) -> None:
        """Make the index anew from the log."""
        self._open()
        self._environment.update(lambda txn: self.rows(txn).clear(_new_era()))
        self.catch_up(0)

    def content(self) -> dict[bytes, bytes]:
        """Return all rows that follow from the log alone."""
        self._open()
        self.catch_up(0)
        return self._read_rows(lambda rows: rows.content())

    def rows(self, txn: Transaction) -> QueueRows:
        """Return the rows as a write transaction sees them."""
        table = LMDBTable(txn, self._environment.databases[self.name], writable=True)
        return QueueRows(table, self.codec)

    def _read_rows(self, use: Callable[[QueueRows], T]) -> T:
        with self._environment.read() as txn:
            table = LMDBTable(txn, self._environment.databases[self.name], writable=False)
            return use(QueueRows(table, self.codec))

    # Catching up.

    def catch_up(self, near: int = _NEAR) -> None:
        """Fold in what was recorded without the index.

        The last `near` records are left to whoever commits next: looking at them costs less there.
        """
        if self._environment.readonly:
            return
        while True:
            with self._environment.read() as txn:
                table = LMDBTable(txn, self._environment.databases[self.name], writable=False)
                mark = QueueRows(table, self.codec).mark()
                head, _ = self.tables.find_head(txn)
            if mark is None:
                self._environment.update(self._begin_anew)
                continue
            start = self.known_from(mark)
            if head - start <= near:
                return
            missing = self._log.read(after=start, up_to=head, topics=QUEUE_EVENTS, limit=1)
            if not missing:
                self.know(mark.era, head)
                if head - mark.position > _FAR:
                    self._environment.update(lambda txn: self._move_mark(txn, mark, head))  # noqa: B023
                return
            # Read before the write begins: others wait for that one.
            records = self._log.read(after=missing[0].position - 1, limit=CHUNK)
            self._environment.update(lambda txn: self._fold(txn, mark, records))  # noqa: B023

    def known_from(self, mark: Mark) -> int:
        """Return up to where every event of a job is known to be in an index of this mark."""
        era, position = self._known
        return max(mark.position, position) if era == mark.era else mark.position

    def know(self, era: int, position: int) -> None:
        """Keep that every event of a job up to a position is in the index of an era."""
        if era != self._known[0] or position > self._known[1]:
            self._known = era, position

    def _begin_anew(self, txn: Transaction) -> None:
        rows = self.rows(txn)
        if rows.mark() is None:
            rows.clear(_new_era())

    def _move_mark(self, txn: Transaction, was: Mark, position: int) -> None:
        """Save other processes the search for events that are not there."""
        rows = self.rows(txn)
        if rows.mark() == was:
            rows.put_mark(Mark(position, was.era))

    def _fold(self, txn: Transaction, was: Mark, records: Sequence[Record]) -> None:
        """Fold records in that come after a mark, as far as nobody else has done so meanwhile."""
        rows = self.rows(txn)
        mark = rows.mark()
        if mark is None or mark.era != was.era:
            return
        left = [record for record in records if record.position > mark.position]
        fold(rows, self.codec, left, self._read)
        if left:
            rows.put_mark(Mark(left[-1].position, mark.era))

    def _read(self, job_id: str, up_to: int) -> Sequence[Record]:
        return self._log.read_stream(stream_of(job_id), up_to=up_to)

    def _open(self) -> None:
        self._log.create()
        if not self._environment.open_databases(self.name):
            raise StoreNotFoundError(self._environment.folder)


class _BehindError(TachographError):
    """The log has events of jobs that the index lacks."""


class Index:
    """What `work` is given: the rows, and a way to record. Satisfies the QueueIndex port."""

    def __init__(self, rows: QueueRows, queues: Any) -> None:
        self._rows = rows
        self._queues = queues
        self.saved: list[QueuedJob] = []
        self.records: list[NewRecord] = []
        self.first: list[int] = []
        """Where the records of each saved job begin."""

    def job(self, job_id: str) -> QueuedJob | None:
        """Return a live job; None for one that has ended or never was."""
        return self._rows.job(job_id)

    def eligible(
        self, queue: str, types: Collection[str] | None, now_us: int, per_key: int
    ) -> Iterator[QueuedJob]:
        """Yield pending jobs whose time has come: higher priority first, then the oldest."""
        return self._rows.eligible(queue, types, now_us, per_key)

    def leased(self, queue: str | None = None) -> Iterator[QueuedJob]:
        """Yield the leased jobs."""
        return self._rows.leased(queue)

    def leased_count(self, queue: str) -> int:
        """Return how many jobs of a queue are leased."""
        return self._rows.leased_count(queue)

    def tried(self, queue: str) -> Iterator[QueuedJob]:
        """Yield the pending jobs that were leased before."""
        return self._rows.tried(queue)

    def count(self) -> int:
        """Return how many live jobs there are."""
        return self._rows.count()

    def holder(self, queue: str, key: str, now_us: int) -> str | None:
        """Return the id of the job that a unique key belongs to."""
        return self._rows.holder(queue, key, now_us)

    def metered_us(self, queue: str, number: int) -> int | None:
        """Return the time of the `number`-th last metered lease of a queue."""
        return self._rows.metered_us(queue, number)

    def next_us(self, queue: str, now_us: int) -> int | None:
        """Return when the next job that waits for its time is due."""
        return self._rows.next_us(queue, now_us)

    def save(self, *jobs: QueuedJob) -> None:
        """Record what these jobs recorded, in this commit."""
        for job in jobs:
            records = self._queues.records_of(job)
            if records:
                self.saved.append(job)
                self.first.append(len(self.records))
                self.records += records

    def put_saved(self, positions: Sequence[int]) -> None:
        """Bring the rows up to what was recorded at these positions."""
        for job, first in zip(self.saved, self.first, strict=True):
            if self.records[first].version == 1:
                job.position = positions[first]
            self._rows.put(job)
        mark = self._rows.mark()
        if mark is not None and positions:
            self._rows.put_mark(Mark(positions[-1], mark.era))


class _Decision(Request):
    """One decision as a group commit runs it."""

    __slots__ = ("_append", "_queues", "_reached", "_work", "again", "failure", "result")

    def __init__(self, queues: LMDBQueues, work: Callable[[Index], Any]) -> None:
        super().__init__()
        self._queues = queues
        self._work = work
        self._append: Append | None = None
        self._reached = 0, 0
        self.again = False
        self.failure: Exception | None = None
        self.result: Any = None

    def apply(self, txn: Transaction) -> None:
        """Decide, append, and bring the index up to that. Refuses before it writes to the log."""
        self.again = False
        self._append = self.failure = None
        rows = self._queues.rows(txn)
        self._reached = self._check(txn, rows)
        index = Index(rows, self._queues)
        try:
            self.result = self._work(index)
        except MoreIsDueError:
            self.again = True
            return
        except TachographError:
            raise
        except Exception as error:  # noqa: BLE001  # of this request alone: others share the commit
            self.failure = error
            return
        if not index.records:
            return
        append = Append(self._queues.tables, index.records, None, None)
        append.apply(txn)
        index.put_saved(append.positions)
        self._append = append

    def committed(self) -> None:
        """Let the caches know what is durable now."""
        if self._append is not None:
            self._append.committed()
        self._queues.know(*self._reached)

    def _check(self, txn: Transaction, rows: QueueRows) -> tuple[int, int]:
        """Return the era and the end of the log; refuse while the index lacks an event before."""
        queues = self._queues
        head, _ = queues.tables.find_head(txn)
        mark = rows.mark()
        if mark is None:
            raise _BehindError
        start = queues.known_from(mark)
        if start < head:
            cursor = txn.cursor(db=queues.tables[queues.tables.records])
            found = cursor.set_range(pack_position(start + 1))
            while found:
                number = U32.unpack_from(cursor.value(), TYPE)[0]
                if is_of_a_job(queues.tables.find_topic(txn, number)[0]):
                    raise _BehindError
                found = cursor.next()
        return mark.era, head


def _new_era() -> int:
    return int.from_bytes(os.urandom(8), "big")


def _rows_of_nothing(codec: Codec) -> QueueRows:
    from tachograph.infra.queue_tables import MemoryTable

    return QueueRows(MemoryTable(), codec)
