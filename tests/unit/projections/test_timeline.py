"""Timelines: fold a history, compare what a person would be shown."""

from __future__ import annotations

from typing import Any

import pytest
from given_when_then import (
    CREATED,
    NOW_US,
    OWNER,
    PERSON,
    RUN_ID,
    attempt,
    do,
    fact,
    given,
    started,
)
from hypothesis import given as drawn
from hypothesis import strategies as st
from run_commands import EVERY_COMMAND, HISTORY
from viewed import timeline_of

from tachograph.domain import events
from tachograph.domain.errors import UnknownEventTypeError
from tachograph.domain.event import Cause
from tachograph.domain.events import EVENT_TYPES
from tachograph.domain.gate import Facts
from tachograph.domain.recovery import Recovery
from tachograph.domain.run import Run
from tachograph.infra.codec import Codec
from tachograph.infra.memory_views import MemoryViews
from tachograph.projections import timeline
from tachograph.projections.folding import ERASED
from tachograph.projections.timeline import MOST_OPEN, Timelines

ONE = attempt(1)
PHASE = do(Run.start_phase, ONE, "parse")


def at(seconds: int, epoch: int = 1) -> Cause:
    """A command some seconds later."""
    return Cause(NOW_US + seconds * 1_000_000, "tacho", "ada", 17, epoch)


def shown(*history: Any) -> list[dict[str, Any]]:
    return timeline_of(given(*history).events)


def kinds(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["kind"] for entry in entries]


