"""Compare the queue index with one that is made anew from the log. Mends nothing."""

from __future__ import annotations

from tachograph.domain.queue_events import QUEUE_EVENTS
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.queue_folding import CHUNK, fold, reader
from tachograph.infra.queue_rows import QueueRows
from tachograph.infra.queue_tables import LMDBTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from tachograph.domain.records import Record
    from tachograph.infra.lmdb_environment import Environment, Transaction
    from tachograph.infra.lmdb_log import LMDBLog
    from tachograph.infra.lmdb_queues import Differing, LMDBQueues

    Pair = tuple[bytes, bytes]
    T = TypeVar("T")

MOST_DIFFERENCES = 1000
_END = b"\xff" * 600, b""
"""Comes after every row: no key of LMDB is longer than 511 bytes."""


def check(queues: LMDBQueues, log: LMDBLog, folder: str) -> list[Differing]:
    """Return where the index is not what the log says: at most 1,000 rows.

    Makes one anew in `folder`, which may be an environment of something else, as far as the stored
    one is; memory holds a part of them at a time.
    """
    environment = open_environment(folder, sync=False)
    try:
        fresh = _Fresh(environment, queues, log)
        mark = queues.read_rows(lambda rows: rows.mark())
        if mark is None:
            return []  # it is of another version, and made anew with the first use
        fresh.fold(mark.position)

        def compare(rows: QueueRows) -> list[Differing]:
            # Others may have gone on since: the two are compared at the same position.
            now = rows.mark()
            fresh.fold(mark.position if now is None else now.position)
            found = fresh.read(lambda other: _differing(rows.content(), other.content()))
            for each in rows.misplaced():
                if len(found) >= MOST_DIFFERENCES:
                    break
                found.append(each)
            return found

        return queues.read_rows(compare)
    finally:
        environment.close()


class _Fresh:
    """An index that is made anew."""

    def __init__(self, environment: Environment, queues: LMDBQueues, log: LMDBLog) -> None:
        self._environment = environment
        self._log = log
        self._codec = queues.codec
        self._name = queues.name
        self._position = 0
        environment.open_databases(self._name)

    def fold(self, up_to: int) -> None:
        """Bring it up to a position."""
        while self._position < up_to:
            records = self._log.read(
                after=self._position, up_to=up_to, topics=QUEUE_EVENTS, limit=CHUNK
            )
            if records:
                self._environment.update(lambda txn: self._apply(txn, records))  # noqa: B023
            self._position = records[-1].position if records else up_to

    def read(self, use: Callable[[QueueRows], T]) -> T:
        """Use its rows."""
        with self._environment.read() as txn:
            return use(self._rows(txn, writable=False))

    def _apply(self, txn: Transaction, records: Sequence[Record]) -> None:
        rows = self._rows(txn, writable=True)
        fold(rows, self._codec, records, reader(self._log))

    def _rows(self, txn: Transaction, *, writable: bool) -> QueueRows:
        table = LMDBTable(txn, self._environment.databases[self._name], writable=writable)
        return QueueRows(table, self._codec)


def _differing(stored: Iterator[Pair], expected: Iterator[Pair]) -> list[Differing]:
    """Walk two contents in their common order and return where they differ."""
    found: list[Differing] = []
    left, right = next(stored, _END), next(expected, _END)
    while (left is not _END or right is not _END) and len(found) < MOST_DIFFERENCES:
        if left[0] < right[0]:
            found.append((left[0], left[1], None))
            left = next(stored, _END)
        elif right[0] < left[0]:
            found.append((right[0], None, right[1]))
            right = next(expected, _END)
        else:
            if left[1] != right[1]:
                found.append((left[0], left[1], right[1]))
            left, right = next(stored, _END), next(expected, _END)
    return found
