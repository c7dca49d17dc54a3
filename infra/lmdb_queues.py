"""The queues of a store: decide by an index that is as current as the log, in one commit.

The index is a database beside those of the log. It is derived: whatever is missing in it, because
it was recorded without it, is folded in first.
"""

from __future__ import annotations

import os
from functools import partial

import lmdb

from tachograph.domain.errors import StoreNotFoundError, TachographError
from tachograph.domain.queue_events import QUEUE_EVENTS
from tachograph.infra.group_commit import Request
from tachograph.infra.layout import TYPE, U32, encode_text, pack_position
from tachograph.infra.lmdb_append import Append
from tachograph.infra.queue_folding import CHUNK, fold, is_of_a_job, reader
from tachograph.infra.queue_index import Index
from tachograph.infra.queue_rows import IndexDamagedError, Mark, MoreIsDueError, QueueRows
from tachograph.infra.queue_tables import LMDBTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from tachograph.domain.queued_job import QueuedJob
    from tachograph.domain.records import NewRecord, Record
    from tachograph.infra.codec import Codec
    from tachograph.infra.lmdb_environment import Environment, Transaction
    from tachograph.infra.lmdb_log import LMDBLog
    from tachograph.infra.memory_queues import MemoryQueues

    Differing = tuple[bytes, bytes | None, bytes | None]
    T = TypeVar("T")
    Records = Callable[[QueuedJob], Sequence[NewRecord]]

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
        self._known = 0, 0  # no index has the era 0
        """An era of the index, and up to where it is known to have every event of a job."""
        self._beside: MemoryQueues | None = None
        """Stands in for an index that cannot be written."""

    def decide(self, work: Callable[[Index], T]) -> T:
        """Run `work` on the queues as they are, record all it has saved, or nothing if it raises.

        Durable on return.
        """
        self._open()
        for mended in (False, True):
            try:
                while True:
                    request = _Decision(self, work)
                    try:
                        self._environment.group.submit(request)
                    except _BehindError:
                        self.catch_up()
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
        if self._environment.readonly:
            return self._look_without_writing(work)
        if not self.exists():
            if not self._log.head().position:
                return work(Index(_rows_of_nothing(self.codec), self))
            self._open()
        try:
            self.catch_up()
            return self.read_rows(lambda rows: work(Index(rows, self)))
        except IndexDamagedError:
            self.rebuild()
        return self.read_rows(lambda rows: work(Index(rows, self)))

    def _look_without_writing(self, work: Callable[[Index], T]) -> T:
        """Answer from the index, or from one in memory where that is missing or lacks events."""
        if self.exists() and self._is_current():
            try:
                return self.read_rows(lambda rows: work(Index(rows, self)))
            except IndexDamagedError:
                pass  # as if it were missing
        if self._beside is None:
            from tachograph.infra.memory_queues import MemoryQueues

            self._beside = MemoryQueues(self._log, self.codec, self.records_of)
        return self._beside.look(work)

    def _is_current(self) -> bool:
        """Say whether the index has every event of a job."""
        mark = self.read_rows(lambda rows: rows.mark())
        if mark is None:
            return False
        start, head = self.known_from(mark), self._log.head().position
        if head > start:
            if self._log.read(after=start, up_to=head, topics=QUEUE_EVENTS, limit=1):
                return False
            self.know(mark.era, head)
        return True

    def last_transaction(self) -> int:
        """Return a number that changes with every write to the log, by any process."""
        return self._log.last_transaction()

    def exists(self) -> bool:
        """Say whether there is an index: it is made with the first job, or question for one."""
        return self._environment.open_databases(self.name, create=False)

    def rebuild(self) -> None:
        """Make the index anew from the log."""
        self._open()
        self._environment.update(lambda txn: self.rows(txn).clear(_new_era()))
        self.catch_up()

    def content(self) -> dict[bytes, bytes]:
        """Return all rows that follow from the log alone."""
        self._open()
        self.catch_up()
        return self.read_rows(lambda rows: dict(rows.content()))

    def check(self, folder: str) -> list[Differing]:
        """Return rows that are not what the log says: key, stored value, and what it should be.

        `folder` is one for what is made anew to compare with; the caller removes it.
        """
        from tachograph.infra.queue_checking import check

        if not self.exists():
            return []  # it is made with the first use
        try:
            self.catch_up()
        except IndexDamagedError:  # that is what is being looked for
            return check(self, self._log, folder)
        return check(self, self._log, folder)

    def rows(self, txn: Transaction) -> QueueRows:
        """Return the rows as a write transaction sees them."""
        table = LMDBTable(txn, self._environment.databases[self.name], writable=True)
        return QueueRows(table, self.codec)

    def read_rows(self, use: Callable[[QueueRows], T]) -> T:
        """Use the rows as one read transaction sees them."""
        with self._environment.read() as txn:
            table = LMDBTable(txn, self._environment.databases[self.name], writable=False)
            return use(QueueRows(table, self.codec))

    # Catching up.

    def catch_up(self) -> None:
        """Fold in what was recorded without the index."""
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
            if head <= start:
                return
            missing = self._log.read(after=start, up_to=head, topics=QUEUE_EVENTS, limit=1)
            if not missing:
                self.know(mark.era, head)
                if head - mark.position > _FAR:
                    self._environment.update(partial(self._move_mark, was=mark, position=head))
                return
            # Read before the write begins: others wait for that one.
            records = self._log.read(after=missing[0].position - 1, limit=CHUNK)
            self._environment.update(partial(self._fold, was=mark, records=records))

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
        fold(rows, self.codec, left, reader(self._log))
        if left:
            rows.put_mark(Mark(left[-1].position, mark.era))

    def _open(self) -> None:
        self._log.create()
        if not self._environment.open_databases(self.name):
            raise StoreNotFoundError(self._environment.folder)


class _BehindError(TachographError):
    """The log has events of jobs that the index lacks."""


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
        except (TachographError, lmdb.Error):
            raise  # with a map that is full, all of the commit runs again
        except Exception as error:  # noqa: BLE001  # of this request alone: others share the commit
            self.failure = error
            return
        if not index.records:
            return
        append = Append(self._queues.tables, index.records, None, None)
        append.apply(txn)
        index.put_saved(append.positions, self._reached[0])
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
        if head - start > _NEAR:
            raise _BehindError
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
