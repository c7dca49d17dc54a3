"""Write archives of bodies, as `body_archives` says how they look: a whole one or nothing."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import IO, TYPE_CHECKING

import zstandard

from tachograph.infra.body_archives import (
    END,
    ENTRY,
    MARK,
    PASSED_OVER,
    SKIPPABLE,
    TEMPORARY,
    DamagedError,
    Frame,
    Section,
    pack_index,
)
from tachograph.infra.durable import sync_file, sync_folder
from tachograph.infra.layout import digest_body
from tachograph.infra.locks import FileLock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from tachograph.infra.body_archives import BodyArchives

    Bodies = Iterable[tuple[int, bytes]]

FRAME_BYTES = 256 * 1024
"""Bodies in a frame: what has to be unpacked to read one of them."""
_LEVEL = 9
"""Of compression: an archive is written once."""
_LOCK = "lock"
_BEGIN = PASSED_OVER.pack(SKIPPABLE, len(MARK)) + MARK
"""The first frame, for people and tools that look at the file."""
_COPY_BYTES = 1024 * 1024


def lock(archives: BodyArchives) -> FileLock:
    """Return a `with` block in which nobody else writes or removes archives."""
    _make_folder(archives.folder)
    return FileLock(os.path.join(archives.folder, _LOCK))


def write(
    archives: BodyArchives, number: int, runs: Iterable[tuple[bytes, Bodies]]
) -> dict[bytes, Section]:
    """Write the bodies of runs, given by stream key, to the archive of that number.

    Bodies come by rising positions. After this returns the file is on disk under its name, was
    read back, and every body in it is the one that was given; its sections are returned. A file
    that is there already is replaced. Raises DamagedError when the disk gives back another one.
    """
    _make_folder(archives.folder)
    digests: dict[bytes, bytes] = {}
    with _NewFile(archives, number) as file:
        writer = _Writer(file)
        for key, bodies in runs:
            digest = hashlib.blake2b()
            writer.add(key, _seen(bodies, digest))
            digests[key] = digest.digest()
        writer.finish()
    archives.forget()
    written = archives.sections(number)
    for key, expected in digests.items():
        digest = hashlib.blake2b()
        for _ in _seen(archives.bodies(number, written[key]), digest):
            pass
        if digest.digest() != expected:
            raise DamagedError("reads back as something else than was written")
    return written


def write_without(archives: BodyArchives, number: int, keys: Collection[bytes]) -> bool:
    """Write an archive anew without some runs, or remove it when it holds no other.

    Returns whether anything had to be done. The other sections keep their bytes. Killed at any
    instant, the file is the old one or the new one. Raises DamagedError or OSError.
    """
    sections = archives.sections(number)
    staying = [section for key, section in sections.items() if key not in keys]
    if len(staying) == len(sections):
        return False
    if staying:
        with open(archives.path(number), "rb") as old, _NewFile(archives, number) as file:
            writer = _Writer(file)
            for section in staying:
                writer.copy(section, old)
            writer.finish()
    else:
        remove(archives, number)
    archives.forget()
    return True


def remove(archives: BodyArchives, number: int) -> None:
    """Remove an archive that nothing refers to."""
    with suppress(FileNotFoundError):
        os.unlink(archives.path(number))
        sync_folder(archives.folder)


def temporary_files(archives: BodyArchives) -> list[str]:
    """Return what killed writers left."""
    with suppress(FileNotFoundError):
        names = sorted(os.listdir(archives.folder))
        return [os.path.join(archives.folder, name) for name in names if name.startswith(TEMPORARY)]
    return []


def problems(archives: BodyArchives, number: int) -> Iterator[str]:
    """Yield what is wrong with an archive in itself; reads all of it."""
    try:
        sections = archives.sections(number)
        with open(archives.path(number), "rb") as file:
            if file.read(len(_BEGIN)) != _BEGIN:
                yield "it does not begin as an archive of bodies"
            for section in sections.values():
                file.seek(section.offset)
                if _sha256(file, section.length) != section.sha256:
                    yield f"the section of stream {section.key.hex()} is not what was written"
    except DamagedError as error:
        yield f"it {error}"
    except OSError as error:
        yield f"it cannot be read: {error.strerror}"


def _seen(bodies: Bodies, digest: hashlib.blake2b) -> Iterator[tuple[int, bytes]]:
    for position, body in bodies:
        digest.update(ENTRY.pack(position, len(body)))
        digest.update(body)
        yield position, body


class _Writer:
    """Writes the parts of an archive one after the other."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._place = 0
        self._sections: list[Section] = []
        self._compressor = zstandard.ZstdCompressor(
            level=_LEVEL, write_checksum=True, write_content_size=True
        )
        self._put(_BEGIN)

    def add(self, key: bytes, bodies: Bodies) -> None:
        """Write the section of a run."""
        offset, digest = self._place, hashlib.sha256()
        frames: list[Frame] = []
        records = raw = 0
        for entries in _frames(bodies):
            data = self._compressor.compress(
                b"".join(ENTRY.pack(position, len(body)) + body for position, body in entries)
            )
            frames.append(Frame(self._place, len(data), entries[0][0]))
            digest.update(data)
            self._put(data)
            records += len(entries)
            raw += sum(len(body) for _, body in entries)
        length = self._place - offset
        self._sections.append(
            Section(key, offset, length, digest.hexdigest(), records, raw, frames)
        )

    def copy(self, section: Section, old: IO[bytes]) -> None:
        """Write a section as it is in another archive."""
        shift = self._place - section.offset
        old.seek(section.offset)
        left = section.length
        while left and (data := old.read(min(_COPY_BYTES, left))):
            self._put(data)
            left -= len(data)
        frames = [Frame(each.offset + shift, each.length, each.first) for each in section.frames]
        self._sections.append(
            Section(
                section.key,
                section.offset + shift,
                section.length,
                section.sha256,
                section.records,
                section.raw,
                frames,
            )
        )

    def finish(self) -> None:
        """Write the index and the end."""
        index = pack_index(self._sections)
        self._put(PASSED_OVER.pack(SKIPPABLE, len(index)))
        offset = self._place
        self._put(index)
        size = END.size - PASSED_OVER.size
        self._put(END.pack(SKIPPABLE, size, MARK, offset, len(index), digest_body(index)))

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._place += len(data)


