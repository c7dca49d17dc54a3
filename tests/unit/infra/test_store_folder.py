"""A store is found by one order of rules, made whole, and refused where it cannot be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tachograph.domain.errors import (
    StoreCorruptError,
    StoreExistsError,
    StoreFormatError,
    StoreFullError,
    StoreNotFoundError,
    StorePathError,
    StoreReadOnlyError,
)
from tachograph.infra import store_folder
from tachograph.infra.store_folder import check_format, create_store, find_store, is_store

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX permissions and signals")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Creation


def test_a_new_store_has_its_folders_and_its_format(store_path: Path) -> None:
    create_store(str(store_path))

    assert names(store_path) == ["blobs", "format", "log", "presence", "views"]
    assert (store_path / "format").read_bytes() == b"1\n"
    assert is_store(str(store_path))
    assert store_folder.is_writable(str(store_path))


def test_every_part_has_its_place(store_path: Path) -> None:
    store = str(store_path)
    create_store(store)
    parts = ("log", "view", "presence", "blob")
    folders = [getattr(store_folder, f"{part}_folder")(store) for part in parts]

    assert [Path(folder).is_dir() for folder in folders] == [True] * 4
    assert store_folder.config_file(store) == str(store_path / "config")


@posix
def test_a_new_store_is_for_its_user_alone(store_path: Path) -> None:
    before = os.umask(0)
    try:
        create_store(str(store_path / "deep" / "down"))
    finally:
        os.umask(before)

    made = [store_path, store_path / "deep", store_path / "deep/down", store_path / "deep/down/log"]
    assert [oct(path.stat().st_mode & 0o777) for path in made] == ["0o700"] * 4


def test_creating_again_changes_nothing(store_path: Path) -> None:
    create_store(str(store_path))
    (store_path / "format").write_bytes(b"2\n")
    (store_path / "notes.txt").write_text("mine")
    create_store(str(store_path))

    assert (store_path / "format").read_bytes() == b"2\n"


def test_an_empty_folder_becomes_a_store(store_path: Path) -> None:
    store_path.mkdir()
    create_store(str(store_path))

    check_format(str(store_path))


def test_a_folder_with_other_files_does_not_become_a_store(store_path: Path) -> None:
    store_path.mkdir()
    (store_path / "thesis.tex").write_text("mine")

    with pytest.raises(StoreExistsError, match=str(store_path)):
        create_store(str(store_path))

    assert names(store_path) == ["thesis.tex"]


@pytest.mark.parametrize("inside", ["", "below"])
def test_a_file_does_not_become_a_store(store_path: Path, inside: str) -> None:
    store_path.write_text("a file")

    with pytest.raises(StorePathError, match="no folder"):
        create_store(str(store_path / inside))


def test_a_part_that_is_a_file_is_an_error(store_path: Path) -> None:
    store_path.mkdir()
    (store_path / "log").write_text("a file")

    with pytest.raises(StorePathError, match="log is no folder"):
        create_store(str(store_path))


@posix
@pytest.mark.skipif(os.name != "nt" and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(StoreReadOnlyError, match="Permission denied"):
        create_store(str(tmp_path / "store"))


@pytest.mark.parametrize(
    ("number", "error"),
    [(28, StoreFullError), (30, StoreReadOnlyError), (13, StoreReadOnlyError), (5, StorePathError)],
    ids=["ENOSPC", "EROFS", "EACCES", "EIO"],
)
@pytest.mark.parametrize("call", ["mkdir", "replace", "fsync"])
def test_an_error_of_the_disk_says_what_it_was(
    store_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    error: type[Exception],
    call: str,
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(error, match=os.strerror(number)):
        create_store(str(store_path))
    monkeypatch.undo()

    assert not is_store(str(store_path))
    create_store(str(store_path))
    assert names(store_path) == ["blobs", "format", "log", "presence", "views"]


@posix
@pytest.mark.parametrize("call", ["mkdir", "fsync", "replace"])
@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_killed_creation_is_taken_up_again(store_path: Path, call: str, times: int) -> None:
    code = f"""
