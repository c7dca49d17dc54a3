"""Saying what is expected, what came back, and being judged: the commands behind a verdict."""

from __future__ import annotations

from typing import Any

import pytest
from given_when_then import (
    CREATED,
    NOW_US,
    OWNER,
    PERSON,
    attempt,
    do,
    fact,
    given,
    running,
    started,
)

from tachograph.domain import errors
from tachograph.domain.counting import count
from tachograph.domain.default_policy import default_policy
from tachograph.domain.events import (
    AnswerReceived,
    ExpectationsDeclared,
    OriginRecorded,
    RunFinished,
    SemanticGateJudged,
    VerdictRevised,
)
from tachograph.domain.expectations import Expectations
from tachograph.domain.gate import Facts, judge
from tachograph.domain.policy import Policy
from tachograph.domain.run import Run

ME = attempt(1)
JUDGED = do(Run.judge, ME, Facts(inputs=5, outputs=5))
FINISHED = (JUDGED, do(Run.finish, ME))
STRICT = Policy.from_fields(
    {
        "id": "strict",
        "version": 3,
        "rules": [
            {
                "id": "never-good",
                "version": 2,
                "when": [],
                "outcome": "failed",
                "reason_code": "strict",
                "text": "{outputs} is not enough",
            }
        ],
    },
    "strict.toml",
).kept("blob")


