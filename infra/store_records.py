"""What a copy of a log needs beyond reading it: erased bodies' digests, and writing it elsewhere.

Never writes over a record, and never writes one whose place or digest would be another.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from tachograph.domain.copies import CopiedRecord, CopiedTracking
from tachograph.domain.errors import BodyLostError, StoreBusyError
from tachograph.domain.records import (
    ArchivedRecord,
    Head,
    NewRecord,
    Problem,
    Record,
    SnapshotRecord,
)
from tachograph.infra.layout import (
    ABSENT,
    ARCHIVED,
    BODY,
    DIGEST_SIZE,
    U64,
    decode_text,
    pack_position,
)
from tachograph.infra.lmdb_append import Append
from tachograph.infra.lmdb_tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tachograph.infra.lmdb_environment import Environment, Transaction

    Progress = Callable[[int, int | None], None]

_CHUNK = 500
"""Records in memory at a time."""


class StoreRecords:
    """The records of a log as they are copied out of it and into it."""

    def __init__(self, environment: Environment, name: str = "events") -> None:
        self._environment = environment
        self._tables = Tables(environment, name)
        self._tables.open()

    def copied(self, record: Record) -> CopiedRecord:
        """Return a record with what its digest needs: its body, else the digest of that.

        A body is read from its archive once, and is in the copy. One that an archive should hold
        and has lost stays lost: the copy says which archive that was.
        """
        archive = None
        if isinstance(record, ArchivedRecord):
            try:
                return CopiedRecord(record.with_body(record.body))
            except BodyLostError:
                archive = record.archive
        elif not record.absent:
            return CopiedRecord(record)
        with self._environment.read() as txn:
            value = txn.get(pack_position(record.position), db=self._tables[self._tables.records])
        return CopiedRecord(record, (value or b"")[BODY : BODY + DIGEST_SIZE], archive)

    def lost_databases(self) -> Iterator[Problem]:
        """Yield a problem for each database that is gone: without its name it looks empty."""
        tables = self._tables
        names = (
            tables.records,
            tables.index,
            tables.types,
            tables.streams,
            tables.snapshots,
            tables.tracking.database,
        )
        with self._environment.read() as txn:
            known = [bytes(key) for key, _ in txn.cursor()]
            if any(known):  # they are made all at once: some without the others are a loss
                for name in names:
                    if name not in known:
                        yield Problem("missing", 0, f"the database {decode_text(name)} is gone")

    def counts(self) -> dict[str, int]:
        """Return how many records, streams, types and snapshots there are."""
        tables = self._tables
        if not tables.open():
            return {"streams": 0, "types": 0, "snapshots": 0}
        names = {"streams": tables.streams, "types": tables.types, "snapshots": tables.snapshots}
        with self._environment.read() as txn:
            return {what: txn.stat(db=tables[name])["entries"] for what, name in names.items()}

    def knows(self, topic: str) -> bool:
        """Say whether there was ever a record of this type."""
        if not self._tables.open():
            return False
        with self._environment.read() as txn:
            return self._tables.find_number(txn, topic) is not None

    def trackings(self) -> list[CopiedTracking]:
        """Return how far other logs were processed."""
        if not self._tables.open():
            return []
        with self._environment.read() as txn:
            cursor = txn.cursor(db=self._tables[self._tables.tracking.database])
            return [
                CopiedTracking(decode_text(value[8:]), U64.unpack_from(value)[0])
                for _, value in cursor
            ]

    def snapshots(self) -> Iterator[SnapshotRecord]:
        """Yield every snapshot of a stream known by a text."""
        place = b""
        while self._tables.open():
            with self._environment.read() as txn:
                cursor = txn.cursor(db=self._tables[self._tables.snapshots])
                if not cursor.set_range(place):
                    return
                place, body = cursor.key() + b"\0", cursor.value()
                stream = self._tables.find_text(txn, place[:16])
            if stream is not None:
                yield SnapshotRecord(stream, U64.unpack_from(place, 16)[0], body)

    def restore(
        self,
        head: Head,
        end: Head,
        records: Callable[[], Iterable[CopiedRecord]],
        trackings: Iterable[CopiedTracking] = (),
    ) -> None:
        """Append copies after `head` that lead to `end`, all or none. Durable on return.

        `records` may be called several times, and returns all of them each time. Raises
        StoreBusyError when the log has another head by now, VersionConflictError when a
        version of a stream comes twice.
        """
        tables, folder = self._tables, self._environment.folder

        def work(txn: Transaction) -> None:
            if Head(*tables.find_head(txn)) != head:
                raise StoreBusyError(folder, "another process writes to it")
            source = iter(records())
            while chunk := list(islice(source, _CHUNK)):
                _Restore(tables, chunk).apply(txn)
            for tracking in trackings:
                if (tables.tracking.read(txn, tracking.name) or -1) < tracking.position:
                    tables.tracking.put(txn, tracking.name, tracking.position)
            if Head(*tables.find_head(txn)) != end:
                raise StoreBusyError(folder, "the file changed while it was read")

        self._environment.update(work)


class _Restore(Append):
    """An append of records that exist elsewhere, where some bodies may be erased or lost."""

    __slots__ = ()

    def __init__(self, tables: Tables, copies: list[CopiedRecord]) -> None:
        super().__init__(tables, [_new(copy.record) for copy in copies], None, None)
        for packed, copy in zip(self._packed, copies, strict=True):
            if copy.body_digest is not None:
                packed.flags |= ABSENT
                packed.body = packed.body_digest = copy.body_digest
                if copy.archive is not None:
                    packed.flags |= ARCHIVED
                    packed.body = copy.body_digest + U64.pack(copy.archive)


def _new(record: Record) -> NewRecord:
    return NewRecord(record.stream, record.version, record.topic, record.time_us, record.body)
