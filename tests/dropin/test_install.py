"""Installing puts the scripts in, uninstalling puts back what was there before."""

from __future__ import annotations

import ast
import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here
from workspaces import Bench

from tachograph.cli.workspace_shapes import WORKSPACE
from tachograph.dropin.installing import FOLDER, contents, install, uninstall

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]
SCRIPT = "scripts/task_runtime.py"


def files(root: Path) -> dict[str, bytes]:
    """Return every file of the workspace with its content."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def told(capsys: Capture, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
    done = here(capsys, "workspace", *arguments)
    assert done.returncode == code, done.stderr
    WORKSPACE[f"workspace-{arguments[0]}"].validate_json(done.stdout)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_everything_is_put_in_its_place(empty: Bench, capsys: Capture) -> None:
    answer = told(capsys, "install", "--workspace", empty.root)

    assert answer["copied"] == [str(empty.root / name) for name in contents()]
    assert (answer["ok"], answer["heartbeat_changed"]) == (True, True)
    assert {name: files(empty.root)[name] for name in contents()} == contents()
    assert os.access(empty.root / SCRIPT, os.X_OK)
    assert f"INTERPRETER = {sys.executable!r}" in (empty.root / SCRIPT).read_text("utf-8")


def test_a_second_time_changes_nothing(empty: Bench, capsys: Capture) -> None:
    install(empty.workspace)
    before = files(empty.root)
    answer = told(capsys, "install", "--workspace", empty.root)

    assert files(empty.root) == before
    assert (answer["copied"], answer["heartbeat_changed"]) == ([], False)
    assert len(answer["unchanged"]) == len(contents())


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_dry_run_writes_nothing(empty: Bench, capsys: Capture, command: str) -> None:
    if command == "uninstall":
        install(empty.workspace)
    before = files(empty.root)
    answer = told(capsys, command, "--workspace", empty.root, "--dry-run")

    assert files(empty.root) == before
    assert answer["heartbeat_changed"] is True
    assert len(answer["copied" if command == "install" else "removed"]) == len(contents())


def test_what_was_there_before_comes_back(empty: Bench, capsys: Capture) -> None:
    """The original scripts, and HEARTBEAT.md byte for byte."""
    empty.write(SCRIPT, "# the original\n")
    (empty.root / "HEARTBEAT.md").write_bytes(b"# Mine\r\n\r\nno final newline")
    before = files(empty.root)
    install(empty.workspace)
    install(empty.workspace)
    answer = told(capsys, "uninstall", "--workspace", empty.root)

    assert files(empty.root) == before
    assert answer["restored"] == [str(empty.root / SCRIPT)]
    assert len(answer["removed"]) == len(contents()) - 1
    assert not (empty.root / "templates" / "openclaw-task-recovery").exists()


def test_a_file_changed_by_hand_stays(empty: Bench, capsys: Capture) -> None:
    empty.write(SCRIPT, "# the original\n")
    install(empty.workspace)
    empty.write(SCRIPT, "# patched by hand\n")
    first = told(capsys, "uninstall", "--workspace", empty.root)
    left = files(empty.root)[SCRIPT]
    (empty.root / SCRIPT).unlink()
    second = told(capsys, "uninstall", "--workspace", empty.root)

    assert first["kept"] == [str(empty.root / SCRIPT)]
    assert left == b"# patched by hand\n"
    assert second["restored"] == [str(empty.root / SCRIPT)]
    assert files(empty.root) == {"AGENTS.md": b"", SCRIPT: b"# the original\n"}


def test_an_install_over_a_change_by_hand_keeps_a_copy(empty: Bench, capsys: Capture) -> None:
    install(empty.workspace)
    empty.write(SCRIPT, "# patched by hand\n")
    answer = told(capsys, "install", "--workspace", empty.root)

    (kept,) = answer["kept"]
    assert answer["copied"] == [str(empty.root / SCRIPT)]
    assert files(empty.root)[SCRIPT] == contents()[SCRIPT]
    assert files(empty.root)[os.path.relpath(kept, empty.root)] == b"# patched by hand\n"


def test_files_are_taken_out_though_nobody_remembers_putting_them_in(empty: Bench) -> None:
    install(empty.workspace)
    shutil.rmtree(empty.root.joinpath(*FOLDER))
    install(empty.workspace)
    done = uninstall(empty.workspace)

    assert len(done.removed) == len(contents())
    assert [name for name in contents() if (empty.root / name).exists()] == []


@pytest.mark.parametrize("name", sorted(contents()))
def test_what_is_installed_is_read_by_python_3_8(name: str) -> None:
    """Agents and adapters run it by whatever python3 there is."""
    if name.endswith(".py"):
        ast.parse(contents()[name], feature_version=(3, 8))
    else:
        assert contents()[name].startswith(b"# Task recovery")


def test_a_heartbeat_that_others_wrote_to_loses_the_section_only(empty: Bench) -> None:
    path = empty.root / "HEARTBEAT.md"
    path.write_bytes(b"# Mine\n")
    install(empty.workspace)
    path.write_bytes(path.read_bytes() + b"\n## Theirs\nx\n")
    uninstall(empty.workspace)

    assert path.read_bytes() == b"# Mine\n\n## Theirs\nx\n"


def test_a_heartbeat_refreshed_after_others_wrote_to_it_loses_the_section_only(
    empty: Bench,
) -> None:
    path = empty.root / "HEARTBEAT.md"
    path.write_bytes(b"# Mine\n\n## Task Runtime Recovery Check\nold\n")
    install(empty.workspace)
    path.write_bytes(path.read_bytes().replace(b"# Mine", b"# Ours").replace(b"Run:", b"Do:"))
    install(empty.workspace)
    uninstall(empty.workspace)

    assert path.read_bytes() == b"# Ours\n\n## Task Runtime Recovery Check\nold\n"


def test_a_link_to_a_heartbeat_elsewhere_stays_a_link(empty: Bench, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.md"
    target.write_bytes(b"# Mine\n")
    target.chmod(0o640)
    (empty.root / "HEARTBEAT.md").symlink_to(target)
    install(empty.workspace)

    assert (empty.root / "HEARTBEAT.md").is_symlink()
    assert b"## Task Recovery Check" in target.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o640


def test_cards_and_store_outlive_the_scripts(empty: Bench) -> None:
    install(empty.workspace)
    tasks = empty.tasks()
    tasks.services.close()
    empty.write("data/task-runs/a.json", "{}")
    uninstall(empty.workspace)

    assert empty.workspace.store.is_dir()
    assert (empty.workspace.cards / "a.json").exists()
    assert not empty.root.joinpath(*FOLDER).exists()


@pytest.mark.parametrize("place", ["named", "variable", "above"])
def test_the_workspace_is_found(
    empty: Bench, place: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named, by OPENCLAW_WORKSPACE, or by the nearest AGENTS.md upwards."""
    below = empty.root / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below if place == "above" else empty.root.parent)
    if place == "variable":
        monkeypatch.setenv("OPENCLAW_WORKSPACE", str(empty.root))
    named = ["--workspace", str(empty.root)] if place == "named" else []

    assert told(capsys, "install", *named, "--dry-run")["workspace"] == str(empty.root)


def test_no_workspace_is_an_error_that_says_what_to_do(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nowhere = here(capsys, "workspace", "install")
    no_folder = here(capsys, "workspace", "install", "--workspace", tmp_path / "none")

    assert (nowhere.returncode, no_folder.returncode) == (1, 1)
    assert "Set OPENCLAW_WORKSPACE" in nowhere.stderr
    assert "is no folder" in no_folder.stderr
