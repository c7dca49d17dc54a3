"""The queues of a log, with their index in memory. Behaves as the index on disk does.

For tests of code that uses queues, and for a log that may only be read and has no such index.
"""

from __future__ import annotations

from threading import RLock

from tachograph.domain.queue_events import QUEUE_EVENTS
from tachograph.infra.queue_folding import CHUNK, fold, reader
from tachograph.infra.queue_index import Index
from tachograph.infra.queue_rows import Mark, MoreIsDueError, QueueRows
from tachograph.infra.queue_tables import MemoryTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from tachograph.domain.queued_job import QueuedJob
    from tachograph.domain.records import NewRecord
    from tachograph.infra.codec import Codec
    from tachograph.infra.lmdb_log import LMDBLog
    from tachograph.infra.memory_log import MemoryLog

    T = TypeVar("T")
    Records = Callable[[QueuedJob], Sequence[NewRecord]]


_ERA = 1
"""An index in memory is never made anew by another process: one era does."""


class MemoryQueues:
    """The queue index of a log in memory. Satisfies the QueueStore port."""

    def __init__(self, log: MemoryLog | LMDBLog, codec: Codec, records_of: Records) -> None:
        self._log = log
        self._codec = codec
        self.records_of = records_of
        self._lock = RLock()
        self._table = MemoryTable()
        self._known = 0
        """Up to where every event of a job is in the index."""

    def decide(self, work: Callable[[Index], T]) -> T:
        """Run `work` on the queues, record all it has saved, or nothing if it raises."""
        with self._lock:
            self._catch_up()
            while True:
                self._table.begin()
                index = Index(self._rows(), self)
                try:
                    result = work(index)
                    if index.records:
                        index.put_saved(self._log.append(index.records), _ERA)
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
                return work(Index(self._rows(), self))
            finally:
                self._table.writable = True

    def last_transaction(self) -> int:
        """Return a number that changes with every write to the log."""
        return self._log.last_transaction()

    def rebuild(self) -> None:
        """Make the index anew from the log."""
        with self._lock:
            self._rows().clear(_ERA)
            self._known = 0
            self._catch_up()

    def content(self) -> dict[bytes, bytes]:
        """Return all rows that follow from the log alone."""
        with self._lock:
            self._catch_up()
            return dict(self._rows().content())

    def _rows(self) -> QueueRows:
        """Return the rows for one use of them."""
        return QueueRows(self._table, self._codec)

    def _catch_up(self) -> None:
        rows, head = self._rows(), self._log.head().position
        mark = rows.mark() or Mark(0, _ERA)
        while head > max(mark.position, self._known):
            records = self._log.read(
                after=mark.position, up_to=head, topics=QUEUE_EVENTS, limit=CHUNK
            )
            if not records:
                self._known = head
                return
            self._table.begin()  # nothing undoes this
            fold(rows, self._codec, records, reader(self._log))
            mark = Mark(records[-1].position, _ERA)
            rows.put_mark(mark)