class TestExpect:
    def test_what_is_expected_is_recorded(self) -> None:
        running().when(Run.expect, ME, Expectations(inputs=9), reason="more came in").then(
            fact(ExpectationsDeclared, expectations={"inputs": 9}, reason="more came in")
        )

    def test_the_same_again_records_nothing(self) -> None:
        said = Expectations(inputs=9, files=["/a"], traces={"/a": None})

        running(do(Run.expect, ME, said)).when(Run.expect, ME, said).then()
        running().when(Run.expect, ME, Expectations()).then()

    def test_a_person_may_say_it_too(self) -> None:
        given(CREATED).when(Run.expect, PERSON, Expectations(inputs=9)).then(
            fact(ExpectationsDeclared, expectations={"inputs": 9})
        )

    @pytest.mark.parametrize(
        ("said", "reason", "saying"),
        [
            (Expectations(inputs=-1), None, "inputs is -1"),
            (Expectations(inputs=1), " ", "reason is ' '"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, said: Expectations, reason: str | None, saying: str
    ) -> None:
        running().when(Run.expect, ME, said, reason=reason).then(
            errors.InvalidValueError, saying=saying
        )

    def test_a_superseded_attempt_expects_nothing_any_more(self) -> None:
        """G5."""
        given(CREATED, started(1), started(2)).when(Run.expect, ME, Expectations(inputs=1)).then(
            errors.FencedError
        )


class TestReceiveAnswer:
    def test_an_answer_is_recorded_with_all_that_is_known(self) -> None:
        said: dict[str, Any] = {
            "asked": 5,
            "answered": 4,
            "phase": "parse",
            "batch": 0,
            "source": "large",
            "parsed": 6,
            "accepted": 3,
            "filtered": 1,
            "declared": "rest is old",
            "fault": "truncated",
            "error": "finish=length",
            "text": "[…",
        }
        running().when(Run.receive_answer, ME, **said).then(fact(AnswerReceived, **said))

    @pytest.mark.parametrize(
        ("said", "saying"),
        [
            ({"asked": -1}, "asked is -1"),
            ({"answered": -1}, "answered is -1"),
            ({"answered": 6}, "answered is 6: 5 were asked"),
            ({"parsed": True}, "parsed is True"),
            ({"accepted": -2}, "accepted is -2"),
            ({"parsed": 2, "accepted": 3}, "accepted is 3: 2 were parsed"),
            ({"filtered": 6}, "filtered is 6: 5 were answered"),
            ({"fault": "mood"}, "it must be one of provider, parser, truncated, filter, tool"),
            ({"phase": ""}, "phase is ''"),
            ({"batch": -1, "phase": "p"}, "batch index is -1"),
            ({"batch": 0}, "phase of the batch is None"),
            ({"declared": " "}, "declared is ' '"),
            ({"source": ""}, "source is ''"),
            ({"error": ""}, "error is ''"),
        ],
    )
    def test_counts_that_cannot_be_are_refused(self, said: dict[str, Any], saying: str) -> None:
        running().when(Run.receive_answer, ME, **{"asked": 5, "answered": 5, **said}).then(
            errors.InvalidValueError, saying=saying
        )

    def test_only_the_attempt_itself_is_answered(self) -> None:
        """G5."""
        running().when(Run.receive_answer, PERSON, asked=1, answered=1).then(errors.NoAttemptError)


class TestJudge:
    def test_a_verdict_names_its_policy_and_where_its_rules_are(self) -> None:
        running().when(Run.judge, ME, Facts(outputs=5), policy=STRICT).then(
            fact(
                SemanticGateJudged,
                gate="default",
                outcome="failed",
                rule="never-good",
                rule_version=2,
                reason_code="strict",
                reason="5 is not enough",
                facts={"outputs": 5},
                evidence={},
                policy={"id": "strict", "version": 3, "digest": STRICT.digest, "rules": "blob"},
            )
        )

    def test_what_the_job_states_has_no_evidence_and_the_rest_has(self) -> None:
        answer = do(Run.receive_answer, ME, asked=5, answered=5, parsed=5)
        case = running(answer)
        case.run.judge(ME, Facts(outputs=0))
        (event,) = case.run.collect_events()

        assert isinstance(event, SemanticGateJudged)
        assert event.facts == {"inputs": 5, "asked": 5, "answered": 5, "parsed": 5, "outputs": 0}
        counted = ("inputs", "asked", "answered", "parsed")
        assert event.evidence == {name: [3, 3, 1] for name in counted}
        assert event.policy["digest"] == default_policy().digest

    def test_a_run_that_was_not_judged_is_judged_when_it_finishes(self) -> None:
        case = running(do(Run.expect, ME, Expectations(inputs=9, deadline_us=NOW_US + 90_000_000)))
        case.run.finish(ME, facts=Facts(outputs=9))
        judged, finished = case.run.collect_events()

        assert isinstance(judged, SemanticGateJudged)
        assert isinstance(finished, RunFinished)
        assert judged.facts == {"inputs": 9, "outputs": 9, "deadline_left_seconds": 90.0}
        assert judged.evidence.keys() == {"inputs", "deadline_left_seconds"}
        assert finished.outcome == "success"

    def test_a_policy_of_ones_own_judges_the_finish(self) -> None:
        case = running()
        case.run.finish(ME, policy=STRICT)

        assert (case.run.outcome, case.run.reason_code) == ("failed", "strict")

    @pytest.mark.parametrize("result", ["success", "empty", "skipped", "success_with_review"])
    def test_what_a_policy_failed_is_not_talked_away(self, result: str) -> None:
        """G12."""
        judged = do(Run.judge, ME, Facts(outputs=5), policy=STRICT)

        running(judged).when(Run.finish, ME, result).then(
            errors.GateFailedError, saying="5 is not enough"
        )

    def test_a_verdict_that_stopped_the_run_early_is_no_failure(self) -> None:
        judged = do(Run.judge, ME, Facts(stopped="deadline", outputs=3))

        running(judged).when(Run.finish, ME).then(
            fact(
                RunFinished,
                outcome="partial",
                reason_code="stopped_by_budget",
                reason="stopped early (deadline) with 3 of ? items done; batches unfinished: 0",
            )
        )


class TestReviseVerdict:
    def revised(self, policy: Policy = STRICT, *, why: str = "too lax") -> Any:
        def command(run: Run, cause: Any) -> None:
            found = count(run)
            judgement = judge(Facts(outputs=5).over(found.facts), policy)
            run.revise_verdict(cause, judgement, found, policy, why)

        return do(command, PERSON)

    def test_another_policy_is_recorded_beside_the_first_verdict(self) -> None:
        case = running(*FINISHED)
        self.revised().call(case.run)
        (event,) = case.run.collect_events()

        assert isinstance(event, VerdictRevised)
        assert (event.outcome, event.rule, event.rule_version) == ("failed", "never-good", 2)
        assert event.policy == {
            "id": "strict",
            "version": 3,
            "digest": STRICT.digest,
            "rules": "blob",
        }
        assert (event.revises, event.why) == (3, "too lax")

    def test_the_outcome_of_the_run_stays(self) -> None:
        """G6."""
        run = running(*FINISHED, self.revised()).run

        assert (run.outcome, run.finished) == ("success", True)
        assert run.verdict is not None
        assert run.verdict["outcome"] == "success"
        assert run.revision is not None
        assert run.revision["outcome"] == "failed"

    def test_the_same_once_more_is_refused(self) -> None:
        given(CREATED, started(1), *FINISHED, self.revised()).when_asked(self.revised()).then(
            errors.VerdictSameError
        )

    def test_an_attempt_that_goes_on_is_not_judged_by_others(self) -> None:
        running(JUDGED).when_asked(self.revised()).then(errors.AttemptRunningError)

    def test_a_reason_is_needed(self) -> None:
        running(*FINISHED).when_asked(self.revised(why=" ")).then(
            errors.InvalidValueError, saying="reason is ' '"
        )

    def test_a_run_without_a_verdict_can_get_one(self) -> None:
        case = running(do(Run.finish, ME, "failed"))
        self.revised().call(case.run)

        (event,) = case.run.collect_events()

        assert isinstance(event, VerdictRevised)
        assert event.revises == 0


class TestOrigin:
    def test_where_a_run_comes_from_is_recorded(self) -> None:
        given(CREATED).when(Run.record_origin, PERSON, {"kind": "job-runs", "path": "/a"}).then(
            fact(OriginRecorded, origin={"kind": "job-runs", "path": "/a"})
        )

    def test_it_is_of_some_kind(self) -> None:
        running().when(Run.record_origin, PERSON, {"path": "/a"}).then(
            errors.InvalidValueError, saying="kind of origin is None"
        )


def test_a_verdict_is_of_the_attempt_that_it_was_made_in() -> None:
    judged = do(Run.judge, ME, Facts(inputs=5, outputs=0))
    stopped = do(Run.finish, ME, "failed")
    case = running(judged, stopped)
    case.run.start_attempt(PERSON, OWNER, live_owner=None)

    assert case.run.verdict is None


def test_a_run_knows_what_was_stated_for_its_last_judgement() -> None:
    answer = do(Run.receive_answer, ME, asked=5, answered=5, parsed=5)
    stated = Facts(outputs=0, declared="old", files_present=1)
    run = running(answer, do(Run.judge, ME, stated)).run

    assert run.stated_facts() == Facts(outputs=0, declared="old")
    assert running().run.stated_facts() == Facts()
