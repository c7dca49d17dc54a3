"""The importable names of `task_runtime`, as adapters of both shapes know them."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from tachograph import cards
from tachograph.domain import ids

if TYPE_CHECKING:
    from pathlib import Path

    from workspaces import Bench

NAMES = (
    "DEFAULT_RESUME_RUNNER",
    "RunCard",
    "TASK_RUNS_DIR",
    "TaskRuntimeError",
    "TaskSummary",
    "WORKSPACE",
    "append_history",
    "build_resume_command",
    "default_task_id",
    "discover_workspace",
    "ensure_dir",
    "history_entry",
    "list_cards",
    "load_card",
    "load_run_card",
    "make_result",
    "normalize_resume_adapter",
    "now_iso",
    "parse_iso",
    "parse_kv_pairs",
    "resolve_workspace",
    "resolve_workspace_path",
    "sanitize_task_id",
    "save_card",
    "seconds_since_checkpoint",
    "shell_to_argv",
    "stale_due",
    "summarize",
    "task_path",
    "update_run_card",
)


@pytest.fixture
def runtime(empty: Bench, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is installed, for a workspace of this test."""
    monkeypatch.setenv("OPENCLAW_WORKSPACE", str(empty.root))
    monkeypatch.setenv("TACHO_PYTHON", sys.executable)
    return importlib.import_module("tachograph.dropin.installed.task_runtime")


def test_every_name_of_both_shapes_is_there(runtime: ModuleType, empty: Bench) -> None:
    assert [name for name in NAMES if not hasattr(runtime, name)] == []
    assert empty.root == runtime.WORKSPACE
    assert empty.workspace.cards == runtime.TASK_RUNS_DIR
    assert str(runtime.DEFAULT_RESUME_RUNNER) == empty.workspace.resume_runner


def test_a_name_that_is_none_is_an_attribute_error(runtime: ModuleType) -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        runtime.nothing  # noqa: B018


@pytest.mark.parametrize("text", [" Weekly  Report / EU ", "a--b", "-x-", "A.b_c", "ü", "job~2"])
def test_ids_are_cleaned_as_the_ledger_does(runtime: ModuleType, text: str) -> None:
    if text == "ü":
        with pytest.raises(ValueError, match="nothing is left"):
            runtime.sanitize_task_id(text)
    else:
        assert runtime.sanitize_task_id(text) == ids.task_id(text.partition("~")[0])


def test_the_default_id_has_type_and_time(runtime: ModuleType) -> None:
    made = runtime.default_task_id("My Report")

    assert datetime.strptime(made, "my-report-%Y%m%d-%H%M%S").astimezone() <= datetime.now(UTC)


@pytest.mark.parametrize(
    "text",
    ["2026-03-01T12:00:00+00:00", "2026-03-01T12:00:00Z", "2026-03-01T12:00:00.25+08:00", "soon",
     None, ""],
)  # fmt: skip
def test_times_are_read_as_the_ledger_reads_them(runtime: ModuleType, text: str | None) -> None:
    assert runtime.parse_iso(text) == cards.parse_iso(text)


def test_now_is_in_whole_seconds_with_an_offset(runtime: ModuleType) -> None:
    now = runtime.now_iso()

    assert len(now) == len("2026-03-01T12:00:00+00:00")
    assert runtime.parse_iso(now).tzinfo is not None


def test_pairs_and_words(runtime: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "/p")

    assert runtime.parse_kv_pairs(["a = b=c ", "d="]) == {"a": "b=c", "d": ""}
    assert runtime.shell_to_argv("run '$PLACE x' ~") == ["run", "/p x", str(runtime.Path.home())]
    assert runtime.shell_to_argv(None) == []
    for wrong in ("none", "=x"):
        with pytest.raises(ValueError, match=r"expected key=value|empty key"):
            runtime.parse_kv_pairs([wrong])


