"""Summaries: fold a history, compare a value."""

from __future__ import annotations

from typing import Any

import pytest
from given_when_then import CREATED, NOW_US, OWNER, PERSON, attempt, do, fact, given, started
from run_commands import EVERY_COMMAND, HISTORY
from viewed import summary_of

from tachograph.domain import events
from tachograph.domain.errors import UnknownEventTypeError
from tachograph.domain.event import Cause
from tachograph.domain.events import EVENT_TYPES
from tachograph.domain.gate import Facts
from tachograph.domain.recovery import Recovery
from tachograph.domain.run import Run
from tachograph.infra.codec import Codec
from tachograph.infra.memory_views import MemoryViews
from tachograph.projections import run_summaries
from tachograph.projections.folding import ERASED
from tachograph.projections.run_summaries import (
    MOST_ARTIFACTS,
    MOST_ATTEMPTS,
    MOST_OPEN,
    MOST_PHASES,
    progress,
)

SHARED = (
    "owner",
    "worker",
    "recovery",
    "depends_on",
    "attention",
    "worked_us",
    "returned_us",
    "futile",
    "noted",
)
"""What a summary and the aggregate know by the same name."""

ONE = attempt(1)
TWO = attempt(2)
PHASE = do(Run.start_phase, ONE, "parse")
PLAN = do(Run.plan_batches, ONE, "parse", total=2, size=5, items_digest=None)


def batch(index: int) -> object:
    return do(Run.complete_batch, ONE, "parse", index, inputs=5, parsed=4)


def folded(*history: object) -> dict[str, object]:
    return summary_of(given(*history).events)  # type: ignore[arg-type]


def test_a_new_run_says_what_it_is_and_has_no_outcome() -> None:
    run = folded(CREATED)

    assert run["id"] == "job-code-report-0dc845e1"
    assert (run["command"], run["fingerprint"], run["inputs"]) == (
        "code-report",
        "0dc845e1",
        {"root": "/src"},
    )
    assert (run["created_us"], run["created_position"], run["version"]) == (NOW_US, 1, 1)
    assert (run["outcome"], run["epoch"], run["attempts"]) == (None, 0, [])


def test_large_inputs_stay_in_the_log() -> None:
    created = fact(
        events.RunCreated,
        command="c",
        fingerprint="f",
        inputs={"files": ["file"] * 2000},
        inputs_digest="d",
        model_policy={"model": "large", "fallbacks": ["small"]},
    )

    run = folded(created)

    assert run["inputs"] is None
    assert run["model_policy"] == {"model": "large", "fallbacks": ["small"]}


def test_a_run_has_no_outcome_until_an_attempt_ends_whatever_the_gate_says() -> None:
    judged = do(Run.judge, ONE, Facts(inputs=5, outputs=5))
    before = folded(CREATED, started(1), judged)
    after = folded(CREATED, started(1), judged, do(Run.finish, ONE))

    assert before["verdict"]["outcome"] == "success"  # type: ignore[index]
    assert (before["outcome"], before["finished_us"]) == (None, None)
    assert (after["outcome"], after["finished_us"]) == ("success", NOW_US)


def test_phases_count_their_batches() -> None:
    run = folded(CREATED, started(1), PHASE, PLAN, batch(1), batch(0))

    assert run["phases"] == {
        "parse": {
            "status": "running",
            "summary": None,
            "epoch": 1,
            "started_us": NOW_US,
            "finished_us": None,
            "total": 2,
            "batches": 2,
            "inputs": 10,
            "parsed": 8,
        }
    }
    assert run["counters"] == {"batches": 2}


def test_a_phase_ends_with_its_summary() -> None:
    run = folded(
        CREATED, started(1), PHASE, do(Run.end_phase, ONE, "parse", summary="all well" * 200)
    )
    phase = run["phases"]["parse"]  # type: ignore[index]

    assert (phase["status"], phase["finished_us"]) == ("completed", NOW_US)
    assert phase["summary"] == ("all well" * 200)[:499] + "…"


def test_only_the_newest_phases_are_kept() -> None:
    names = [f"phase {number}" for number in range(MOST_PHASES + 2)]
    run = folded(CREATED, started(1), *(do(Run.start_phase, ONE, name) for name in names))

    assert list(run["phases"]) == names[2:]  # type: ignore[call-overload]
    assert run["phases_omitted"] == 2


