"""Judging and ending: success is earned (G12), and final is final (G6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from given_when_then import CREATED, OWNER, PERSON, attempt, do, fact, given, running, started
from run_commands import EVERY_COMMAND, HISTORY, MOVING, REMARKS

from tachograph.domain import attention, errors, outcome
from tachograph.domain.default_policy import default_policy
from tachograph.domain.events import (
    AttemptStarted,
    BatchCompleted,
    BatchesPlanned,
    PhaseEnded,
    PhaseStarted,
    RunBlocked,
    RunCancelled,
    RunExpired,
    RunFinished,
    SemanticGateJudged,
)
from tachograph.domain.gate import Facts
from tachograph.domain.run import Run

if TYPE_CHECKING:
    from given_when_then import Do, Fact

ME = attempt(1)
STARTED = fact(PhaseStarted, phase="parse", safe_to_retry=True)
ENDED = fact(PhaseEnded, phase="parse", status="completed")

TERMINAL = [name for name in outcome.OUTCOMES if outcome.traits(name).terminal]
RESUMABLE = [name for name in outcome.OUTCOMES if outcome.traits(name).resumable]

ENDINGS: dict[str, Do] = {
    **{name: do(Run.finish, ME, name) for name in TERMINAL},
    "cancelled": do(Run.cancel, PERSON, "no longer wanted"),
    "expired": do(Run.expire, PERSON, "30 days old"),
}


def batch(index: int, inputs: int | None, parsed: int | None, phase: str = "parse") -> Fact:
    return fact(BatchCompleted, phase=phase, index=index, inputs=inputs, parsed=parsed)


def judged(
    evidence: dict[str, list[int]], result: str, rule: str, code: str, reason: str, **facts: Any
) -> Fact:
    decided = default_policy().rule(rule)
    assert decided is not None
    return fact(
        SemanticGateJudged,
        gate="default",
        outcome=result,
        rule=rule,
        rule_version=decided.version,
        reason_code=code,
        reason=reason,
        facts=facts,
        evidence=evidence,
        policy={**default_policy().named(), "rules": None},
    )


SETTLED = (
    *HISTORY,
    do(Run.end_phase, ME, "open"),
    do(Run.complete_effect, ME, "mail"),
    do(Run.approve, ME, "deploy", "looks right"),
    do(Run.clear_attention, ME, "no_adapter"),
)
"""A run with nothing open and nothing in doubt: it may end in any way."""


class TestFinalIsFinal:
    @pytest.mark.parametrize("ending", ENDINGS)
    @pytest.mark.parametrize("name", MOVING)
    def test_nothing_moves_a_finished_run(self, ending: str, name: str) -> None:
        """G6."""
        history = (*SETTLED, ENDINGS[ending])
        given(*history).when_asked(MOVING[name](ME)).then(
            errors.RunFinishedError,
            saying=f"is finished ({ending}); nothing moves it any more. Start the same command",
        )

    @pytest.mark.parametrize("ending", ENDINGS)
    @pytest.mark.parametrize("epoch", [0, 2])
    def test_nobody_moves_a_finished_run(self, ending: str, epoch: int) -> None:
        """G6: the same answer for a person and for an attempt that never was."""
        history = (*SETTLED, ENDINGS[ending])
        for command in MOVING.values():
            given(*history).when_asked(command(attempt(epoch))).then(
                errors.RunFinishedError, saying="nothing moves it any more"
            )

    @pytest.mark.parametrize("ending", ["cancelled", "expired"])
    def test_a_run_that_never_started_can_end_for_good(self, ending: str) -> None:
        """G6."""
        for command in MOVING.values():
            given(CREATED, ENDINGS[ending]).when_asked(command(PERSON)).then(
                errors.RunFinishedError, saying=f"is finished ({ending})"
            )

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_a_reason_takes_no_finished_run_over(self, ending: str) -> None:
        """G6."""
        running(ENDINGS[ending]).when(
            Run.start_attempt, PERSON, OWNER, live_owner=None, reason="once more"
        ).then(errors.RunFinishedError, saying="to get a new run")

    @pytest.mark.parametrize("ending", ENDINGS)
    @pytest.mark.parametrize("name", REMARKS)
    def test_a_finished_run_may_be_remarked_upon(self, ending: str, name: str) -> None:
        case = running(ENDINGS[ending])
        before = case.run.version
        EVERY_COMMAND[name](PERSON).call(case.run)

        assert (case.run.version, case.run.finished) == (before + 1, True)

    @pytest.mark.parametrize("result", RESUMABLE)
    def test_a_run_that_did_not_end_well_is_resumed_in_a_new_attempt(self, result: str) -> None:
        running(do(Run.finish, ME, result)).when(
            Run.start_attempt, PERSON, OWNER, live_owner=None
        ).then(fact(AttemptStarted, epoch=2, owner=OWNER))

    @pytest.mark.parametrize("result", RESUMABLE)
    @pytest.mark.parametrize("ending", ENDINGS)
    def test_a_resumed_run_can_end_in_every_way(self, result: str, ending: str) -> None:
        case = running(do(Run.finish, ME, result), started(2))
        end = {**{name: do(Run.finish, attempt(2), name) for name in TERMINAL}}
        (end.get(ending) or ENDINGS[ending]).call(case.run)

        assert case.run.finished

    @pytest.mark.parametrize("result", RESUMABLE)
    @pytest.mark.parametrize("how", [Run.cancel, Run.expire])
    def test_a_run_that_was_not_resumed_can_end_for_good(self, result: str, how: Any) -> None:
        case = running(do(Run.finish, ME, result), do(how, PERSON, "left alone"))

        assert case.run.finished
        assert case.run.outcome == result
        assert case.run.reason == "left alone"


class TestJudge:
    def test_a_verdict_holds_its_facts_its_rule_and_its_evidence(self) -> None:
        """G12."""
        running(STARTED, batch(0, 5, 5)).when(Run.judge, ME, Facts(inputs=5, outputs=0)).then(
            judged(
                {"inputs": [4, 4, 1], "batches_done": [4, 4, 1]},
                "failed_semantic_empty",
                "no-item-parsed",
                "no_item_parsed",
                "5 items went in, none came out, and nobody declared that there was nothing to do",
                inputs=5,
                outputs=0,
                batches_done=1,
            )
        )

    def test_judging_returns_the_outcome(self) -> None:
        run = running().run

        assert run.judge(ME, Facts(inputs=5, outputs=5), gate="weekly") == "success"
        assert run.verdict is not None
        assert (run.verdict["gate"], run.verdict["outcome"]) == ("weekly", "success")

    def test_judging_does_not_end_the_run(self) -> None:
        run = running(do(Run.judge, ME, Facts(inputs=5, outputs=5))).run

        assert (run.outcome, run.finished, run.attempt_open) == (None, False, True)

    @pytest.mark.parametrize(
        ("facts", "saying"),
        [
            (Facts(inputs=-1), "inputs is -1"),
            (Facts(outputs=1.5), "outputs is 1.5"),  # type: ignore[arg-type]
            (Facts(faults=-1), "faults is -1"),
            (Facts(inputs=5, outputs=0, declared=""), "declared is ''"),
            (Facts(stopped=" "), "stopped is ' '"),
        ],
    )
    def test_facts_that_make_no_sense_are_refused(self, facts: Facts, saying: str) -> None:
        """G12: an empty text declares nothing."""
        running().when(Run.judge, ME, facts).then(errors.InvalidValueError, saying=saying)

    def test_a_gate_has_a_name(self) -> None:
        running().when(Run.judge, ME, Facts(), "").then(
            errors.InvalidValueError, saying="gate is ''"
        )


class TestCountedFacts:
    @pytest.mark.parametrize(
        ("batches", "counts"),
        [
            ([], (None, None)),
            ([(None, None)], (None, None)),
            ([(5, 4), (5, 5)], (10, 9)),
            ([(5, None)], (5, None)),
            ([(None, 4)], (None, 4)),
            ([(0, 0)], (0, 0)),
            ([(5, 0), (5, None)], (10, 0)),
        ],
    )
    def test_batches_say_what_they_counted_and_no_more(
        self, batches: list[tuple[int | None, int | None]], counts: tuple[int | None, int | None]
    ) -> None:
        """G12: what nobody counted is not zero."""
        done = [batch(index, *counts) for index, counts in enumerate(batches)]
        facts = running(STARTED, *done).run.counted_facts()

        assert (facts.inputs, facts.outputs) == counts

    def test_the_last_phase_that_counted_speaks_for_the_run(self) -> None:
        facts = running(
            STARTED,
            batch(0, 9, 9),
            fact(PhaseStarted, phase="rank", safe_to_retry=True),
            batch(0, 9, 3, phase="rank"),
            fact(PhaseStarted, phase="send", safe_to_retry=True),
        ).run.counted_facts()

        assert (facts.inputs, facts.outputs) == (9, 3)

    def test_a_later_phase_does_not_hide_one_that_yielded_nothing(self) -> None:
        """G12."""
        facts = running(
            STARTED,
            batch(0, 9, 0),
            fact(PhaseStarted, phase="send", safe_to_retry=True),
            batch(0, 1, 1, phase="send"),
        ).run.counted_facts()

        assert (facts.inputs, facts.outputs) == (9, 0)


class TestFinish:
    @pytest.mark.parametrize("result", outcome.OUTCOMES)
    def test_a_run_finishes_with_an_outcome_and_its_reason(self, result: str) -> None:
        case = running()
        case.when(Run.finish, ME, result, reason="so", reason_code="because").then(
            fact(RunFinished, outcome=result, reason="so", reason_code="because")
        )

        assert (case.run.outcome, case.run.finished) == (result, outcome.is_terminal(result))
        assert not case.run.attempt_open

    @pytest.mark.parametrize("result", ["done", "monitoring", "", "Success"])
    def test_an_unknown_outcome_is_refused(self, result: str) -> None:
        running().when(Run.finish, ME, result).then(
            errors.InvalidValueError, saying="it must be one of success, success_with_review"
        )

    def test_a_run_that_counted_nothing_is_not_a_plain_success(self) -> None:
        """G12."""
        reason = (
            "inputs and outputs were not both declared, so nothing says that the job did its work"
        )
        running().when(Run.finish, ME).then(
            judged({}, "success_with_review", "not-judged", "not_judged", reason),
            fact(
                RunFinished,
                outcome="success_with_review",
                reason_code="not_judged",
                reason=reason,
            ),
        )

    def test_a_run_is_judged_by_what_its_batches_counted(self) -> None:
        """G12."""
        span = [4, 4, 1]
        reason = "5 items went in, none came out, and nobody declared that there was nothing to do"
        rule = ("failed_semantic_empty", "no-item-parsed", "no_item_parsed", reason)
        running(STARTED, batch(0, 5, 0), ENDED).when(Run.finish, ME).then(
            judged(
                {"inputs": span, "outputs": span, "batches_done": span},
                *rule,
                inputs=5,
                outputs=0,
                batches_done=1,
            ),
            fact(RunFinished, outcome=rule[0], reason_code=rule[2], reason=reason),
        )

    @pytest.mark.parametrize(
        ("counts", "expected"),
        [
            ((5, 5), "success"),
            ((5, 4), "success_with_review"),
            ((5, 0), "failed_semantic_empty"),
            ((0, 0), "empty"),
            ((5, None), "success_with_review"),
            ((None, 5), "success"),
        ],
    )
    def test_success_is_earned(self, counts: tuple[int | None, int | None], expected: str) -> None:
        """G12."""
        run = running(STARTED, batch(0, *counts), ENDED).run

        assert run.finish(ME) == expected

    def test_a_verdict_that_was_given_counts(self) -> None:
        declared = Facts(inputs=5, outputs=0, declared="all up to date")
        running(do(Run.judge, ME, declared)).when(Run.finish, ME).then(
            fact(
                RunFinished,
                outcome="empty",
                reason_code="declared_no_work",
                reason="the job declared that there was nothing to do: all up to date",
            )
        )

    def test_a_reason_given_at_the_end_replaces_that_of_the_verdict(self) -> None:
        running(do(Run.judge, ME, Facts(inputs=5, outputs=5))).when(
            Run.finish, ME, reason="all good", reason_code="checked"
        ).then(fact(RunFinished, outcome="success", reason_code="checked", reason="all good"))

    def test_a_new_attempt_is_judged_anew(self) -> None:
        """G12: what the last attempt was judged by is not what this one did."""
        run = running(
            do(Run.judge, ME, Facts(inputs=5, outputs=5)),
            do(Run.finish, ME, "failed"),
            started(2),
        ).run

        assert run.finish(attempt(2)) == "success_with_review"

    @pytest.mark.parametrize("result", TERMINAL)
    def test_a_run_does_not_end_well_while_a_phase_is_running(self, result: str) -> None:
        """G12."""
        running(STARTED).when(Run.finish, ME, result).then(
            errors.PhasesOpenError, saying=f"'parse'. End them before the run finishes as {result}"
        )

    @pytest.mark.parametrize("result", TERMINAL)
    def test_a_run_does_not_end_well_while_batches_are_missing(self, result: str) -> None:
        """G12."""
        plan = fact(BatchesPlanned, phase="parse", total=3, size=5)
        running(STARTED, plan, batch(1, 5, 5)).when(Run.finish, ME, result).then(
            errors.BatchesOpenError, saying="or end the phase or run as failed or partial"
        )

    @pytest.mark.parametrize("result", RESUMABLE)
    def test_a_run_may_stop_while_a_phase_is_running(self, result: str) -> None:
        running(STARTED).when(Run.finish, ME, result).then(fact(RunFinished, outcome=result))

    def test_a_refused_finish_leaves_no_verdict_behind(self) -> None:
        """G2: the gate's verdict and the end of the run are recorded together or not at all."""
        running(STARTED, batch(0, 5, 4)).when(Run.finish, ME).then(
            errors.PhasesOpenError, saying="'parse'"
        )

    def test_a_stop_by_budget_can_be_resumed(self) -> None:
        run = running(do(Run.judge, ME, Facts(inputs=9, outputs=3, stopped="deadline"))).run

        assert run.finish(ME) == "partial"
        assert (run.reason_code, run.finished) == ("stopped_by_budget", False)


