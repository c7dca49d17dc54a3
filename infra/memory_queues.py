"""The queues of a log in memory, for tests of code that uses them. Behaves as those on disk do."""

from __future__ import annotations

from threading import RLock

from tachograph.infra.lmdb_queues import Index
from tachograph.infra.queue_folding import fold, is_of_a_job, stream_of
from tachograph.infra.queue_rows import Mark, MoreIsDueError, QueueRows
from tachograph.infra.queue_tables import MemoryTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from tachograph.domain.queued_job import QueuedJob
    from tachograph.domain.records import NewRecord, Record
    from tachograph.infra.codec import Codec
    from tachograph.infra.memory_log import MemoryLog

    T = TypeVar("T")
    Records = Callable[[QueuedJob], Sequence[NewRecord]]


class MemoryQueues:
    """The queue index of a log in memory. Satisfies the QueueStore port."""

    def __init__(self, log: MemoryLog, codec: Codec, records_of: Records) -> None:
        self._log = log
        self._codec = codec
        self.records_of = records_of
        self._lock = RLock()
        self._table = MemoryTable()
        self._rows = QueueRows(self._table, codec)

    def decide(self, work: Callable[[Index], T]) -> T:
        """Run `work` on the queues, record all it has saved, or nothing if it raises."""
        with self._lock:
            self._catch_up()
            while True:
                self._table.begin()
                index = Index(self._rows, self)
                try:
                    result = work(index)
                    if index.records:
                        index.put_saved(self._log.append(index.records))
                except MoreIsDueError:
                    continue
                except BaseException:
                    self._table.roll_back()
                    raise
                return result

    def look(self, work: Callable[[Index], T]) -> T:
        """Run `work` on the queues as they are, to read only."""
        with self._lock:
            self._catch_up()
            self._table.writable = False
            try:
                return work(Index(self._rows, self))
            finally:
                self._table.writable = True

    def last_transaction(self) -> int:
        """Return a number that changes with every write to the log."""
        return self._log.last_transaction()

    def rebuild(self) -> None:
        """Make the index anew from the log."""
        with self._lock:
            self._rows.clear(0)
            self._catch_up()

    def content(self) -> dict[bytes, bytes]:
        """Return all rows that follow from the log alone."""
        with self._lock:
            self._catch_up()
            return self._rows.content()

    def _catch_up(self) -> None:
        mark = self._rows.mark() or Mark(0, 0)
        records = self._log.read(after=mark.position, limit=None)
        if any(is_of_a_job(record.topic) for record in records):
            fold(self._rows, self._codec, records, self._read)
            self._rows.put_mark(Mark(records[-1].position, 0))

    def _read(self, job_id: str, up_to: int) -> Sequence[Record]:
        return self._log.read_stream(stream_of(job_id), up_to=up_to)