def test_progress_is_what_the_run_reported() -> None:
    run = folded(CREATED, started(1), PHASE, PLAN, do(Run.report_progress, ONE, 3, 9, "files"))

    assert progress(run) == {"completed": 3, "total": 9, "unit": "files"}


def test_progress_is_else_the_batches_of_the_phase_that_runs() -> None:
    other = do(Run.start_phase, ONE, "other")
    planned = do(Run.plan_batches, ONE, "other", total=7, size=5, items_digest=None)
    ended = do(Run.end_phase, ONE, "other", status="skipped")
    run = folded(CREATED, started(1), PHASE, PLAN, batch(0), other, planned, ended)

    assert progress(run) == {"completed": 1, "total": 2, "unit": "batches"}


def test_progress_is_else_the_last_phase_with_batches() -> None:
    end = do(Run.end_phase, ONE, "parse")
    run = folded(CREATED, started(1), PHASE, PLAN, batch(0), batch(1), end)

    assert progress(run) == {"completed": 2, "total": 2, "unit": "batches"}


def test_progress_is_else_the_offset_of_the_checkpoint() -> None:
    saved = do(Run.save_checkpoint, ONE, kind="offset", state={"offset": 4, "total": 8})
    run = folded(CREATED, started(1), saved)

    assert progress(run) == {"completed": 4, "total": 8, "unit": "items"}
    assert run["checkpoint"] == {
        "version": 3,
        "phase": None,
        "kind": "offset",
        "time_us": NOW_US,
    }


def test_progress_is_else_unknown() -> None:
    assert progress(folded(CREATED, started(1), PHASE)) is None


def test_an_attempt_that_was_superseded_was_interrupted_when_it_was_last_heard_of() -> None:
    later = attempt(1)
    later.time_us = NOW_US + 5
    note = attempt(0)
    note.time_us = NOW_US + 9
    run = folded(
        CREATED,
        started(1),
        do(Run.start_phase, later, "parse"),
        do(Run.add_note, note, "where is it?"),
        started(2),
    )

    assert run["attempts"] == [
        {
            "epoch": 1,
            "owner": OWNER,
            "reason": None,
            "started_us": NOW_US,
            "ended_us": NOW_US + 5,
            "outcome": "interrupted",
            "reason_code": None,
            "events": 1,
        },
        {
            "epoch": 2,
            "owner": OWNER,
            "reason": None,
            "started_us": NOW_US,
            "ended_us": None,
            "outcome": None,
            "reason_code": None,
            "events": 0,
        },
    ]
    assert (run["epoch"], run["attempt_open"]) == (2, True)


def test_a_new_attempt_takes_back_the_outcome_of_the_last() -> None:
    run = folded(CREATED, started(1), do(Run.finish, ONE, "failed", reason="boom"), started(2))

    assert (run["outcome"], run["reason"], run["finished_us"]) == (None, None, None)
    assert [attempt["outcome"] for attempt in run["attempts"]] == ["failed", None]  # type: ignore[attr-defined]


def test_only_the_newest_attempts_are_kept() -> None:
    run = folded(CREATED, *(started(epoch) for epoch in range(1, MOST_ATTEMPTS + 3)))

    assert [attempt["epoch"] for attempt in run["attempts"]] == list(  # type: ignore[attr-defined]
        range(3, MOST_ATTEMPTS + 3)
    )


def test_a_person_ends_a_run_for_good() -> None:
    run = folded(CREATED, started(1), do(Run.cancel, PERSON, "not needed"))

    assert (run["ended"], run["reason"], run["outcome"]) == ("cancelled", "not needed", None)
    assert (run["attempt_open"], run["attempts"][0]["outcome"]) == (False, "cancelled")  # type: ignore[index]


def test_an_attempt_that_ended_keeps_its_outcome_when_the_run_is_cancelled() -> None:
    run = folded(
        CREATED, started(1), do(Run.finish, ONE, "failed"), do(Run.cancel, PERSON, "enough")
    )

    assert (run["ended"], run["outcome"]) == ("cancelled", "failed")
    assert [attempt["outcome"] for attempt in run["attempts"]] == ["failed"]  # type: ignore[attr-defined]


