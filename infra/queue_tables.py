"""Ordered tables for the queue index: one in LMDB, one in memory. Knows nothing of jobs."""

from __future__ import annotations

from bisect import bisect_left, insort

TYPE_CHECKING = False
if TYPE_CHECKING:
    import lmdb

    Pair = tuple[bytes, bytes]


class LMDBTable:
    """One database as one transaction sees it. Satisfies the OrderedTable port."""

    __slots__ = ("_cursor", "_database", "_txn", "writable")

    def __init__(
        self, txn: lmdb.Transaction[bytes], database: lmdb._Database, *, writable: bool
    ) -> None:
        self._txn = txn
        self._database = database
        self._cursor = txn.cursor(db=database)
        self.writable = writable

    def get(self, key: bytes) -> bytes | None:
        """Return a value, or None."""
        return self._txn.get(key, db=self._database)

    def put(self, key: bytes, value: bytes) -> None:
        """Set a value."""
        self._txn.put(key, value, db=self._database)

    def delete(self, key: bytes) -> None:
        """Remove a value, if it is there."""
        self._txn.delete(key, db=self._database)

    def at_or_after(self, key: bytes) -> Pair | None:
        """Return the first entry whose key is not before a key."""
        found = self._cursor.set_range(key) if key else self._cursor.first()
        return self._cursor.item() if found else None

    def before(self, key: bytes) -> Pair | None:
        """Return the last entry whose key is before a key."""
        found = self._cursor.prev() if self._cursor.set_range(key) else self._cursor.last()
        return self._cursor.item() if found else None

    def clear(self) -> None:
        """Remove everything."""
        self._txn.drop(self._database, delete=False)


class MemoryTable:
    """One table in memory, with a way back. Satisfies the OrderedTable port."""

    __slots__ = ("_keys", "_undo", "_values", "writable")

    def __init__(self) -> None:
        self._keys: list[bytes] = []
        self._values: dict[bytes, bytes] = {}
        self._undo: list[tuple[bytes, bytes | None]] = []
        self.writable = True

    def begin(self) -> None:
        """Begin what `roll_back` undoes."""
        self._undo = []

    def roll_back(self) -> None:
        """Undo everything since `begin`."""
        for key, value in reversed(self._undo):
            if value is None:
                self.delete(key)
            else:
                self.put(key, value)
        self._undo = []

    def get(self, key: bytes) -> bytes | None:
        """Return a value, or None."""
        return self._values.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set a value."""
        self._undo.append((key, self._values.get(key)))
        if key not in self._values:
            insort(self._keys, key)
        self._values[key] = value

    def delete(self, key: bytes) -> None:
        """Remove a value, if it is there."""
        if key in self._values:
            self._undo.append((key, self._values.pop(key)))
            del self._keys[bisect_left(self._keys, key)]

    def at_or_after(self, key: bytes) -> Pair | None:
        """Return the first entry whose key is not before a key."""
        return self._at(bisect_left(self._keys, key))

    def before(self, key: bytes) -> Pair | None:
        """Return the last entry whose key is before a key."""
        place = bisect_left(self._keys, key)
        return self._at(place - 1) if place else None

    def clear(self) -> None:
        """Remove everything."""
        for key in list(self._keys):
            self.delete(key)

    def _at(self, place: int) -> Pair | None:
        if place >= len(self._keys):
            return None
        key = self._keys[place]
        return key, self._values[key]
