"""From stored bytes to records. Decodes no body, and keeps nothing of a transaction."""

from __future__ import annotations

import struct
from itertools import islice

from tachograph.domain.errors import StoreCorruptError, StoreFormatError
from tachograph.domain.records import ArchivedRecord, Record
from tachograph.infra.layout import (
    ABSENT,
    ARCHIVED,
    BODY,
    FORMAT,
    TYPE,
    U32,
    U64,
    digest_record,
    pack_position,
    stored_archive,
    stored_body_digest,
    unpack_header,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import lmdb

    from tachograph.infra.lmdb_tables import Tables

    Pair = tuple[bytes, bytes]

WINDOW = 10_000
"""Headers that one transaction scans at most: a long one would keep old pages alive."""


def between(
    cursor: lmdb.Cursor[bytes], lower: bytes, upper: bytes, reverse: bool
) -> Iterator[Pair]:
    """Yield the entries from one key to another, both included, backwards if `reverse`."""
    if reverse:
        if seek_last(cursor, upper):
            for pair in cursor.iterprev():
                if pair[0] < lower:
                    return
                yield pair
    elif cursor.set_range(lower):
        for pair in cursor.iternext():
            if pair[0] > upper:
                return
            yield pair


def seek_last(cursor: lmdb.Cursor, upper: bytes) -> bool:
    """Move to the last key that is not after a key; return False if there is none."""
    if not cursor.set_range(upper):
        return cursor.last()
    return bytes(cursor.key()) == upper or cursor.prev()


def window(
    txn: lmdb.Transaction[memoryview],
    tables: Tables,
    topics: Collection[str],
    *,
    after: int,
    last: int,
    limit: int | None,
    reverse: bool,
) -> tuple[list[Pair], int]:
    """Return records of some types from the start of a range, and up to where it looked.

    It looks at headers only. At the end of the log it says that it looked at the whole range.
    """
    numbers = {tables.find_number(txn, topic) for topic in topics}
    cursor = txn.cursor(db=tables[tables.records])
    if reverse:
        end = after + 1
        found = seek_last(cursor, pack_position(last))
        values = cursor.iterprev(keys=False, values=True)
    else:
        end = last
        found = cursor.set_range(pack_position(after + 1))
        values = cursor.iternext(keys=False, values=True)
    here = _position(cursor) if found else 0
    size = min(WINDOW, here - after if reverse else last - here + 1) if found else 0
    pairs: list[Pair] = []
    looked = 0
    for value in islice(values, max(size, 0)):
        looked += 1
        if U32.unpack_from(value, TYPE)[0] in numbers:
            pairs.append((bytes(cursor.key()), bytes(value)))
            if len(pairs) == limit:
                return pairs, _position(cursor)
    return pairs, _position(cursor) if looked == WINDOW else end


def _position(cursor: lmdb.Cursor) -> int:
    return int(U64.unpack(cursor.key())[0])


def build(txn: lmdb.Transaction, tables: Tables, pairs: list[Pair]) -> list[Record]:
    """Make records of stored entries, in their order.

    The digest of a record is what the next one says it is; if that is not among the entries,
    it is computed.

    Raises StoreCorruptError when an entry cannot be read, StoreFormatError when a newer
    Tachograph wrote it.
    """
    try:
        headers = [unpack_header(value) for _, value in pairs]
        positions = [int(U64.unpack(key)[0]) for key, _ in pairs]
    except struct.error as error:
        raise StoreCorruptError(tables.environment.folder, "a record is too short") from error
    digests = {position: header[7] for position, header in zip(positions, headers, strict=True)}
    topics, streams = tables.topics, tables.known_streams
    records: list[Record] = []
    for position, (_, value), header in zip(positions, pairs, headers, strict=True):
        form, flags, _, number, key, version, time_us, previous = header
        if form != FORMAT:
            _refuse_format(tables, position, form)
        topic, topic_bytes = topics.get(number) or tables.topic(txn, number)
        stream = streams.get(key)
        if stream is None:
            stream = tables.stream(txn, key, flags)
        digest = digests.get(position + 1)
        if digest is None:
            body = stored_body_digest(value)
            digest = digest_record(previous, position, key, version, time_us, topic_bytes, body)
        absent = bool(flags & ABSENT)
        body = b"" if absent else value[BODY:]
        record = Record(position, stream, version, topic, time_us, body, digest, previous, absent)
        records.append(_archived(tables, record, key, value) if flags & ARCHIVED else record)
    return records


def _archived(tables: Tables, record: Record, key: bytes, value: bytes) -> ArchivedRecord:
    """Return a record that reads its body from an archive when it is asked for."""
    archive, digest = stored_archive(value) or 0, stored_body_digest(value)
    fetch = tables.bodies.fetcher(archive, key, record, digest)
    return ArchivedRecord(record, archive, fetch)


def _refuse_format(tables: Tables, position: int, form: int) -> None:
    folder = tables.environment.folder
    if form > FORMAT:
        raise StoreFormatError(folder, form, FORMAT)
    raise StoreCorruptError(folder, f"record {position} has no format")
