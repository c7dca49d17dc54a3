"""Transactions as `with` blocks. What they raise speaks Tachograph's words, never LMDB's."""

from __future__ import annotations

import lmdb

from tachograph.domain.errors import StoreFullError
from tachograph.infra.lmdb_errors import translate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from tachograph.infra.lmdb_environment import Environment


class _Block:
    """What ends a read transaction. Do not fork in the function that holds it."""

    __slots__ = ("_environment", "_txn")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._txn: lmdb.Transaction

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._environment.end(self._txn, write=False)
        del self._txn  # gives its slot in the reader table back
        if error is not None and isinstance(error, lmdb.Error):
            raise translate(error, self._environment.folder) from error


class Reading(_Block):
    """A read transaction whose results are bytes."""

    __slots__ = ()

    def __enter__(self) -> lmdb.Transaction[bytes]:
        self._txn = txn = self._environment.begin(write=False)
        return txn


class ReadingBuffers(_Block):
    """A read transaction whose results are memoryviews, which die with it: copy what you keep."""

    __slots__ = ()

    def __enter__(self) -> lmdb.Transaction[memoryview]:
        self._txn = txn = self._environment.begin_buffers()
        return txn


class Writing:
    """A write transaction. Whatever the block raises, nothing of it is then written."""

    __slots__ = ("_environment", "_txn")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def __enter__(self) -> lmdb.Transaction[bytes]:
        self._environment.reserve()
        self._txn = self._environment.begin(write=True)
        return self._txn

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        environment = self._environment
        try:
            if error is None and not environment.is_inherited():
                self._txn.commit()
                environment.notify()
        except lmdb.Error as failed:
            error = failed
        finally:
            environment.end(self._txn, write=True)
        if isinstance(error, lmdb.MapFullError):
            environment.grow(environment.map_size, error)
            reason = f"its memory map was full, and has {environment.map_size} bytes now"
            raise StoreFullError(environment.folder, reason) from error
        if isinstance(error, lmdb.Error):
            raise translate(error, environment.folder) from error


def is_open(txn: lmdb.Transaction) -> bool:
    """Tell whether a transaction was neither committed nor aborted."""
    try:
        txn.id()
    except lmdb.Error:
        return False
    return True