def test_what_happens_on_the_way_is_counted() -> None:
    run = folded(
        CREATED,
        started(1),
        do(Run.schedule_retry, ONE, "parse", 1),
        do(Run.schedule_retry, ONE, "parse", 2),
        do(Run.take_fallback, ONE, "large", "small"),
        do(Run.complete_step, ONE, "load", 1),
        do(Run.add_note, ONE, "hm"),
        do(Run.add_note, ONE, "look out", level="warning"),
        fact(events.StallDetected),
        fact(events.ResumeDispatched, adapter="a", from_version=1),
        fact(events.ResumeReturned, progressed=False),
        fact(events.ResumeReturned, progressed=True),
    )

    assert run["counters"] == {
        "retries": 2,
        "fallbacks": 1,
        "steps": 1,
        "notes": 1,
        "warnings": 1,
        "stalls": 1,
        "resumes": 1,
        "resumesWithoutProgress": 1,
    }


def test_effects_without_a_result_are_in_doubt() -> None:
    run = folded(
        CREATED,
        started(1),
        do(Run.intend_effect, ONE, "mail", description="to ada"),
        do(Run.intend_effect, ONE, "post", idempotent=True),
        do(Run.complete_effect, ONE, "mail"),
    )

    assert run["effects"] == {
        "post": {"description": None, "idempotent": True, "epoch": 1, "time_us": NOW_US}
    }
    assert run["counters"] == {"effects": 2}


def test_approvals_wait_until_they_are_decided() -> None:
    asked = [fact(events.ApprovalRequested, approval=name, subject_digest="d") for name in "abc"]
    run = folded(
        CREATED,
        *asked,
        fact(events.ApprovalGranted, approval="a", subject_digest="d", reason="fine"),
        fact(events.ApprovalRejected, approval="c", subject_digest="d", reason="no"),
    )

    assert run["approvals"] == {"b": NOW_US}


def test_attention_is_open_until_it_is_cleared() -> None:
    run = folded(
        CREATED,
        fact(events.AttentionRaised, reason="stalled", detail="1 h"),
        fact(events.AttentionRaised, reason="retries"),
        fact(events.AttentionRaised, reason="stalled", detail="2 h"),
        fact(events.AttentionCleared, reason="retries"),
        fact(events.AttentionCleared, reason="never raised"),
    )

    assert run["attention"] == {"stalled": "1 h"}


def test_the_newest_state_of_each_artifact_is_kept() -> None:
    def artifact(name: str, size: int) -> object:
        return do(Run.record_artifact, ONE, name, path=f"{name}.txt", size=size, sha256="ab")

    names = [f"a{number}" for number in range(MOST_ARTIFACTS)]
    run = folded(
        CREATED,
        started(1),
        *(artifact(name, 1) for name in names),
        artifact("a0", 2),
        artifact("new", 3),
    )

    assert list(run["artifacts"]) == [*names[2:], "a0", "new"]  # type: ignore[call-overload]
    assert run["artifacts"]["a0"] == {  # type: ignore[index]
        "path": "a0.txt",
        "size": 2,
        "sha256": "ab",
        "time_us": NOW_US,
    }
    assert run["counters"] == {"artifacts": MOST_ARTIFACTS + 2}


def test_a_revised_verdict_stands_beside_the_outcome() -> None:
    revised = fact(
        events.VerdictRevised,
        outcome="failed_semantic_empty",
        rule="nothing-parsed",
        reason_code="no_item_parsed",
        reason="5 in, 0 out",
        policy={"id": "own", "version": 2},
    )
    run = folded(CREATED, started(1), do(Run.finish, ONE, "success"), revised)

    assert run["outcome"] == "success"
    assert run["revision"] == {
        "outcome": "failed_semantic_empty",
        "rule": "nothing-parsed",
        "reason_code": "no_item_parsed",
        "policy": "own",
        "policy_version": 2,
        "reason": "5 in, 0 out",
        "version": 4,
    }


def test_a_new_attempt_has_no_revision_yet() -> None:
    revised = fact(
        events.VerdictRevised, outcome="failed", rule="r", policy={"id": "own", "version": 2}
    )
    history = (CREATED, started(1), do(Run.finish, ONE, "partial"), revised)

    assert folded(*history)["revision"] is not None
    assert folded(*history, started(2))["revision"] is None


