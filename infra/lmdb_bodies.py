"""Put digests in the place of bodies in the log. Never changes a digest, a header or an order."""

from __future__ import annotations

from itertools import islice

from tachograph.domain.errors import StoreCorruptError
from tachograph.infra.group_commit import Request
from tachograph.infra.layout import (
    ABSENT,
    ARCHIVED,
    MAX_VERSION,
    pack_position,
    pack_version_key,
    stored_archive,
    stream_key,
    without_body,
)
from tachograph.infra.lmdb_append import Append
from tachograph.infra.lmdb_reading import WINDOW, between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.domain.records import NewRecord
    from tachograph.infra.lmdb_environment import Environment, Transaction
    from tachograph.infra.lmdb_tables import Tables


class Move(Request):
    """Bodies that go to an archive, at some positions. `moved` counts those that were here."""

    __slots__ = ("_archive", "_places", "_tables", "moved")

    def __init__(self, tables: Tables, positions: Sequence[int], archive: int) -> None:
        super().__init__()
        self._tables = tables
        self._places = [pack_position(position) for position in positions]
        self._archive = archive
        self.moved = 0

    def apply(self, txn: Transaction) -> None:
        """Replace the bodies. Raises StoreCorruptError, before any of it, for a lost record."""
        records = self._tables[self._tables.records]
        new: list[tuple[bytes, bytes]] = []
        for place in self._places:
            value = txn.get(place, db=records)
            if value is None:
                what = f"record {int.from_bytes(place, 'big')} is lost"
                raise StoreCorruptError(self._tables.environment.folder, what)
            changed = without_body(value, self._archive)
            if changed is not None:
                new.append((place, changed))
        for place, changed in new:
            txn.put(place, changed, db=records)
        self.moved = len(new)


class Erase:
    """A record that says so, and no body any more in its stream before it."""

    __slots__ = ("_append", "_key", "_tables")

    def __init__(self, tables: Tables, record: NewRecord) -> None:
        self._tables = tables
        self._append = Append(tables, [record], None, None)
        self._key = stream_key(record.stream)[0]

    def commit(self, environment: Environment) -> int:
        """Do all of it in one commit, and return the position of the record."""
        environment.update(self._apply, self._append.committed)
        return self._append.positions[0]

    def _apply(self, txn: Transaction) -> None:
        tables = self._tables
        records = tables[tables.records]
        self._append.apply(txn)
        own = pack_position(self._append.positions[0])
        for place in [each for _, each in self._entries(txn, tables.index)]:
            changed = None if place == own else without_body(txn.get(place, b"", db=records), None)
            if changed is not None:
                txn.put(place, changed, db=records)
        for key, _ in list(self._entries(txn, tables.snapshots)):
            txn.delete(key, db=tables[tables.snapshots])

    def _entries(self, txn: Transaction, name: bytes) -> list[tuple[bytes, bytes]]:
        lower, upper = pack_version_key(self._key, 0), pack_version_key(self._key, MAX_VERSION)
        return list(between(txn.cursor(db=self._tables[name]), lower, upper, reverse=False))


def archives(tables: Tables) -> dict[int, int]:
    """Return how many bodies of the log each archive holds, in many short transactions."""
    found: dict[int, int] = {}
    after: int | None = 0
    while after is not None:
        with tables.environment.read_buffers() as txn:
            cursor = txn.cursor(db=tables[tables.records])
            started = cursor.set_range(pack_position(after + 1))
            last = None
            for key, value in islice(cursor.iternext(), WINDOW if started else 0):
                last = int.from_bytes(key, "big")
                if len(value) > 1 and value[1] & (ABSENT | ARCHIVED) == ABSENT | ARCHIVED:
                    number = stored_archive(value)  # type: ignore[arg-type]  # reads a buffer too
                    if number is not None:
                        found[number] = found.get(number, 0) + 1
            after = last
    return found
