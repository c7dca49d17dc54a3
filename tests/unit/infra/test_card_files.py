"""Card files, and other files of a workspace, are written whole."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tachograph.infra import workspace_files
from tachograph.infra.card_files import CardFiles, UnreadableCardError, parse, readable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> CardFiles:
    return CardFiles(tmp_path / "data" / "task-runs")


def test_what_is_written_is_read(files: CardFiles) -> None:
    assert (files.names(), files.card("a")) == ([], None)
    with files.lock():
        files.write("b", '{"id": "b"}\n')
        files.write("a", '\ufeff{"id": "a"}')
    (files.folder / "c.json.edited-1").touch()

    assert files.names() == ["a", "b"]
    assert [files.card(name) for name in files.names()] == [{"id": "a"}, {"id": "b"}]
    assert dict(readable(files)) == {"a": {"id": "a"}, "b": {"id": "b"}}


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 100_000])
def test_what_is_no_card_says_why(text: str) -> None:
    with pytest.raises(UnreadableCardError, match="it "):
        parse(text)


def test_a_folder_in_the_place_of_a_file_is_named(files: CardFiles) -> None:
    files.path("a").mkdir(parents=True)

    assert [name for name, said in readable(files) if isinstance(said, str)] == ["a"]


def test_copies_that_are_kept_aside_do_not_replace_each_other(files: CardFiles) -> None:
    files.write("a", "one")
    first = files.keep_aside("a", "now")
    files.write("a", "two")
    second = files.keep_aside("a", "now")
    third = files.keep_aside("a", "now")

    assert [path.read_text() for path in (first, second, third)] == ["one", "two", "two"]
    assert len({first, second, third}) == 3
    assert files.names() == ["a"]


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    workspace_files.replace(path, b"1")
    path.chmod(0o600)
    workspace_files.replace(path, b"\xff")

    assert (workspace_files.read(path), path.stat().st_mode & 0o777) == (b"\xff", 0o600)
    workspace_files.replace(path, b"3", mode=workspace_files.PROGRAM)
    assert os.access(path, os.X_OK)


def test_what_cannot_be_replaced_stays_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    with pytest.raises(OSError, match="folder"):
        workspace_files.replace(path, b"1")

    assert list(tmp_path.iterdir()) == [path]


def test_removing_what_is_not_there_is_done_already(tmp_path: Path) -> None:
    workspace_files.remove(tmp_path / "none")
    workspace_files.remove_empty(tmp_path / "none")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    workspace_files.remove_empty(tmp_path / "full")

    assert workspace_files.read(tmp_path / "none") is None
    assert (tmp_path / "full").is_dir()


def test_a_pipe_in_the_place_of_a_card_holds_nobody_up(files: CardFiles) -> None:
    files.folder.mkdir(parents=True)
    os.mkfifo(files.path("a"))

    with pytest.raises(UnreadableCardError, match="it is no regular file"):
        files.text("a")
