"""What the recorders of one application share: a folder, its logs, and the translation of errors.

Never lets an error of LMDB or of Tachograph out to users of the eventsourcing library.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from eventsourcing.persistence import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
    PersistenceError,
    ProgrammingError,
)

from tachograph.domain import errors
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tachograph.infra.lmdb_environment import Database, Environment, Transaction

P = ParamSpec("P")
R = TypeVar("R")

MAX_KEY = 511
"""LMDB's limit for a key, in bytes."""

_CLASSES: dict[type[errors.StoreError], type[PersistenceError]] = {
    errors.VersionConflictError: IntegrityError,
    errors.TrackingConflictError: IntegrityError,
    errors.StoredNameError: IntegrityError,
    errors.RecordOutOfRangeError: DataError,
    errors.StoreClosedError: InterfaceError,
    errors.StoreCorruptError: InternalError,
    errors.StoreFormatError: InternalError,
    errors.StoreFullError: OperationalError,
    errors.StoreBusyError: OperationalError,
    errors.StoreReadOnlyError: OperationalError,
    errors.StoreNotFoundError: OperationalError,
    errors.NetworkFileSystemError: OperationalError,
}


def persistence_error(error: Exception) -> PersistenceError:
    """Return the error of the library (PEP 249) that stands for one of ours, or for bad use."""
    if isinstance(error, errors.StoreError):
        return _CLASSES.get(type(error), DatabaseError)(error)
    return ProgrammingError(error)


def translated(method: Callable[P, R]) -> Callable[P, R]:
    """Make a method raise errors of the library, with the original as their cause."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except (errors.StoreError, AttributeError, TypeError) as error:
            raise persistence_error(error) from error

    return call


@contextmanager
def translating() -> Iterator[None]:
    """Do the same for a block, except that bad use in it is the block's own affair."""
    try:
        yield
    except errors.StoreError as error:
        raise persistence_error(error) from error


class LMDBDatastore:
    """One folder, open for the recorders of one application. Close it when they are done."""

    def __init__(self, folder: str, map_size: int | None = None) -> None:
        self.folder = folder
        self._environment: Environment | None = open_environment(folder, map_size=map_size)

    @property
    def environment(self) -> Environment:
        """Return the LMDB environment. Raises InterfaceError after `close`."""
        if self._environment is None:
            raise persistence_error(errors.StoreClosedError(self.folder))
        return self._environment

    def check_open(self) -> None:
        """Raise InterfaceError after `close`, even if others have the folder open."""
        _ = self.environment

    @translated
    def log(self, name: str) -> LMDBLog:
        """Return a log of the folder, whose databases may not exist yet."""
        return LMDBLog(self.environment, name, create=False)

    def close(self) -> None:
        """Close the folder for this application. Closing again does nothing."""
        environment, self._environment = self._environment, None
        if environment is not None:
            environment.close()


class View:
    """The data of a view inside a transaction: bytes by key, in the order of keys."""

    __slots__ = ("_database", "_txn")

    def __init__(self, txn: Transaction, database: Database) -> None:
        self._txn = txn
        self._database = database

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, None if it has none."""
        return self._txn.get(_checked(key), db=self._database)

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        self._txn.put(_checked(key), value, db=self._database)

    def delete(self, key: bytes) -> bool:
        """Remove a key and say whether it was there."""
        return self._txn.delete(_checked(key), db=self._database)

    def items(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys that begin with a prefix, and their values, within the block."""
        cursor = self._txn.cursor(db=self._database)
        if cursor.set_range(prefix) if prefix else cursor.first():
            for key, value in cursor:
                if not key.startswith(prefix):
                    return
                yield key, value


def _checked(key: bytes) -> bytes:
    if not 1 <= len(key) <= MAX_KEY:
        raise DataError(f"A key has {len(key)} bytes; LMDB takes 1 to {MAX_KEY}. Hash long ones.")
    return key
