"""Summaries of orchestrators become runs with steps, which name the runs below them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from imports import importing, run_of, texts
from job_run_trees import (
    COMMAND,
    JOB,
    ORCHESTRATOR,
    at,
    at_us,
    orchestrator,
    put,
    summary,
)

from tachograph.domain.artifact_places import named_job

if TYPE_CHECKING:
    from pathlib import Path

    Fields = dict[str, Any]

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("store_environment")


def test_an_orchestrator_run_has_its_steps_and_names_their_runs(
    tree: Path, capsys: Capture
) -> None:
    put(tree, summary(orchestratorRunId=None))
    put(tree, summary(startedAt=at(5, 1), finishedAt=at(60, 1)), day="20260302")
    path = orchestrator(tree)
    importing(capsys, tree)
    run = run_of(ORCHESTRATOR)

    assert (run.command, run.outcome, run.title) == (
        "maintenance-nightly",
        "success",
        "maintenance-nightly",
    )
    assert (run.created_us, run.ended_us) == (at_us(0), at_us(120))
    assert run.maintenance is not None
    assert run.maintenance["steps"] == ["prune", COMMAND, "reflect"]
    assert run.maintenance_steps[COMMAND]["runs"] == [f"{JOB}~2"]
    assert run.maintenance_steps[COMMAND]["guard"] is True
    assert run.maintenance_steps["reflect"]["status"] == "skipped_guard"
    assert run.origin["path"] == str(path)
    assert run_of(f"{JOB}~2").parent == ORCHESTRATOR


STEPS = {
    "ok": {"name": "prune", "status": "ok", "summary": "s", "durationMs": 1},
    "failed": {"name": "distill", "status": "failed", "summary": "s", "durationMs": 1},
    "left": {"name": "reflect", "status": "deferred", "summary": "s", "durationMs": 1},
}


@pytest.mark.parametrize(
    ("names", "code", "outcome", "reason_code"),
    [
        (["ok"], 0, "success", "steps_done"),
        (["failed"], 1, "failed", "steps_failed"),
        (["ok", "failed"], 1, "partial", "steps_failed"),
        (["ok"], 1, "failed", "contradictory_record"),
        (["ok"], 2, "partial", "contradictory_record"),
        (["failed"], 0, "failed", "contradictory_record"),
    ],
)
def test_its_steps_and_its_exit_code_are_its_outcome(
    tree: Path,
    capsys: Capture,
    names: list[str],
    code: int,
    outcome: str,
    reason_code: str,
) -> None:
    """Where they disagree the worse of the two counts, and a note says so."""
    orchestrator(tree, exitCode=code, steps=[STEPS[name] for name in names])
    importing(capsys, tree)
    run = run_of(ORCHESTRATOR)

    assert (run.outcome, run.reason_code) == (outcome, reason_code)
    assert run.notes == (reason_code == "contradictory_record")


def test_a_step_that_withholds_the_guard_is_given_none(tree: Path, capsys: Capture) -> None:
    step = {"name": "distill", "status": "ok", "summary": "s", "semanticOutcome": "partial"}
    orchestrator(tree, steps=[step], exitCode=1)
    importing(capsys, tree)

    assert run_of(ORCHESTRATOR).maintenance_steps["distill"]["guard"] is False


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"runId": "-x"}, "'-x' cannot be a run id: it starts with '-', like an option."),
        ({"schemaVersion": 3}, "its schemaVersion is 3, not 1"),
        ({"exitCode": 7}, "its exitCode is 7, none of 0, 1, 2"),
        ({"steps": None}, "its steps are no list"),
        ({"steps": [{"name": "a", "status": "odd"}]}, "its step a has the unknown status 'odd'"),
        ({"steps": [{"status": "ok"}]}, "one of its steps has no name"),
        ({"finishedAt": None}, "its finishedAt is None, no time"),
        ({"tierLabel": None}, "its tierLabel is None, no text"),
    ],
)
def test_an_orchestrator_summary_that_cannot_be_used_is_named(
    tree: Path, capsys: Capture, changes: Fields, problem: str
) -> None:
    path = orchestrator(tree, **changes)
    (entry,) = importing(capsys, tree, code=1)

    assert entry["problems"][0]["path"] == str(path)
    assert problem in texts(entry)


def test_an_unknown_outcome_of_a_step_is_named(tree: Path, capsys: Capture) -> None:
    step = {"name": "a", "status": "ok", "summary": "", "semanticOutcome": "splendid"}
    orchestrator(tree, steps=[step], validation={"maintenanceStatus": "success"})
    (entry,) = importing(capsys, tree, code=1)
    run = run_of(ORCHESTRATOR)

    assert "step a: its outcome 'splendid' is unknown" in texts(entry)
    assert run.maintenance_steps["a"]["outcome"] == "failed"
    assert run.origin["validation"] == {"maintenanceStatus": "success"}


def test_a_summary_that_is_torn_is_named(tree: Path, capsys: Capture) -> None:
    path = orchestrator(tree)
    path.write_text("{", encoding="utf-8")

    assert "it is torn" in texts(importing(capsys, tree, code=1)[0])


def test_an_orchestrator_summary_that_was_edited_is_left_alone(tree: Path, capsys: Capture) -> None:
    orchestrator(tree)
    importing(capsys, tree)
    orchestrator(tree, exitCode=1)
    (entry,) = importing(capsys, tree, code=1)

    assert (entry["state"], run_of(ORCHESTRATOR).outcome) == ("left-alone", "success")


def test_its_job_stays_the_one_of_its_summary(tree: Path, capsys: Capture) -> None:
    """Its files are named after it, and a summary that is written again has it."""
    orchestrator(tree)
    importing(capsys, tree)
    run = run_of(ORCHESTRATOR)

    assert run.title == "maintenance-nightly"
    assert named_job(run) == run.title
