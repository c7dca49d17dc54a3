"""The LMDB environments of this process, one per folder, and transactions in them.

Never keeps a transaction open longer than a `with` block or a call.
"""

from __future__ import annotations

import os
from _thread import RLock, get_ident  # threading costs a short command 3 ms

import lmdb

from tachograph.domain.errors import SettingError, StoreBusyError
from tachograph.infra import lmdb_files
from tachograph.infra.filesystems import refuse_network
from tachograph.infra.group_commit import GroupCommit
from tachograph.infra.lmdb_blocks import Reading, ReadingBuffers, Writing, is_open
from tachograph.infra.lmdb_errors import translate
from tachograph.infra.lmdb_mapping import MAX_MAP_SIZE, MIB, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event
    from typing import TypeVar

    T = TypeVar("T")
    Transaction = lmdb.Transaction[bytes]
    Database = lmdb._Database

DEFAULT_MAP_SIZE = 64 * MIB
"""Address space: the file holds only the pages in use (except on Windows)."""
_ATTEMPTS = 3
_FORK_SECONDS = 10.0
"""How long a fork waits for transactions of other threads; a commit takes milliseconds."""

_getpid = os.getpid
_registry: dict[tuple[int, int], Environment] = {}
_registry_lock = RLock()
"""Reentrant: collecting garbage inside `open_environment` may close a forgotten environment."""


def open_environment(
    folder: str | os.PathLike[str],
    *,
    readonly: bool = False,
    create: bool = True,
    map_size: int | None = None,
    sync: bool = True,
) -> Environment:
    """Open a folder, or share the environment this process has open there.

    `map_size` (bytes; else LMDB_MAP_SIZE; else 64 MiB) is where the map starts; it grows by
    itself. Without `sync` a commit survives the process but not the machine.
    Close the result once for every call.

    Raises StoreNotFoundError if there is none and `create` is false or `readonly` true,
    StoreReadOnlyError if it cannot be written, StoreCorruptError if the data file is damaged or
    cut short, and NetworkFileSystemError.
    """
    path = os.path.realpath(folder)
    size = map_size or map_size_setting(os.environ.get("LMDB_MAP_SIZE", ""))
    with _registry_lock:
        shared = _registry.get(lmdb_files.identity(path) or (0, 0))
        if shared is not None and shared.share(readonly=readonly, sync=sync):
            return shared
        refuse_network(path)
        if create and not readonly:
            lmdb_files.create(path, size)
        environment = Environment(path, readonly=readonly, map_size=size, sync=sync)
        _registry[environment.key] = environment
        return environment


def map_size_setting(text: str) -> int:
    """Return the map size in bytes that a setting names, the default for an empty one."""
    if not text.strip():
        return DEFAULT_MAP_SIZE
    try:
        size = int(text)
    except ValueError:
        size = 0
    if not MIB <= size <= MAX_MAP_SIZE:
        advice = f"Name a number of bytes from {MIB} to {MAX_MAP_SIZE}."
        raise SettingError("LMDB_MAP_SIZE", f"{text!r} is not a map size", advice)
    return size