class TestCancelExpireBlock:
    def test_a_person_cancels_a_run(self) -> None:
        running(STARTED).when(Run.cancel, PERSON, "wrong folder").then(
            fact(RunCancelled, reason="wrong folder")
        )

    def test_a_run_left_alone_expires(self) -> None:
        running(STARTED).when(Run.expire, PERSON, "30 days old").then(
            fact(RunExpired, reason="30 days old")
        )

    def test_a_run_waits_for_something_outside_it(self) -> None:
        case = running()
        case.when(Run.block, PERSON, "no disk").then(fact(RunBlocked, reason="no disk"))

        assert (case.run.blocked, case.run.finished) == ("no disk", False)

    @pytest.mark.parametrize("how", [Run.cancel, Run.expire, Run.block])
    def test_a_reason_is_needed(self, how: Any) -> None:
        running().when(how, PERSON, " ").then(errors.InvalidValueError, saying="reason is ' '")

    def test_a_cancelled_run_keeps_how_and_why_it_ended(self) -> None:
        run = running(do(Run.cancel, PERSON, "wrong folder")).run

        assert (run.ended, run.outcome, run.reason) == ("cancelled", None, "wrong folder")
        assert not run.attempt_open


class TestSomebodyHearsOfIt:
    """A bounded run that got nowhere is no failure, and may be so every night."""

    def test_a_run_that_a_limit_stopped_before_any_output_calls_a_person(self) -> None:
        stopped = do(Run.judge, ME, Facts(inputs=5, outputs=0, stopped="deadline"))
        run = given(*SETTLED, stopped, do(Run.finish, ME)).run

        assert run.reason_code == outcome.STOPPED_BEFORE_OUTPUT
        assert list(run.attention) == [attention.STOPPED_EMPTY]

    def test_the_next_attempt_begins_without_that_call(self) -> None:
        stopped = do(Run.judge, ME, Facts(inputs=5, outputs=0, stopped="deadline"))
        again = do(Run.start_attempt, PERSON, OWNER, live_owner=None)

        assert given(*SETTLED, stopped, do(Run.finish, ME), again).run.attention == {}

    def test_one_that_got_on_calls_nobody(self) -> None:
        stopped = do(Run.judge, ME, Facts(inputs=5, outputs=2, stopped="deadline"))

        assert given(*SETTLED, stopped, do(Run.finish, ME)).run.attention == {}


class TestSuccessIsEarned:
    @pytest.mark.parametrize("result", ["success", "success_with_review", "empty", "skipped"])
    def test_a_good_outcome_does_not_talk_a_failed_gate_away(self, result: str) -> None:
        """G12."""
        judged = do(Run.judge, ME, Facts(inputs=5, outputs=0))

        given(*SETTLED, judged).when(Run.finish, ME, result).then(
            errors.GateFailedError, saying="the gate judged failed_semantic_empty"
        )

    def test_a_reason_that_the_gate_did_not_know_changes_its_verdict(self) -> None:
        """G12."""
        judged = do(Run.judge, ME, Facts(inputs=5, outputs=0))
        declared = do(Run.judge, ME, Facts(inputs=5, outputs=0, declared="all up to date"))

        given(*SETTLED, judged, declared).when(Run.finish, ME, "empty").then(
            fact(RunFinished, outcome="empty")
        )

    def test_a_phase_that_failed_is_a_fault(self) -> None:
        """G12."""
        failed = do(Run.end_phase, ME, "open", status="failed")
        history = (*HISTORY, failed, do(Run.complete_effect, ME, "mail"))

        assert given(*history).run.counted_facts().value("faults") == 1
