"""Read the bodies that were moved out of the log, from its archives. Changes none of them.

An archive is a sequence of zstd frames, so that `zstd -dc` unpacks it without Tachograph. A run
has one section: frames that each hold some entries (position, length, body). An index in a frame
that decompressors pass over says where each section and frame is; a last such frame says where
the index is, and what its digest is. So a file that was cut off is known at a glance.
"""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os
from _thread import allocate_lock
from struct import Struct

from tachograph.domain.errors import BodyLostError, MalformedValueError
from tachograph.domain.records import _Fields
from tachograph.infra.layout import digest_body
from tachograph.infra.memo import Memo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tachograph.domain.records import Record

FORMAT = 1
"""Version of the file; a reader refuses a higher one."""
MARK = b"tachograph bodies 1\n"
SKIPPABLE = 0x184D2A50
"""Magic number of a frame that decompressors pass over (RFC 8878, 3.1.2)."""
PASSED_OVER = Struct("<II")
"""Magic number and length of such a frame."""
END = Struct("<II20sQQ32s")
"""The last frame: magic, length, mark, offset and length of the index, BLAKE2b-256 of it."""
ENTRY = Struct(">QI")
"""Begins an entry: position, length of the body."""
SUFFIX = ".zst"
FOLDER = "archive"
TEMPORARY = "tmp-"
FRAME_BYTES_KEPT = 64 * 2**20
"""Unpacked frames in memory. Events of many runs follow each other, each in a frame of its own:
so much holds one frame, a quarter of a MiB, of 256 runs, and all of an archive of small ones."""
INDEX_BYTES_KEPT = 16 * 2**20
_ENTRY_BYTES = 150
"""What an entry takes in memory beside its body, and so does a frame in an index."""
_SECTION_BYTES = 600


class Frame(_Fields):
    """Where some bodies of a run are: offset and length of a frame, position of its first body."""

    __slots__ = ("first", "length", "offset")

    def __init__(self, offset: int, length: int, first: int) -> None:
        self.offset = offset
        self.length = length
        self.first = first


class Section(_Fields):
    """The bodies of one run in an archive.

    `key` is its stream key, `sha256` that of its bytes in the file, in hex, which stays the same
    when the file is written anew without another run. `raw` is the size of the bodies.
    """

    __slots__ = ("frames", "key", "length", "offset", "raw", "records", "sha256")

    def __init__(
        self,
        key: bytes,
        offset: int,
        length: int,
        sha256: str,
        records: int,
        raw: int,
        frames: list[Frame],
    ) -> None:
        self.key = key
        self.offset = offset
        self.length = length
        self.sha256 = sha256
        self.records = records
        self.raw = raw
        self.frames = frames


class DamagedError(Exception):
    """The file is not what was written; the message says how."""