def test_paths_are_relative_to_the_workspace(
    runtime: ModuleType, empty: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", "skills")

    assert runtime.resolve_workspace_path("$PLACE/a.py") == str(empty.root / "skills" / "a.py")
    assert runtime.resolve_workspace_path("/abs/a.py") == "/abs/a.py"
    assert runtime.normalize_resume_adapter("  ~/a.py") == str(runtime.Path.home() / "a.py")
    assert runtime.resolve_workspace_path(None) is None
    assert runtime.task_path("A B") == empty.path("a-b")


def test_the_resume_command(runtime: ModuleType, empty: Bench) -> None:
    build = runtime.build_resume_command
    runner = empty.workspace.resume_runner

    assert build("A", resume_command=" make x ", resume_adapter="/a") == ("make x", ["make", "x"])
    assert build("A", resume_command="", resume_adapter="/a") == (
        f"python3 {runner} --task-id a",
        ["python3", runner, "--task-id", "a"],
    )
    assert build("A", resume_command=None, resume_adapter=None) == (None, [])


def test_history_keeps_what_was_said(runtime: ModuleType) -> None:
    card: dict[str, Any] = {"history": "odd"}
    runtime.append_history(card, "a", phase="p", status="s", message="m", extra={"x": 1})
    runtime.append_history(card, "b")

    first, second = card["history"]
    assert {**first, "at": ""} == {
        "at": "", "event": "a", "phase": "p", "status": "s", "message": "m", "extra": {"x": 1},
    }  # fmt: skip
    assert sorted(second) == ["at", "event"]


STALE = {
    "id": "a",
    "status": "running",
    "allow_auto_resume": True,
    "stale_after_minutes": 30,
    "last_checkpoint_at": "2020-01-01T00:00:00Z",
    "retry_count": 0,
    "max_retries": 2,
}


@pytest.mark.parametrize(
    ("change", "due"),
    [
        ({}, True),
        ({"status": "done"}, False),
        ({"allow_auto_resume": False}, False),
        ({"stale_after_minutes": 0}, False),
        ({"retry_count": 2}, False),
        ({"last_checkpoint_at": None}, False),
        ({"last_checkpoint_at": "2999-01-01T00:00:00Z"}, False),
    ],
)
def test_when_a_card_is_stale(runtime: ModuleType, change: dict[str, Any], due: bool) -> None:
    assert runtime.stale_due({**STALE, **change}) is due


def test_the_age_is_never_negative(runtime: ModuleType) -> None:
    assert runtime.seconds_since_checkpoint({"updated_at": "2999-01-01T00:00:00Z"}) == 0
    assert runtime.seconds_since_checkpoint({}) is None


def test_the_short_form_is_that_of_the_commands(runtime: ModuleType, empty: Bench) -> None:
    path = empty.path("a")
    card = {**STALE, "task_type": "t", "title": "T", "mode": "full", "phase": "p",
            "artifacts": {"x": "y"}}  # fmt: skip
    mine = runtime.make_result(card, path)
    theirs = cards.make_result(card, str(path), datetime.now(UTC).timestamp().__int__() * 1_000_000)

    assert list(mine) == list(theirs)
    assert {**mine, "seconds_since_checkpoint": 0} == {**theirs, "seconds_since_checkpoint": 0}


def test_cards_go_to_the_ledger_and_back(
    runtime: ModuleType, empty: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(runtime.TaskRuntimeError, match="task not found: a"):
        runtime.load_card("a")
    path = runtime.save_card({"id": "A", "task_type": "t", "title": "T", "status": "running"})
    empty.write("data/task-runs/odd.json", "{")

    assert path == empty.path("a")
    assert runtime.load_card("a")["title"] == "T"
    assert [card["id"] for card in runtime.list_cards(task_type="t", status="running")] == ["a"]
    assert runtime.list_cards(task_type="none") == []
    assert "odd.json cannot be read: it is no JSON" in capfd.readouterr().err


def test_a_card_that_cannot_be_saved_says_why(runtime: ModuleType) -> None:
    for card, said in (
        ({"id": "a", "odd": {1, 2}}, "JSON has no form"),
        ({"title": "x"}, "needs the id of its task"),
        ({"id": "//"}, "nothing is left"),
    ):
        with pytest.raises(runtime.TaskRuntimeError, match=said):
            runtime.save_card(card)


def test_a_python_without_tachograph_is_an_error_of_the_task(
    runtime: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setenv("TACHO_PYTHON", str(broken))

    with pytest.raises(runtime.TaskRuntimeError, match="exit status 3"):
        runtime.load_card("a")


def test_a_card_with_attributes_goes_there_and_back(runtime: ModuleType) -> None:
    runtime.save_card({"id": "a", "task_type": "t", "phase": "collect", "status": "running"})
    card = runtime.load_run_card("a")
    card.artifacts.setdefault("phase_collect", {})["raw"] = "/tmp/none"
    card.metadata["user"] = "alice"
    card.checkpoints.append({"phase": "collect", "at": runtime.now_iso(), "message": "20"})
    card.notes = "n"
    card.phase = "analyze"
    runtime.update_run_card("a", card)
    again = runtime.load_run_card("a")

    assert (again.task_id, again.status, again.phase) == ("a", "running", "analyze")
    assert (again.metadata, again.get("notes"), again.get("none", 3)) == ({"user": "alice"}, "n", 3)
    assert again.artifacts == {"phase_collect": {"raw": "/tmp/none"}}
    assert [point["message"] for point in again.checkpoints] == ["20"]
    assert again.to_dict() == card.to_dict()
    assert runtime.load_run_card("none") is None


def test_a_card_made_by_hand_begins_a_task(runtime: ModuleType) -> None:
    card = runtime.RunCard(task_id="b", task_type="t", title="B", phase="x")
    runtime.update_run_card("b", card)
    runtime.update_run_card("b", {"status": "completed"})

    assert runtime.load_card("b")["max_retries"] == 3
    assert runtime.load_run_card("b").status == "completed"


def test_a_broken_bridge_question_is_an_answer(empty: Bench) -> None:
    words = [sys.executable, "-m", "tachograph.dropin"]
    asked = subprocess.run(
        [*words, "bridge", str(empty.root)], input="{}", capture_output=True, text=True
    )
    unknown = subprocess.run([*words, "other"], capture_output=True, text=True)

    assert json.loads(asked.stdout)["ok"] is False
    assert (unknown.returncode, unknown.stderr[:6]) == (2, "usage:")
