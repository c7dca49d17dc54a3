"""Archives: one compressed file of many members, checked when it is read. Knows nothing of runs.

An archive is a tar file in a zstd frame: `tar --zstd -xf` unpacks it without Tachograph. Its
first member lists the others, and its tar header carries its own SHA-256. After the frame comes
a skippable zstd frame with the SHA-256 of everything before, which other tools pass over: so a
file that was cut off is known at a glance, and a changed one by reading it once.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tarfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import zstandard

from tachograph.domain.errors import ArchiveDamagedError
from tachograph.domain.records import _Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Progress = Callable[[int, int | None], None]

MANIFEST = "manifest.json"
"""Name of the first member."""
CHUNK = 1024 * 1024
"""Bytes in memory at a time."""
MOST_MANIFEST_BYTES = 256 * 1024 * 1024
"""A larger first member is damage: it is the only one that is read whole."""

SEAL = struct.Struct("<II20s32s")
SKIPPABLE = 0x184D2A50
"""Magic number of a frame that decompressors pass over (RFC 8878, 3.1.2)."""
MARK = b"tachograph archive 1"
CHECKSUM = "comment"
"""Header of the first member that holds its SHA-256: other tools pass over comments silently."""
_UNREADABLE = (
    tarfile.TarError,
    zstandard.ZstdError,
    ValueError,
    EOFError,
    OverflowError,
    MemoryError,
)
"""What reading damaged bytes may raise."""


class Member(_Fields):
    """A file in an archive: its name, its size in bytes and its SHA-256."""

    __slots__ = ("name", "sha256", "size")

    def __init__(self, name: str, size: int, sha256: str) -> None:
        self.name = name
        self.size = size
        self.sha256 = sha256


def sha256_of(path: str, progress: Progress | None = None) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        total = os.fstat(file.fileno()).st_size
        while data := file.read(CHUNK):
            digest.update(data)
            (progress or nobody)(file.tell(), total)
    return digest.hexdigest()


def read_manifest(path: str, *, cut_off: bool = False) -> bytes:
    """Return the first member of an archive, checked; with `cut_off` of one without an end, too.

    Raises ArchiveDamagedError for a file that was cut off, and for one that is no archive.
    """
    with open(path, "rb") as file:
        if not cut_off and _seal(file) is None:
            raise ArchiveDamagedError(path, "it was cut off, or is no archive of Tachograph")
        try:
            with open_tar(file) as tar:
                return _manifest(tar)
        except _UNREADABLE as error:
            raise ArchiveDamagedError(path, f"its list of members: {error}") from error


def problems(
    path: str, members: Mapping[str, Member], progress: Progress | None = None
) -> Iterator[str]:
    """Yield what is wrong with an archive that should hold these members, reading all of it."""
    with open(path, "rb") as file:
        sealed = _seal(file)
        if sealed is None:
            yield "it was cut off: its end is missing"
        elif sealed != _digest_before_seal(file, progress):
            yield "its bytes are not those that were written"
        waiting = dict(members)
        try:
            with open_tar(file) as tar:
                _manifest(tar)
                while (info := tar.next()) is not None:
                    yield from _wrong(tar, info, waiting.pop(info.name, None))
        except _UNREADABLE as error:
            yield f"it cannot be read on: {error}"
    for name in waiting:
        yield f"{name} is missing"


@contextmanager
def open_tar(file: IO[bytes]) -> Iterator[tarfile.TarFile]:
    """Give the members of an archive, to be read in their order."""
    file.seek(0)
    reader = zstandard.ZstdDecompressor().stream_reader(file, read_size=CHUNK, closefd=False)
    with reader, tarfile.open(fileobj=reader, mode="r|", errorlevel=2) as tar:
        yield tar


def _manifest(tar: tarfile.TarFile) -> bytes:
    info = tar.next()
    if info is None or info.name != MANIFEST or info.size > MOST_MANIFEST_BYTES:
        raise ValueError("it does not begin with one")
    content = tar.extractfile(info)
    data = content.read() if content is not None else b""
    if hashlib.sha256(data).hexdigest() != info.pax_headers.get(CHECKSUM):
        raise ValueError("it is not what was written")
    return data


def _wrong(tar: tarfile.TarFile, info: tarfile.TarInfo, member: Member | None) -> Iterator[str]:
    content = tar.extractfile(info) if info.isreg() else None
    if member is None or content is None:
        yield f"{info.name!r} does not belong to it"
        return
    digest, size = hashlib.sha256(), 0
    while data := content.read(CHUNK):
        digest.update(data)
        size += len(data)
    if (size, digest.hexdigest()) != (member.size, member.sha256):
        yield f"{member.name} is not what was written"


def _seal(file: IO[bytes]) -> bytes | None:
    """Return the digest in the last frame, None when that frame is not there."""
    size = file.seek(0, os.SEEK_END)
    if size < SEAL.size:
        return None
    file.seek(size - SEAL.size)
    magic, length, mark, digest = SEAL.unpack(file.read(SEAL.size))
    if (magic, length, mark) != (SKIPPABLE, SEAL.size - 8, MARK):
        return None
    return bytes(digest)


def _digest_before_seal(file: IO[bytes], progress: Progress | None) -> bytes:
    total = left = file.seek(0, os.SEEK_END) - SEAL.size
    file.seek(0)
    digest = hashlib.sha256()
    while left and (data := file.read(min(CHUNK, left))):
        digest.update(data)
        left -= len(data)
        (progress or nobody)(total - left, total)
    return digest.digest()


def nobody(_done: int, _total: int | None) -> None:
    """Show progress to nobody."""
