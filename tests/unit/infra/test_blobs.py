"""A payload is there whole or not at all, whatever kills its writer or fills the disk."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.blobref import BlobRef
from tachograph.domain.errors import (
    BlobMissingError,
    StoreFullError,
    StoreNotFoundError,
    StoreReadOnlyError,
)
from tachograph.infra.blobs import Blobs

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX signals and locks")


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(str(tmp_path / "blobs"))


def path_of(tmp_path: Path, ref: BlobRef) -> Path:
    return tmp_path / "blobs" / ref.digest[:2] / ref.digest


def files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "blobs").rglob("*") if path.is_file())


def reference(data: bytes) -> BlobRef:
    return BlobRef(hashlib.blake2b(data, digest_size=32).hexdigest(), len(data))


@given(st.binary(max_size=100))
def test_a_payload_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    blobs = Blobs(str(tmp_path_factory.getbasetemp() / "property-blobs"))
    ref = blobs.put(data)

    assert ref == reference(data)
    assert blobs.get(ref) == data
    assert blobs.exists(ref)


def test_payloads_are_spread_by_two_digits(blobs: Blobs, tmp_path: Path) -> None:
    ref = blobs.put(b"data")

    assert path_of(tmp_path, ref).read_bytes() == b"data"
    if os.name != "nt":
        assert path_of(tmp_path, ref).stat().st_mode & 0o077 == 0


def test_storing_again_changes_nothing(blobs: Blobs, tmp_path: Path) -> None:
    path = path_of(tmp_path, blobs.put(b"data"))
    before = path.stat()
    blobs.put(b"data")

    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_ino == before.st_ino
    assert files(tmp_path) == [path.name]


@pytest.mark.parametrize("damage", [b"", b"datA", b"data+", b"\0\0\0\0"])
def test_a_damaged_payload_is_noticed_and_healed_by_storing_it_again(
    blobs: Blobs, tmp_path: Path, damage: bytes
) -> None:
    ref = blobs.put(b"data")
    path_of(tmp_path, ref).write_bytes(damage)

    with pytest.raises(BlobMissingError, match="is damaged") as caught:
        blobs.get(ref)
    assert [found.digest for found, _ in blobs.verify()] == [ref.digest]
    assert blobs.put(b"data") == ref

    assert ref.digest in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert (blobs.get(ref), list(blobs.verify())) == (b"data", [])


def test_a_missing_payload_is_an_error(blobs: Blobs) -> None:
    ref = reference(b"never stored")

    assert not blobs.exists(ref)
    with pytest.raises(BlobMissingError, match="is missing"):
        blobs.get(ref)


def test_an_unreadable_payload_is_an_error(blobs: Blobs, tmp_path: Path) -> None:
    ref = blobs.put(b"data")
    path_of(tmp_path, ref).unlink()
    path_of(tmp_path, ref).mkdir()

    with pytest.raises(BlobMissingError, match=r"directory|denied"):
        blobs.get(ref)
    assert [problem for _, problem in blobs.verify()] != []


def test_all_payloads_are_listed_and_nothing_else(blobs: Blobs, tmp_path: Path) -> None:
    refs = {blobs.put(bytes([number])) for number in range(20)}
    first = path_of(tmp_path, min(refs, key=lambda ref: ref.digest))
    (first.parent / "tmp-1-cafe").write_bytes(b"left over")
    (first.parent / "README").write_text("not a payload")
    (first.parent / ("f" * 64)).write_text("in the wrong folder")
    (tmp_path / "blobs" / "notes").mkdir()
    (tmp_path / "blobs" / "zz").write_text("a file")

    found = list(blobs.iter())

    assert set(found) == refs
    assert found == sorted(found, key=lambda ref: ref.digest)
    assert list(blobs.verify()) == []


def test_an_empty_store_has_no_payloads(blobs: Blobs) -> None:
    assert (list(blobs.iter()), list(blobs.verify()), blobs.clean()) == ([], [], 0)


def test_without_a_store_there_is_no_place_for_payloads(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="nowhere"):
        Blobs(str(tmp_path / "nowhere" / "blobs")).put(b"data")


# Errors of the disk


def failing(code: int, *, after: int = 0) -> Callable[..., int]:
    calls = iter(range(after))

    def fail(*arguments: object, **named: object) -> int:
        if next(calls, None) is not None:
            return 1
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("place", ["write", "fsync", "replace", "mkdir"])
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (errno.ENOSPC, StoreFullError),
        (errno.EDQUOT, StoreFullError),
        (errno.EROFS, StoreReadOnlyError),
        (errno.EIO, OSError),
    ],
)
def test_a_failed_write_leaves_nothing(
    blobs: Blobs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    code: int,
    error: type[Exception],
) -> None:
    blobs.put(b"before")
    before = files(tmp_path)
    monkeypatch.setattr(os, place, failing(code))

    with pytest.raises(error) as caught:
        blobs.put(b"data")
    monkeypatch.undo()

    assert files(tmp_path) == before
    assert os.strerror(code) in str(caught.value)
    assert blobs.get(blobs.put(b"data")) == b"data"


def test_a_write_that_stops_halfway_leaves_nothing(
    blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call takes one byte, the second finds the disk full."""
    monkeypatch.setattr(os, "write", failing(errno.ENOSPC, after=1))

    with pytest.raises(StoreFullError):
        blobs.put(b"data")

    assert files(tmp_path) == []


