"""Remove files that are still what was recorded, and nothing else. Removes no folder."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from typing import TYPE_CHECKING

from tachograph.infra.durable import sync_folder

if TYPE_CHECKING:
    from io import BufferedReader

MISSING = "missing"
CHANGED = "changed"


def problem_with(path: str, size: int | None, sha256: str | None) -> str | None:
    """Return why a file must not be removed, None when it may be; `missing` when it is not there.

    It has to be a regular file of the recorded size and SHA-256, where those are recorded.
    """
    try:
        with _open(path) as file:
            return _problem(file, size, sha256)
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except OSError as error:
        return _said(error)


def remove(path: str, size: int | None, sha256: str | None) -> str | None:
    """Remove a file, and return why it was not removed, None when it was.

    Checked and removed are the same file: one that was put in its place meanwhile is kept. The
    removal is on disk when this returns.
    """
    try:
        with _open(path) as file:
            before = os.fstat(file.fileno())
            problem = _problem(file, size, sha256)
            now = os.lstat(path)
            if problem is None and not _same(before, now):
                problem = CHANGED
            if problem is not None:
                return problem
            os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except OSError as error:
        return _said(error)
    sync_folder(os.path.dirname(path) or ".")
    return None


def _open(path: str) -> BufferedReader:
    if stat.S_ISLNK(os.lstat(path).st_mode):  # the link would be removed, and the file stay
        raise OSError(errno.ELOOP, "it is a symbolic link")
    # Without waiting for the other end of a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return open(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def _problem(file: BufferedReader, size: int | None, sha256: str | None) -> str | None:
    if size is not None and os.fstat(file.fileno()).st_size != size:
        return CHANGED
    if sha256 is not None and hashlib.file_digest(file, "sha256").hexdigest() != sha256:
        return CHANGED
    return None


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) == (
        other.st_dev,
        other.st_ino,
        other.st_size,
        other.st_mtime_ns,
    )


def _said(error: OSError) -> str:
    return error.strerror or str(error)
