"""Say in Tachograph's words what LMDB could not do. Never hides the original error."""

from __future__ import annotations

import errno

import lmdb

from tachograph.domain.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreNotFoundError,
    StoreReadOnlyError,
)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM)
READ_ONLY_CODES = (errno.EACCES, errno.EPERM, errno.EROFS)
_BUSY = (errno.EAGAIN, errno.EMFILE, errno.ENFILE)

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
    code = getattr(error, "code", 0) or getattr(error, "errno", 0) or 0
    kind = _kind(error, code)
    return kind(folder) if kind is StoreNotFoundError else kind(folder, str(error))


def _kind(error: BaseException, code: int) -> type[StoreError]:
    if isinstance(error, lmdb.MapFullError) or code in _FULL:
        return StoreFullError
    if code in READ_ONLY_CODES:
        return StoreReadOnlyError
    if isinstance(error, _CORRUPT_TYPES) or code == errno.EIO:
        return StoreCorruptError
    if isinstance(error, _BUSY_TYPES) or code in _BUSY or _is_open_elsewhere(error):
        return StoreBusyError
    if code == errno.ENOENT:
        return StoreNotFoundError
    return StoreFailedError


def _is_open_elsewhere(error: BaseException) -> bool:
    """Tell whether other code of this process holds the environment (py-lmdb has no class)."""
    return "already open in this process" in str(error)


class StoreFailedError(StoreError):
    """LMDB refused for a reason that Tachograph has no advice for."""

    template = "The store at {0} could not be used: {1}. Nothing of this command was recorded."