def _frames(bodies: Bodies) -> Iterator[list[tuple[int, bytes]]]:
    """Yield bodies in portions of a frame each; a large one has its own."""
    entries: list[tuple[int, bytes]] = []
    size = 0
    for position, body in bodies:
        if entries and size + len(body) > FRAME_BYTES:
            yield entries
            entries, size = [], 0
        entries.append((position, body))
        size += len(body)
    if entries:
        yield entries


class _NewFile:
    """A `with` block for a file that is on disk under its name at the block's end."""

    def __init__(self, archives: BodyArchives, number: int) -> None:
        self._folder = archives.folder
        self._target = archives.path(number)
        self._path = os.path.join(self._folder, f"{TEMPORARY}{number}")

    def __enter__(self) -> IO[bytes]:
        descriptor = os.open(
            self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600
        )
        self._file = os.fdopen(descriptor, "wb")
        return self._file

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with self._file as file:
                file.flush()
                if kind is None:
                    sync_file(file.fileno())
            if kind is None:
                os.replace(self._path, self._target)
                sync_folder(self._folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(self._path)


def _make_folder(folder: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
        sync_folder(os.path.dirname(folder))


def _sha256(file: IO[bytes], length: int) -> str:
    digest = hashlib.sha256()
    while length and (data := file.read(min(_COPY_BYTES, length))):
        digest.update(data)
        length -= len(data)
    return digest.hexdigest()
