"""Checkpoints, steps, side effects, artifacts, and what happens on the way."""

from __future__ import annotations

from typing import Any

import pytest
from given_when_then import PERSON, attempt, do, fact, running, started

from tachograph.domain import errors
from tachograph.domain.events import (
    ApprovalGranted,
    ApprovalRejected,
    ApprovalRequested,
    ArtifactRecorded,
    AttentionCleared,
    AttentionRaised,
    CheckpointSaved,
    EffectDone,
    EffectIntended,
    EffectRetryAllowed,
    FallbackTaken,
    PhaseStarted,
    RetryScheduled,
    RunArchived,
    RunFinished,
    StepCompleted,
    VerdictRevised,
)
from tachograph.domain.run import Run

ME = attempt(1)
INTENDED = fact(EffectIntended, key="mail", idempotent=False)
DONE = fact(EffectDone, key="mail")


class TestCheckpoints:
    def test_a_checkpoint_is_saved(self) -> None:
        running().when(Run.save_checkpoint, ME, state={"row": 7}).then(
            fact(CheckpointSaved, kind="state", state={"row": 7})
        )

    def test_the_last_checkpoint_counts(self) -> None:
        run = running(
            fact(PhaseStarted, phase="parse", safe_to_retry=True),
            do(Run.save_checkpoint, ME, state=1),
            do(Run.save_checkpoint, ME, phase="parse", state=2),
        ).run

        assert run.checkpoint == {"version": 5, "phase": "parse", "kind": "state", "state": 2}

    def test_a_checkpoint_survives_into_the_next_attempt(self) -> None:
        run = running(do(Run.save_checkpoint, ME, state="here"), started(2)).run

        assert run.checkpoint is not None
        assert run.checkpoint["state"] == "here"

    def test_an_offset_checkpoint_holds_offset_total_and_counters(self) -> None:
        state = {"offset": 200, "total": 500, "migrated": 198, "skipped": 2}
        running().when(Run.save_checkpoint, ME, kind="offset", state=state).then(
            fact(CheckpointSaved, kind="offset", state=state)
        )

    @pytest.mark.parametrize(
        "state",
        [
            None,
            [200, 500],
            {},
            {"offset": 200},
            {"total": 500},
            {"offset": -1, "total": 500},
            {"offset": 2.5, "total": 500},
            {"offset": float("nan"), "total": 500},
            {"offset": "200", "total": 500},
            {"offset": True, "total": 500},
        ],
    )
    def test_an_offset_checkpoint_without_whole_numbers_is_refused(self, state: Any) -> None:
        running().when(Run.save_checkpoint, ME, kind="offset", state=state).then(
            errors.InvalidValueError, saying="it must "
        )

    def test_an_offset_is_not_beyond_its_total(self) -> None:
        state = {"offset": 501, "total": 500}
        running().when(Run.save_checkpoint, ME, kind="offset", state=state).then(
            errors.InvalidValueError, saying="offset is 501: the total is 500"
        )

    def test_an_offset_may_be_at_its_total(self) -> None:
        state = {"offset": 500, "total": 500}
        running().when(Run.save_checkpoint, ME, kind="offset", state=state).then(
            fact(CheckpointSaved, kind="offset", state=state)
        )

    def test_a_checkpoint_has_a_known_kind(self) -> None:
        running().when(Run.save_checkpoint, ME, kind="page").then(
            errors.InvalidValueError, saying="it must be one of offset, state"
        )

    def test_a_checkpoint_of_a_phase_needs_the_phase_open(self) -> None:
        running().when(Run.save_checkpoint, ME, phase="parse").then(
            errors.PhaseNotOpenError, saying="Start it first"
        )