class BodyArchives:
    """The archives in a folder. May be shared by threads; opens no file for longer than a call."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lock = allocate_lock()
        self._indexes = Memo(INDEX_BYTES_KEPT)
        self._frames = Memo(FRAME_BYTES_KEPT)

    @classmethod
    def beside(cls, log_folder: str) -> BodyArchives:
        """Return the archives of the store that a log folder belongs to."""
        return cls(os.path.join(os.path.dirname(log_folder), FOLDER))

    def path(self, number: int) -> str:
        """Return where an archive is."""
        return os.path.join(self.folder, name_of(number))

    def numbers(self) -> list[int]:
        """Return the numbers of the archives that are there, in order."""
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(number for name in names if (number := number_of(name)) is not None)

    def fetcher(
        self, number: int, key: bytes, record: Record, digest: bytes
    ) -> Callable[[], bytes]:
        """Return what reads the body of a record, and compares it with its digest.

        It raises BodyLostError.
        """

        def fetch() -> bytes:
            lost = f"version {record.version} of {record.stream!r} (position {record.position})"
            try:
                body = self._body(number, key, record.position)
                if digest_body(body) != digest:
                    raise DamagedError("holds something else in its place")
            except FileNotFoundError as error:
                raise BodyLostError(self.path(number), "is missing", lost) from error
            except OSError as error:
                problem = f"cannot be read ({error.strerror})"
                raise BodyLostError(self.path(number), problem, lost) from error
            except DamagedError as error:
                raise BodyLostError(self.path(number), str(error), lost) from error
            return body

        return fetch

    def sections(self, number: int) -> dict[bytes, Section]:
        """Return the sections of an archive by their stream keys.

        Raises DamagedError when its end or its index is not what was written, OSError when it
        cannot be read.
        """
        with open(self.path(number), "rb") as file:
            return read_index(file)

    def section(self, number: int, key: bytes) -> Section | None:
        """Return the section of one stream, None when there is none; the index is kept.

        Raises DamagedError or OSError as `sections` does.
        """
        return self._index(number).get(key)

    def bodies(self, number: int, section: Section) -> Iterator[tuple[int, bytes]]:
        """Yield position and body of every entry of a section. Raises DamagedError or OSError."""
        for frame in section.frames:
            yield from self._read(number, frame).items()

    def forget(self) -> None:
        """Forget what was read: the files were written anew."""
        with self._lock:
            self._indexes.clear()
            self._frames.clear()

    def _body(self, number: int, key: bytes, position: int) -> bytes:
        section = self._index(number).get(key)
        if section is None:
            raise DamagedError("does not hold this run")
        frame = _find(section.frames, position)
        body = None if frame is None else self._frame(number, frame).get(position)
        if body is None:
            raise DamagedError("does not hold this event")
        return body

    def _index(self, number: int) -> dict[bytes, Section]:
        found: dict[bytes, Section] | None
        with self._lock:
            found = self._indexes.get(number)
        if found is None:
            found = self.sections(number)
            with self._lock:
                self._indexes.put(number, found, _index_bytes(found))
        return found

    def _frame(self, number: int, frame: Frame) -> dict[int, bytes]:
        place = number, frame.offset
        found: dict[int, bytes] | None
        with self._lock:
            found = self._frames.get(place)
        if found is None:
            found = self._read(number, frame)
            with self._lock:
                size = sum(_ENTRY_BYTES + len(body) for body in found.values())
                self._frames.put(place, found, size)
        return found

    def _read(self, number: int, frame: Frame) -> dict[int, bytes]:
        with open(self.path(number), "rb") as file:
            file.seek(frame.offset)
            data = file.read(frame.length)
        return unpack_frame(data)


def name_of(number: int) -> str:
    """Return the name of an archive's file.

    >>> name_of(17)
    '000000000017.zst'
    """
    return f"{number:012d}{SUFFIX}"


def number_of(name: str) -> int | None:
    """Return the number of the archive of that name, None for another file.

    >>> number_of("000000000017.zst"), number_of("notes.zst")
    (17, None)
    """
    stem = name.removesuffix(SUFFIX)
    return int(stem) if stem != name and stem.isdecimal() and stem.isascii() else None


def unpack_frame(data: bytes) -> dict[int, bytes]:
    """Return the bodies in a frame by their positions. Raises DamagedError."""
    import zstandard

    try:
        raw = zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise DamagedError(f"is damaged ({error})") from error
    bodies: dict[int, bytes] = {}
    place = 0
    while place < len(raw):
        if place + ENTRY.size > len(raw):
            raise DamagedError("is damaged (half an entry)")
        position, length = ENTRY.unpack_from(raw, place)
        place += ENTRY.size
        bodies[position] = raw[place : place + length]
        place += length
    if place != len(raw):
        raise DamagedError("is damaged (half an entry)")
    return bodies


def read_index(file: Any) -> dict[bytes, Section]:
    """Return the sections of an open archive. Raises DamagedError."""
    size = file.seek(0, os.SEEK_END)
    if size < END.size:
        raise DamagedError("was cut off")
    file.seek(size - END.size)
    magic, length, mark, offset, index_length, digest = END.unpack(file.read(END.size))
    if (magic, length, mark) != (SKIPPABLE, END.size - PASSED_OVER.size, MARK):
        raise DamagedError("was cut off, or is no archive of bodies")
    if not PASSED_OVER.size <= offset <= offset + index_length <= size:
        raise DamagedError("is damaged (its index is not in it)")
    file.seek(offset - PASSED_OVER.size)
    begin = file.read(PASSED_OVER.size)
    index = file.read(index_length)
    if begin != PASSED_OVER.pack(SKIPPABLE, index_length) or digest_body(index) != digest:
        raise DamagedError("is damaged (its index)")
    return {section.key: section for section in _unpack_index(index)}


def pack_index(sections: list[Section]) -> bytes:
    """Return the stored form of an index."""
    from tachograph.infra.codec import Codec

    rows = [
        {
            "stream": section.key,
            "offset": section.offset,
            "length": section.length,
            "sha256": section.sha256,
            "records": section.records,
            "bytes": section.raw,
            "frames": [[each.offset, each.length, each.first] for each in section.frames],
        }
        for section in sections
    ]
    return Codec().pack({"format": FORMAT, "sections": rows})


def _unpack_index(data: bytes) -> list[Section]:
    from tachograph.infra.codec import Codec

    try:
        index = Codec().unpack(data)
        if index["format"] > FORMAT:
            raise DamagedError("was written by a newer Tachograph")
        return [
            Section(
                row["stream"],
                row["offset"],
                row["length"],
                row["sha256"],
                row["records"],
                row["bytes"],
                [Frame(*frame) for frame in row["frames"]],
            )
            for row in index["sections"]
        ]
    except (MalformedValueError, KeyError, TypeError) as error:
        raise DamagedError(f"is damaged (its index: {error})") from error


def _find(frames: list[Frame], position: int) -> Frame | None:
    """Return the last frame whose first body is not after a position."""
    low, high = 0, len(frames)
    while low < high:
        middle = (low + high) // 2
        if frames[middle].first <= position:
            low = middle + 1
        else:
            high = middle
    return frames[low - 1] if low else None


def _index_bytes(sections: dict[bytes, Section]) -> int:
    """Return roughly what an index takes in memory."""
    return sum(_SECTION_BYTES + _ENTRY_BYTES * len(each.frames) for each in sections.values())
