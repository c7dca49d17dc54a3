"""Files of anchors, one a line. Never changes a line that is there."""

from __future__ import annotations

import os

from tachograph.domain.errors import AnchorFileError, StoreFullError
from tachograph.infra.durable import sync_file, sync_folder
from tachograph.infra.guarded_reading import open_guarded
from tachograph.infra.lmdb_errors import translate

_TAIL = 4096
"""Bytes at the end of a file that hold its last line."""


def append(path: str, line: str) -> None:
    """Append a line to a file, which is made where there is none: all of it or nothing.

    Durable on return. A line that was cut off by a crash stays by itself. Raises StoreFullError
    when there is no room, AnchorFileError when the file cannot be written for another reason.
    """
    is_new = not os.path.exists(path)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            _append(descriptor, line)
        finally:
            os.close(descriptor)
        if is_new:
            sync_folder(os.path.dirname(os.path.abspath(path)))
    except OSError as error:
        known = translate(error, path)
        if isinstance(known, StoreFullError):
            raise known from error
        raise AnchorFileError(path, error.strerror or str(error)) from error


def _append(descriptor: int, line: str) -> None:
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size:
        os.lseek(descriptor, size - 1, os.SEEK_SET)
        if os.read(descriptor, 1) != b"\n":
            line = "\n" + line
    data = f"{line}\n".encode()
    written = 0
    try:
        while written < len(data):  # a full disk takes a part
            written += os.write(descriptor, data[written:])
        sync_file(descriptor)
    except OSError:
        _take_back(descriptor, size, written)
        raise


def _take_back(descriptor: int, size: int, written: int) -> None:
    """Remove half a line, where nobody has appended another one since."""
    try:
        if os.lseek(descriptor, 0, os.SEEK_END) == size + written:
            os.ftruncate(descriptor, size)
    except OSError:  # it stays by itself, and is known as none
        return


def last_line(path: str) -> str | None:
    """Return the last line of a file, None when it has none."""
    try:
        with open_guarded(path, follow_links=True) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except FileNotFoundError:
        return None
    return next((line for line in reversed(lines) if line.strip()), None)


def changed_us(path: str) -> int | None:
    """Return when a file was changed last, in µs since 1970; None when there is none."""
    try:
        return os.stat(path).st_mtime_ns // 1000
    except FileNotFoundError:
        return None
