"""`summary.json` and `events.jsonl` have the original's fields, and claim no false success."""

from __future__ import annotations

from typing import Any

import pytest
from given_when_then import NOW_US, OWNER, PERSON, RUN_ID, attempt
from tree_reader import check_line, check_record

from tachograph.domain import events
from tachograph.domain.artifact_places import place_of
from tachograph.domain.event_lines import event_line, judged_after
from tachograph.domain.ids import InvalidIdError
from tachograph.domain.job_run_shapes import (
    COMMAND_PHASE,
    outcome_of,
    record_json,
    status_of,
    unfinished_reason,
)
from tachograph.domain.recovery import Recovery
from tachograph.domain.recovery_state import GONE, ending_key
from tachograph.domain.run import Run

AT = "2023-11-14T22:13:20.000Z"
PATHS = {"summary": "/t/summary.json", "events": "/t/events.jsonl"}


def begun(**options: Any) -> Run:
    """Return a run in its first attempt."""
    run = Run.create(
        PERSON,
        options.pop("run_id", RUN_ID),
        command="distill",
        fingerprint="0dc845e1",
        inputs=None,
        inputs_digest="d",
        **options,
    )
    run.start_attempt(PERSON, OWNER, live_owner=None)
    return run


def record(run: Run) -> dict[str, Any]:
    found = record_json(run, PATHS, digest="ab")
    check_record(found)
    return found


def test_a_record_has_the_fields_of_the_original_in_their_order_and_ours_after_them() -> None:
    run = begun(parent="orch-1", model_policy={"model": "m3", "fallbacks": ["m2"]})
    run.declare_recovery(attempt(1), Recovery(command=["true"]))
    run.start_phase(attempt(1), "analyze")
    run.plan_batches(attempt(1), "analyze", total=2, size=5, items_digest=None)
    run.complete_batch(attempt(1), "analyze", 0, inputs=5, parsed=4)
    run.schedule_retry(attempt(1), "parse", 1)
    run.finish(attempt(1), "partial", reason="503", reason_code="provider")

    found = record(run)
    assert found == {
        "schemaVersion": 1,
        "jobRunId": RUN_ID,
        "command": "distill",
        "orchestratorRunId": "orch-1",
        "inputFingerprint": "0dc845e1",
        "modelPolicy": {"model": "m3", "fallbacks": ["m2"]},
        "startedAt": AT,
        "finishedAt": AT,
        "phases": [
            {
                "name": "analyze",
                "status": "failed",
                "summary": "cut off before its end",
                "startedAt": AT,
            }
        ],
        "semanticOutcome": "partial",
        "semanticReason": "503",
        "progress": {"completedUnits": 1, "totalUnits": 2, "unitLabel": "batches"},
        "diagnostics": {"batches": 1, "itemsIn": 5, "itemsParsed": 4, "retries": 1},
        "artifactPaths": PATHS,
        "resumeCommand": f"tacho run resume {RUN_ID}",
        "status": "partial",
        "attempt": 1,
        "reasonCode": "provider",
        "runDigest": "ab",
    }
    assert list(found)[:5] == [
        "schemaVersion",
        "jobRunId",
        "command",
        "orchestratorRunId",
        "inputFingerprint",
    ]


def test_a_run_at_work_never_seems_to_have_succeeded() -> None:
    """The original writes `success` from the first instant; a killed run then stays so."""
    run = begun()

    assert outcome_of(run)[0] == "partial"
    assert status_of(run) == "unfinished"
    assert "finishedAt" not in record(run)
    assert record(run)["semanticReason"].startswith("unfinished: attempt 1 by process 17 on ada")


def test_a_run_without_an_attempt_says_what_it_waits_for() -> None:
    run = Run.create(PERSON, RUN_ID, command="c", fingerprint="f", inputs=None, inputs_digest="d")
    assert outcome_of(run) == ("partial", "not started: no attempt has started")

    run.depend_on(PERSON, ["job-a"])
    assert outcome_of(run) == ("partial", "not started: it waits for job-a")


def test_a_run_that_was_found_gone_is_interrupted() -> None:
    run = begun()
    run.start_phase(attempt(1), "p")
    run.detect_stall(PERSON, GONE, {"reason": "its process has ended"})

    found = record(run)
    assert found["status"] == "interrupted"
    assert found["semanticReason"] == "interrupted: attempt 1 by process 17 on ada was cut off"
    assert found["phases"][0]["status"] == "failed"


