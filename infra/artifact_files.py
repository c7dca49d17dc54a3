"""A folder of files that are made from the log: replaced whole, appended to, and repaired.

A reader sees an old file or a new one, never half of one. Follows no link below the root: what a
name leads to is in the root, or it is refused.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tachograph.domain.errors import ArtifactFolderError
from tachograph.domain.records import _Fields
from tachograph.infra.durable import sync_file, sync_folder
from tachograph.infra.guarded_reading import LINK, NO_FILE, read_guarded
from tachograph.infra.locks import FileLock
from tachograph.infra.writing import TEMPORARY, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK = ".tachograph.lock"
TAIL_BYTES = 64 * 1024
"""End of a file that is looked through for its last whole lines."""
MOST_READ = 1 << 30
"""Bytes of the largest file that is read: ours hold what a run has recorded."""
_GUARDED = sum(
    getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
)
"""What is no plain file is neither followed nor waited for."""


class Stamp(_Fields):
    """What changes when a file is written or replaced."""

    __slots__ = ("changed_ns", "number", "size")

    def __init__(self, found: os.stat_result) -> None:
        self.number = found.st_ino
        self.size = found.st_size
        self.changed_ns = found.st_mtime_ns


class ArtifactFolder:
    """The files below a root, named with `/` between folders.

    Raises ArtifactFolderError for what cannot be read or written, and for a name that leads out
    of the root.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)  # as it was named, not where a link leads

    def path(self, name: str) -> str:
        """Return the absolute path of a name."""
        parts = name.split("/")
        if any(part in ("", ".", "..") or os.sep in part or "\0" in part for part in parts):
            raise ArtifactFolderError(self.root, f"{name!r} would lead out of it")
        return os.path.join(self.root, *parts)

    @contextmanager
    def locked(self, *, wait: bool = True) -> Iterator[bool]:
        """Hold the root against other writers while in the block; gives False when it is held.

        The folder is made when it is missing.
        """
        try:
            os.makedirs(self.root, mode=0o700, exist_ok=True)
            lock = FileLock(os.path.join(self.root, LOCK), wait=wait)
            lock.__enter__()
        except BlockingIOError:
            yield False
            return
        except OSError as error:
            raise _failed(error, os.path.join(self.root, LOCK)) from error
        try:
            yield True
        finally:
            lock.__exit__(None, None, None)

    def read(self, name: str) -> bytes | None:
        """Return what is in a file; None when there is none."""
        path = self._checked(name)
        try:
            return read_guarded(path, MOST_READ)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(error, path) from error

    def stamp(self, name: str) -> Stamp | None:
        """Return what tells a file from itself after a change; None when there is no such file."""
        path = self._checked(name)
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(error, path) from error
        return Stamp(found) if stat.S_ISREG(found.st_mode) else None

    def replace(self, name: str, data: bytes) -> bool:
        """Write a whole file; durable on return. False when it holds just that already."""
        path = self._checked(name)
        with suppress(ArtifactFolderError):
            there = self.stamp(name)
            if there is not None and there.size == len(data) and self.read(name) == data:
                return False
        try:
            self._make(os.path.dirname(path))
            replace_file(path, data)
        except OSError as error:
            raise _failed(error, path) from error
        return True

    def tail(self, name: str) -> list[bytes]:
        """Return the last whole lines of a file, in order; a last line that was torn is cut off.

        Call it only while the root is locked.
        """
        path = self._checked(name)
        try:
            with open(_open(path, os.O_RDWR), "r+b") as file:
                size = os.fstat(file.fileno()).st_size
                begin = max(0, size - TAIL_BYTES)
                file.seek(begin)
                data = file.read()
                end = data.rfind(b"\n") + 1
                if end < len(data):
                    file.truncate(begin + end)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed(error, path) from error
        lines = data[:end].split(b"\n")[:-1]
        return lines[1:] if begin and lines else lines

    def append(self, name: str, data: bytes, *, durable: bool) -> None:
        """Append to a file, which is made when it is missing."""
        path = self._checked(name)
        try:
            self._make(os.path.dirname(path))
            with open(_open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as file:
                file.write(data)
                file.flush()
                if durable:
                    sync_file(file.fileno())
        except OSError as error:
            raise _failed(error, path) from error

    def remove(self, name: str) -> bool:
        """Remove a file; False when there is none. Folders that are empty then go as well."""
        path = self._checked(name)
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _failed(error, path) from error
        folder = os.path.dirname(path)
        sync_folder(folder)
        while folder != self.root:
            try:
                os.rmdir(folder)
            except OSError:  # something is left in it
                break
            folder = os.path.dirname(folder)
        return True

    def names(self, folder: str) -> list[str]:
        """Return the names of what is in a folder, in order; none where there is no folder."""
        path = self._checked(f"{folder}/{LOCK}")
        try:
            return sorted(os.listdir(os.path.dirname(path)))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed(error, os.path.dirname(path)) from error

    def walk(self) -> Iterator[str]:
        """Yield the name of every regular file below the root, in order, following no link."""
        for folder, folders, files in os.walk(self.root):
            folders.sort()
            for file in sorted(files):
                path = os.path.join(folder, file)
                with suppress(OSError):
                    if stat.S_ISREG(os.lstat(path).st_mode):
                        yield os.path.relpath(path, self.root).replace(os.sep, "/")

    def _checked(self, name: str) -> str:
        """Return the path of a name; no folder on the way to it is a link."""
        path = self.path(name)
        folder = os.path.dirname(path)
        while len(folder) > len(self.root):
            if os.path.islink(folder):
                raise ArtifactFolderError(folder, "it is a link, and may lead anywhere")
            folder = os.path.dirname(folder)
        return path

    def _make(self, folder: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)


def _open(path: str, flags: int) -> int:
    """Open a plain file, or one that is made; nothing else, and no link."""
    descriptor = os.open(path, flags | _GUARDED, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, NO_FILE, path)


def _failed(error: OSError, path: str) -> ArtifactFolderError:
    text = LINK if error.errno == errno.ELOOP else error.strerror or str(error)
    named = error.filename if isinstance(error.filename, str) else path
    return ArtifactFolderError(named, text)


def is_temporary(name: str) -> bool:
    """Say whether a file is one that a writer was about to rename.

    >>> is_temporary("20240508/job-runs/job/.summary.json.tmp-abc"), is_temporary("summary.json")
    (True, False)
    """
    return TEMPORARY in name.rpartition("/")[2]
