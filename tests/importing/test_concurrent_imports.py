"""Imports of one tree at the same time: each record is taken once, and each reports all of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here, tacho
from imports import everything, importing, run_of, texts
from job_run_trees import JOB, ORCHESTRATOR, at, batches, orchestrator, put, summary

from tachograph.domain.errors import VersionConflictError
from tachograph.import_desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("store_environment")


def let_another_be_first(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> None:
    """Let another process do the same right before this one appends for the first time."""
    save = Desk.save
    waiting = [arguments]

    def late(desk: Desk, run: Any) -> None:
        while waiting:
            done = tacho(*waiting.pop())
            assert done.returncode == 0, done.stderr
        save(desk, run)

    monkeypatch.setattr(Desk, "save", late)


def test_what_another_import_recorded_first_is_in_the_store_already(
    tree: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tree, summary())
    put(tree, summary(jobRunId="job-b-1"), name="job-b-1")
    orchestrator(tree)
    let_another_be_first(monkeypatch, "run", "import", tree, "--apply")
    entries = importing(capsys, tree)
    recorded = everything()

    assert {entry["state"] for entry in entries} == {"known"}
    assert len(entries) == 3
    assert len(recorded) == len(set(recorded))
    assert run_of(JOB).finished and run_of("job-b-1").finished


def test_what_was_appended_before_another_import_was_first_counts_as_imported(
    tree: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two executions of one id: the first is saved here, the second by the other import."""
    put(tree, summary())
    put(tree, summary(startedAt=at(5, 1), finishedAt=at(60, 1)), day="20260302")
    save = Desk.save

    def late(desk: Desk, run: Any) -> None:
        if run.id != JOB:
            monkeypatch.setattr(Desk, "save", save)
            assert tacho("run", "import", tree, "--apply").returncode == 0
        save(desk, run)

    monkeypatch.setattr(Desk, "save", late)
    states = {entry["jobRunIds"][0]: entry["state"] for entry in importing(capsys, tree)}

    assert states == {JOB: "imported", f"{JOB}~2": "known"}


def test_an_orchestrator_run_that_another_import_recorded_first_is_in_the_store_already(
    tree: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    orchestrator(tree)
    let_another_be_first(monkeypatch, "run", "import", tree, "--apply")
    (entry,) = importing(capsys, tree)

    assert (entry["state"], run_of(ORCHESTRATOR).outcome) == ("known", "success")


def test_a_checkpoint_file_that_another_import_recorded_first_is_in_the_store_already(
    tree: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tree / "m3-batches-0dc845e1.json"
    path.write_text(json.dumps(batches([0])), encoding="utf-8")
    let_another_be_first(monkeypatch, "checkpoint", "import", path, "--apply")
    done = here(capsys, "checkpoint", "import", path, "--apply", "--json")

    assert json.loads(done.stdout)["entries"][0]["state"] == "known"


def test_a_record_that_others_are_always_first_with_is_reported_with_all_the_rest(
    tree: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tree, summary())
    put(tree, summary(jobRunId="job-b-1"), name="job-b-1")
    orchestrator(tree)
    save = Desk.save

    def refused(desk: Desk, run: Any) -> None:
        if run.id != "job-b-1":
            raise VersionConflictError(run.id, 0, 1)
        save(desk, run)

    monkeypatch.setattr(Desk, "save", refused)
    entries = {tuple(entry["jobRunIds"]): entry for entry in importing(capsys, tree, code=1)}

    assert entries[("job-b-1",)]["state"] == "imported"
    assert entries[(JOB,)]["state"] == "unreadable"
    assert "others record its run just now: try again" in texts(entries[(JOB,)])
    assert "others record its run just now" in texts(entries[()])
