"""One request to append to the log, as a group commit runs it. Never commits by itself."""

from __future__ import annotations

from tachograph.domain.errors import StoredNameError, VersionConflictError
from tachograph.infra.group_commit import Request
from tachograph.infra.layout import (
    FORMAT,
    MAX_VERSION,
    U32,
    U64,
    Packed,
    check_version,
    digest_record,
    encode_text,
    pack_head,
    pack_header,
    pack_position,
    pack_version_key,
    stream_key,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.domain.records import NewRecord, SnapshotRecord, StreamId
    from tachograph.infra.lmdb_environment import Transaction
    from tachograph.infra.lmdb_tables import Tables


class Append(Request):
    """Records to append, all or none, with a snapshot and a tracked position if given."""

    __slots__ = (
        "_packed",
        "_snapshot",
        "_streams",
        "_tables",
        "_topics",
        "_tracking",
        "positions",
    )

    def __init__(
        self,
        tables: Tables,
        records: Sequence[NewRecord],
        snapshot: SnapshotRecord | None,
        tracking: tuple[str, int] | None,
    ) -> None:
        super().__init__()
        self._tables = tables
        self._packed = [Packed(record) for record in records]
        self._snapshot = snapshot
        if snapshot is not None:
            check_version(snapshot.stream, snapshot.version)
        self._tracking = tracking
        self._topics: dict[str, int] = {}
        self._streams: dict[bytes, StreamId] = {}
        self.positions: list[int] = []

    def apply(self, txn: Transaction) -> None:
        """Check everything, then write everything.

        Raises VersionConflictError if a version of a stream exists, TrackingConflictError if
        the tracked position was already processed, StoredNameError if two ids have one key.
        """
        self._topics, self._streams = {}, {}
        keys = self._check_versions(txn)
        self._find_new_streams(txn)
        if self._tracking is not None:
            self._tables.tracking.check(txn, *self._tracking)
        position, digest = self._tables.find_head(txn)
        self._write_names(txn)
        self._write_records(txn, keys, position, digest)
        if self._snapshot is not None:
            self._write_snapshot(txn, self._snapshot)
        if self._tracking is not None:
            self._tables.tracking.put(txn, *self._tracking)

    def committed(self) -> None:
        """Let the caches know what is durable now."""
        self._tables.learn_topics(self._topics)
        self._tables.learn_streams(self._streams)

    def _check_versions(self, txn: Transaction) -> list[bytes]:
        index = self._tables[self._tables.index]
        keys: list[bytes] = []
        for packed in self._packed:
            key = pack_version_key(packed.key, packed.record.version)
            if txn.get(key, db=index) is not None:
                self._refuse_version(txn, packed)
            keys.append(key)
        if len(set(keys)) < len(keys):
            repeated = next(packed for n, packed in enumerate(self._packed) if keys[n] in keys[:n])
            self._refuse_version(txn, repeated)
        return keys

    def _refuse_version(self, txn: Transaction, packed: Packed) -> None:
        highest = highest_version(txn, self._tables, packed.key)
        raise VersionConflictError(packed.record.stream, packed.record.version, highest)

    def _find_new_streams(self, txn: Transaction) -> None:
        for packed in self._packed:
            self._find_new_stream(txn, packed.record.stream, packed.key)
        if self._snapshot is not None:
            stream = self._snapshot.stream
            self._find_new_stream(txn, stream, stream_key(stream)[0])

    def _find_new_stream(self, txn: Transaction, stream: StreamId, key: bytes) -> None:
        known = self._tables.known_streams.get(key, self._streams.get(key))
        if known is None:
            text = self._tables.find_text(txn, key)
            known = self._streams[key] = stream if text is None else text
        if known != stream:
            raise StoredNameError(stream, known)

    def _write_names(self, txn: Transaction) -> None:
        """Give numbers to new topics and keep the texts of new streams."""
        for packed in self._packed:
            topic = packed.record.topic
            if topic not in self._tables.numbers and topic not in self._topics:
                number = self._tables.find_number(txn, topic)
                self._topics[topic] = number or self._add_topic(txn, topic)
        for key, stream in self._streams.items():
            if isinstance(stream, str):
                text = encode_text(stream)
                txn.put(key, text, overwrite=False, db=self._tables[self._tables.streams])

    def _add_topic(self, txn: Transaction, topic: str) -> int:
        types = self._tables[self._tables.types]
        cursor = txn.cursor(db=types)
        number: int = U32.unpack(cursor.key())[0] + 1 if cursor.last() else 1
        txn.put(U32.pack(number), encode_text(topic), append=True, db=types)
        return number

    def _write_records(
        self, txn: Transaction, keys: list[bytes], position: int, digest: bytes
    ) -> None:
        tables = self._tables
        records, index, numbers = tables[tables.records], tables[tables.index], tables.numbers
        first = position + 1
        for packed, key in zip(self._packed, keys, strict=True):
            record = packed.record
            number = numbers.get(record.topic) or self._topics[record.topic]
            position += 1
            place = pack_position(position)
            header = pack_header(
                FORMAT,
                packed.flags,
                0,
                number,
                packed.key,
                record.version,
                record.time_us,
                digest,
            )
            txn.put(place, header + packed.body, append=True, db=records)
            txn.put(key, place, db=index)
            digest = digest_record(
                digest,
                position,
                packed.key,
                record.version,
                record.time_us,
                packed.topic,
                packed.body_digest,
            )
        self.positions = list(range(first, position + 1))
        if keys:
            txn.put(tables.head, pack_head(position, digest))

    def _write_snapshot(self, txn: Transaction, snapshot: SnapshotRecord) -> None:
        key = pack_version_key(stream_key(snapshot.stream)[0], snapshot.version)
        txn.put(key, snapshot.body, db=self._tables[self._tables.snapshots])


def highest_version(txn: Transaction, tables: Tables, key: bytes) -> int:
    """Return the highest version of a stream, 0 if it has none."""
    cursor = txn.cursor(db=tables[tables.index])
    found = cursor.set_range(pack_version_key(key, MAX_VERSION + 1))
    if (cursor.prev() if found else cursor.last()) and cursor.key()[:16] == key:
        return int(U64.unpack_from(cursor.key(), 16)[0])
    return 0
