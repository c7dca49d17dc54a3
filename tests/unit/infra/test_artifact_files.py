"""A folder of files made from the log: never torn, never outside its root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tachograph.domain.errors import ArtifactFolderError
from tachograph.infra.artifact_files import LOCK, ArtifactFolder

NAME = "20240508/job-runs/job-a/events.jsonl"


@pytest.fixture
def folder(tmp_path: Path) -> ArtifactFolder:
    return ArtifactFolder(str(tmp_path / "tree"))


def test_a_file_is_replaced_whole_and_only_when_it_differs(folder: ArtifactFolder) -> None:
    assert folder.replace(NAME, b"one")
    before = folder.stamp(NAME)

    assert not folder.replace(NAME, b"one")
    assert folder.stamp(NAME) == before
    assert folder.replace(NAME, b"two")
    assert folder.read(NAME) == b"two"
    assert [Path(path).name for path in folder.walk()] == ["events.jsonl"]


def test_a_failed_replacement_leaves_the_old_file_and_no_temporary_one(
    folder: ArtifactFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.replace(NAME, b"one")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tachograph.infra.writing.sync_file", full)
    with pytest.raises(ArtifactFolderError, match="No space left"):
        folder.replace(NAME, b"two")

    assert folder.read(NAME) == b"one"
    assert list(folder.walk()) == [NAME]


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "a//x", "", ".", "a/./x", "a\0/x"])
def test_a_name_that_leads_out_is_refused(folder: ArtifactFolder, name: str) -> None:
    with pytest.raises(ArtifactFolderError, match="lead out of it"):
        folder.replace(name, b"x")


def test_a_folder_that_is_a_link_is_refused(folder: ArtifactFolder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tree" / "20240508").mkdir(parents=True)
    (tmp_path / "tree" / "20240508" / "job-runs").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ArtifactFolderError, match="it is a link"):
        folder.replace(NAME, b"x")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_that_is_a_link_is_neither_read_nor_appended_to_and_replaced_as_itself(
    folder: ArtifactFolder, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"mine\n")
    path = Path(folder.path(NAME))
    path.parent.mkdir(parents=True)
    path.symlink_to(target)

    for use in (
        lambda: folder.read(NAME),
        lambda: folder.tail(NAME),
        lambda: folder.append(NAME, b"x", durable=False),
    ):
        with pytest.raises(ArtifactFolderError):
            use()
    assert folder.replace(NAME, b"ours")
    assert target.read_bytes() == b"mine\n"
    assert not path.is_symlink()


def test_a_torn_last_line_is_cut_off(folder: ArtifactFolder) -> None:
    folder.append(NAME, b'{"a":1}\n{"b":2}\n{"c"', durable=True)

    assert folder.tail(NAME) == [b'{"a":1}', b'{"b":2}']
    assert folder.read(NAME) == b'{"a":1}\n{"b":2}\n'


def test_the_tail_of_a_long_file_begins_with_a_whole_line(folder: ArtifactFolder) -> None:
    lines = [b"%d %s" % (number, b"x" * 1000) for number in range(200)]
    folder.append(NAME, b"".join(line + b"\n" for line in lines), durable=False)

    found = folder.tail(NAME)
    assert found == lines[-len(found) :]
    assert 1 < len(found) < 200


def test_a_file_that_is_not_there(folder: ArtifactFolder) -> None:
    assert folder.read(NAME) is None
    assert folder.stamp(NAME) is None
    assert folder.tail(NAME) == []
    assert not folder.remove(NAME)
    assert list(folder.walk()) == []


def test_a_folder_is_no_file(folder: ArtifactFolder) -> None:
    os.makedirs(folder.path(NAME))  # noqa: PTH103

    assert folder.stamp(NAME) is None
    with pytest.raises(ArtifactFolderError):
        folder.replace(NAME, b"x")


def test_empty_folders_go_with_the_last_file_and_the_root_stays(folder: ArtifactFolder) -> None:
    folder.replace(NAME, b"x")
    folder.replace("20240508/other.summary.json", b"x")
    folder.remove(NAME)
    assert sorted(os.listdir(folder.path("20240508"))) == ["other.summary.json"]  # noqa: PTH208

    folder.remove("20240508/other.summary.json")
    assert os.listdir(folder.root) == []  # noqa: PTH208


def test_one_writer_at_a_time(folder: ArtifactFolder) -> None:
    with folder.locked() as held:
        assert held
        with ArtifactFolder(folder.root).locked(wait=False) as also:
            assert not also
    with folder.locked(wait=False) as held:
        assert held


def test_a_root_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with (
        pytest.raises(ArtifactFolderError, match="or name another folder with --write"),
        ArtifactFolder(str(tmp_path / "file" / "tree")).locked(),
    ):
        pass


USES = {
    "read": lambda folder: folder.read(NAME),
    "tail": lambda folder: folder.tail(NAME),
    "append": lambda folder: folder.append(NAME, b"x", durable=False),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("use", list(USES))
def test_a_pipe_keeps_nobody_waiting(folder: ArtifactFolder, use: str) -> None:
    path = Path(folder.path(NAME))
    path.parent.mkdir(parents=True)
    os.mkfifo(path)

    with pytest.raises(ArtifactFolderError):
        USES[use](folder)


@pytest.mark.parametrize("use", list(USES))
def test_a_folder_where_a_file_belongs_is_named(folder: ArtifactFolder, use: str) -> None:
    path = Path(folder.path(NAME))
    path.mkdir(parents=True)

    with pytest.raises(ArtifactFolderError) as caught:
        USES[use](folder)
    assert str(path) in str(caught.value)


def test_a_lock_that_is_a_link_is_not_followed(folder: ArtifactFolder, tmp_path: Path) -> None:
    Path(folder.root).mkdir()
    (Path(folder.root) / LOCK).symlink_to(tmp_path / "made")

    with pytest.raises(ArtifactFolderError, match="it is a link"), folder.locked():
        pass
    assert not (tmp_path / "made").exists()


def test_the_names_in_a_folder(folder: ArtifactFolder) -> None:
    folder.replace("20240508/b.json", b"x")
    folder.replace("20240508/a.json", b"x")

    assert folder.names("20240508") == ["a.json", "b.json"]
    assert folder.names("20240509") == []
    with pytest.raises(ArtifactFolderError, match=r"a\.json"):
        folder.names("20240508/a.json")
