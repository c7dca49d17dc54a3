"""Keep payloads that are too large for an event, each named by its digest. Never changes one.

A payload is written to a temporary file, synced, renamed and its folder synced, in this order;
only then may an event refer to it. So a reader finds a whole payload or none.
"""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import errno
import os

from tachograph.domain.blobref import BlobRef
from tachograph.domain.errors import (
    BlobMissingError,
    StoreFullError,
    StoreNotFoundError,
    StoreReadOnlyError,
)
from tachograph.infra.durable import sync_file, sync_folder

try:
    from _blake2 import blake2b  # hashlib costs a short command 2 ms and is the same function
except ImportError:
    from hashlib import blake2b
try:
    import fcntl
except ImportError:  # Windows, which refuses to remove an open file anyway
    fcntl = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

    from tachograph.domain.errors import StoreError

_TEMPORARY = "tmp-"
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
_TRIES = 10
_ERRORS: dict[int | None, type[StoreError]] = {
    errno.ENOSPC: StoreFullError,
    errno.EDQUOT: StoreFullError,
    errno.EFBIG: StoreFullError,
    errno.EROFS: StoreReadOnlyError,
    errno.EACCES: StoreReadOnlyError,
    errno.EPERM: StoreReadOnlyError,
}


class Blobs:
    """Payloads in a folder, spread over subfolders by the first two digits of their digest.

    Safe between threads and processes: who writes the same payload writes the same file.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def put(self, data: bytes) -> BlobRef:
        """Store a payload and return its reference. After this returns it is on disk.

        Storing a payload again does nothing, except that it replaces a damaged copy. Raises
        StoreFullError, StoreReadOnlyError or StoreNotFoundError; nothing is left behind then.
        """
        ref = BlobRef(blake2b(data, digest_size=32).hexdigest(), len(data))
        try:
            for remaining in range(_TRIES, -1, -1):
                try:
                    self._write(ref, data)
                    break
                except FileNotFoundError:  # somebody cleaned up at this very moment
                    if not remaining:
                        raise
        except OSError as error:
            self._refuse(error)
        return ref

    def get(self, ref: BlobRef) -> bytes:
        """Return a payload. Raises BlobMissingError when it is not there or is damaged."""
        try:
            data = self._read(ref.digest)
        except OSError as error:
            problem = "missing" if isinstance(error, FileNotFoundError) else str(error)
            raise BlobMissingError(ref.digest, problem) from error
        if not _fits(ref, data):
            raise BlobMissingError(ref.digest, "damaged")
        return data

    def exists(self, ref: BlobRef) -> bool:
        """Say whether a payload is there, by its name and size alone."""
        try:
            return os.stat(self._path(ref.digest)).st_size == ref.size
        except OSError:
            return False

    def iter(self) -> Iterator[BlobRef]:
        """Yield every payload in the order of the digests, without reading any."""
        for folder in _listed(self._folder):
            if len(folder) == 2:
                for name in _listed(os.path.join(self._folder, folder)):
                    ref = self._reference(folder, name)
                    if ref is not None:
                        yield ref

    def verify(self) -> Iterator[tuple[BlobRef, str]]:
        """Read every payload; yield those that are not what their name says, and the problem."""
        for ref in self.iter():
            try:
                data = self._read(ref.digest)
            except FileNotFoundError:  # removed since it was listed
                continue
            except OSError as error:
                yield ref, f"it cannot be read: {error.strerror}"
                continue
            if not _fits(ref, data):
                yield ref, f"its {len(data)} bytes have another digest"

    def clean(self) -> int:
        """Remove temporary files that killed writers left, and return how many there were."""
        removed = 0
        for folder in _listed(self._folder):
            path = os.path.join(self._folder, folder)
            for name in _listed(path):
                if name.startswith(_TEMPORARY):
                    removed += _remove_if_abandoned(os.path.join(path, name))
        return removed

    def _path(self, digest: str) -> str:
        return os.path.join(self._folder, digest[:2], digest)

    def _read(self, digest: str) -> bytes:
        with open(self._path(digest), "rb") as file:
            return file.read()

    def _holds(self, digest: str, data: bytes) -> bool:
        try:
            return self._read(digest) == data
        except OSError:
            return False

    def _reference(self, folder: str, name: str) -> BlobRef | None:
        try:
            size = os.stat(os.path.join(self._folder, folder, name)).st_size
            return BlobRef(name, size) if name[:2] == folder else None
        except (OSError, ValueError):
            return None

    def _write(self, ref: BlobRef, data: bytes) -> None:
        path = self._path(ref.digest)
        folder = os.path.dirname(path)
        self._make(folder)
        if not self._holds(ref.digest, data):
            _write_atomically(folder, path, data)
        # Also when it was there: the other writer may not have come this far.
        sync_folder(folder)

    def _make(self, folder: str) -> None:
        for path in (self._folder, folder):
            try:
                os.mkdir(path, 0o700)
            except FileExistsError:
                continue
            sync_folder(os.path.dirname(path))

    def _refuse(self, error: OSError) -> NoReturn:
        kind = _ERRORS.get(error.errno)
        if isinstance(error, FileNotFoundError):
            raise StoreNotFoundError(os.path.dirname(self._folder)) from error
        if kind is None:
            raise error
        raise kind(self._folder, error.strerror) from error


def _fits(ref: BlobRef, data: bytes) -> bool:
    return len(data) == ref.size and blake2b(data, digest_size=32).hexdigest() == ref.digest


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _write_atomically(folder: str, path: str, data: bytes) -> None:
    temporary = os.path.join(folder, f"{_TEMPORARY}{os.getpid()}-{os.urandom(8).hex()}")
    descriptor = os.open(temporary, _NEW, 0o600)
    try:
        try:
            _lock(descriptor)
            _write_all(descriptor, data)
            sync_file(descriptor)
            if fcntl is not None:
                os.replace(temporary, path)  # while the lock keeps `clean` away
        finally:
            os.close(descriptor)
        if fcntl is None:
            os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _lock(descriptor: int) -> None:
    """Mark a temporary file as in use; the system lets go when its writer ends."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _remove_if_abandoned(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | _BINARY)
    except OSError:
        return False
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return _remove(path)
    except OSError:  # its writer holds the lock
        return False
    finally:
        os.close(descriptor)
    return _remove(path)


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