class Environment(Mapping):
    """An open LMDB environment, shared by everybody in this process who opened its folder.

    Use it from any thread and, after a fork, from the child, which reopens it on its next use
    without disturbing the parent.
    """

    __slots__ = ("_users", "_writer", "group", "key", "listeners")

    def __init__(self, folder: str, *, readonly: bool, map_size: int, sync: bool) -> None:
        super().__init__(folder, readonly=readonly, map_size=map_size, sync=sync)
        self.group = GroupCommit(self.update)
        """Joins the commits of threads."""
        self.key = lmdb_files.identity(folder) or (0, 0)
        self.listeners: set[Event] = set()
        """Events that are set after every commit of this process. Add and discard them freely."""
        self._users = 1
        self._writer = 0

    # Transactions

    def read(self) -> Reading:
        """Return a `with` block for a read transaction: all that was committed before it."""
        return Reading(self)

    def read_buffers(self) -> ReadingBuffers:
        """Return a `with` block that reads without copying: for headers of long values."""
        return ReadingBuffers(self)

    def write(self) -> Writing:
        """Return a `with` block for a write transaction, committed at its end unless it raises.

        It starts with 8 MiB of room in the map. `update` has no such limit.
        """
        return Writing(self)

    def update(
        self, work: Callable[[Transaction], T], committed: Callable[[], None] | None = None
    ) -> T:
        """Run `work(txn)` in a write transaction and commit it: durable on return.

        When the map is full it grows, and all of `work` runs again in a new transaction: it must
        have no other effect than writing to `txn`. `committed` is called after the commit, even
        if a signal interrupts this call there, and then perhaps twice.

        Raises StoreFullError when the disk is full, or the map may not grow further.
        """
        while True:
            size = self.map_size
            try:
                return self._attempt(work, committed)
            except lmdb.MapFullError as error:
                self.grow(size, error)

    def begin(self, *, write: bool) -> Transaction:
        """Begin a transaction that the caller ends with `end`. Prefer `read`, `write`, `update`."""
        if not write:
            return self._begin(lmdb.Environment.begin)
        if self._writer == get_ident():
            raise StoreBusyError(self.folder, "this thread is already writing to it")
        txn = self._begin(_begin_write)
        self._writer = get_ident()
        return txn

    def begin_buffers(self) -> lmdb.Transaction[memoryview]:
        """Begin a read transaction that yields memoryviews; the caller ends it with `end`."""
        return self._begin(_begin_buffers)

    def end(self, txn: lmdb.Transaction, *, write: bool) -> None:
        """End a transaction, giving up writes that were not committed."""
        if self._pid != _getpid():
            return  # forked inside the block: the transaction is the parent's
        if write:
            self._writer = 0
        txn.abort()  # does nothing after a commit
        self._gate.leave()

    def open_databases(self, *names: bytes, create: bool = True) -> bool:
        """Put the handles of named databases into `databases`, making those that are missing.

        Returns False if one is missing and may not be made, as in a read-only environment.
        """
        if self.is_inherited():
            self._reopen_in_child()
        if self._gate.is_inside():
            raise StoreBusyError(self.folder, "this thread is inside a transaction")
        with self._handles:  # lmdb.h: no two transactions may open handles at the same time
            missing = [name for name in names if name not in self.databases]
            if missing:
                self._find_databases(missing)
            missing = [name for name in missing if name not in self.databases]
            if missing and create and not self._readonly:
                self._make_databases(missing)
                missing = []
            return not missing

    # Upkeep

    def last_transaction(self) -> int:
        """Return the number of commits so far that a reader sees, of any process.

        Takes microseconds. LMDB's own counter (mdb_env_info) rises while a commit is still on
        its way to the disk, before any reader sees it: who polls that one sleeps through it.
        """
        txn = self.begin(write=False)
        try:
            return txn.id()
        finally:
            self.end(txn, write=False)

    def clear_stale_readers(self) -> int:
        """Free the slots of killed readers, which keep old pages from being reused; count them."""
        environment = self.enter()
        try:
            return environment.reader_check()
        except lmdb.Error as error:
            raise translate(error, self.folder) from error
        finally:
            self.leave()

    def readers(self) -> list[tuple[int, int]]:
        """Return process id and transaction of every open read transaction, oldest first."""
        environment = self.enter()
        try:
            rows = [line.split() for line in environment.readers().splitlines()[1:]]
        finally:
            self.leave()
        open_ones = [(int(row[0]), int(row[2])) for row in rows if row[-1] != "-"]
        return sorted(open_ones, key=lambda reader: reader[1])

    def copy_to(self, folder: str) -> None:
        """Write a compact copy of all data as of now into an existing, empty folder."""
        environment = self.enter()
        try:
            environment.copy(folder, compact=True)
        except lmdb.Error as error:
            raise translate(error, folder) from error
        finally:
            self.leave()

    def share(self, *, readonly: bool, sync: bool) -> bool:
        """Count one more user, who will close it too; return False if the last has just done so.

        A writer turns a read-only environment writable for all.
        """
        if sync != self._sync:
            raise StoreBusyError(self.folder, "this process has it open with another sync setting")
        self._users += 1
        if self._users == 1:
            return False
        try:
            if self._readonly and not readonly:
                self.become_writable()
        except BaseException:
            self._users -= 1
            raise
        return True

    def close(self) -> None:
        """Give the environment back; the last to do so closes it, after open blocks have ended."""
        with _registry_lock:
            if self._users == 1:
                self.unmap()
                _registry.pop(self.key, None)
            self._users -= 1

    def notify(self) -> None:
        """Wake the listeners."""
        for listener in tuple(self.listeners):
            listener.set()

    def forget_parent(self) -> None:
        """Drop, in the child of a fork, what threads of the parent were doing."""
        super().forget_parent()
        self.group = GroupCommit(self.update)
        self.listeners = set()
        self._writer = 0

    # How it works

    def _attempt(self, work: Callable[[Transaction], T], committed: Callable[[], None] | None) -> T:
        txn = self.begin(write=True)
        try:
            result = work(txn)
            txn.commit()
            if committed is not None:
                committed()
            self.notify()
        except lmdb.MapFullError:
            raise
        except lmdb.Error as error:
            raise translate(error, self.folder) from error
        except BaseException:
            if committed is not None and not is_open(txn):
                committed()  # interrupted between the commit and here
            raise
        else:
            return result
        finally:
            self.end(txn, write=True)

    def _begin(self, start: Callable[[lmdb.Environment], T]) -> T:
        """Begin a transaction inside the gate, after removing what keeps it from beginning."""
        for attempt in range(_ATTEMPTS):
            raw = self.enter()
            try:
                return start(raw)
            except lmdb.Error as error:
                self.leave()
                self._cure(error, attempt)
            except BaseException:
                self.leave()
                raise
        raise StoreBusyError(self.folder, "other processes keep enlarging it")

    def _cure(self, error: lmdb.Error, attempt: int) -> None:
        """Remove what kept a transaction from beginning, or raise what it was."""
        if isinstance(error, lmdb.MapResizedError):
            self.follow()
        elif isinstance(error, lmdb.ReadersFullError) and attempt == 0:
            self.clear_stale_readers()
        elif isinstance(error, lmdb.PanicError) and attempt == 0:
            self.reopen()
        else:
            raise translate(error, self.folder) from error

    def _find_databases(self, names: list[bytes]) -> None:
        """Look the names up.

        Where writing is allowed, in a write transaction: py-lmdb drops handles opened in a read
        transaction, and without any it would wait for writers while holding the interpreter.
        """
        if self._readonly:
            self.databases.update(self._known(names, None))
        else:
            self.databases.update(self.update(lambda txn: self._known(names, txn)))

    def _known(self, names: list[bytes], txn: Transaction | None) -> dict[bytes, Database]:
        found: dict[bytes, Database] = {}
        for name in names:
            try:
                found[name] = self._opened().open_db(name, txn=txn, create=False)
            except (lmdb.NotFoundError, lmdb.ReadonlyError):
                continue
        return found

    def _make_databases(self, names: list[bytes]) -> None:
        def make(txn: Transaction) -> dict[bytes, Database]:
            return {name: self._opened().open_db(name, txn=txn) for name in names}

        self.databases.update(self.update(make))


def _begin_write(environment: lmdb.Environment) -> Transaction:
    return environment.begin(write=True)


def _begin_buffers(environment: lmdb.Environment) -> lmdb.Transaction[memoryview]:
    return environment.begin(buffers=True)


def _before_fork() -> None:
    _registry_lock.acquire()
    for environment in list(_registry.values()):
        environment.settle(_FORK_SECONDS)


def _after_fork_in_parent() -> None:
    for environment in list(_registry.values()):
        environment.resume()
    _registry_lock.release()


def _after_fork_in_child() -> None:
    global _registry_lock  # noqa: PLW0603  a thread of the parent may have waited for it
    _registry_lock = RLock()
    for environment in list(_registry.values()):
        environment.forget_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
