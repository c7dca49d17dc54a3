"""Shared holders go together, one alone keeps all others out, and a dead process holds nothing."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_files import claim, lock_out, release
from tachograph.infra.locks import FileLock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "lock")


def is_free(path: str, *, shared: bool = False) -> bool:
    """Say whether the lock could be had now."""
    try:
        with FileLock(path, shared=shared, wait=False):
            return True
    except BlockingIOError:
        return False


@pytest.mark.parametrize(
    ("held", "wanted", "free"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_only_shared_holders_go_together(path: str, held: bool, wanted: bool, free: bool) -> None:
    with FileLock(path, shared=held):
        assert is_free(path, shared=wanted) == free

    assert is_free(path)


def test_the_last_shared_holder_frees_the_lock(path: str) -> None:
    with ExitStack() as last:
        with FileLock(path, shared=True):
            last.enter_context(FileLock(path, shared=True))
        assert not is_free(path)

    assert is_free(path)


def test_a_lock_that_cannot_be_had_leaves_no_file_open(path: str, no_open_files_left: None) -> None:
    with FileLock(path, shared=True):
        assert not is_free(path)


def test_a_killed_process_holds_nothing(path: str) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with FileLock(path, shared=True):
            os.write(writing, b".")
            signal.pause()
    os.read(reading, 1)
    held = not is_free(path)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)

    assert held
    assert is_free(path)


def test_a_child_that_lets_go_does_not_let_go_for_its_parent(path: str) -> None:
    lock = FileLock(path, shared=True)
    with lock:
        child = os.fork()
        if not child:
            lock.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)

        assert not is_free(path)


# Environments


def test_an_open_environment_is_in_use_until_the_last_user_closes_it(tmp_path: Path) -> None:
    first = open_environment(tmp_path / "log")
    second = open_environment(tmp_path / "log")
    second.close()
    with pytest.raises(BlockingIOError):
        lock_out(str(tmp_path / "log"))
    first.close()

    release(lock_out(str(tmp_path / "log")))


def test_an_environment_stays_in_use_while_it_is_reopened(tmp_path: Path) -> None:
    environment = open_environment(tmp_path / "log")
    environment.reopen()
    with pytest.raises(BlockingIOError):
        lock_out(str(tmp_path / "log"))
    environment.close()

    release(lock_out(str(tmp_path / "log")))


def test_an_environment_that_cannot_be_opened_is_not_in_use(tmp_path: Path) -> None:
    open_environment(tmp_path / "log").close()
    (tmp_path / "log" / "data.mdb").write_bytes(b"odd" * 5000)
    with pytest.raises(Exception, match="damaged"):
        open_environment(tmp_path / "log")

    release(lock_out(str(tmp_path / "log")))


def test_a_folder_that_cannot_be_written_is_used_without_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_environment(tmp_path / "log").close()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)

    assert claim(str(tmp_path / "log")) is None
