"""Views in memory: for tests, and for a store whose folder cannot be written. Keeps no file."""

from __future__ import annotations

from threading import RLock

from tachograph.infra.view_rows import TABLES, Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import TypeVar

    from tachograph.infra.codec import Codec
    from tachograph.infra.view_rows import Tables

    T = TypeVar("T")
    Table = dict[bytes, bytes]

_PLACE = "memory"


class MemoryViews:
    """The same views as in LMDB, in dictionaries. Satisfies the ViewStore port.

    Safe to share between threads: a `with` block of one keeps the others waiting.
    """

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._lock = RLock()
        self._tables: dict[bytes, Table] = {}
        self._clear()

    def read(self) -> _Reading:
        """Return a `with` block that sees all views as of one moment."""
        return _Reading(self)

    def update(self, work: Callable[[Rows], T]) -> T:
        """Run `work` in one transaction: all of it is kept, or (when it raises) nothing."""
        with self._lock:
            changed = {name: dict(table) for name, table in self._tables.items()}
            result = work(self._rows(MemoryTables(changed)))
            self._tables = changed
            return result

    def rebuilding(self) -> _Building:
        """Return a `with` block for an empty place that replaces this one at its end."""
        return _Building(self, keep=True)

    def scratch(self) -> _Building:
        """Return a `with` block for an empty place that is thrown away at its end."""
        return _Building(self, keep=False)

    def discard(self) -> None:
        """Throw the content away."""
        with self._lock:
            self._clear()

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""

    def _clear(self) -> None:
        self._tables = {name: {} for name in TABLES}
        self._rows(MemoryTables(self._tables)).create()

    def _rows(self, tables: Tables) -> Rows:
        return Rows(tables, self._codec, _PLACE)


class MemoryTables:
    """Ordered tables in dictionaries. Satisfies the Tables port."""

    __slots__ = ("_tables",)

    def __init__(self, tables: dict[bytes, Table]) -> None:
        self._tables = tables

    def get(self, table: bytes, key: bytes) -> bytes | None:
        """Return a value, or None."""
        return self._tables[table].get(key)

    def put(self, table: bytes, key: bytes, value: bytes) -> None:
        """Set a value."""
        self._tables[table][key] = value

    def delete(self, table: bytes, key: bytes) -> None:
        """Remove a value, if it is there."""
        self._tables[table].pop(key, None)

    def count(self, table: bytes) -> int:
        """Return the number of keys in a table, at once."""
        return len(self._tables[table])

    def scan(
        self, table: bytes, low: bytes = b"", high: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys with `low` <= key < `high` and their values, in order."""
        rows = self._tables[table]
        inside = [key for key in rows if key >= low and (high is None or key < high)]
        for key in sorted(inside, reverse=reverse):
            yield key, rows[key]


class _Reading:
    def __init__(self, views: MemoryViews) -> None:
        self._views = views

    def __enter__(self) -> Rows:
        self._views._lock.acquire()
        return self._views._rows(MemoryTables(self._views._tables))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._views._lock.release()


class _Building:
    def __init__(self, views: MemoryViews, *, keep: bool) -> None:
        self._views = views
        self._keep = keep

    def __enter__(self) -> MemoryViews:
        self._made = MemoryViews(self._views._codec)
        return self._made

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._keep and error is None:
            with self._views._lock:
                self._views._tables = self._made._tables