def test_a_write_in_pieces_is_whole(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, bytes(data[:3])))
    ref = blobs.put(b"0123456789")

    assert blobs.get(ref) == b"0123456789"


def test_a_real_full_disk_leaves_nothing(tmp_path: Path) -> None:
    """On a file system of 64 KiB, mounted in a namespace of its own."""
    mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    script = 'mount -t tmpfs -o size=64k none "$1" && exec "$2" -c "$3" "$1"'
    if sys.platform != "linux" or shutil.which("unshare") is None:
        pytest.skip("needs Linux namespaces")
    tried = subprocess.run([*mount, 'mount -t tmpfs none "$1"', "sh", tmp_path])
    if tried.returncode:
        pytest.skip("this machine allows no mounts in namespaces")
    code = """
import os, sys
from tachograph.domain.errors import StoreFullError
from tachograph.infra.blobs import Blobs
blobs = Blobs(sys.argv[1] + "/blobs")
kept = blobs.put(b"k" * 8192)
try:
    blobs.put(os.urandom(200_000))
except StoreFullError as error:
    print("full", list(blobs.iter()) == [kept], blobs.clean(), blobs.get(kept) == b"k" * 8192)
"""
    run = subprocess.run(
        [*mount, script, "sh", tmp_path, sys.executable, code], capture_output=True, text=True
    )

    assert run.stdout == "full True 0 True\n", run.stderr


# Several writers


def test_threads_may_store_the_same_payloads(blobs: Blobs, tmp_path: Path) -> None:
    payloads = [bytes([number]) * 5_000 for number in range(8)] * 8
    with ThreadPoolExecutor(8) as pool:
        refs = list(pool.map(blobs.put, payloads))

    assert [blobs.get(ref) for ref in refs] == payloads
    assert files(tmp_path) == sorted({ref.digest for ref in refs})


PUT_ALL = """
import sys
from tachograph.infra.blobs import Blobs
sys.stdin.readline()
for number in range(30):
    Blobs(sys.argv[1]).put(bytes([number]) * 5_000)
"""


def test_processes_may_store_the_same_payloads_while_one_cleans(
    blobs: Blobs, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", PUT_ALL, str(tmp_path / "blobs")]
    writers = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(2)]
    for writer in writers:
        assert writer.stdin
        writer.stdin.write(b"go\n")
        writer.stdin.close()
    while any(writer.poll() is None for writer in writers):
        blobs.clean()

    assert [writer.wait() for writer in writers] == [0, 0]
    assert files(tmp_path) == sorted(
        reference(bytes([number]) * 5_000).digest for number in range(30)
    )
    assert list(blobs.verify()) == []


def test_a_file_removed_under_a_writer_is_written_again(
    blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `clean` may do to a writer that has not locked its file yet."""
    replace = os.replace

    def remove_first(source: str, target: str) -> None:
        Path(source).unlink()
        monkeypatch.setattr(os, "replace", replace)
        replace(source, target)

    monkeypatch.setattr(os, "replace", remove_first)

    assert blobs.get(blobs.put(b"data")) == b"data"


# Killed writers

WRITER = """
import os, signal, sys
from tachograph.infra import blobs as module
from tachograph.infra.blobs import Blobs

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

def half(descriptor, data):
    original(descriptor, bytes(data[: len(data) // 2]))
    die()

point = sys.argv[2]
original = os.write
if point == "half written":
    os.write = half
elif point == "written, not synced":
    module.sync_file = die
elif point == "synced, not renamed":
    os.replace = die
elif point == "renamed, folder not synced":
    replace = os.replace
    os.replace = lambda source, target: (replace(source, target), die())
Blobs(sys.argv[1]).put(b"payload" * 5_000)
original(1, b"acknowledged")
die()
"""


@posix
@pytest.mark.parametrize(
    ("point", "there", "left_over"),
    [
        ("half written", False, 1),
        ("written, not synced", False, 1),
        ("synced, not renamed", False, 1),
        ("renamed, folder not synced", True, 0),
        ("acknowledged", True, 0),
    ],
)
def test_a_killed_writer_leaves_a_whole_payload_or_none(
    blobs: Blobs, tmp_path: Path, point: str, there: bool, left_over: int
) -> None:
    data = b"payload" * 5_000
    (tmp_path / "blobs" / reference(data).digest[:2]).mkdir(parents=True)
    command = [sys.executable, "-c", WRITER, str(tmp_path / "blobs"), point]
    run = subprocess.run(command, capture_output=True)

    assert run.returncode == -signal.SIGKILL, run.stderr
    assert (run.stdout == b"acknowledged") == (point == "acknowledged")
    assert list(blobs.iter()) == ([reference(data)] if there else [])
    assert list(blobs.verify()) == []
    assert blobs.clean() == left_over
    assert files(tmp_path) == [reference(data).digest] * there
    assert blobs.get(blobs.put(data)) == data


@posix
def test_the_temporary_file_of_a_live_writer_is_not_cleaned(
    blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace
    cleaned = []

    def clean_first(source: str, target: str) -> None:
        cleaned.append(blobs.clean())
        replace(source, target)

    monkeypatch.setattr(os, "replace", clean_first)

    assert blobs.get(blobs.put(b"data")) == b"data"
    assert cleaned == [0]
