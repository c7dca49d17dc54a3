"""Archives of bodies: what is written is read back, and damage is known and named."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
import zstandard

from tachograph.domain.errors import BodyLostError
from tachograph.domain.records import Record
from tachograph.infra import body_archive_writing as writing
from tachograph.infra import body_archives
from tachograph.infra.body_archives import (
    BodyArchives,
    DamagedError,
    name_of,
    number_of,
    pack_index,
    unpack_frame,
)
from tachograph.infra.layout import digest_body
from tachograph.infra.memo import Memo

A, B = b"a" * 16, b"b" * 16
FIRST = [(3, b"one"), (5, b""), (9, b"x" * 300_000), (11, b"end")]
SECOND = [(4, b"two"), (10, bytes(random.Random(1).randbytes(2_000)))]


@pytest.fixture
def archives(tmp_path: Path) -> BodyArchives:
    return BodyArchives(str(tmp_path / "archive"))


def fetch(archives: BodyArchives, number: int, key: bytes, position: int, body: bytes) -> bytes:
    record = Record(position, "job-1", 2, "t", 0, b"", bytes(32), bytes(32))
    return archives.fetcher(number, key, record, digest_body(body))()


def all_of(archives: BodyArchives, number: int) -> dict[bytes, list[tuple[int, bytes]]]:
    found = archives.sections(number)
    return {key: list(archives.bodies(number, section)) for key, section in found.items()}


def test_what_is_written_is_read_back(archives: BodyArchives) -> None:
    sections = writing.write(archives, 7, [(A, FIRST), (B, iter(SECOND))])

    assert all_of(archives, 7) == {A: FIRST, B: SECOND}
    assert [(each.records, each.raw) for each in sections.values()] == [(4, 300_006), (2, 2_003)]
    for key, bodies in ((A, FIRST), (B, SECOND)):
        for position, body in bodies:
            assert fetch(archives, 7, key, position, body) == body
    assert list(writing.problems(archives, 7)) == []
    assert archives.numbers() == [7]


def test_the_same_bodies_make_the_same_bytes(archives: BodyArchives, tmp_path: Path) -> None:
    writing.write(archives, 7, [(A, FIRST)])
    writing.write(archives, 8, [(A, FIRST)])

    assert (tmp_path / "archive" / name_of(7)).read_bytes() == (
        tmp_path / "archive" / name_of(8)
    ).read_bytes()


def test_other_tools_unpack_it(archives: BodyArchives) -> None:
    """The store format says so: it must be true of any decompressor that follows the standard."""
    writing.write(archives, 7, [(A, FIRST), (B, SECOND)])
    with Path(archives.path(7)).open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        unpacked = reader.read()

    assert unpack_frame(zstandard.ZstdCompressor().compress(unpacked)) == dict(FIRST + SECOND)


def test_the_zstd_program_unpacks_it(archives: BodyArchives) -> None:
    import shutil

    if shutil.which("zstd") is None:
        pytest.skip("there is no zstd program here")
    writing.write(archives, 7, [(A, FIRST)])
    done = subprocess.run(["zstd", "-dc", archives.path(7)], capture_output=True)

    assert done.returncode == 0
    assert b"x" * 300_000 in done.stdout


def test_every_cut_is_known(archives: BodyArchives) -> None:
    writing.write(archives, 7, [(A, SECOND)])
    path = Path(archives.path(7))
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        archives.forget()

        with pytest.raises(BodyLostError, match=r"cut off|damaged"):
            fetch(archives, 7, A, 4, b"two")


def test_a_flipped_byte_is_found_wherever_it_is(archives: BodyArchives) -> None:
    """A reader gets the body that was written, or an error that names the file."""
    writing.write(archives, 7, [(A, SECOND)])
    path = Path(archives.path(7))
    whole = bytearray(path.read_bytes())
    for place in range(len(whole)):
        whole[place] ^= 0x41
        path.write_bytes(whole)
        whole[place] ^= 0x41
        archives.forget()
        found = list(writing.problems(archives, 7))
        try:
            read = [fetch(archives, 7, A, position, body) for position, body in SECOND]
        except BodyLostError as error:
            assert str(path) in str(error)
            read = []

        assert found or read == [], place
        assert read in ([], [body for _, body in SECOND])


@pytest.mark.parametrize(
    ("number", "key", "position", "body", "problem"),
    [
        (8, A, 3, b"one", "is missing"),
        (7, B, 3, b"one", "does not hold this run"),
        (7, A, 2, b"one", "does not hold this event"),
        (7, A, 4, b"one", "does not hold this event"),
        (7, A, 3, b"other", "holds something else"),
    ],
)
def test_what_is_lost_is_named(
    archives: BodyArchives, number: int, key: bytes, position: int, body: bytes, problem: str
) -> None:
    writing.write(archives, 7, [(A, FIRST)])

    with pytest.raises(BodyLostError, match=problem) as caught:
        fetch(archives, number, key, position, body)

    assert archives.path(number) in str(caught.value)
    assert f"version 2 of 'job-1' (position {position})" in str(caught.value)


def test_an_archive_that_cannot_be_read_is_lost(archives: BodyArchives, tmp_path: Path) -> None:
    (tmp_path / "archive" / name_of(7)).mkdir(parents=True)

    with pytest.raises(BodyLostError, match="cannot be read"):
        fetch(archives, 7, A, 3, b"one")
    assert [text.partition(":")[0] for text in writing.problems(archives, 7)] == [
        "it cannot be read"
    ]


def test_a_newer_format_is_refused(archives: BodyArchives, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tachograph.infra.body_archives.FORMAT", 2)
    data = pack_index([])
    monkeypatch.setattr(writing, "pack_index", lambda _sections: data)
    monkeypatch.setattr("tachograph.infra.body_archives.FORMAT", 1)

    with pytest.raises(DamagedError, match="newer"):
        writing.write(archives, 7, [(A, FIRST)])


class TestWithout:
    def test_other_runs_keep_their_bytes(self, archives: BodyArchives) -> None:
        before = writing.write(archives, 7, [(A, FIRST), (B, SECOND)])

        assert writing.write_without(archives, 7, {A})
        assert all_of(archives, 7) == {B: SECOND}
        assert archives.sections(7)[B].sha256 == before[B].sha256
        assert list(writing.problems(archives, 7)) == []

    def test_the_last_run_takes_the_file_along(self, archives: BodyArchives) -> None:
        writing.write(archives, 7, [(A, FIRST)])

        assert writing.write_without(archives, 7, {A, B})
        assert archives.numbers() == []

    def test_a_file_without_the_run_stays_as_it_is(self, archives: BodyArchives) -> None:
        writing.write(archives, 7, [(A, FIRST)])

        assert not writing.write_without(archives, 7, {B})
        assert all_of(archives, 7) == {A: FIRST}


def test_a_failed_write_leaves_nothing(archives: BodyArchives, tmp_path: Path) -> None:
    def broken() -> list[tuple[int, bytes]]:
        raise RuntimeError("the log is gone")

    with pytest.raises(RuntimeError):
        writing.write(archives, 7, ((A, broken()) for _ in range(1)))

    assert list((tmp_path / "archive").iterdir()) == []
    assert writing.temporary_files(archives) == []


def test_a_disk_that_gives_back_something_else_is_noticed(
    archives: BodyArchives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BodyArchives, "bodies", lambda *_: iter([(3, b"other")]))

    with pytest.raises(DamagedError, match="reads back"):
        writing.write(archives, 7, [(A, FIRST)])


def test_only_its_own_names_are_archives(archives: BodyArchives, tmp_path: Path) -> None:
    assert archives.numbers() == []
    writing.write(archives, 7, [(A, FIRST)])
    for name in ("lock", "notes.zst", "tmp-3", "7.txt"):
        (tmp_path / "archive" / name).touch()

    assert archives.numbers() == [7]
    assert writing.temporary_files(archives) == [str(tmp_path / "archive" / "tmp-3")]
    assert number_of(name_of(123)) == 123


class TestMemo:
    """What is kept in memory is bounded by bytes, and what is used stays."""

    def test_what_was_not_used_for_longest_goes(self) -> None:
        memo = Memo(30)
        for key in "abc":
            memo.put(key, key.upper(), 10)
        assert memo.get("a") == "A"
        memo.put("d", "D", 10)

        assert [memo.get(key) for key in "abcd"] == ["A", None, "C", "D"]

    def test_a_value_counts_once(self) -> None:
        memo = Memo(30)
        for size in (10, 25, 5):
            memo.put("a", size, size)
        memo.put("b", 25, 25)

        assert (memo.get("a"), memo.get("b")) == (5, 25)

    def test_one_value_is_kept_however_large(self) -> None:
        memo = Memo(30)
        memo.put("a", "A", 10)
        memo.put("b", "B", 99)
        assert (memo.get("a"), memo.get("b")) == (None, "B")
        memo.clear()
        assert memo.get("b") is None


def test_events_of_many_runs_that_follow_each_other_unpack_each_frame_once(
    archives: BodyArchives, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [(b"%016d" % n, [(100 * at + n, b"body") for at in range(5)]) for n in range(90)]
    writing.write(archives, 7, runs)
    unpacked: list[bytes] = []

    def unpack(data: bytes) -> dict[int, bytes]:
        unpacked.append(data)
        return unpack_frame(data)

    monkeypatch.setattr(body_archives, "unpack_frame", unpack)
    for at in range(5):
        for key, bodies in runs:
            assert fetch(archives, 7, key, *bodies[at]) == b"body"

    assert len(unpacked) == 90