def details(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what an entry says beside its place and times."""
    common = ("kind", "version", "position", "epoch", "time_us", "end_us")
    return {name: value for name, value in entry.items() if name not in common}


def test_it_begins_with_the_run_and_its_attempt() -> None:
    created, began = shown(CREATED, started(1))

    assert created == {
        "kind": "created",
        "version": 1,
        "position": 1,
        "epoch": 0,
        "time_us": NOW_US,
        "command": "code-report",
        "title": None,
    }
    assert details(began) == {
        "owner": OWNER,
        "reason": None,
        "outcome": None,
        "reason_code": None,
    }
    assert (began["epoch"], began["end_us"]) == (1, None)


def test_batches_are_merged_into_their_phase() -> None:
    entries = shown(
        CREATED,
        started(1),
        PHASE,
        do(Run.plan_batches, ONE, "parse", total=2, size=5, items_digest=None),
        do(Run.complete_batch, at(1), "parse", 0, inputs=5, parsed=4),
        do(Run.complete_batch, at(2), "parse", 1, inputs=5, parsed=5),
        do(Run.end_phase, at(3), "parse", summary="done"),
    )

    assert kinds(entries) == ["created", "attempt", "phase"]
    assert details(entries[2]) == {
        "phase": "parse",
        "status": "completed",
        "summary": "done",
        "batches": 2,
        "total": 2,
        "inputs": 10,
        "parsed": 9,
    }
    assert entries[2]["end_us"] - entries[2]["time_us"] == 3_000_000


def test_checkpoints_are_merged_by_phase_and_attempt() -> None:
    entries = shown(
        CREATED,
        started(1),
        do(Run.save_checkpoint, at(1), state=1),
        PHASE,
        do(Run.save_checkpoint, at(2), state=2, phase="parse"),
        do(Run.save_checkpoint, at(3), state=3),
        started(2),
        do(Run.save_checkpoint, at(4, 2), state=4),
    )
    merged = [entry for entry in entries if entry["kind"] == "checkpoints"]

    assert [(entry["epoch"], entry["phase"], entry["count"]) for entry in merged] == [
        (1, None, 2),
        (1, "parse", 1),
        (2, None, 1),
    ]
    assert (merged[0]["time_us"], merged[0]["end_us"]) == (at(1).time_us, at(3).time_us)


def test_steps_are_merged() -> None:
    entries = shown(
        CREATED,
        started(1),
        do(Run.complete_step, ONE, "a", 1),
        do(Run.complete_step, ONE, "b", 1),
    )

    assert [entry["count"] for entry in entries if entry["kind"] == "steps"] == [2]


def test_progress_reports_are_left_out() -> None:
    assert kinds(shown(CREATED, started(1), do(Run.report_progress, ONE, 1))) == [
        "created",
        "attempt",
    ]


def test_an_attempt_that_was_superseded_was_interrupted_with_its_phases() -> None:
    entries = shown(CREATED, started(1), do(Run.start_phase, at(5), "parse"), started(2))

    assert kinds(entries) == ["created", "attempt", "phase", "attempt"]
    assert (entries[1]["outcome"], entries[1]["end_us"]) == ("interrupted", at(5).time_us)
    assert (entries[2]["status"], entries[2]["end_us"]) == ("interrupted", at(5).time_us)


def test_a_phase_that_is_taken_up_again_is_another_span() -> None:
    entries = shown(
        CREATED,
        started(1),
        PHASE,
        started(2),
        do(Run.start_phase, attempt(2), "parse"),
        do(Run.end_phase, attempt(2), "parse"),
    )

    assert [(entry["epoch"], entry["status"]) for entry in entries if entry["kind"] == "phase"] == [
        (1, "interrupted"),
        (2, "completed"),
    ]


def test_the_end_closes_the_attempt() -> None:
    entries = shown(CREATED, started(1), PHASE, do(Run.finish, at(9), "partial", reason="half"))

    assert (entries[1]["outcome"], entries[1]["end_us"]) == ("partial", at(9).time_us)
    assert (entries[2]["kind"], entries[2]["status"]) == ("phase", "interrupted")
    assert details(entries[3]) == {"outcome": "partial", "reason_code": None, "reason": "half"}


@pytest.mark.parametrize(
    ("ending", "word"),
    [
        (do(Run.cancel, PERSON, "enough"), "cancelled"),
        (do(Run.expire, PERSON, "too old"), "expired"),
    ],
)
def test_a_person_ends_the_run(ending: Any, word: str) -> None:
    entries = shown(CREATED, started(1), ending)

    assert entries[1]["outcome"] == word
    assert (entries[2]["kind"], entries[2]["outcome"]) == ("end", word)


def test_points_say_what_happened() -> None:
    entries = shown(
        CREATED,
        started(1),
        do(Run.schedule_retry, ONE, "parse", 2, delay_seconds=1.5, error="no JSON", model="m"),
        do(Run.take_fallback, ONE, "large", "small", reason="slow"),
        do(Run.record_artifact, ONE, "report", path="r.html", size=9, sha256="ab"),
        do(Run.judge, ONE, Facts(inputs=5, outputs=5)),
        do(Run.add_note, ONE, "careful", level="warning", source="app"),
        do(Run.block, ONE, "waits"),
    )[2:]

    assert kinds(entries) == ["retry", "fallback", "artifact", "gate", "note", "blocked"]
    assert details(entries[0]) == {
        "retried": "parse",
        "attempt": 2,
        "delay_seconds": 1.5,
        "error": "no JSON",
        "model": "m",
    }
    assert details(entries[1]) == {"source": "large", "target": "small", "reason": "slow"}
    assert details(entries[2]) == {"name": "report", "path": "r.html", "size": 9, "sha256": "ab"}
    assert (entries[3]["outcome"], entries[3]["gate"]) == ("success", "default")
    assert details(entries[4]) == {"level": "warning", "source": "app", "text": "careful"}
    assert details(entries[5]) == {"reason": "waits"}


def test_an_effect_is_a_span_from_its_intent_to_its_result() -> None:
    entries = shown(
        CREATED,
        started(1),
        do(Run.intend_effect, at(1), "mail", description="to ada"),
        do(Run.intend_effect, at(2), "post"),
        do(Run.complete_effect, at(3), "mail"),
        do(Run.finish, at(4), "failed"),
        do(Run.complete_effect, at(5, 0), "post", reason="it is in the outbox"),
    )
    mail, post = (entry for entry in entries if entry["kind"] == "effect")

    assert (mail["key"], mail["status"], mail["end_us"]) == ("mail", "done", at(3).time_us)
    assert (post["status"], post["reason"]) == ("done", "it is in the outbox")


def test_an_approval_is_a_span_until_it_is_decided() -> None:
    entries = shown(
        CREATED,
        fact(events.ApprovalRequested, approval="a", subject={"x": 1}, subject_digest="d"),
        fact(events.ApprovalRequested, approval="b", subject_digest="d"),
        fact(events.ApprovalRequested, approval="c", subject_digest="d"),
        fact(events.ApprovalGranted, approval="a", subject_digest="d", reason="fine"),
        fact(events.ApprovalRejected, approval="b", subject_digest="d", reason="no"),
    )[1:]

    assert [(entry["approval"], entry["status"], entry["reason"]) for entry in entries] == [
        ("a", "granted", "fine"),
        ("b", "rejected", "no"),
        ("c", "requested", None),
    ]
    assert [entry["end_us"] for entry in entries] == [NOW_US, NOW_US, None]


def test_stalls_resumes_attention_revisions_and_archives_are_shown() -> None:
    entries = shown(
        CREATED,
        fact(events.StallDetected, evidence={"minutes": 31}),
        fact(events.ResumeDispatched, adapter="a", from_version=1),
        fact(events.ResumeReturned, progressed=True),
        fact(events.AttentionRaised, reason="stalled"),
        fact(events.AttentionRaised, reason="stalled"),
        fact(events.AttentionCleared, reason="stalled"),
        fact(
            events.VerdictRevised,
            outcome="failed",
            rule="r",
            reason_code="c",
            reason="why",
            policy={"id": "own", "version": 2},
        ),
        fact(events.RunArchived, location="/archive", sha256="ab"),
    )[1:]

    assert kinds(entries) == ["stall", "resume", "attention", "revision", "archived"]
    assert entries[0]["evidence"] == {"minutes": 31}
    assert (entries[1]["progressed"], entries[1]["end_us"]) == (True, NOW_US)
    assert entries[2]["end_us"] == NOW_US
    assert (entries[3]["outcome"], entries[4]["location"]) == ("failed", "/archive")


RESUMED = do(Run.dispatch_resume, at(1), "jobs:resume", {"unattended": True})


def test_a_resume_is_a_span_and_ends_its_attempt() -> None:
    entries = shown(
        CREATED,
        started(1),
        PHASE,
        RESUMED,
        do(Run.return_resume, at(9), {"error": "no such file"}),
    )
    began, phase, resume = entries[1:]

    assert details(resume) == {"adapter": "jobs:resume", "from_version": 0, "progressed": False}
    assert (began["outcome"], phase["status"]) == ("interrupted", "interrupted")
    assert [entry["end_us"] for entry in (began, phase, resume)] == [at(9).time_us] * 3


def test_an_attempt_goes_on_in_what_its_adapter_left_running() -> None:
    entries = shown(
        CREATED, started(1), RESUMED, do(Run.return_resume, at(9), {"left_running": [18]})
    )

    assert [entry["end_us"] for entry in entries[1:]] == [None, at(9).time_us]


@pytest.mark.parametrize("result", [None, "text"])
def test_a_result_of_another_form_is_read(result: Any) -> None:
    """G9."""
    entries = shown(CREATED, started(1), fact(events.ResumeReturned, result=result))

    assert entries[1]["outcome"] == "interrupted"


def test_an_attempt_that_ended_before_its_resume_returned_keeps_its_outcome() -> None:
    entries = shown(
        CREATED,
        started(1),
        RESUMED,
        do(Run.finish, at(5), "failed"),
        do(Run.return_resume, at(9), {}),
    )

    assert (entries[1]["outcome"], entries[1]["end_us"]) == ("failed", at(5).time_us)


def test_a_person_is_needed_from_the_call_until_it_is_settled() -> None:
    entries = shown(
        CREATED,
        started(1),
        do(Run.raise_attention, at(1, 0), "no_adapter", "nothing is named"),
        do(Run.raise_attention, at(2, 0), "card_edited"),
        do(Run.save_checkpoint, at(3), state=1),
    )[2:4]

    assert [details(entry) for entry in entries] == [
        {"reason": "no_adapter", "detail": "nothing is named"},
        {"reason": "card_edited", "detail": None},
    ]
    assert [entry["end_us"] for entry in entries] == [at(3).time_us, None]


def test_a_reason_that_comes_back_is_another_span() -> None:
    entries = shown(
        CREATED,
        do(Run.raise_attention, at(1, 0), "card_edited"),
        do(Run.clear_attention, at(2, 0), "card_edited"),
        do(Run.raise_attention, at(3, 0), "card_edited"),
    )[1:]

    assert [entry["end_us"] for entry in entries] == [at(2).time_us, None]


def test_declarations_workers_and_cards_are_not_shown() -> None:
    """There may be many of them, and the summary has the last one."""
    entries = shown(
        CREATED,
        started(1),
        do(Run.declare_recovery, PERSON, Recovery(adapter="a")),
        do(Run.depend_on, PERSON, ["job-a"]),
        do(Run.start_worker, ONE, {**OWNER, "pid": 18}),
        do(Run.change_card, PERSON, {"goal": "x"}, [{"event": "y"}]),
    )

    assert kinds(entries) == ["created", "attempt"]


def test_spans_that_are_open_are_bounded() -> None:
    extra = 3
    effects = [do(Run.intend_effect, ONE, f"e{number}") for number in range(MOST_OPEN + extra)]
    views = MemoryViews(Codec())

    def work(writer: Any) -> dict[str, Any] | None:
        timelines = Timelines(writer)
        for position, event in enumerate(given(CREATED, started(1), *effects).events, 1):
            timelines.fold(event.TOPIC, dict(vars(event)), position, event.originator_id)
        timelines.flush()
        state: dict[str, Any] | None = writer.timeline_state(RUN_ID)
        return state

    state = views.update(work)

    assert state is not None
    assert len(state["open"]) == MOST_OPEN


def test_a_batch_of_a_phase_that_was_dropped_begins_a_new_span() -> None:
    """A view must not stop at a log that is in order, only long."""
    planned = do(Run.plan_batches, ONE, "parse", total=1, size=5, items_digest=None)
    effects = [do(Run.intend_effect, ONE, f"e{number}") for number in range(MOST_OPEN + 1)]
    batch = do(Run.complete_batch, ONE, "parse", 0)
    entries = shown(CREATED, started(1), PHASE, planned, *effects, batch)

    assert [entry["batches"] for entry in entries if entry["kind"] == "phase"] == [0, 1]


def test_an_erased_event_is_not_shown() -> None:
    views = MemoryViews(Codec())

    def work(writer: Any) -> None:
        timelines = Timelines(writer)
        fields = {ERASED: True, "time_us": 1, "originator_version": 1}
        timelines.fold("run.created", fields, 1, "job-1")
        timelines.flush()

    views.update(work)

    with views.read() as reader:
        assert reader.timeline("job-1") == []


def test_an_unknown_topic_of_ours_is_refused() -> None:
    def work(writer: Any) -> None:
        Timelines(writer).fold("run.teleported", {}, 7, "job-1")

    with pytest.raises(UnknownEventTypeError, match=r"'run\.teleported' at position 7"):
        MemoryViews(Codec()).update(work)


def test_every_event_has_a_handler() -> None:
    assert EVENT_TYPES.keys() == timeline.TOPICS


@drawn(
    names=st.lists(st.sampled_from(sorted(EVERY_COMMAND)), max_size=4), portion=st.integers(1, 9)
)
def test_the_portions_make_no_difference(names: list[str], portion: int) -> None:
    """G8."""
    case = given(*HISTORY)
    for name in names:
        command = EVERY_COMMAND[name](attempt(case.run.epoch))
        try:
            command.call(case.run)
        except Exception:
            continue  # refused here: another example
        case.events += case.run.collect_events()

    assert timeline_of(case.events, portion) == timeline_of(case.events)
