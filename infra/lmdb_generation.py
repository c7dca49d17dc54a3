"""One generation of the views: an LMDB environment and the tables in it. Knows no other one."""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os
from threading import get_ident

from tachograph.domain.errors import StoreCorruptError
from tachograph.infra.durable import sync_path
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.locks import FileLock
from tachograph.infra.view_rows import TABLES, Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import TypeVar

    from tachograph.infra.codec import Codec
    from tachograph.infra.lmdb_blocks import Reading
    from tachograph.infra.lmdb_environment import Database, Environment, Transaction

    T = TypeVar("T")

_DATA = "data.mdb"


class Generation:
    """One set of views in its own LMDB environment. Satisfies the Views port."""

    __slots__ = ("_codec", "_environment", "name", "path")

    def __init__(
        self, folder: str, name: str, codec: Codec, *, create: bool = False, sync: bool = True
    ) -> None:
        self.name = name
        self.path = os.path.join(folder, name)
        self._codec = codec
        self._environment = open_environment(self.path, create=create, sync=sync)
        try:
            self._environment.open_databases(*TABLES)
        except BaseException:
            self._environment.close()
            raise

    def read(self) -> ReadingViews:
        """Return a `with` block that sees all views as of one moment."""
        return ReadingViews(self._environment, self._codec)

    def update(self, work: Callable[[Rows], T]) -> T:
        """Run `work` in one transaction, see `LMDBViews.update`."""
        environment, codec = self._environment, self._codec

        def run(txn: Transaction) -> T:
            return work(Rows(LMDBTables(txn, environment.databases), codec, environment.folder))

        return environment.update(run)

    def is_current(self) -> bool:
        """Whether its content is whole and of the versions that this Tachograph makes."""
        try:
            with self.read() as rows:
                return rows.is_current()
        except StoreCorruptError:
            return False

    def flush(self) -> None:
        """Bring everything written to the disk."""
        sync_path(os.path.join(self.path, _DATA))

    def close(self) -> None:
        """Give the environment back."""
        self._environment.close()


class LMDBTables:
    """Ordered tables in an LMDB transaction. Satisfies the Tables port."""

    __slots__ = ("_databases", "_last", "_txn")

    def __init__(self, txn: Transaction, databases: dict[bytes, Database]) -> None:
        self._txn = txn
        self._databases = databases
        self._last: dict[bytes, bytes] = {}
        """No key of a table is greater."""

    def end(self) -> None:
        """Let go of the transaction, which gives its slot in the reader table back."""
        del self._txn

    def get(self, table: bytes, key: bytes) -> bytes | None:
        """Return a value, or None."""
        return self._txn.get(key, None, self._databases[table])

    def put(self, table: bytes, key: bytes, value: bytes) -> None:
        """Set a value."""
        database = self._databases[table]
        last = self._last.get(table)
        if last is None:
            with self._txn.cursor(database) as cursor:
                last = self._last[table] = cursor.key() if cursor.last() else b""
        if key > last:
            self._last[table] = key
            self._txn.put(key, value, append=True, db=database)  # fills pages to the brim
        else:
            self._txn.put(key, value, db=database)

    def delete(self, table: bytes, key: bytes) -> None:
        """Remove a value, if it is there."""
        self._txn.delete(key, db=self._databases[table])

    def count(self, table: bytes) -> int:
        """Return the number of keys in a table, at once."""
        found: int = self._txn.stat(self._databases[table])["entries"]
        return found

    def scan(
        self, table: bytes, low: bytes = b"", high: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys with `low` <= key < `high` and their values, in order."""
        with self._txn.cursor(self._databases[table]) as cursor:
            if reverse:
                found = cursor.set_range(high) if high is not None else False
                if not (cursor.prev() if found else cursor.last()):
                    return
                for key, value in cursor.iterprev():
                    if key < low:
                        return
                    yield key, value
            elif cursor.set_range(low):
                for key, value in cursor.iternext():
                    if high is not None and key >= high:
                        return
                    yield key, value


class ReadingViews:
    """A `with` block that sees a generation as of one moment."""

    __slots__ = ("_codec", "_environment", "_tables", "_transaction")

    def __init__(self, environment: Environment, codec: Codec) -> None:
        self._environment = environment
        self._codec = codec
        self._transaction: Reading = environment.read()

    def __enter__(self) -> Rows:
        txn = self._transaction.__enter__()
        self._tables = LMDBTables(txn, self._environment.databases)
        return Rows(self._tables, self._codec, self._environment.folder)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tables.end()
        self._transaction.__exit__(kind, error, trace)


class BuildLock:
    """Held while generations are made, swapped or removed; a thread may take it twice."""

    __slots__ = ("_depth", "_file", "_owner", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._owner = 0
        self._depth = 0
        self._file: FileLock | None = None

    @property
    def nested(self) -> bool:
        """Whether the thread that holds it has taken it more than once."""
        return self._depth > 1

    def __enter__(self) -> None:
        if self._owner != get_ident():
            file = FileLock(self._path)
            file.__enter__()
            self._file, self._owner = file, get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth and self._file is not None:
            self._owner = 0
            self._file.__exit__(None, None, None)


def remove(path: str) -> None:
    """Remove a generation; what another process keeps from being removed stays until later."""
    doomed = path + "-removed"
    try:
        os.rename(path, doomed)  # so that nobody opens it while its files go one by one
    except OSError:
        doomed = path
    try:
        for name in os.listdir(doomed):
            os.unlink(os.path.join(doomed, name))
        os.rmdir(doomed)
    except OSError:
        return
