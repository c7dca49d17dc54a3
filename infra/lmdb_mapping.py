"""One LMDB environment as this process has it mapped: opened, enlarged, reopened after a fork.

Knows nothing of what is stored. Never opens `lock.mdb` itself: closing any descriptor of it would
release the locks that LMDB holds for this process (fcntl(2)).
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock

import lmdb

from tachograph.domain.errors import StoreBusyError, StoreClosedError, StoreError, StoreFullError
from tachograph.infra import lmdb_files
from tachograph.infra.gate import Gate
from tachograph.infra.lmdb_errors import translate
from tachograph.infra.locks import FileLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Transaction = lmdb.Transaction[bytes]
    Database = lmdb._Database

MIB = 2**20
MAX_MAP_SIZE = 2**40 if sys.maxsize > 2**32 else 2**30
MAX_STEP = 1024 * MIB
"""The map doubles until it grows by this much: address space is free, page tables nearly so."""
HEADROOM = 8 * MIB

_getpid = os.getpid


class Mapping:
    """The files of an environment in the memory of this process.

    Every use of them happens between `enter` and `leave`. What moves the map waits until nobody
    is inside: liblmdb does not check that itself.
    """

    __slots__ = (
        "_claim",
        "_gate",
        "_handles",
        "_page_size",
        "_pid",
        "_quiet",
        "_raw",
        "_readonly",
        "_start_size",
        "_sync",
        "databases",
        "folder",
        "locked",
        "map_size",
    )

    def __init__(self, folder: str, *, readonly: bool, map_size: int, sync: bool) -> None:
        self.folder = folder
        self.databases: dict[bytes, Database] = {}
        """Handles of the named databases that `open_databases` found or made."""
        self.locked = True
        """False for a reader that cannot write lock.mdb: nobody may write while it reads."""
        self.map_size = 0
        self._readonly = readonly
        self._start_size = map_size
        self._sync = sync
        self._page_size = 0
        self._gate = Gate()
        self._handles = allocate_lock()
        self._pid = _getpid()
        self._quiet = True
        self._raw: lmdb.Environment | None = None
        self._claim: FileLock | None = None
        self._open()

    @property
    def readonly(self) -> bool:
        """Whether it was opened for reading only."""
        return self._readonly

    def enter(self) -> lmdb.Environment:
        """Pass the gate and return the environment. The caller leaves the gate."""
        if self._pid != _getpid():
            self._reopen_in_child()
        self._gate.enter()
        if self._raw is None:
            self._gate.leave()
            raise StoreClosedError(self.folder)
        return self._raw

    def leave(self) -> None:
        """End what `enter` began."""
        self._gate.leave()

    def follow(self) -> None:
        """Map as much as another process has written, after MapResizedError."""
        self._exclusively(lambda: self._set_map_size(0))

    def grow(self, full_at: int, cause: Exception | None = None) -> None:
        """Enlarge the map that was full at a size, unless another thread or process just has.

        Raises StoreFullError when it may not grow further or the system refuses.
        """
        if full_at >= MAX_MAP_SIZE:
            reason = f"its memory map may not exceed {MAX_MAP_SIZE} bytes"
            raise StoreFullError(self.folder, reason) from cause

        def enlarge() -> None:
            with FileLock(lmdb_files.lock_path(self.folder)):
                self._opened().reader_check()  # killed readers may be what fills it
                self._set_map_size(0)
                if self.map_size <= full_at:
                    self._set_map_size(min(full_at + min(full_at, MAX_STEP), MAX_MAP_SIZE))

        self._exclusively(enlarge)

    def reserve(self) -> None:
        """Enlarge the map ahead of a block that cannot be run again."""
        while self._room() < HEADROOM and self.map_size < MAX_MAP_SIZE:
            self.grow(self.map_size)

    def _room(self) -> int:
        environment = self.enter()
        try:
            return self.map_size - (environment.info()["last_pgno"] + 1) * self._page_size
        finally:
            self.leave()

    def reopen(self) -> None:
        """Open the files anew: liblmdb refuses all further use after some errors (MDB_PANIC)."""
        self._exclusively(self._reopen)

    def become_writable(self) -> None:
        """Open for writing what was open for reading only."""
        self._exclusively(self._become_writable)

    def unmap(self) -> None:
        """Close the files, after open transactions have ended."""
        self._exclusively(self._close)

    # Forks

    def settle(self, seconds: float) -> None:
        """Keep all threads out of transactions while this one forks."""
        self._quiet = not self._gate.is_inside() and self._gate.close(seconds)

    def resume(self) -> None:
        """Go on, in the parent of a fork."""
        self._quiet = True
        self._gate.open()

    def forget_parent(self) -> None:
        """Drop, in the child of a fork, the locks that threads of the parent may have held."""
        self._gate = Gate()
        self._handles = allocate_lock()

    def is_inherited(self) -> bool:
        """Tell whether a parent process opened this, and this process has not used it yet."""
        return self._pid != _getpid()

    def _reopen_in_child(self) -> None:
        """Open the files for this process: LMDB's locks and reader slots belong to the parent.

        Closing the inherited ones touches nothing of the parent while it has no transaction
        open: fcntl locks are not inherited, and liblmdb frees only slots of its own process id.
        """
        with self._handles:
            if not self.is_inherited():
                return
            if not self._quiet:
                raise StoreBusyError(self.folder, "this process was forked inside a transaction")
            self._gate.close()
            try:
                self._pid = _getpid()  # other threads now wait at the gate
                if self._raw is not None:
                    self._reopen()
            finally:
                self._gate.open()

    # With nobody else inside

    def _exclusively(self, work: Callable[[], None]) -> None:
        if self._gate.is_inside():
            raise StoreBusyError(self.folder, "this thread is inside a transaction")
        self._gate.close()
        try:
            work()
        finally:
            self._gate.open()

    def _open(self) -> None:
        claim = lmdb_files.claim(self.folder)
        try:
            self._raw = self._open_files()
        except BaseException:
            lmdb_files.release(claim)
            raise
        self._claim = claim

    def _open_files(self) -> lmdb.Environment:
        environment, self.locked = lmdb_files.open_files(
            self.folder, readonly=self._readonly, sync=self._sync
        )
        try:
            lmdb_files.refuse_truncated(environment, self.folder)
            if not self._readonly and environment.info()["map_size"] < self._start_size:
                environment.set_mapsize(self._start_size)
            environment.reader_check()
            self.map_size = environment.info()["map_size"]
            self._page_size = environment.stat()["psize"]
        except (lmdb.Error, OSError) as error:
            environment.close()
            raise translate(error, self.folder) from error
        except BaseException:
            environment.close()
            raise
        return environment

    def _close(self) -> None:
        if self._raw is not None and self._quiet:
            self._raw.close()
        self._raw = None
        lmdb_files.release(self._claim)
        self._claim = None

    def _reopen(self) -> None:
        claim = lmdb_files.claim(self.folder)  # so that nobody swaps the files meanwhile
        try:
            self._close()
            self._open()
        finally:
            lmdb_files.release(claim)
        names, self.databases = list(self.databases), {}
        self._find_databases(names)

    def _become_writable(self) -> None:
        self._readonly = False
        try:
            self._reopen()
        except StoreError:
            self._readonly = True
            self._reopen()
            raise

    def _set_map_size(self, size: int) -> None:
        """Change the size of the map; 0 takes over what another process has chosen."""
        try:
            self._opened().set_mapsize(size)
        except lmdb.Error as error:
            self._reopen()  # liblmdb has unmapped it
            raise StoreFullError(self.folder, f"no memory map of {size} bytes: {error}") from error
        self.map_size = self._opened().info()["map_size"]

    def _opened(self) -> lmdb.Environment:
        if self._raw is None:
            raise StoreClosedError(self.folder)
        return self._raw

    def _find_databases(self, names: list[bytes]) -> None:
        """Put the handles of those that exist into `databases`. The caller is alone."""
        raise NotImplementedError
