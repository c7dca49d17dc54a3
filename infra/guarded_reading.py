"""Read files that somebody else has named or made: never waits for a pipe, never fills memory."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader

LINK = "it is a link, and links are not followed"
NO_FILE = "it is no regular file"
_BINARY = getattr(os, "O_BINARY", 0)
# Without waiting for the other end of a pipe, and without becoming the owner of a terminal.
_FLAGS = (
    os.O_RDONLY
    | _BINARY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_PIECE = 1 << 20


def read_guarded(path: str, limit_bytes: int, *, follow_links: bool = False) -> bytes:
    """Return what is in a regular file of at most `limit_bytes`.

    Raises OSError with a text for a person in `strerror`: ELOOP for a link (unless
    `follow_links`), EISDIR for a folder, EINVAL for a pipe, a device or a socket, EFBIG for a
    longer file, and those of the system, such as FileNotFoundError.
    """
    with open_guarded(path, follow_links=follow_links) as file:
        data = _up_to(file, limit_bytes + 1)
    if len(data) > limit_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {limit_bytes} bytes", path)
    return data


def open_guarded(path: str, *, follow_links: bool = False) -> BufferedReader:
    """Open a regular file for reading. Raises OSError as `read_guarded` does, but for its size."""
    # Before it is opened as well: opening alone winds back a tape.
    _check(os.stat(path, follow_symlinks=follow_links).st_mode, path)
    try:
        descriptor = os.open(path, _FLAGS if follow_links else _FLAGS | _NO_LINK)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow_links:
            raise OSError(errno.ELOOP, LINK, path) from error
        raise
    try:
        _check(os.fstat(descriptor).st_mode, path)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check(mode: int, path: str) -> None:
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, LINK, path)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, NO_FILE, path)


def _up_to(file: BufferedReader, size: int) -> bytes:
    """Return at most so many bytes; memory grows with the file, not with the limit."""
    pieces: list[bytes] = []
    while size > 0 and (data := file.read(min(size, _PIECE))):
        pieces.append(data)
        size -= len(data)
    return b"".join(pieces)