def test_a_blocked_run_says_why() -> None:
    run = begun()
    run.block(attempt(1), "waits for the disk")

    assert outcome_of(run) == ("partial", "blocked: waits for the disk")


def test_what_a_person_ended_has_failed_and_cannot_be_resumed() -> None:
    run = begun()
    run.declare_recovery(attempt(1), Recovery(command=["true"]))
    run.cancel(PERSON, "not wanted")

    found = record(run)
    assert (found["semanticOutcome"], found["semanticReason"]) == (
        "failed",
        "cancelled: not wanted",
    )
    assert found["status"] == "cancelled"
    assert found["finishedAt"] == AT
    assert "resumeCommand" not in found


def test_the_phase_of_a_command_that_ended_badly_says_how_it_ended() -> None:
    """It stays open in the log, so that a resume runs the command again."""
    run = begun()
    run.start_phase(attempt(1), COMMAND_PHASE)
    run.start_phase(attempt(1), "other")
    run.complete_step(attempt(1), ending_key(1), {"exit_code": 3})
    run.finish(attempt(1), "failed", reason="exit code 3", reason_code="exit_code")

    shown = [(each["status"], each["summary"]) for each in record(run)["phases"]]
    assert shown == [("failed", "exit code 3"), ("failed", "cut off before its end")]
    run.cancel(PERSON, "not wanted")
    assert record(run)["phases"][0]["summary"] == "its command ended, and not well"


def test_the_phase_of_a_command_that_was_cut_off_says_so() -> None:
    run = begun()
    run.start_phase(attempt(1), COMMAND_PHASE)
    run.complete_step(attempt(1), ending_key(1), {"exit_code": 3})
    run.finish(attempt(1), "failed", reason="exit code 3", reason_code="exit_code")
    run.start_attempt(PERSON, OWNER, live_owner=None)
    assert "summary" not in record(run)["phases"][0]
    run.detect_stall(PERSON, GONE, {"reason": "its process has ended"})

    assert record(run)["phases"][0]["summary"] == "cut off before its end"


def test_progress_without_a_whole_is_left_out() -> None:
    run = begun()
    run.report_progress(attempt(1), 7, None, "facts")
    assert "progress" not in record(run)

    run.report_progress(attempt(1), 7, 9, "facts")
    assert record(run)["progress"] == {"completedUnits": 7, "totalUnits": 9, "unitLabel": "facts"}


def test_progress_comes_from_the_offset_where_nothing_else_says_it() -> None:
    run = begun()
    run.save_checkpoint(attempt(1), kind="offset", state={"offset": 3, "total": 9})

    assert record(run)["progress"] == {"completedUnits": 3, "totalUnits": 9, "unitLabel": "items"}


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        (None, None),
        ("m3", {"model": "m3", "fallbacks": []}),
        ({"model": "m3"}, {"model": "m3", "fallbacks": []}),
        ({"model": 3}, None),
        ({"model": "m3", "fallbacks": ("m2", 7)}, {"model": "m3", "fallbacks": ["m2", "7"]}),
    ],
)
def test_a_model_policy_is_shown_where_it_is_one(policy: Any, shown: Any) -> None:
    assert record(begun(model_policy=policy)).get("modelPolicy") == shown


def test_an_effect_in_doubt_and_a_needed_person_are_named() -> None:
    run = begun()
    run.intend_effect(attempt(1), "mail")
    run.raise_attention(attempt(1), "no_adapter")

    found = record(run)
    assert found["effectsInDoubt"] == ["mail"]
    assert found["needsAttention"] == ["no_adapter"]


