"""Write archives, as `archives` says how they look. Leaves a whole one or nothing."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import tarfile
import tempfile
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, cast

import zstandard

from tachograph.domain.errors import FileChangedError, StoreExistsError
from tachograph.domain.records import _Fields
from tachograph.infra.archives import CHECKSUM, CHUNK, MANIFEST, MARK, SEAL, SKIPPABLE, nobody
from tachograph.infra.durable import sync_file, sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from tachograph.infra.archives import Member

    Progress = Callable[[int, int | None], None]

_LEVEL = 3
"""Of compression: higher ones cost much time for little room."""


class Source(_Fields):
    """A member to be written: `chunks` gives its bytes, piece by piece, each time it is called."""

    __slots__ = ("chunks", "member", "time_us")

    def __init__(
        self, member: Member, chunks: Callable[[], Iterable[bytes]], time_us: int = 0
    ) -> None:
        self.member = member
        self.chunks = chunks
        self.time_us = time_us


def write(
    path: str,
    manifest: bytes,
    sources: Sequence[Source],
    *,
    progress: Progress | None = None,
) -> str:
    """Write an archive and return its SHA-256. After this returns it is on disk, whole.

    The same content makes the same bytes. Raises StoreExistsError when something is at the
    path, and FileChangedError when a source does not give the bytes that it promised; nothing
    is left behind then.
    """
    with _new_file(path) as file:
        hashed = _Hashed(file)
        compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        with compressor.stream_writer(cast("IO[bytes]", hashed), closefd=False) as stream:
            _write_tar(stream, manifest, sources, progress or nobody)
        hashed.write(SEAL.pack(SKIPPABLE, SEAL.size - 8, MARK, hashed.digest.digest()))
        return hashed.digest.hexdigest()


def read_file(path: str) -> Iterator[bytes]:
    """Yield the bytes of a regular file, piece by piece. Raises OSError for anything else."""
    # Without waiting: opening a pipe would wait for whoever writes to it.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", path)
        while data := os.read(descriptor, CHUNK):
            yield data
    finally:
        os.close(descriptor)


class _Hashed(io.RawIOBase):
    """A file that knows the digest of what was written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._file.write(data)
        self.digest.update(data)
        return len(memoryview(data))


class _Promised(io.RawIOBase):
    """The bytes of a source, compared with what it promised."""

    def __init__(self, source: Source) -> None:
        self._chunks = iter(source.chunks())
        self._rest = memoryview(b"")
        self.digest = hashlib.sha256()
        self.size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        target = memoryview(buffer).cast("B")
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(target), len(self._rest))
        part, self._rest = self._rest[:count], self._rest[count:]
        target[:count] = part
        self.digest.update(part)
        self.size += count
        return count


def _write_tar(
    stream: IO[bytes], manifest: bytes, sources: Sequence[Source], progress: Progress
) -> None:
    total = sum(source.member.size for source in sources)
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        first = _info(MANIFEST, len(manifest), 0)
        first.pax_headers = {CHECKSUM: hashlib.sha256(manifest).hexdigest()}
        tar.addfile(first, io.BytesIO(manifest))
        done = 0
        for source in sources:
            _add(tar, source)
            done += source.member.size
            progress(done, total)


def _add(tar: tarfile.TarFile, source: Source) -> None:
    member, content = source.member, _Promised(source)
    buffered = io.BufferedReader(content, CHUNK)
    try:
        tar.addfile(_info(member.name, member.size, source.time_us), buffered)
        left = buffered.read(1)
    except OSError as error:  # also: it has become shorter
        raise FileChangedError(member.name, str(error)) from error
    if left or content.digest.hexdigest() != member.sha256:
        raise FileChangedError(member.name, "its content is another now")


def _info(name: str, size: int, time_us: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    info.mtime = max(0, time_us // 1_000_000)
    info.mode = 0o644
    return info


@contextmanager
def _new_file(path: str) -> Iterator[IO[bytes]]:
    """Give a file to fill; at the block's end it is on disk under its name, which was free."""
    if os.path.lexists(path):
        raise StoreExistsError(path)
    folder = os.path.dirname(path)
    handle, name = tempfile.mkstemp(prefix=".archive-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            sync_file(file.fileno())
        _place(name, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
    sync_folder(folder)


def _place(name: str, path: str) -> None:
    """Give a file a second name. Unlike a rename, a link never replaces what came there meanwhile.

    Where a file system has no links, the new name is taken first and replaced then.
    """
    try:
        try:
            os.link(name, path)
        except FileExistsError:
            raise
        except OSError:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            os.replace(name, path)
    except FileExistsError as error:
        raise StoreExistsError(path) from error