def test_a_fork_lies_untouched_only_since_it_was_made() -> None:
    """What it shares was done at another time; its resume window begins now."""
    origin = {"kind": "fork", "run": "job-a", "version": 7, "digest": "ab"}
    run = folded(CREATED, do(Run.record_origin, PERSON, origin))

    assert run["worked_us"] == NOW_US
    assert run["origin"] == {"kind": "fork", "run": "job-a", "version": 7}
    assert folded(CREATED, do(Run.record_origin, PERSON, {"kind": "job-runs"}))["worked_us"] == 0


def test_a_blocked_run_says_why_until_the_next_attempt() -> None:
    blocked = do(Run.block, ONE, "disk is full")

    assert folded(CREATED, started(1), blocked)["blocked"] == "disk is full"
    assert folded(CREATED, started(1), blocked, started(2))["blocked"] is None


def test_an_archived_run_says_where_it_is() -> None:
    run = folded(CREATED, fact(events.RunArchived, location="/archive/1", sha256="ab"))

    assert run["archived"] == "/archive/1"


def test_an_erased_event_is_counted_and_changes_nothing_else() -> None:
    run = summary_of(given(CREATED, started(1)).events)
    erased = {ERASED: True, "time_us": NOW_US + 1, "originator_version": 3}
    run_summaries.apply(run, "run.finished", erased, 3)

    assert (run["version"], run["updated_position"], run["updated_us"]) == (3, 3, NOW_US + 1)
    assert (run["outcome"], run["attempt_open"]) == (None, True)
    assert run["counters"] == {"erased": 1}


def test_an_unknown_topic_of_ours_is_refused() -> None:
    run = run_summaries.new_summary("job-1")

    with pytest.raises(UnknownEventTypeError, match=r"'run\.teleported' at position 7"):
        run_summaries.apply(run, "run.teleported", {}, 7)


def test_every_event_has_a_handler() -> None:
    assert EVENT_TYPES.keys() == run_summaries.TOPICS


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_the_summary_agrees_with_the_aggregate_after_every_command(name: str) -> None:
    case = given(*HISTORY, EVERY_COMMAND[name](attempt(1)))
    run = summary_of(case.events)
    state = case.run

    assert {
        "version": run["version"],
        "epoch": run["epoch"],
        "attempt_open": run["attempt_open"],
        "outcome": run["outcome"],
        "reason_code": run["reason_code"],
        "reason": run["reason"],
        "ended": run["ended"],
        "blocked": run["blocked"],
        "effects": list(run["effects"]),
        "approvals": list(run["approvals"]),
        **{name: run[name] for name in SHARED},
        "retries": run["counters"].get("retries", 0),
        "fallbacks": run["counters"].get("fallbacks", 0),
        "phases": [(name, p["status"], p["batches"]) for name, p in run["phases"].items()],
    } == {
        "version": state.version,
        "epoch": state.epoch,
        "attempt_open": state.attempt_open,
        "outcome": state.outcome,
        "reason_code": state.reason_code,
        "reason": state.reason,
        "ended": state.ended,
        "blocked": state.blocked,
        "effects": state.effects_in_doubt,
        "approvals": state.approvals_pending,
        **{name: getattr(state, name) for name in SHARED},
        "retries": state.retries,
        "fallbacks": state.fallbacks,
        "phases": [(name, p.status, len(p.done)) for name, p in state.phases.items()],
    }


# Watching and resuming.

RESUMED = do(Run.dispatch_resume, ONE, "jobs:resume", {"unattended": True})


def later(seconds: int, epoch: int = 1) -> Cause:
    return Cause(NOW_US + seconds * 1_000_000, "tacho", "ada", 17, epoch)


def test_what_a_job_declares_is_kept() -> None:
    run = folded(
        CREATED,
        do(Run.declare_recovery, PERSON, Recovery(adapter="a", max_retries=5)),
        do(Run.depend_on, PERSON, ["job-a", "job-b"]),
    )

    assert run["recovery"] == {"adapter": "a", "max_retries": 5}
    assert run["depends_on"] == ["job-a", "job-b"]


def test_the_runs_it_waits_for_are_bounded() -> None:
    names = [f"job-{number}" for number in range(MOST_OPEN + 1)]
    run = folded(CREATED, do(Run.depend_on, PERSON, names))

    assert run["depends_on"] == names[:-1]