class TestSteps:
    def test_the_result_of_a_step_is_recorded(self) -> None:
        running().when(Run.complete_step, ME, "load(1)", [1, 2]).then(
            fact(StepCompleted, key="load(1)", result=[1, 2])
        )

    def test_a_completed_step_is_not_run_again(self) -> None:
        """G10."""
        running(do(Run.complete_step, ME, "load(1)", 1), started(2)).when(
            Run.complete_step, attempt(2), "load(1)", 2
        ).then(errors.StepDoneError, saying="Its recorded result stands")

    def test_the_event_that_holds_a_result_is_known(self) -> None:
        run = running(do(Run.complete_step, ME, "load(1)", 1)).run

        assert run.steps == {"load(1)": 3}

    def test_a_step_has_a_key(self) -> None:
        running().when(Run.complete_step, ME, "", 1).then(
            errors.InvalidValueError, saying="step is ''"
        )


class TestEffects:
    def test_an_intent_is_recorded_before_the_effect(self) -> None:
        """G10."""
        running().when(
            Run.intend_effect, ME, "mail", idempotent=True, description="weekly mail"
        ).then(fact(EffectIntended, key="mail", description="weekly mail", idempotent=True))

    def test_the_result_of_an_effect_is_recorded(self) -> None:
        running(INTENDED).when(Run.complete_effect, ME, "mail", {"id": 1}).then(
            fact(EffectDone, key="mail", result={"id": 1})
        )

    def test_an_effect_without_a_result_is_in_doubt(self) -> None:
        """G10."""
        assert running(INTENDED, started(2)).run.effects_in_doubt == ["mail"]
        assert running(INTENDED, DONE, started(2)).run.effects_in_doubt == []

    @pytest.mark.parametrize("epoch", [1, 2])
    def test_an_effect_in_doubt_is_not_repeated(self, epoch: int) -> None:
        """G10: neither after a crash nor after an exception within the attempt."""
        history = [INTENDED] if epoch == 1 else [INTENDED, started(2)]
        running(*history).when(Run.intend_effect, attempt(epoch), "mail").then(
            errors.EffectInDoubtError,
            saying="begun in attempt 1 and has no result: it may have happened. Look, then say so",
        )

    def test_an_effect_in_doubt_is_repeated_where_the_job_says_it_is_idempotent(self) -> None:
        """G10."""
        running(INTENDED, started(2)).when(
            Run.intend_effect, attempt(2), "mail", idempotent=True
        ).then(fact(EffectIntended, key="mail", idempotent=True))

    def test_an_effect_in_doubt_is_repeated_when_a_person_says_so(self) -> None:
        """G10."""
        allowed = do(Run.allow_effect_retry, PERSON, "mail", "the outbox is empty")

        running(INTENDED, allowed, started(2)).when(Run.intend_effect, attempt(2), "mail").then(
            fact(EffectIntended, key="mail", idempotent=False)
        )

    def test_a_person_allows_an_effect_to_be_repeated_after_the_attempt_ended(self) -> None:
        """G10."""
        running(INTENDED, do(Run.finish, ME, "failed")).when(
            Run.allow_effect_retry, PERSON, "mail", "the outbox is empty"
        ).then(fact(EffectRetryAllowed, key="mail", reason="the outbox is empty"))

    def test_an_allowed_repeat_is_in_doubt_again_until_its_result(self) -> None:
        """G10."""
        allowed = do(Run.allow_effect_retry, PERSON, "mail", "the outbox is empty")

        running(INTENDED, allowed, INTENDED).when(Run.intend_effect, ME, "mail").then(
            errors.EffectInDoubtError
        )

    def test_a_run_does_not_finish_for_good_with_an_effect_in_doubt(self) -> None:
        """G10."""
        running(INTENDED).when(Run.finish, ME, "success").then(errors.EffectInDoubtError)
        running(INTENDED).when(Run.finish, ME, "failed").then(fact(RunFinished, outcome="failed"))

    def test_an_idempotent_effect_in_doubt_does_not_keep_a_run_open(self) -> None:
        """G10."""
        harmless = fact(EffectIntended, key="mail", idempotent=True)

        running(harmless).when(Run.finish, ME, "success").then(fact(RunFinished, outcome="success"))

    def test_an_empty_reason_decides_nothing(self) -> None:
        """G10."""
        running(INTENDED).when(Run.allow_effect_retry, PERSON, "mail", " ").then(
            errors.InvalidValueError, saying="reason is ' '"
        )
        running(INTENDED).when(Run.complete_effect, PERSON, "mail", reason="").then(
            errors.InvalidValueError, saying="reason is ''"
        )

    @pytest.mark.parametrize("idempotent", [True, False])
    def test_an_effect_that_happened_is_not_repeated(self, idempotent: bool) -> None:
        """G10."""
        running(INTENDED, DONE, started(2)).when(
            Run.intend_effect, attempt(2), "mail", idempotent=idempotent
        ).then(errors.EffectDoneError, saying="Its recorded result stands")

    def test_an_effect_has_one_result(self) -> None:
        """G10."""
        running(INTENDED, DONE).when(Run.complete_effect, ME, "mail").then(
            errors.EffectDoneError, saying="done already"
        )

    def test_an_effect_that_was_never_intended_has_no_result(self) -> None:
        running().when(Run.complete_effect, ME, "mail").then(
            errors.EffectUnknownError, saying="Record the intent first"
        )

    def test_a_person_settles_an_effect_in_doubt(self) -> None:
        """G10."""
        running(INTENDED).when(
            Run.complete_effect, PERSON, "mail", reason="it is in the outbox"
        ).then(fact(EffectDone, key="mail", reason="it is in the outbox"))

    def test_a_person_settles_an_effect_after_the_attempt_ended(self) -> None:
        running(INTENDED, do(Run.finish, ME, "failed")).when(
            Run.complete_effect, PERSON, "mail", reason="it is in the outbox"
        ).then(fact(EffectDone, key="mail", reason="it is in the outbox"))

    def test_a_reason_lets_no_superseded_attempt_in(self) -> None:
        """G5."""
        running(INTENDED, started(2)).when(
            Run.complete_effect, ME, "mail", reason="it is in the outbox"
        ).then(errors.FencedError, saying="Attempt 1 of run")

    def test_an_effect_has_a_key(self) -> None:
        running().when(Run.intend_effect, ME, "").then(
            errors.InvalidValueError, saying="effect is ''"
        )

    def test_an_effect_remembers_its_attempt(self) -> None:
        run = running(INTENDED, started(2), do(Run.intend_effect, attempt(2), "post")).run

        assert [effect["epoch"] for effect in run.effects.values()] == [1, 2]


