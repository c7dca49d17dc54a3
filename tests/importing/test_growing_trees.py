"""What has grown since it was imported is told on; what went on here is left alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here, history
from imports import everything, importing, run_of, status, texts
from job_run_trees import (
    JOB,
    at,
    batches,
    cut_off,
    ending,
    opening,
    put,
    summary,
)

from tachograph import record

if TYPE_CHECKING:
    from pathlib import Path

    Fields = dict[str, Any]

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("store_environment")


def test_an_attempt_that_was_at_work_is_told_on(tree: Path, capsys: Capture) -> None:
    folder = put(tree, cut_off(), opening(), batches([0]))
    importing(capsys, tree)
    put(tree, summary(), [*opening(), *ending("success")], batches([0, 1, 2], updatedAt=at(50)))
    (entry,) = importing(capsys, tree)
    run = run_of(JOB)

    assert (entry["state"], entry["attempts"]) == ("continued", 0)
    assert (run.epoch, run.outcome) == (1, "success")
    assert run.phases["analyze"].done.ranges == [[0, 2]]
    assert run.phases["analyze"].parsed == 7
    assert importing(capsys, tree)[0]["state"] == "known"
    assert folder.is_dir()


def test_a_new_attempt_in_a_known_folder_is_told_on(tree: Path, capsys: Capture) -> None:
    put(tree, cut_off(), opening())
    importing(capsys, tree)
    put(
        tree,
        summary(startedAt=at(105), finishedAt=at(160)),
        [*opening(), *opening(100), *ending("success", 100)],
    )
    (entry,) = importing(capsys, tree)

    assert (entry["state"], entry["attempts"]) == ("continued", 1)
    assert [each["outcome"] for each in status(capsys, JOB)["attempts"]] == [
        "interrupted",
        "success",
    ]


def test_a_torn_last_line_is_read_when_it_is_whole(tree: Path, capsys: Capture) -> None:
    whole = "".join(json.dumps(each) + "\n" for each in opening())
    put(tree, cut_off(), whole + '{"type": "phase_e')
    (entry,) = importing(capsys, tree, code=1)
    put(tree, summary(), [*opening(), *ending("success")])
    (again,) = importing(capsys, tree)

    assert "line 4 is left out: it is torn" in texts(entry)
    assert (again["state"], run_of(JOB).outcome) == ("continued", "success")


def test_a_run_that_went_on_here_is_left_alone(tree: Path, capsys: Capture) -> None:
    put(tree, cut_off(), opening())
    importing(capsys, tree)
    here(capsys, "run", "note", "mine now", "--run", JOB)
    put(tree, summary(), [*opening(), *ending("success")])
    before = everything()
    (entry,) = importing(capsys, tree, code=1)

    assert entry["state"] == "left-alone"
    assert "went on here since" in texts(entry)
    assert everything() == before


def test_a_record_that_changed_after_its_end_is_left_alone(tree: Path, capsys: Capture) -> None:
    put(tree, summary())
    importing(capsys, tree)
    put(tree, summary(semanticReason="edited by hand"))
    (entry,) = importing(capsys, tree, code=1)

    assert (entry["state"], entry["jobRunIds"]) == ("left-alone", [JOB])
    assert "changed since run" in texts(entry)


def test_a_run_recorded_here_is_not_imported_from_its_own_files(
    tree: Path, capsys: Capture
) -> None:
    with record("plain", {"a": 1}) as job:
        run_id, run = job.id, job.state
    said = summary(
        jobRunId=run_id,
        command="plain",
        inputFingerprint=run.fingerprint,
        startedAt=status(capsys, run_id)["startedAt"],
        finishedAt=status(capsys, run_id)["finishedAt"],
    )
    put(tree, said, name=run_id)
    (entry,) = importing(capsys, tree)

    assert (entry["state"], entry["jobRunIds"]) == ("known", [run_id])


def test_what_was_erased_is_not_brought_back(tree: Path, capsys: Capture) -> None:
    put(tree, summary(semanticReason="names a customer"))
    importing(capsys, tree)
    erased = here(capsys, "store", "erase", JOB, "--reason", "asked to", "--apply")
    assert erased.returncode == 0, erased.stderr
    (entry,) = importing(capsys, tree, code=1)

    assert (entry["state"], entry["jobRunIds"]) == ("left-alone", [JOB])
    assert "was erased" in texts(entry)
    assert "names a customer" not in str(history(JOB))
