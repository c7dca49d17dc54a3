"""Only the file that was recorded is removed; everything else stays, and the reason is given."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from tachograph.infra import removing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHA256 = hashlib.sha256(b"data").hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with known content."""
    path = tmp_path / "file"
    path.write_bytes(b"data")
    return path


def test_the_recorded_file_is_removed(file: Path) -> None:
    assert removing.problem_with(str(file), 4, SHA256) is None
    assert removing.remove(str(file), 4, SHA256) is None
    assert not file.exists()


def test_a_file_whose_content_nobody_recorded_is_removed(file: Path) -> None:
    assert removing.remove(str(file), None, None) is None
    assert not file.exists()


def other_content(path: Path) -> None:
    path.write_bytes(b"dato")


def longer(path: Path) -> None:
    path.write_bytes(b"data and more")


def link(path: Path) -> None:
    path.rename(path.with_name("target"))
    path.symlink_to("target")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (other_content, "changed"),
        (longer, "changed"),
        (link, "it is a symbolic link"),
        (folder, "it is no regular file"),
        (pipe, "it is no regular file"),
    ],
)
def test_anything_else_stays(file: Path, change: Callable[[Path], None], why: str) -> None:
    change(file)

    assert removing.problem_with(str(file), 4, SHA256) == why
    assert removing.remove(str(file), 4, SHA256) == why
    assert os.path.lexists(file)


@pytest.mark.parametrize("name", ["nothing", "file/below"])
def test_a_file_that_is_not_there_is_missing(file: Path, name: str) -> None:
    path = str(file.parent / name)

    assert removing.problem_with(path, 4, SHA256) == "missing"
    assert removing.remove(path, 4, SHA256) == "missing"


def test_a_file_that_took_its_place_while_it_was_compared_stays(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = removing._problem

    def swap(*arguments: object) -> str | None:
        found = compare(*arguments)  # type: ignore[arg-type]
        file.with_name("new").write_bytes(b"data")
        file.with_name("new").replace(file)
        return found

    monkeypatch.setattr(removing, "_problem", swap)

    assert removing.remove(str(file), 4, SHA256) == "changed"
    assert file.exists()


def test_what_the_system_refuses_is_said(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "unlink", refuse)

    assert removing.remove(str(file), 4, SHA256) == "Operation not permitted"
    assert file.exists()


def test_a_folder_that_may_not_be_searched_is_said(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "lstat", refuse)

    assert removing.problem_with(str(file), 4, SHA256) == "Permission denied"