class TestArtifacts:
    def test_an_artifact_is_recorded(self) -> None:
        running().when(Run.record_artifact, ME, "report", path="r.html", size=9, sha256="ab").then(
            fact(ArtifactRecorded, name="report", path="r.html", size=9, sha256="ab")
        )

    def test_the_latest_state_of_an_artifact_counts(self) -> None:
        run = running(
            do(Run.record_artifact, ME, "report", path="a.html", size=1, sha256="ab"),
            do(Run.record_artifact, ME, "report", path="b.html", size=2, sha256="cd"),
        ).run

        assert run.artifacts == {"report": {"path": "b.html", "size": 2, "sha256": "cd"}}

    @pytest.mark.parametrize(
        ("name", "path", "size", "sha256", "saying"),
        [
            ("", "r.html", 9, "ab", "artifact is ''"),
            ("report", "", 9, "ab", "path is ''"),
            ("report", "r.html", -1, "ab", "size is -1"),
            ("report", "r.html", 9, "", "sha256 is ''"),
        ],
    )
    def test_an_artifact_is_described_in_full(
        self, name: str, path: str, size: int, sha256: str, saying: str
    ) -> None:
        running().when(Run.record_artifact, ME, name, path=path, size=size, sha256=sha256).then(
            errors.InvalidValueError, saying=saying
        )


