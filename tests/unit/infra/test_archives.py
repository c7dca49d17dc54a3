"""An archive is whole or not there, reads without Tachograph, and shows every change of a byte."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard

from tachograph.domain.errors import ArchiveDamagedError, FileChangedError, StoreExistsError
from tachograph.infra import archive_writing, archives
from tachograph.infra.archive_writing import Source
from tachograph.infra.archives import Member

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MANIFEST = b'{"members": []}\n'
CONTENT = {"runs/a/card.json": b"{}\n", "runs/a/ä b\n": b"x" * 5000, "empty": b""}


def member(name: str, data: bytes) -> Member:
    return Member(name, len(data), hashlib.sha256(data).hexdigest())


def source(name: str, data: bytes, chunks: Iterable[bytes] | None = None) -> Source:
    return Source(member(name, data), lambda: [data] if chunks is None else chunks, 3_000_000)


MEMBERS = {name: member(name, data) for name, data in CONTENT.items()}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """An archive that is not there yet."""
    return str(tmp_path / "one.tar.zst")


@pytest.fixture
def made(path: str) -> str:
    """An archive."""
    archive_writing.write(path, MANIFEST, [source(*item) for item in CONTENT.items()])
    return path


def problems(path: str) -> list[str]:
    return list(archives.problems(path, MEMBERS))


def test_an_archive_holds_what_was_put_in(made: str) -> None:
    assert archives.read_manifest(made) == MANIFEST
    assert problems(made) == []


def test_its_checksum_is_that_of_the_file(path: str) -> None:
    sha256 = archive_writing.write(path, MANIFEST, [])

    assert sha256 == hashlib.sha256(Path(path).read_bytes()).hexdigest()
    assert sha256 == archives.sha256_of(path)


def test_the_same_content_makes_the_same_bytes(made: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    archive_writing.write(other, MANIFEST, [source(*item) for item in CONTENT.items()])

    assert Path(made).read_bytes() == Path(other).read_bytes()


def test_other_tools_unpack_it(made: str, tmp_path: Path) -> None:
    with Path(made).open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(tmp_path / "out", filter="data")
    unpacked = {name: (tmp_path / "out" / name).read_bytes() for name in CONTENT}

    assert unpacked == CONTENT
    assert (tmp_path / "out" / "manifest.json").read_bytes() == MANIFEST


def test_the_zstd_command_passes_over_the_seal(made: str, tmp_path: Path) -> None:
    try:
        done = subprocess.run(["zstd", "-d", made, "-o", tmp_path / "one.tar"], capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no zstd here")

    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / "one.tar") as tar:
        assert tar.getnames() == ["manifest.json", *CONTENT]


def test_nothing_is_written_over(made: str) -> None:
    before = Path(made).read_bytes()
    with pytest.raises(StoreExistsError, match="already exists"):
        archive_writing.write(made, MANIFEST, [])

    assert Path(made).read_bytes() == before


def test_a_file_that_comes_meanwhile_is_kept(path: str, tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        Path(path).write_text("mine")
        yield b"x"

    with pytest.raises(StoreExistsError):
        archive_writing.write(path, MANIFEST, [source("x", b"x", chunks())])

    assert [each.read_text() for each in tmp_path.iterdir()] == ["mine"]


def test_without_links_it_is_renamed(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    archive_writing.write(path, MANIFEST, [])

    assert archives.read_manifest(path) == MANIFEST
    assert [each.name for each in tmp_path.iterdir()] == ["one.tar.zst"]


@pytest.mark.parametrize(
    "chunks", [[b"12345"], [b"1234", b"567"], [b"12345x"], []], ids=["short", "long", "other", "no"]
)
def test_a_source_that_changed_leaves_nothing_behind(
    path: str, tmp_path: Path, chunks: list[bytes]
) -> None:
    with pytest.raises(FileChangedError, match="f changed while it was copied"):
        archive_writing.write(path, MANIFEST, [source("f", b"123456", chunks)])

    assert list(tmp_path.iterdir()) == []


def test_a_source_is_read_piece_by_piece(path: str) -> None:
    """No more than two pieces are alive at the same time, whatever the size of the whole."""
    piece, count = b"x" * archives.CHUNK, 8
    whole = hashlib.sha256(piece * count).hexdigest()
    read: list[int] = []

    def chunks() -> Iterator[bytes]:
        for number in range(count):
            read.append(number)
            yield piece

    seen: list[tuple[int, int | None]] = []
    size = len(piece) * count
    archive_writing.write(
        path,
        MANIFEST,
        [Source(Member("large", size, whole), chunks)],
        progress=lambda done, total: seen.append((done, total)),
    )

    assert read == list(range(count))
    assert seen == [(size, size)]


@pytest.mark.parametrize("left", [0, 1, 60, 100])
def test_a_file_that_was_cut_off_is_known_at_a_glance(made: str, left: int) -> None:
    data = Path(made).read_bytes()
    Path(made).write_bytes(data[:left])
    with pytest.raises(ArchiveDamagedError, match="was cut off"):
        archives.read_manifest(made)

    assert "it was cut off: its end is missing" in problems(made)


def test_every_cut_is_seen(made: str) -> None:
    data = Path(made).read_bytes()
    for left in range(len(data)):
        Path(made).write_bytes(data[:left])
        assert problems(made), left


def test_every_flipped_bit_is_seen(made: str) -> None:
    data = Path(made).read_bytes()
    for place in range(len(data)):
        Path(made).write_bytes(
            data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]
        )
        assert problems(made), place


def test_bytes_that_follow_are_seen(made: str) -> None:
    Path(made).write_bytes(Path(made).read_bytes() + b"more")

    assert problems(made)[0] == "it was cut off: its end is missing"


def test_a_flipped_bit_of_the_manifest_is_seen_when_it_is_read(path: str) -> None:
    """The checksum in its header is another one then, even where the frame still decompresses."""
    archive_writing.write(path, b"%0" + MANIFEST, [])
    data = Path(path).read_bytes()
    tar = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    changed = zstandard.ZstdCompressor().compress(tar.replace(b"%0", b"%1"))
    Path(path).write_bytes(changed + data[-archives.SEAL.size :])

    with pytest.raises(ArchiveDamagedError, match="is not what was written"):
        archives.read_manifest(path)


def test_what_does_not_fit_the_list_is_named(path: str) -> None:
    archive_writing.write(
        path,
        MANIFEST,
        [source("empty", b""), source("runs/a/card.json", b"[]\n"), source("other", b"")],
    )

    assert problems(path) == [
        "runs/a/card.json is not what was written",
        "'other' does not belong to it",
        "runs/a/ä b\n is missing",
    ]


@pytest.mark.parametrize("content", [b"", b"hello", b"\0" * 4096, os.urandom(4096)])
def test_another_file_is_no_archive(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
    with pytest.raises(ArchiveDamagedError, match="no archive of Tachograph"):
        archives.read_manifest(path)

    assert problems(path) != []


def test_another_tar_with_a_seal_is_no_archive(path: str, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        tar.add(__file__, "some.py")
    frame = zstandard.ZstdCompressor().compress((tmp_path / "t.tar").read_bytes())
    seal = archives.SEAL.pack(archives.SKIPPABLE, archives.SEAL.size - 8, archives.MARK, bytes(32))
    Path(path).write_bytes(frame + seal)
    with pytest.raises(ArchiveDamagedError, match="does not begin with one"):
        archives.read_manifest(path)


def test_progress_is_shown_while_it_is_compared(made: str) -> None:
    seen: list[tuple[int, int | None]] = []
    list(archives.problems(made, MEMBERS, lambda done, total: seen.append((done, total))))
    size = Path(made).stat().st_size - archives.SEAL.size

    assert seen == [(size, size)]


def test_a_file_is_read_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"ab")

    assert list(archive_writing.read_file(str(tmp_path / "f"))) == [b"ab"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """It would never end: nobody writes to it."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file") as caught:
        list(archive_writing.read_file(str(tmp_path / "pipe")))

    assert caught.value.filename == str(tmp_path / "pipe")


def test_a_source_that_cannot_be_read_leaves_nothing_behind(path: str, tmp_path: Path) -> None:
    gone = Source(member("f", b"1"), lambda: archive_writing.read_file(str(tmp_path / "none")))
    with pytest.raises(FileChangedError, match="No such file"):
        archive_writing.write(path, MANIFEST, [gone])

    assert list(tmp_path.iterdir()) == []