def test_a_worker_is_kept_for_its_attempt() -> None:
    worker = {**OWNER, "pid": 18}
    work = do(Run.start_worker, ONE, worker)

    assert folded(CREATED, started(1), work)["worker"] == worker
    assert folded(CREATED, started(1), work, started(2))["worker"] is None


def test_fields_of_a_card_are_left_to_the_run() -> None:
    run = folded(CREATED, do(Run.change_card, PERSON, {"goal": "x"}, [{"event": "y"}]))

    assert "card" not in run
    assert run["version"] == 2


def test_a_stall_says_what_was_noticed() -> None:
    noticed = do(Run.detect_stall, PERSON, "gone", {"reason": "process 17 has ended"})
    run = folded(CREATED, started(1), noticed)

    assert run["stall"] == {
        "kind": "gone",
        "reason": "process 17 has ended",
        "epoch": 1,
        "time_us": NOW_US,
    }
    assert (run["noted"], run["counters"]) == ("gone", {"stalls": 1})


def test_a_stall_is_over_with_the_next_work_and_still_told() -> None:
    noticed = do(Run.detect_stall, PERSON, "gone", {})
    run = folded(CREATED, started(1), noticed, do(Run.report_progress, ONE, 1))

    assert run["noted"] is None
    assert run["stall"]["kind"] == "gone"  # type: ignore[index]


def test_a_resume_is_told_from_its_plan_to_its_return() -> None:
    failed = do(Run.return_resume, later(9), {"error": "no such file"})
    before = folded(CREATED, started(1), RESUMED)
    after = folded(CREATED, started(1), RESUMED, failed)

    assert before["resume"] == {
        "adapter": "jobs:resume",
        "from_version": 0,
        "time_us": NOW_US,
        "timeout_seconds": None,
        "returned_us": None,
        "progressed": None,
        "error": None,
    }
    assert after["resume"] == {
        "adapter": "jobs:resume",
        "from_version": 0,
        "time_us": NOW_US,
        "timeout_seconds": None,
        "returned_us": later(9).time_us,
        "progressed": False,
        "error": "no such file",
    }
    assert after["counters"] == {"resumes": 1, "resumesWithoutProgress": 1}
    assert (after["attempt_open"], after["returned_us"]) == (False, later(9).time_us)


def test_what_an_adapter_left_running_keeps_the_attempt_open() -> None:
    left = do(Run.return_resume, ONE, {"left_running": [18]})
    worker = {**OWNER, "pid": 18}
    run = folded(CREATED, started(1), RESUMED, do(Run.start_worker, ONE, worker), left)

    assert (run["attempt_open"], run["owner"], run["worker"]) == (True, worker, worker)


def test_a_run_that_ended_before_its_resume_returned_keeps_its_outcome() -> None:
    run = folded(
        CREATED,
        started(1),
        RESUMED,
        do(Run.finish, ONE, "failed"),
        do(Run.return_resume, ONE, {}),
    )

    assert [attempt["outcome"] for attempt in run["attempts"]] == ["failed"]  # type: ignore[attr-defined]


SAVED = do(Run.save_checkpoint, ONE, state={"row": 1})
LARGE = do(Run.save_checkpoint, ONE, state=["x" * 9999])
BEGUN = (CREATED, started(1), PHASE, do(Run.intend_effect, ONE, "mail"), SAVED, RESUMED)


@pytest.mark.parametrize(
    ("happened", "futile"),
    [
        (do(Run.add_note, ONE, "all well"), 1),
        (do(Run.report_progress, ONE, 5), 1),
        (SAVED, 1),
        (do(Run.end_phase, ONE, "parse", status="failed"), 1),
        (do(Run.finish, ONE, "failed"), 1),
        (do(Run.complete_effect, PERSON, "mail", reason="it is in the outbox"), 1),
        (do(Run.declare_recovery, PERSON, Recovery(max_retries=5)), 1),
        (do(Run.declare_recovery, PERSON, Recovery(max_retries=5), reason="more"), 0),
        (do(Run.save_checkpoint, ONE, state={"row": 2}), 0),
        (do(Run.save_checkpoint, ONE, phase="parse", state={"row": 1}), 0),
        (LARGE, 0),
        (do(Run.complete_batch, ONE, "parse", 0), 0),
        (do(Run.end_phase, ONE, "parse"), 0),
        (do(Run.complete_step, ONE, "load", 1), 0),
        (do(Run.complete_step, ONE, "exec:1", {"exit_code": 3}), 1),
        (do(Run.complete_step, ONE, "exec:2", "a key that a job may use"), 0),
        (do(Run.complete_effect, ONE, "mail"), 0),
    ],
)
def test_futile_resumes_are_counted_as_the_run_counts_them(happened: object, futile: int) -> None:
    case = given(*BEGUN, happened)  # type: ignore[arg-type]

    assert (summary_of(case.events)["futile"], case.run.futile) == (futile, futile)


