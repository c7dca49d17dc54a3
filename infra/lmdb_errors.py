"""Say in Tachograph's words what LMDB could not do. Never hides the original error."""

from __future__ import annotations

import errno
import os

import lmdb

from tachograph.domain.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFailedError,
    StoreFullError,
    StoreNotFoundError,
    StoreReadOnlyError,
)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM)
READ_ONLY_CODES = (errno.EACCES, errno.EPERM, errno.EROFS)
_BUSY = (errno.EAGAIN, errno.EMFILE, errno.ENFILE)
_LITTLE_SPACE = 2**20

_CORRUPT_TYPES = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
    lmdb.PanicError,
    lmdb.IncompatibleError,
)
_BUSY_TYPES = (lmdb.ReadersFullError, lmdb.TlsFullError, lmdb.BadRslotError)


def translate(error: BaseException, folder: str) -> StoreError:
    """Return the error to raise from an error of LMDB or of the system."""
    code = code_of(error)
    kind = _kind(error, code, folder)
    if kind is StoreNotFoundError:
        return kind(folder)
    return kind(
        folder, "the disk is full" if code == errno.EIO and kind is StoreFullError else str(error)
    )


def code_of(error: BaseException) -> int:
    """Return the number of an error of LMDB or of the system, 0 if it has none."""
    return int(getattr(error, "code", 0) or getattr(error, "errno", 0) or 0)


def _kind(error: BaseException, code: int, folder: str) -> type[StoreError]:
    if isinstance(error, lmdb.MapFullError) or code in _FULL:
        return StoreFullError
    if code in READ_ONLY_CODES:
        return StoreReadOnlyError
    if isinstance(error, _CORRUPT_TYPES):
        return StoreCorruptError
    if isinstance(error, _BUSY_TYPES) or code in _BUSY or _is_open_elsewhere(error):
        return StoreBusyError
    if code == errno.ENOENT:
        return StoreNotFoundError
    if code == errno.EIO and _is_disk_full(folder):
        return StoreFullError
    return StoreFailedError


def _is_open_elsewhere(error: BaseException) -> bool:
    """Tell whether other code of this process holds the environment (py-lmdb has no class)."""
    return "already open in this process" in str(error)


def _is_disk_full(folder: str) -> bool:
    """Tell what liblmdb means by EIO: also a write that the disk had room for in part."""
    try:
        disk = os.statvfs(folder)
    except (AttributeError, OSError):  # Windows has no such call
        return False
    return disk.f_bavail * disk.f_frsize < _LITTLE_SPACE