LINES = [
    (
        "run.phase-started",
        {"phase": "p", "safe_to_retry": True},
        {"type": "phase_start", "phase": "p", "ts": AT},
    ),
    (
        "run.phase-ended",
        {"phase": "p", "status": "completed", "summary": "all"},
        {
            "type": "phase_end",
            "phase": "p",
            "status": "completed",
            "ts": AT,
            "summary": "all",
        },
    ),
    (
        "run.phase-ended",
        {"phase": "p", "status": "failed", "summary": None},
        {"type": "phase_end", "phase": "p", "status": "failed", "ts": AT},
    ),
    (
        "run.batch-completed",
        {"phase": "p", "index": 0, "inputs": 2, "parsed": 0, "output": "secret"},
        {"type": "batch_complete", "index": 0, "ts": AT, "parsed": 0},
    ),
    (
        "run.batch-completed",
        {"phase": "p", "index": 3, "inputs": None, "parsed": None, "output": None},
        {"type": "batch_complete", "index": 3, "ts": AT},
    ),
    (
        "run.retry-scheduled",
        {"kind": "transient", "attempt": 2, "delay_seconds": 5, "error": "x", "model": "m"},
        {"type": "retry", "kind": "transient", "attempt": 2, "ts": AT, "model": "m"},
    ),
    (
        "run.fallback-taken",
        {"source": "m3", "target": "m2", "reason": "429"},
        {"type": "fallback", "from": "m3", "to": "m2", "ts": AT},
    ),
    (
        "run.semantic-gate-judged",
        {"outcome": "empty", "reason": ""},
        {"type": "semantic_gate", "outcome": "empty", "reason": "empty", "ts": AT},
    ),
    (
        "run.finished",
        {"outcome": "failed", "reason_code": None, "reason": "disk"},
        {"type": "semantic_gate", "outcome": "failed", "reason": "disk", "ts": AT},
    ),
]


@pytest.mark.parametrize(("topic", "fields", "line"), LINES)
def test_an_event_is_the_line_that_the_original_writes(
    topic: str, fields: dict[str, Any], line: dict[str, Any]
) -> None:
    found = event_line(topic, {**fields, "time_us": NOW_US, "originator_version": 4})

    assert found is not None
    assert list(found.items()) == [*line.items(), ("version", 4)]
    check_line(found)


def test_every_other_event_has_no_line() -> None:
    known = {topic for topic, _, _ in LINES}
    for topic in set(events.EVENT_TYPES) - known:
        assert event_line(topic, {"time_us": NOW_US, "originator_version": 1}) is None


def test_an_event_whose_body_is_gone_has_no_line() -> None:
    fields = {"erased": True, "time_us": NOW_US, "originator_version": 1}

    assert event_line("run.phase-started", fields) is None


def test_an_outcome_is_told_once() -> None:
    gate = {"outcome": "empty", "reason": "none", "time_us": NOW_US, "originator_version": 2}
    judged = judged_after("run.semantic-gate-judged", gate, None)

    assert event_line("run.finished", gate, judged) is None
    assert event_line("run.finished", {**gate, "outcome": "partial"}, judged) is not None
    assert judged_after("run.attempt-started", {}, judged) is None
    assert judged_after("run.note-added", {}, judged) == "empty"


# Where the files are.


def test_a_run_has_one_folder_whoever_takes_it_up_and_when() -> None:
    run = begun()
    before = place_of(run).folder
    run.finish(attempt(1), "partial", reason="half")
    run.updated_us += 3 * 86_400_000_000
    run.start_attempt(PERSON, OWNER, live_owner=None)

    assert place_of(run).folder == before == f"20231114/job-runs-standalone/{RUN_ID}"


def test_a_run_of_an_orchestrator_is_beside_it() -> None:
    assert place_of(begun(parent="orch-1")).folder == f"20231114/job-runs/{RUN_ID}"


def test_an_orchestrator_run_has_files_in_the_folder_of_the_day() -> None:
    run = begun(run_id="20231114T221320Z-7")
    run.plan_maintenance(attempt(1), "nightly", ["prune"], options={"job": "../../night ly"})

    assert place_of(run).files == {
        "summary": "20231114/night-ly-20231114T221320Z-7.summary.json",
        "validation": "20231114/night-ly-20231114T221320Z-7.validation.json",
        "report": "20231114/night-ly-20231114T221320Z-7.report.md",
    }


@pytest.mark.parametrize("run_id", ["..", "../up", "a/b", "", "-rf", "a\0b", "a" * 201])
def test_an_id_that_names_another_folder_is_refused(run_id: str) -> None:
    run = begun()
    run.id = run_id

    with pytest.raises(InvalidIdError):
        place_of(run)


def test_a_run_whose_resume_returned_without_an_end_says_so() -> None:
    run = Run.create(
        attempt(0), RUN_ID, command="demo", fingerprint="0", inputs={}, inputs_digest="d"
    )
    run.start_attempt(attempt(0), OWNER, live_owner=None)
    run.dispatch_resume(attempt(1), "jobs:resume", {})
    run.return_resume(attempt(1), {"exit_code": 0})

    assert unfinished_reason(run) == (
        "the resume that was attempt 1 has returned, and it is not finished"
    )