class TestRetriesAndFallbacks:
    def test_a_retry_is_recorded(self) -> None:
        running().when(
            Run.schedule_retry, ME, "parse", 2, delay_seconds=1.5, error="not JSON", model="m"
        ).then(
            fact(
                RetryScheduled,
                kind="parse",
                attempt=2,
                delay_seconds=1.5,
                error="not JSON",
                model="m",
            )
        )

    @pytest.mark.parametrize(
        ("kind", "count", "delay", "saying"),
        [
            ("", 1, 0.0, "retry kind is ''"),
            ("parse", 0, 0.0, "attempt is 0: it must be a whole number, 1 or more"),
            ("parse", 1, -1.0, "delay is -1.0"),
            ("parse", 1, float("nan"), "delay is nan"),
        ],
    )
    def test_a_retry_that_makes_no_sense_is_refused(
        self, kind: str, count: int, delay: float, saying: str
    ) -> None:
        running().when(Run.schedule_retry, ME, kind, count, delay_seconds=delay).then(
            errors.InvalidValueError, saying=saying
        )

    def test_a_fallback_is_recorded(self) -> None:
        running().when(Run.take_fallback, ME, "large", "small", reason="rate limit").then(
            fact(FallbackTaken, source="large", target="small", reason="rate limit")
        )

    @pytest.mark.parametrize(("source", "target"), [("", "small"), ("large", " ")])
    def test_a_fallback_names_both_sides(self, source: str, target: str) -> None:
        running().when(Run.take_fallback, ME, source, target).then(
            errors.InvalidValueError, saying="write some text"
        )

    def test_retries_and_fallbacks_are_counted(self) -> None:
        run = running(
            do(Run.schedule_retry, ME, "parse", 1),
            do(Run.schedule_retry, ME, "parse", 2),
            do(Run.take_fallback, ME, "large", "small"),
        ).run

        assert (run.retries, run.fallbacks) == (2, 1)


class TestPeople:
    """What other use cases record about a run shows in its state."""

    def test_a_reason_for_attention_is_listed_once_until_it_is_cleared(self) -> None:
        raised = fact(AttentionRaised, reason="stalled")
        other = fact(AttentionRaised, reason="max_retries_reached")

        assert list(running(raised, other, raised).run.attention) == [
            "stalled",
            "max_retries_reached",
        ]
        cleared = fact(AttentionCleared, reason="stalled")
        assert list(running(raised, other, cleared).run.attention) == ["max_retries_reached"]

    @pytest.mark.parametrize(
        ("kind", "status"), [(ApprovalGranted, "granted"), (ApprovalRejected, "rejected")]
    )
    def test_an_approval_is_bound_to_what_is_approved(self, kind: Any, status: str) -> None:
        asked = fact(ApprovalRequested, approval="deploy", subject="v1", subject_digest="d1")
        decided = fact(kind, approval="deploy", subject_digest="d1", reason="so")

        assert running(asked).run.approvals == {
            "deploy": {"status": "requested", "subject_digest": "d1"}
        }
        assert running(asked, decided).run.approvals == {
            "deploy": {"status": status, "subject_digest": "d1"}
        }

    def test_a_revised_verdict_leaves_the_outcome_alone(self) -> None:
        """G6: the first verdict stays, and the run stays finished."""
        run = running(
            do(Run.finish, ME, "success"),
            fact(VerdictRevised, outcome="failed", rule="r", reason_code="c", reason="so"),
        ).run

        assert (run.outcome, run.finished) == ("success", True)
        assert run.verdict is None
        assert run.revision == {
            "outcome": "failed",
            "rule": "r",
            "reason_code": "c",
            "reason": "so",
            "version": run.version,
        }

    def test_an_archived_run_says_where_it_is(self) -> None:
        run = running(fact(RunArchived, location="old.tar", sha256="ab")).run

        assert run.archived == "old.tar"
