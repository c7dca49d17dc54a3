"""The files of an LMDB environment: made whole, opened, checked. Never repairs or deletes data."""

from __future__ import annotations

import os

import lmdb

from tachograph.domain.errors import StoreCorruptError, StoreNotFoundError
from tachograph.infra.durable import sync_folder, sync_path
from tachograph.infra.lmdb_errors import READ_ONLY_CODES, code_of, translate
from tachograph.infra.locks import FileLock

MAX_DATABASES = 64
MAX_READERS = 510
"""Read transactions open at the same time in all processes: 64 bytes each in lock.mdb."""
_DATA = "data.mdb"
_NEW = "new"
_IN_USE = "in-use.lock"
_LMDB_0_9 = 0
"""Engine of new files: its format is the one that the length check and most tools can read."""


def lock_path(folder: str) -> str:
    """Return the file that is locked for growth and creation (LMDB locks one of its own)."""
    return os.path.join(folder, "tachograph.lock")


def claim(folder: str) -> FileLock | None:
    """Say that this process has the files open, so that nobody swaps them; wait while one does.

    Returns what to release, None in a folder that cannot be written: who reads there keeps the
    files that it opened.
    """
    _refuse_missing(folder)
    lock = FileLock(os.path.join(folder, _IN_USE), shared=True)
    try:
        return lock.__enter__()
    except OSError as error:
        if error.errno in READ_ONLY_CODES:
            return None
        raise translate(error, folder) from error


def lock_out(folder: str) -> FileLock:
    """Keep everybody else from opening the files, until the result is released.

    Raises BlockingIOError while a process has them open.
    """
    return FileLock(os.path.join(folder, _IN_USE), wait=False).__enter__()


def release(lock: FileLock | None) -> None:
    """Release what `claim` or `lock_out` returned."""
    if lock is not None:
        lock.__exit__(None, None, None)


def identity(folder: str) -> tuple[int, int] | None:
    """Return device and inode of the data file, None if there is none.

    A folder deleted and made anew at the same path is another environment.
    """
    try:
        status = os.stat(os.path.join(folder, _DATA))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def create(folder: str, map_size: int) -> None:
    """Make the folder and an empty data file, unless they exist. Durable on return.

    The file appears whole, by renaming: an empty one then means that data was lost, and never
    that a process was killed while making it.

    Raises StoreReadOnlyError or StoreFullError when it cannot be made.
    """
    if identity(folder) is not None:
        return
    try:
        os.makedirs(folder, exist_ok=True)
        with FileLock(lock_path(folder)):
            if identity(folder) is None:
                _create(folder, map_size)
    except (lmdb.Error, OSError) as error:
        raise translate(error, folder) from error


def open_files(folder: str, *, readonly: bool, sync: bool) -> tuple[lmdb.Environment, bool]:
    """Open the files, and say whether LMDB's locks are in use.

    A reader that may not write lock.mdb goes without locks: it then depends on nobody writing.
    On a file system mounted read-only, LMDB leaves them out by itself.
    """
    _refuse_missing(folder)
    try:
        return _open(folder, readonly=readonly, sync=sync, lock=True), True
    except lmdb.Error as error:
        if not (readonly and code_of(error) in READ_ONLY_CODES):
            raise translate(error, folder) from error
    try:
        return _open(folder, readonly=True, sync=sync, lock=False), False
    except lmdb.Error as error:
        raise translate(error, folder) from error


def refuse_truncated(environment: lmdb.Environment, folder: str) -> None:
    """Refuse a data file that was cut short, before a page beyond its end is touched (SIGBUS).

    Opening touches only the two meta pages, which LMDB reads without mapping them.

    Raises StoreCorruptError when committed pages are missing.
    """
    path = os.path.join(folder, _DATA)
    with environment.begin() as txn:
        page_size = environment.stat()["psize"]
        last_page = environment.info()["last_pgno"]
        if os.stat(path).st_size >= (last_page + 1) * page_size:
            return
        from tachograph.infra.lmdb_pages import DamagedFileError, check_length

        try:
            check_length(path, page_size, last_page, txn.id())
        except DamagedFileError as error:
            raise StoreCorruptError(folder, f"{_DATA} was cut short: {error}") from error


def _refuse_missing(folder: str) -> None:
    try:
        size = os.stat(os.path.join(folder, _DATA)).st_size
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreNotFoundError(folder) from error
    if not size:
        raise StoreCorruptError(folder, f"{_DATA} is empty")


def _open(
    folder: str, *, readonly: bool, sync: bool, lock: bool, map_size: int = 0
) -> lmdb.Environment:
    """Open with the map size the file records, which other processes agree on, or a given one."""
    return lmdb.open(
        folder,
        map_size=map_size,
        readonly=readonly,
        sync=sync,
        metasync=sync,
        lock=lock,
        max_dbs=MAX_DATABASES,
        max_readers=MAX_READERS,
        lib_version=_LMDB_0_9,
    )


def _create(folder: str, map_size: int) -> None:
    new = os.path.join(folder, _NEW)
    made = os.path.join(new, _DATA)
    if os.path.exists(made):
        os.remove(made)  # left by a process killed right here
    _open(new, readonly=False, sync=True, lock=False, map_size=map_size).close()
    sync_path(made)
    os.rename(made, os.path.join(folder, _DATA))
    os.rmdir(new)
    sync_folder(folder)
    sync_folder(os.path.dirname(folder))