def test_a_run_that_ends_well_was_resumed_to_some_end() -> None:
    case = given(CREATED, started(1), RESUMED, do(Run.finish, ONE, "empty"))

    assert (summary_of(case.events)["futile"], case.run.futile) == (0, 0)


def test_a_large_state_is_not_compared_with_the_one_before() -> None:
    """It may be counted as progress when it is none: a run is looked at too early, not too late."""
    case = given(CREATED, started(1), LARGE, RESUMED, LARGE)

    assert (summary_of(case.events)["futile"], case.run.futile) == (0, 1)
    assert summary_of(case.events)["saved"] is None


def test_only_unattended_resumes_are_futile() -> None:
    run = folded(CREATED, started(1), do(Run.dispatch_resume, ONE, "a", {}))

    assert (run["futile"], run["counters"]) == (0, {"resumes": 1})


@pytest.mark.parametrize("odd", [None, "text"])
def test_evidence_plans_and_results_of_another_form_are_read(odd: object) -> None:
    """G9."""
    run = folded(
        CREATED,
        started(1),
        fact(events.StallDetected, evidence=odd),
        fact(events.ResumeReturned, result=odd, progressed=False),
        fact(events.ResumeDispatched, adapter="a", from_version=1, plan=odd),
    )

    assert (run["noted"], run["futile"], run["attempt_open"]) == (None, 0, False)


def test_reasons_for_attention_are_bounded() -> None:
    many = [do(Run.raise_attention, PERSON, f"reason {n}") for n in range(MOST_OPEN + 1)]
    run = folded(CREATED, *many)

    assert list(run["attention"]) == [f"reason {n}" for n in range(1, MOST_OPEN + 1)]  # type: ignore[call-overload]


# Folding into a view.


def test_runs_are_folded_one_by_one_and_written_once_each() -> None:
    views = MemoryViews(Codec())
    history = given(CREATED, started(1), PHASE).events

    def work(writer: Any, first: int, until: int) -> None:
        summaries = run_summaries.RunSummaries(writer)
        for position, event in enumerate(history[first:until], first + 1):
            for stream, place in (("job-a", 2 * position - 1), ("job-b", 2 * position)):
                summaries.fold(event.TOPIC, dict(vars(event)), place, stream)
        summaries.flush()

    views.update(lambda writer: work(writer, 0, 2))
    views.update(lambda writer: work(writer, 2, 3))
    with views.read() as reader:
        found = [reader.summary(name) for name in ("job-a", "job-b")]

    assert [(run["created_position"], run["version"]) for run in found if run] == [(1, 3), (2, 3)]
    assert [list(run["phases"]) for run in found if run] == [["parse"], ["parse"]]


def test_the_latest_time_of_all_runs_never_falls() -> None:
    """Whatever the clocks did: lists by time are cut by it."""
    views = MemoryViews(Codec())
    at = [NOW_US + 9, NOW_US + 3, NOW_US + 7]

    def work(writer: Any) -> int:
        summaries = run_summaries.RunSummaries(writer)
        for position, time_us in enumerate(at, 1):
            created = CREATED.at(1, Cause(time_us, "tacho", "ada", 17))
            summaries.fold(created.TOPIC, dict(vars(created)), position, f"job-{position}")
        summaries.flush()
        return int(writer.latest_us())

    assert views.update(work) == NOW_US + 9
    with views.read() as reader:
        found = [reader.summary(f"job-{number}") for number in (1, 2, 3)]

    assert [run["created_latest_us"] for run in found if run] == [NOW_US + 9] * 3
    assert [run["created_us"] for run in found if run] == at
