"""Records that contradict themselves or cannot be read are named, and told as no more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here
from imports import importing, run_of, texts
from job_run_trees import (
    JOB,
    at,
    at_us,
    batches,
    cut_off,
    ending,
    event,
    opening,
    orchestrator,
    phase,
    put,
    summary,
)

if TYPE_CHECKING:
    from pathlib import Path

    Fields = dict[str, Any]

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("store_environment")


@pytest.mark.parametrize(
    ("said", "logged", "becomes"),
    [
        ("success", "failed", "failed"),
        ("success", "partial", "partial"),
        ("partial", "success", "partial"),
        ("empty", "success", "success_with_review"),
    ],
)
def test_events_that_disagree_with_the_summary_leave_the_worse(
    tree: Path, capsys: Capture, said: str, logged: str, becomes: str
) -> None:
    put(tree, summary(semanticOutcome=said), [*opening(), *ending(logged)])
    (entry,) = importing(capsys, tree, code=1)

    assert (run_of(JOB).outcome, run_of(JOB).reason_code) == (becomes, "contradictory_record")
    assert f"the summary says {said}, its events say {logged}" in texts(entry)


def test_a_success_with_a_phase_that_never_ended_wants_a_look(tree: Path, capsys: Capture) -> None:
    put(tree, summary(phases=[phase("analyze", "running", at(8))]))
    (entry,) = importing(capsys, tree, code=1)
    run = run_of(JOB)

    assert run.outcome == "success_with_review"
    assert run.phases["analyze"].status == "failed"
    assert "phase 'analyze' has no end" in texts(entry)


def test_events_that_were_lost_are_told_by_the_summary(tree: Path, capsys: Capture) -> None:
    put(tree, summary(), [opening()[2]])
    importing(capsys, tree)
    run = run_of(JOB)

    assert {name: each.status for name, each in run.phases.items()} == {
        "extract": "completed",
        "analyze": "completed",
    }


def test_a_checkpoint_of_other_inputs_is_left_out(tree: Path, capsys: Capture) -> None:
    put(tree, cut_off(), opening(), batches([0], incidentsHash="ffffffff"))
    (entry,) = importing(capsys, tree, code=1)

    assert "its incidentsHash is 'ffffffff'" in texts(entry)
    assert run_of(JOB).phases["analyze"].total is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"schemaVersion": 1, "jobRun', "it is torn, or no JSON"),
        ("", "it is empty"),
        ("[]", "it holds no JSON object"),
        ("[" * 100_000, "it is nested too deeply"),
        (json.dumps(summary(schemaVersion=2)), "its schemaVersion is 2, not 1"),
        (json.dumps(summary(schemaVersion=True)), "its schemaVersion is True, not 1"),
        (json.dumps(summary(command="")), "its command is '', no text"),
        (json.dumps(summary(inputFingerprint=None)), "its inputFingerprint is None, no text"),
        (json.dumps(summary(startedAt="soon")), "its startedAt is 'soon', no time"),
        (json.dumps(summary(phases=[{}])), "its phases are no list"),
        (json.dumps(summary(jobRunId="../x")), "cannot be a run id"),
        (json.dumps(summary(jobRunId="job-other-1")), "and its folder is"),
    ],
)
def test_a_summary_that_cannot_be_used_is_named_with_the_reason(
    tree: Path, capsys: Capture, text: str, problem: str
) -> None:
    folder = put(tree, text, opening())
    put(tree, summary(jobRunId="job-b-1"), name="job-b-1")
    good, bad = importing(capsys, tree, code=1)
    told = here(capsys, "run", "import", tree)

    assert (bad["state"], good["state"]) == ("unreadable", "imported")
    assert bad["problems"][0]["path"] == str(folder / "summary.json")
    assert problem in texts(bad)
    assert f"{folder / 'summary.json'}: " in told.stderr
    assert run_of("job-b-1").finished


def test_a_folder_without_a_summary_is_named(tree: Path, capsys: Capture) -> None:
    folder = put(tree, None, opening())
    (entry,) = importing(capsys, tree, code=1)

    assert entry["problems"] == [{"path": str(folder), "text": "it holds no summary.json"}]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"type": "surprise", "ts": "x"}', "its type 'surprise' is unknown"),
        ('{"type": "phase_start", "ts": "x"}', "its phase is None, no text"),
        ("17", "it holds no JSON object"),
        ('{"type": "batch_complete", "index": -1}', "its index is -1"),
    ],
)
def test_a_line_that_cannot_be_used_is_left_out_and_named(
    tree: Path, capsys: Capture, line: str, problem: str
) -> None:
    lines = [json.dumps(each) for each in [*opening(), *ending("success")]]
    put(tree, summary(), "\n".join([lines[0], line, *lines[1:], ""]))
    (entry,) = importing(capsys, tree, code=1)

    assert f"line 2 is left out: {problem}" in texts(entry)
    assert run_of(JOB).outcome == "success"


@pytest.mark.parametrize(
    ("checkpoint", "problem"),
    [
        ("{", "it is left out: it is torn"),
        (batches([0], version=2), "it is left out: its version is 2, not 1"),
        (batches([7]), "completedBatchIndexes holds 7"),
        ({"offset": 9, "total": 3}, "offset is 9, beyond the total of 3"),
    ],
)
def test_a_checkpoint_that_cannot_be_used_is_left_out(
    tree: Path, capsys: Capture, checkpoint: Any, problem: str
) -> None:
    put(tree, cut_off(), opening(), checkpoint)
    (entry,) = importing(capsys, tree, code=1)

    assert problem in texts(entry)
    assert run_of(JOB).checkpoint is None


@pytest.mark.parametrize("name", ["summary.json", "events.jsonl"])
def test_a_file_that_cannot_be_opened_is_named(tree: Path, capsys: Capture, name: str) -> None:
    folder = put(tree, summary(), opening())
    (folder / name).unlink()
    (folder / name).mkdir()
    (entry,) = importing(capsys, tree, code=1)

    assert entry["state"] == "unreadable"
    assert entry["problems"][0]["path"] == str(folder / name)
    assert "it cannot be read: " in texts(entry)


def test_a_summary_that_is_no_text_is_named(tree: Path, capsys: Capture) -> None:
    folder = put(tree, "", opening())
    (folder / "summary.json").write_bytes(b"\xff\xfe\x00")

    assert "it is not UTF-8" in texts(importing(capsys, tree, code=1)[0])


def test_a_batch_outside_any_phase_is_left_out(tree: Path, capsys: Capture) -> None:
    put(tree, summary(), [event("batch_complete", at(6), index=0), *opening()])
    (entry,) = importing(capsys, tree, code=1)

    assert "line 1 is left out: no phase is running" in texts(entry)


def test_a_line_that_breaks_a_rule_is_left_out(tree: Path, capsys: Capture) -> None:
    put(tree, cut_off(), opening(), batches([0]))
    importing(capsys, tree)
    late = event("batch_complete", at(45), index=17)
    put(tree, cut_off(), [*opening(), late], batches([0]))
    (entry,) = importing(capsys, tree, code=1)

    assert "line 4 is left out: " in texts(entry)
    assert "17" in texts(entry)


@pytest.mark.parametrize("ended", ["running", "odd"])
def test_an_end_that_is_none_leaves_the_phase_failed(
    tree: Path, capsys: Capture, ended: str
) -> None:
    events = [*opening(), event("phase_end", at(9), phase="analyze", status=ended)]
    put(tree, summary(phases=[]), events)
    (entry,) = importing(capsys, tree, code=1)
    run = run_of(JOB)

    assert (run.phases["analyze"].status, run.outcome) == ("failed", "success_with_review")
    assert f"phase 'analyze' is said to have ended as '{ended}'" in texts(entry)


def test_an_end_without_a_beginning_is_told(tree: Path, capsys: Capture) -> None:
    events = [event("phase_end", at(9), phase="late", status="completed")]
    put(tree, summary(phases=[phase("waiting", "pending", at(1))]), events)
    importing(capsys, tree)

    assert {name: each.status for name, each in run_of(JOB).phases.items()} == {"late": "completed"}


@pytest.mark.parametrize(
    "progress",
    [
        "half",
        {"completedUnits": None, "totalUnits": 3},
    ],
)
def test_progress_that_says_nothing_is_left_out(tree: Path, capsys: Capture, progress: Any) -> None:
    put(tree, summary(progress=progress))
    importing(capsys, tree)

    assert run_of(JOB).progress is None


def test_an_unknown_outcome_is_a_failure_and_named(tree: Path, capsys: Capture) -> None:
    put(tree, summary(semanticOutcome="splendid"))
    (entry,) = importing(capsys, tree, code=1)

    assert (entry["status"], run_of(JOB).outcome) == ("failed", "failed")
    assert "its outcome 'splendid' is unknown" in texts(entry)


def test_a_checkpoint_whose_phase_the_summary_does_not_name_finds_the_open_one(
    tree: Path, capsys: Capture
) -> None:
    phases = [phase("scan", "completed", at(6), at(7)), phase("judge", "running", at(8))]
    put(tree, summary(finishedAt=None, phases=phases), None, batches([0]))
    importing(capsys, tree)

    assert run_of(JOB).phases["judge"].done.ranges == [[0, 0]]


def test_a_checkpoint_without_any_phase_gets_one(tree: Path, capsys: Capture) -> None:
    put(tree, summary(finishedAt=None, phases=None), None, batches([0]))
    importing(capsys, tree)

    assert run_of(JOB).phases["analyze"].missing() == [1, 2]


def test_a_checkpoint_that_came_after_its_phase_is_left_out(tree: Path, capsys: Capture) -> None:
    failed = [phase("analyze", "failed", at(8), at(9))]
    put(tree, summary(finishedAt=None, phases=failed))
    importing(capsys, tree)
    put(tree, summary(finishedAt=None, phases=failed), None, batches([0]))
    (entry,) = importing(capsys, tree, code=1)

    assert "phase 'analyze' has ended without it" in texts(entry)


def test_another_plan_than_before_is_left_out(tree: Path, capsys: Capture) -> None:
    put(tree, cut_off(), opening(), batches([0]))
    again = cut_off(startedAt=at(5, 1))
    put(tree, again, opening(0, 1), batches([0], size=5), day="20260302")
    _first, second = importing(capsys, tree, code=1)

    assert "Phase 'analyze'" in texts(second)
    assert run_of(JOB).phases["analyze"].size == 3


def test_batches_that_were_left_to_a_refused_checkpoint_are_kept(
    tree: Path, capsys: Capture
) -> None:
    """Their lines say that they are finished; what came out of them, only the file said."""
    put(tree, cut_off(), opening(), batches([0]))
    lines = [*opening(0, 1), event("batch_complete", at(20, 1), index=2)]
    refused = batches([0, 2], size=5)
    put(tree, cut_off(startedAt=at(5, 1)), lines, refused, day="20260302")
    _first, second = importing(capsys, tree, code=1)
    run = run_of(JOB)

    assert "1 batches that its events name are kept, without items." in texts(second)
    assert run.phases["analyze"].done.ranges == [[0, 0], [2, 2]]
    assert run.phases["analyze"].parsed == 3


def test_a_batch_beyond_the_plan_is_named_when_its_checkpoint_is_refused(
    tree: Path, capsys: Capture
) -> None:
    put(tree, cut_off(), opening(), batches([0]))
    lines = [*opening(0, 1), event("batch_complete", at(20, 1), index=4)]
    refused = batches([0, 4], size=5, total=9)
    put(tree, cut_off(startedAt=at(5, 1)), lines, refused, day="20260302")
    _first, second = importing(capsys, tree, code=1)

    assert "batch 4 of phase 'analyze': " in texts(second)
    assert run_of(JOB).phases["analyze"].done.ranges == [[0, 0]]


def test_batches_of_a_phase_that_was_over_before_its_checkpoint_are_kept(
    tree: Path, capsys: Capture
) -> None:
    done = [event("batch_complete", at(20 + index), index=index) for index in range(2)]
    first = [*opening(), *done, event("phase_end", at(30), phase="analyze", status="completed")]
    second = [event("phase_start", at(106), phase="extract")]
    phases = [phase("extract", "running", at(106)), phase("analyze", "pending", at(106))]
    said = summary(startedAt=at(105), finishedAt=None, phases=phases)
    put(tree, said, [*first, *second], batches([0, 1]))
    (entry,) = importing(capsys, tree, code=1)
    run = run_of(JOB)

    assert "phase 'analyze' has ended without it" in texts(entry)
    assert run.phases["analyze"].done.ranges == [[0, 1]]


def test_batches_of_a_phase_that_failed_before_its_checkpoint_are_told_with_their_items(
    tree: Path, capsys: Capture
) -> None:
    done = [event("batch_complete", at(20 + index), index=index) for index in range(2)]
    first = [*opening(), *done, event("phase_end", at(30), phase="analyze", status="failed")]
    second = [event("phase_start", at(106), phase="extract")]
    phases = [phase("extract", "running", at(106)), phase("analyze", "pending", at(106))]
    said = summary(startedAt=at(105), finishedAt=None, phases=phases)
    put(tree, said, [*first, *second], batches([0, 1]))
    importing(capsys, tree)
    analyze = run_of(JOB).phases["analyze"]

    assert (analyze.status, analyze.done.ranges, analyze.parsed) == ("failed", [[0, 1]], 6)


def test_an_orchestrator_id_that_cannot_be_one_is_no_parent(tree: Path, capsys: Capture) -> None:
    put(tree, summary(orchestratorRunId="../../etc"))
    importing(capsys, tree)

    assert run_of(JOB).parent is None


def test_offset_and_free_checkpoints_are_told(tree: Path, capsys: Capture) -> None:
    offset = {"offset": 40, "total": 100, "migrated": 38, "skipped": 2, "ts": at_us(40) // 1000}
    put(tree, cut_off(), opening(), offset)
    put(tree, cut_off(jobRunId="job-b-1"), opening(), {"mine": [1, 2]}, name="job-b-1")
    importing(capsys, tree)
    one, other = run_of(JOB).checkpoint, run_of("job-b-1").checkpoint

    assert one is not None and other is not None
    assert (one["kind"], one["state"]) == (
        "offset",
        {"offset": 40, "total": 100, "migrated": 38, "skipped": 2},
    )
    assert run_of(JOB).checkpoint_us == at_us(40)
    assert (other["kind"], other["state"]) == ("state", {"mine": [1, 2]})


def test_a_folder_that_is_not_there_is_refused(tree: Path, capsys: Capture) -> None:
    done = here(capsys, "run", "import", tree / "nowhere")

    assert done.returncode == 2
    assert "There is no folder" in done.stderr


def test_a_folder_with_nothing_in_it_says_so(tree: Path, capsys: Capture) -> None:
    done = here(capsys, "run", "import", tree)

    assert (done.returncode, done.stdout) == (0, "")
    assert "There are no job runs in there." in done.stderr


def test_a_secret_is_taken_out(
    tree: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, store_path: Path
) -> None:
    """G13: what is imported is redacted like what is recorded."""
    secret = "s3cr3t-t0ken-of-mine"
    monkeypatch.setenv("MY_API_TOKEN", secret)
    saved = batches([0])
    saved["analysed"][0]["remediationContent"] = f"use {secret}"
    put(tree, cut_off(semanticReason=f"401 for {secret}"), opening(), saved)
    put(tree, summary(jobRunId="job-b-1", semanticReason=f"401 for {secret}"), name="job-b-1")
    orchestrator(tree, summaryLine=f"failed with {secret}")
    importing(capsys, tree)
    stored = b"".join(path.read_bytes() for path in store_path.rglob("*") if path.is_file())

    assert secret.encode() not in stored
