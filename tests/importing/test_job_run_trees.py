"""Trees of job runs that another tool has left are taken into the log truthfully."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here, history, topics
from imports import everything, importing, run_of, status, texts
from job_run_trees import (
    COMMAND,
    FINGERPRINT,
    JOB,
    ORCHESTRATOR,
    at,
    batches,
    cut_off,
    ending,
    event,
    opening,
    orchestrator,
    put,
    summary,
)

from tachograph.bootstrap import open_store

if TYPE_CHECKING:
    from pathlib import Path

    Fields = dict[str, Any]

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("store_environment")


def test_a_run_that_went_well_keeps_its_times_outcome_and_parent(
    tree: Path, capsys: Capture
) -> None:
    put(tree, summary(), [*opening(), *ending("success")])
    (entry,) = importing(capsys, tree)
    shown = status(capsys, JOB)

    assert (entry["state"], entry["jobRunIds"], entry["attempts"]) == ("imported", [JOB], 1)
    assert (shown["status"], shown["command"]) == ("success", COMMAND)
    assert (shown["startedAt"], shown["finishedAt"]) == (at(5), at(60))
    assert shown["updatedAt"] == at(60)
    assert shown["orchestratorRunId"] == ORCHESTRATOR
    assert shown["inputFingerprint"] == FINGERPRINT
    assert shown["modelPolicy"] == {"model": "large", "fallbacks": ["small"]}
    assert [each["startedAt"] for each in shown["phases"]] == [at(6), at(8)]
    assert [each["finishedAt"] for each in shown["phases"]] == [at(7), at(59)]
    assert shown["progress"] == {"completedUnits": 3, "totalUnits": 3, "unitLabel": "batches"}


def test_the_list_shows_the_times_of_the_files(tree: Path, capsys: Capture) -> None:
    put(tree, summary(), [*opening(), *ending("success")])
    importing(capsys, tree)
    done = here(capsys, "run", "list", "--time", "iso")

    assert at(5) in done.stdout


def test_its_origin_names_every_file_with_its_sha256(tree: Path, capsys: Capture) -> None:
    folder = put(tree, summary(), [*opening(), *ending("success")])
    importing(capsys, tree)
    origin = run_of(JOB).origin
    (source,) = origin["sources"]

    assert origin["kind"] == "job-runs"
    assert source["folder"] == str(folder)
    assert {file["path"] for file in source["files"]} == {
        str(folder / "summary.json"),
        str(folder / "events.jsonl"),
    }
    assert all(len(file["sha256"]) == 64 for file in source["files"])
    assert source["diagnostics"] == {"retryCount": 2}
    assert source["resumeCommand"] == "openclaw hybrid-mem tidy-index"


def test_each_run_is_one_append(tree: Path, capsys: Capture) -> None:
    """G2: a snapshot or reader never sees half of an imported run."""
    put(tree, summary(), [*opening(), *ending("success")])
    importing(capsys, tree)
    services = open_store(read_only=True)
    try:
        before = services.log.last_transaction()
    finally:
        services.close()
    put(tree, cut_off(jobRunId="job-b-1"), opening(), batches([0, 1]), name="job-b-1")
    importing(capsys, tree)
    services = open_store(read_only=True)
    try:
        after = services.log.last_transaction()
    finally:
        services.close()

    assert after - before == 1


def test_without_apply_nothing_is_written(tree: Path, store_path: Path, capsys: Capture) -> None:
    put(tree, cut_off(), opening(), batches([0], size=2000, total=9))
    (entry,) = importing(capsys, tree, apply=False)
    told = here(capsys, "run", "import", tree)

    assert (entry["state"], entry["status"]) == ("imported", "interrupted")
    assert not store_path.exists()
    assert "Add --apply" in told.stderr
    assert "to be imported" in told.stdout


def test_a_second_time_records_nothing(tree: Path, capsys: Capture) -> None:
    put(tree, summary(), [*opening(), *ending("success")])
    put(tree, cut_off(jobRunId="job-b-1"), opening(), batches([0]), name="job-b-1")
    orchestrator(tree)
    importing(capsys, tree)
    before = everything()
    entries = importing(capsys, tree)

    assert [entry["state"] for entry in entries] == ["known", "known", "known"]
    assert everything() == before


def test_a_copy_of_the_tree_is_known_by_its_sha256(
    tree: Path, tmp_path: Path, capsys: Capture
) -> None:
    put(tree, summary(), [*opening(), *ending("success")])
    importing(capsys, tree)
    shutil.copytree(tree, tmp_path / "copy")
    (entry,) = importing(capsys, tmp_path / "copy")

    assert (entry["state"], entry["jobRunIds"]) == ("known", [JOB])


def test_files_that_retention_has_removed_since_change_nothing(tree: Path, capsys: Capture) -> None:
    folder = put(tree, summary(), [*opening(), *ending("success")])
    importing(capsys, tree)
    (folder / "events.jsonl").unlink()
    (entry,) = importing(capsys, tree)

    assert entry["state"] == "known"


def test_a_summary_alone_tells_its_phases(tree: Path, capsys: Capture) -> None:
    put(tree, summary())
    importing(capsys, tree)

    assert topics(JOB) == [
        "created",
        "attempt-started",
        "phase-started",
        "phase-ended",
        "phase-started",
        "phase-ended",
        "progress-reported",
        "finished",
        "origin-recorded",
    ]


@pytest.mark.parametrize(
    ("said", "becomes"),
    [
        ("success", "success"),
        ("success_with_review", "success_with_review"),
        ("partial", "partial"),
        ("failed", "failed"),
        ("skipped", "skipped"),
        ("empty", "empty"),
        ("failed_semantic_empty", "failed_semantic_empty"),
        ("monitoring", "success_with_review"),
        ("failed_suspect_zero_parsed", "failed_semantic_empty"),
    ],
)
def test_every_outcome_is_taken_over(tree: Path, capsys: Capture, said: str, becomes: str) -> None:
    put(tree, summary(semanticOutcome=said, semanticReason="because"))
    (entry,) = importing(capsys, tree)

    assert entry["status"] == becomes
    assert status(capsys, JOB)["semanticReason"] == "because"


def test_retries_fallbacks_and_batches_are_told(tree: Path, capsys: Capture) -> None:
    events = [
        *opening(),
        event("retry", at(9), kind="transient", attempt=2, model="large"),
        event("fallback", at(10), **{"from": "large", "to": "small"}),
        event("batch_complete", at(11), index=0, parsed=3),
        event("batch_complete", at(12), index=0, parsed=3),
        *ending("success"),
    ]
    put(tree, summary(), events)
    importing(capsys, tree)
    run = run_of(JOB)

    assert (run.retries, run.fallbacks) == (1, 1)
    assert (run.phases["analyze"].done.ranges, run.phases["analyze"].parsed) == ([[0, 0]], 3)


# Field reports: surprises of the original (spec 8.1, 8.2, 8.5, 8.12, 8.13, 8.15).


def test_8_1_a_killed_run_is_no_success(tree: Path, capsys: Capture) -> None:
    """Outcome success from the start, no finishedAt, a phase that runs: it was cut off."""
    put(tree, cut_off(), opening(), batches([0, 1]))
    (entry,) = importing(capsys, tree)
    shown = status(capsys, JOB)
    run = run_of(JOB)
    notes = [fields for topic, fields in history(JOB) if topic == "run.note-added"]

    assert (entry["status"], shown["status"]) == ("interrupted", "interrupted")
    assert (shown["semanticOutcome"], shown["finishedAt"]) == (None, None)
    assert [each["status"] for each in shown["phases"]] == ["completed", "interrupted"]
    assert "never finished in phase 'analyze'" in notes[0]["text"]
    assert (run.outcome, run.finished) == (None, False)
    assert run.phases["analyze"].missing() == [2]


def test_8_1_a_killed_run_is_never_resumed_by_itself(tree: Path, capsys: Capture) -> None:
    put(tree, cut_off(), opening(), batches([0, 1]))
    importing(capsys, tree)
    before = everything()
    done = here(capsys, "watchdog", "run", "--once", "--auto-resume")

    assert done.returncode == 0
    assert everything() == before
    assert run_of(JOB).recovery is None


def test_8_1_a_killed_run_is_not_counted_as_at_work(tree: Path, capsys: Capture) -> None:
    put(tree, cut_off(), opening(), batches([0, 1]))
    importing(capsys, tree)
    done = here(capsys, "watchdog", "run", "--once")

    assert "0 at work" in done.stdout + done.stderr
    assert f"with the same id {JOB} again" in status(capsys, JOB)["nextStep"]


def test_8_1_the_outcome_it_was_judged_with_before_the_kill_is_no_end(
    tree: Path, capsys: Capture
) -> None:
    said = cut_off(semanticOutcome="failed_semantic_empty")
    put(tree, said, [*opening(), event("semantic_gate", at(9), outcome="failed", reason="r")])
    importing(capsys, tree)

    assert run_of(JOB).outcome is None


def test_8_2_the_next_day_goes_on_in_the_same_run(tree: Path, capsys: Capture) -> None:
    """A checkpoint of last night's tree and today's attempt belong to one run."""
    put(tree, cut_off(), opening(), batches([0]))
    put(
        tree,
        summary(startedAt=at(5, 1), finishedAt=at(60, 1), orchestratorRunId=None),
        [*opening(0, 1), *ending("success", 0, 1)],
        batches([0, 1, 2], updatedAt=at(50, 1)),
        day="20260302",
        segment="job-runs-standalone",
    )
    entries = importing(capsys, tree)
    run = run_of(JOB)

    assert [entry["jobRunIds"] for entry in entries] == [[JOB], [JOB]]
    assert (run.epoch, run.outcome) == (2, "success")
    assert run.phases["analyze"].done.ranges == [[0, 2]]
    assert run.phases["analyze"].parsed == 7
    assert len(run.origin["sources"]) == 2


def test_8_2_a_checkpoint_that_went_with_the_success_is_not_missed(
    tree: Path, capsys: Capture
) -> None:
    """Killed at 2 of 3 batches; the next day all went well, and its checkpoint was removed."""
    put(tree, cut_off(), opening(), batches([0, 1]))
    put(
        tree,
        summary(startedAt=at(5, 1), finishedAt=at(60, 1)),
        [*opening(0, 1), *ending("success", 0, 1)],
        day="20260302",
    )
    importing(capsys, tree)
    run = run_of(JOB)

    assert (run.outcome, run.phases["analyze"].status) == ("success", "completed")
    assert run.phases["analyze"].missing() == []
    told = [fields for topic, fields in history(JOB) if topic == "run.batch-completed"]
    assert [(each["index"], each["parsed"]) for each in told] == [(0, 3), (1, 3), (2, None)]
    assert "went with its checkpoint" in str(history(JOB))


def test_progress_that_is_short_of_its_total_is_no_success(tree: Path, capsys: Capture) -> None:
    put(tree, cut_off(), opening(), batches([0, 1]))
    short = {"completedUnits": 2, "totalUnits": 3, "unitLabel": "batches"}
    said = summary(startedAt=at(5, 1), finishedAt=at(60, 1), progress=short)
    put(tree, said, [*opening(0, 1), *ending("success", 0, 1)], day="20260302")
    importing(capsys, tree, code=1)

    assert (run_of(JOB).outcome, run_of(JOB).reason_code) == ("partial", "contradictory_record")


def test_8_2_after_an_end_the_next_day_is_another_run(tree: Path, capsys: Capture) -> None:
    put(tree, summary())
    put(tree, summary(startedAt=at(5, 1), finishedAt=at(60, 1)), day="20260302")
    put(tree, summary(startedAt=at(5, 2), finishedAt=at(60, 2)), day="20260303")
    entries = importing(capsys, tree)

    assert [entry["jobRunIds"] for entry in entries] == [[JOB], [f"{JOB}~2"], [f"{JOB}~3"]]
    assert status(capsys, f"{JOB}~2")["startedAt"] == at(5, 1)


def test_8_5_success_with_batches_left_is_partial(tree: Path, capsys: Capture) -> None:
    """A deadline cut the batches short, and the record says success all the same."""
    put(tree, summary(), [*opening(), *ending("success")], batches([0]))
    (entry,) = importing(capsys, tree, code=1)
    shown = status(capsys, JOB)

    assert (shown["semanticOutcome"], shown["reasonCode"]) == ("partial", "contradictory_record")
    assert "'analyze' lacks 2 of 3 batches" in shown["semanticReason"]
    assert "contradicts itself" in texts(entry)


def test_8_12_attempts_of_one_day_are_told_apart(tree: Path, capsys: Capture) -> None:
    """The summary tells the last attempt alone, and the events go on growing."""
    events = [*opening(), *ending("partial", status="failed"), *opening(100), *opening(200)]
    put(
        tree,
        summary(startedAt=at(205), finishedAt=at(260)),
        [*events, *ending("success", 200)],
    )
    (entry,) = importing(capsys, tree)
    attempts = status(capsys, JOB)["attempts"]

    assert entry["attempts"] == 3
    assert [each["startedAt"] for each in attempts] == [at(6), at(106), at(205)]
    assert [each["outcome"] for each in attempts] == ["partial", "interrupted", "success"]
    assert [each["endedAt"] for each in attempts] == [at(59), at(108), at(260)]


def test_8_12_an_attempt_after_a_success_is_another_run(tree: Path, capsys: Capture) -> None:
    events = [*opening(), *ending("success"), *opening(100), *ending("failed", 100)]
    put(tree, summary(startedAt=at(105), finishedAt=at(160), semanticOutcome="failed"), events)
    (entry,) = importing(capsys, tree)
    again = importing(capsys, tree)

    assert entry["jobRunIds"] == [JOB, f"{JOB}~2"]
    assert (run_of(JOB).outcome, run_of(f"{JOB}~2").outcome) == ("success", "failed")
    assert [each["state"] for each in again] == ["known"]


def test_8_13_inputs_that_share_a_folder_name_stay_apart(tree: Path, capsys: Capture) -> None:
    """Fingerprints cut to eight characters: 500-50-0.95 and 500-50-0.9 have one id."""
    name = "job-re-index-500-50-0"
    said = {"jobRunId": name, "command": "re-index", "phases": []}
    killed = summary(**said, inputFingerprint="500-50-0.95", finishedAt=None)
    put(tree, killed, name=name)
    put(
        tree,
        summary(**said, inputFingerprint="500-50-0.9", startedAt=at(5, 1), finishedAt=at(6, 1)),
        name=name,
        day="20260302",
    )
    put(
        tree,
        summary(**said, inputFingerprint="500-50-0.95", startedAt=at(5, 2), finishedAt=at(6, 2)),
        name=name,
        day="20260303",
    )
    entries = importing(capsys, tree)

    assert [entry["jobRunIds"] for entry in entries] == [[name], [f"{name}~2"], [name]]
    assert (run_of(name).fingerprint, run_of(name).epoch) == ("500-50-0.95", 2)


def test_8_15_a_resume_command_from_a_file_is_kept_and_never_run(
    tree: Path, capsys: Capture
) -> None:
    put(tree, cut_off(resumeCommand="rm -rf /"))
    importing(capsys, tree)
    done = here(capsys, "run", "resume", JOB)

    assert done.returncode != 0
    assert run_of(JOB).recovery is None