import os, signal, sys
from tachograph.infra.store_folder import create_store
original, left = os.{call}, {times}
def counted(*arguments):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return original(*arguments)
os.{call} = counted
create_store(sys.argv[1])
"""
    run = subprocess.run([sys.executable, "-c", code, str(store_path)], capture_output=True)

    assert run.returncode in (-signal.SIGKILL, 0), run.stderr
    assert run.returncode == 0 or not is_store(str(store_path)) or call == "fsync"
    create_store(str(store_path))
    check_format(str(store_path))
    assert {"blobs", "format", "log", "presence", "views"} <= set(names(store_path))


def test_processes_may_create_the_same_store(store_path: Path) -> None:
    code = (
        "import sys; from tachograph.infra.store_folder import create_store;"
        "sys.stdin.readline(); create_store(sys.argv[1])"
    )
    command = [sys.executable, "-c", code, str(store_path)]
    creators = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(3)]
    for creator in creators:
        creator.communicate(b"go\n")

    assert [creator.returncode for creator in creators] == [0, 0, 0]
    assert names(store_path) == ["blobs", "format", "log", "presence", "views"]


# Format


def test_there_is_no_store_where_none_was_made(store_path: Path) -> None:
    assert not is_store(str(store_path))
    with pytest.raises(StoreNotFoundError, match=str(store_path)):
        check_format(str(store_path))


def test_a_newer_format_is_refused(store_path: Path) -> None:
    create_store(str(store_path))
    (store_path / "format").write_bytes(b"2\n")

    with pytest.raises(StoreFormatError, match="has format 2; this Tachograph reads up to 1"):
        check_format(str(store_path))


@pytest.mark.parametrize("content", [b"", b"\0\0", b"one", b"-1", b"0", b"1 2", b"\xb2"])
def test_a_damaged_format_is_an_error(store_path: Path, content: bytes) -> None:
    create_store(str(store_path))
    (store_path / "format").write_bytes(content)

    with pytest.raises(StoreCorruptError, match="its format file holds"):
        check_format(str(store_path))


def test_a_file_has_no_format(store_path: Path) -> None:
    store_path.write_text("a file")

    assert not is_store(str(store_path))
    with pytest.raises(StorePathError, match="no folder"):
        check_format(str(store_path))


# Finding


@pytest.fixture
def find(tmp_path: Path, home: Path) -> Callable[..., tuple[str, str]]:
    """Look for a store in tmp_path/project/src, under given conditions."""
    here = tmp_path / "project" / "src"
    here.mkdir(parents=True)

    def look(explicit: str | None = None, **environment: str) -> tuple[str, str]:
        return find_store(explicit, environment, str(here), str(home))

    return look


Find = Callable[..., tuple[str, str]]


def test_the_option_goes_before_all(find: Find, tmp_path: Path) -> None:
    (tmp_path / "project/.tachograph").mkdir()

    assert find(str(tmp_path / "a"), TACHO_STORE=str(tmp_path / "b")) == (
        str(tmp_path / "a"),
        "--store",
    )


def test_the_environment_goes_before_the_folder(find: Find, tmp_path: Path) -> None:
    (tmp_path / "project/.tachograph").mkdir()

    assert find(TACHO_STORE=str(tmp_path / "b")) == (
        str(tmp_path / "b"),
        "environment variable TACHO_STORE",
    )


def test_the_nearest_folder_goes_before_the_workspace(find: Find, tmp_path: Path) -> None:
    (tmp_path / ".tachograph").mkdir()
    far = find(OPENCLAW_WORKSPACE=str(tmp_path))
    (tmp_path / "project/.tachograph").mkdir()
    near = find(OPENCLAW_WORKSPACE=str(tmp_path))
    (tmp_path / "project/src/.tachograph").write_text("a file does not count")

    assert far == (str(tmp_path / ".tachograph"), "nearest .tachograph folder")
    assert near[0] == str(tmp_path / "project/.tachograph")
    assert find() == near


def test_the_workspace_goes_before_the_platform(find: Find, tmp_path: Path) -> None:
    expected = (str(tmp_path / "data/tachograph"), "OpenClaw workspace")

    assert find(OPENCLAW_WORKSPACE=str(tmp_path), XDG_STATE_HOME="/state") == expected


def test_a_workspace_below_the_home_of_openclaw_must_exist(find: Find, tmp_path: Path) -> None:
    without = find(OPENCLAW_HOME=str(tmp_path))
    (tmp_path / "workspace").mkdir()

    assert without[1] == "default for this platform"
    assert find(OPENCLAW_HOME=str(tmp_path))[0] == str(tmp_path / "workspace/data/tachograph")


def test_the_nearest_workspace_with_a_store_is_found_from_inside(
    find: Find, tmp_path: Path
) -> None:
    (tmp_path / "AGENTS.md").touch()
    without = find(XDG_STATE_HOME="/state")
    create_store(str(tmp_path / "data" / "tachograph"))

    assert without[1] != "OpenClaw workspace"
    assert find(XDG_STATE_HOME="/state") == (
        str(tmp_path / "data/tachograph"),
        "OpenClaw workspace",
    )


def test_a_workspace_that_does_not_exist_is_an_error(find: Find, tmp_path: Path) -> None:
    with pytest.raises(StorePathError, match="OPENCLAW_WORKSPACE names it"):
        find(OPENCLAW_WORKSPACE=str(tmp_path / "nowhere"))


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="has its own places")
@pytest.mark.parametrize("state", ["", "relative/path", None])
def test_the_platform_keeps_state_below_home(find: Find, home: Path, state: str | None) -> None:
    environment = {} if state is None else {"XDG_STATE_HOME": state}

    assert find(**environment) == (
        str(home / ".local/state/tachograph"),
        "default for this platform",
    )


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="has its own places")
def test_the_platform_folder_is_the_one_of_platformdirs(
    find: Find, monkeypatch: pytest.MonkeyPatch
) -> None:
    import platformdirs

    monkeypatch.setenv("XDG_STATE_HOME", "/state")

    assert find(XDG_STATE_HOME="/state")[0] == platformdirs.user_state_dir("tachograph")


def test_other_platforms_ask_platformdirs(find: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platformdirs, "user_state_dir", lambda name, appauthor: f"/Library/{name}")

    assert find()[0] == "/Library/tachograph"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("store", "project/src/store"),
        ("./store/", "project/src/store"),
        ("../store", "project/store"),
        (".", "project/src"),
    ],
)
def test_a_relative_path_counts_from_the_current_folder(
    find: Find, tmp_path: Path, written: str, meant: str
) -> None:
    assert find(written)[0] == str(tmp_path / meant)
    assert find(TACHO_STORE=written)[0] == str(tmp_path / meant)


@posix
def test_a_parent_of_a_link_is_where_the_link_leads(find: Find, tmp_path: Path) -> None:
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    (tmp_path / "project/src/link").symlink_to(tmp_path / "elsewhere/deep")

    assert find("link/../store")[0] == str(tmp_path / "elsewhere/store")


@pytest.mark.parametrize(("written", "meant"), [("~", "."), ("~/store", "store")])
def test_a_tilde_is_the_home_folder(find: Find, home: Path, written: str, meant: str) -> None:
    assert find(TACHO_STORE=written)[0] == str(home / meant)


def test_an_address_is_left_as_it_is(find: Find) -> None:
    address = "postgresql://user@host/db"

    assert find(address) == (address, "--store")
    assert find(TACHO_STORE=address)[0] == address


def test_an_empty_option_is_an_error_and_an_empty_variable_is_not_set(find: Find) -> None:
    with pytest.raises(StorePathError, match="--store is empty"):
        find("")

    assert find(TACHO_STORE="")[1] == "default for this platform"


def test_a_missing_parent_of_a_written_path_is_an_error(find: Find, tmp_path: Path) -> None:
    with pytest.raises(StorePathError, match=r"there is no folder .*tpyo \(--store\)"):
        find(str(tmp_path / "tpyo" / "store"))


def test_a_written_path_to_a_file_is_an_error(find: Find, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StorePathError, match=r"it is no folder \(environment variable"):
        find(TACHO_STORE=str(tmp_path / "file"))
    with pytest.raises(StorePathError, match="there is no folder"):
        find(str(tmp_path / "file" / "store"))
