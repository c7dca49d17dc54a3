"""Files and folders are synced by the strongest call there is."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tachograph.infra import durable


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note each sync and do it."""
    calls: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        calls.append("fsync")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    return calls


def test_a_file_and_a_folder_are_synced(tmp_path: Path, synced: list[str]) -> None:
    with (tmp_path / "file").open("wb") as file:
        durable.sync_file(file.fileno())
    durable.sync_folder(str(tmp_path))

    assert len(synced) == (1 if os.name == "nt" else 2)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    if os.name != "nt":
        with pytest.raises(FileNotFoundError):
            durable.sync_folder(str(tmp_path / "nowhere"))


def test_no_file_stays_open(tmp_path: Path, no_open_files_left: None) -> None:
    durable.sync_folder(str(tmp_path))

    assert tmp_path.is_dir()


def test_a_folder_that_may_only_be_searched_is_left_alone(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    durable.sync_folder(str(tmp_path))

    assert synced == []


@pytest.mark.parametrize(("supported", "falls_back"), [(True, []), (False, ["fsync"])])
def test_macos_has_a_call_of_its_own(
    tmp_path: Path,
    synced: list[str],
    monkeypatch: pytest.MonkeyPatch,
    supported: bool,
    falls_back: list[str],
) -> None:
    def full_sync(descriptor: int, command: int) -> int:
        if not supported:
            raise OSError(errno.ENOTSUP, "Operation not supported")
        return 0

    monkeypatch.setattr(durable, "_FULL_SYNC", 51)
    monkeypatch.setattr("fcntl.fcntl", full_sync)
    with (tmp_path / "file").open("wb") as file:
        durable.sync_file(file.fileno())

    assert synced == falls_back
