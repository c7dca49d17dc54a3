"""The facts of a run are counted from its events, and each names those it was counted from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from given_when_then import CREATED, NOW_US, PERSON, attempt, do, fact, given, running, started

from tachograph.domain import answers
from tachograph.domain.counting import count
from tachograph.domain.events import (
    AnswerReceived,
    AttemptStarted,
    BatchCompleted,
    BatchesPlanned,
    EffectDone,
    EffectIntended,
    ExpectationsDeclared,
    PhaseEnded,
    PhaseStarted,
)
from tachograph.domain.expectations import Expectations
from tachograph.domain.gate import Facts, judge
from tachograph.domain.run import Run

if TYPE_CHECKING:
    from given_when_then import Do, Fact

ME = attempt(1)
PARSE = fact(PhaseStarted, phase="parse", safe_to_retry=True)
FILTER = fact(PhaseStarted, phase="filter", safe_to_retry=True)


def batch(index: int, inputs: int | None, parsed: int | None, **said: Any) -> Fact:
    return fact(
        BatchCompleted,
        **{"phase": "parse", "index": index, "inputs": inputs, "parsed": parsed, **said},
    )


def answer(asked: int, answered: int | None = None, **said: Any) -> Fact:
    fields = {"asked": asked, "answered": asked if answered is None else answered, **said}
    return fact(AnswerReceived, **{"phase": "parse", **fields})


def planned(total: int) -> Fact:
    return fact(BatchesPlanned, phase="parse", total=total, size=5, items_digest=None)


def counted(
    *history: Fact | Do, now_us: int | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facts and the evidence of a run; its two first events are left out."""
    found = count(running(*history).run, now_us)
    return found.facts.said(), found.evidence


def outcome_of(*history: Fact | Do) -> tuple[str, str]:
    judgement = judge(running(*history).run.counted_facts(NOW_US))
    return judgement.outcome, judgement.rule


class TestBatches:
    def test_a_run_that_did_nothing_says_nothing(self) -> None:
        assert counted() == ({}, {})

    def test_batches_say_what_went_in_and_what_came_out(self) -> None:
        facts, evidence = counted(PARSE, batch(0, 5, 4), PARSE, batch(1, 3, 3))

        assert facts == {"inputs": 8, "outputs": 7, "batches_done": 2}
        assert evidence == {"inputs": [4, 6, 2], "outputs": [4, 6, 2], "batches_done": [4, 6, 2]}

    def test_what_no_batch_counted_is_unsaid(self) -> None:
        assert counted(PARSE, batch(0, None, None))[0] == {"batches_done": 1}
        assert counted(PARSE, batch(0, 5, None))[0] == {"inputs": 5, "batches_done": 1}

    def test_batches_that_are_missing_are_counted(self) -> None:
        facts, evidence = counted(PARSE, planned(3), batch(1, 5, 5))

        assert (facts["batches_done"], facts["batches_missing"]) == (1, 2)
        assert "batches_missing" not in evidence

    def test_before_any_batch_is_finished_nothing_came_out(self) -> None:
        run = running(PARSE, planned(3)).run

        assert run.counted_facts().value("done") == 0
        assert run.counted_facts().said() == {"batches_done": 0, "batches_missing": 3}

    @pytest.mark.parametrize(
        ("output", "parsed", "blank"),
        [
            ("(No text output)", 0, 1),
            (" \n", None, 1),
            (["", " "], 0, 1),
            ("text", 1, None),
            ("(no output)", 1, None),
            (None, 0, None),
            ([], 0, None),
        ],
    )
    def test_a_blank_output_is_told_from_none(
        self, output: Any, parsed: int | None, blank: int | None
    ) -> None:
        facts, evidence = counted(PARSE, batch(0, 5, parsed, output=output))

        assert facts.get("blank") == blank
        assert evidence.get("blank") == (None if blank is None else [4, 4, 1])

    def test_all_blank_is_a_failed_gate(self) -> None:
        assert outcome_of(PARSE, batch(0, 1, 0, output=" ")) == (
            "failed_semantic_empty",
            "blank-output",
        )

    def test_a_phase_that_failed_is_a_fault(self) -> None:
        facts, evidence = counted(PARSE, fact(PhaseEnded, phase="parse", status="failed"))

        assert facts == {"failed_phases": 1}
        assert evidence == {"failed_phases": [4, 4, 1]}

    def test_an_effect_that_was_done_counts_and_one_in_doubt_does_not(self) -> None:
        facts, evidence = counted(
            fact(EffectIntended, key="mail", idempotent=False),
            fact(EffectDone, key="mail"),
            fact(EffectIntended, key="post", idempotent=False),
        )

        assert (facts, evidence) == ({"effects": 1}, {"effects": [4, 4, 1]})


class TestAnswers:
    def test_answers_say_what_was_asked_and_what_came_back(self) -> None:
        facts, evidence = counted(
            PARSE, answer(5, parsed=4, accepted=3), answer(2, 1, parsed=1, accepted=1)
        )

        assert facts == {"inputs": 7, "asked": 7, "answered": 6, "parsed": 5, "accepted": 4}
        assert set(evidence) == set(facts)
        assert all(span == [4, 5, 2] for span in evidence.values())

    def test_what_the_batches_counted_goes_before_what_was_asked(self) -> None:
        facts, evidence = counted(PARSE, answer(5, batch=0), batch(0, 6, 4))

        assert (facts["inputs"], facts["outputs"], facts["asked"]) == (6, 4, 5)
        assert (evidence["inputs"], evidence["asked"]) == ([5, 5, 1], [4, 4, 1])

    def test_what_was_asked_stands_in_for_what_batches_left_out(self) -> None:
        facts, evidence = counted(PARSE, answer(5, batch=0), batch(0, None, 4))

        assert (facts["inputs"], facts["outputs"]) == (5, 4)
        assert (evidence["inputs"], evidence["outputs"]) == ([4, 4, 1], [5, 5, 1])

    def test_an_answer_outside_any_phase_counts(self) -> None:
        assert counted(answer(3, phase=None, parsed=0))[0] == {
            "inputs": 3,
            "asked": 3,
            "answered": 3,
            "parsed": 0,
        }

    def test_a_phase_that_is_only_named_by_its_answers_counts(self) -> None:
        assert counted(answer(3, phase="elsewhere", parsed=2))[0]["parsed"] == 2


class TestWhoSpeaks:
    def test_the_last_phase_that_counted(self) -> None:
        send = fact(PhaseStarted, phase="send", safe_to_retry=True)

        found = count(running(PARSE, batch(0, 9, 9), send, batch(0, 3, 2, phase="send")).run)

        assert (found.phase, found.facts.value("inputs")) == ("send", 3)

    @pytest.mark.parametrize("zero", [batch(0, 9, 0), answer(9, parsed=0), answer(9, accepted=0)])
    def test_one_that_yielded_nothing_is_not_made_good_by_what_follows(self, zero: Fact) -> None:
        """G12."""
        send = fact(PhaseStarted, phase="send", safe_to_retry=True)

        found = count(running(PARSE, zero, send, batch(0, 1, 1, phase="send")).run)

        assert found.phase == "parse"
        assert judge(found.facts).outcome == "failed_semantic_empty"

    def test_one_for_which_nothing_to_do_was_declared_is_not_fruitless(self) -> None:
        send = fact(PhaseStarted, phase="send", safe_to_retry=True)
        quiet = answer(9, batch=0, declared="no rule applies")

        found = count(running(PARSE, quiet, batch(0, 9, 0), send, batch(0, 1, 1, phase="send")).run)

        assert (found.phase, judge(found.facts).outcome) == ("send", "success")


class TestFaults:
    def test_faults_are_counted_by_kind_and_name_their_own_events(self) -> None:
        facts, evidence = counted(
            answer(1, 0, fault="provider"),
            answer(1, fault="parser"),
            answer(1, fault="truncated"),
            answer(1, fault="tool"),
            answer(1, 0, fault="provider"),
        )

        assert {name: facts[name] for name in facts if "fault" in name} == {
            "provider_faults": 2,
            "parser_faults": 1,
            "truncated_faults": 1,
            "tool_faults": 1,
        }
        assert evidence["provider_faults"] == [3, 7, 2]
        assert evidence["parser_faults"] == [4, 4, 1]

    @pytest.mark.parametrize("kind", [kind for kind in answers.FAULTS if kind != "filter"])
    def test_a_finished_batch_makes_its_faults_good(self, kind: str) -> None:
        """Field report 76."""
        facts, evidence = counted(
            PARSE, answer(5, batch=0, fault=kind), answer(5, batch=0, fault=kind), batch(0, 5, 5)
        )

        assert facts["recovered"] == 2
        assert f"{kind}_faults" not in facts
        assert evidence["recovered"] == [4, 5, 2]
        assert outcome_of(PARSE, answer(5, batch=0, fault=kind), batch(0, 5, 5))[0] == "success"

    def test_a_batch_of_which_nothing_came_out_makes_nothing_good(self) -> None:
        """G12."""
        assert (
            counted(PARSE, answer(5, batch=0, fault="parser"), batch(0, 5, 0))[0]["parser_faults"]
            == 1
        )

    def test_unless_it_was_asked_again_and_answered(self) -> None:
        again = (answer(5, batch=0, fault="parser"), answer(5, batch=0, declared="no rule"))

        assert counted(PARSE, *again, batch(0, 5, 0))[0]["recovered"] == 1
        assert outcome_of(PARSE, *again, batch(0, 5, 0)) == ("empty", "declared-for-each")

    def test_a_filter_that_could_not_be_read_is_not_made_good_by_going_on(self) -> None:
        """Spec 8.19: with "keep nothing" its batch is finished, too."""
        facts, _ = counted(PARSE, answer(9, batch=0, fault="filter"), batch(0, None, None))

        assert (facts["filter_faults"], facts["extracted"], facts["filtered"]) == (1, 9, 0)
        read = (answer(9, batch=0, fault="filter"), answer(9, batch=0, filtered=9))
        assert counted(PARSE, *read, batch(0, 9, 0))[0]["recovered"] == 1
        assert outcome_of(PARSE, *read, batch(0, 9, 0)) == ("empty", "all-filtered")

    def test_a_fault_of_another_batch_or_phase_stays(self) -> None:
        other = fact(PhaseStarted, phase="other", safe_to_retry=True)
        facts, _ = counted(
            PARSE,
            answer(5, batch=0, fault="parser"),
            answer(5, batch=1, fault="parser"),
            batch(0, 5, 5),
            other,
            answer(5, phase="other", batch=0, fault="tool"),
        )

        assert (facts["parser_faults"], facts["tool_faults"], facts["recovered"]) == (1, 1, 1)

    def test_a_fault_outside_batches_is_never_made_good(self) -> None:
        assert counted(PARSE, answer(5, fault="tool"), batch(0, 5, 5))[0]["tool_faults"] == 1

    def test_what_was_asked_again_counts_once(self) -> None:
        facts, _ = counted(
            PARSE,
            answer(5, batch=0, parsed=2, fault="truncated"),
            answer(5, batch=0, parsed=5),
            batch(0, None, None),
        )

        assert (facts["inputs"], facts["asked"], facts["parsed"]) == (5, 5, 5)

    def test_an_item_that_several_answers_are_about_is_one_item(self) -> None:
        """Such as that of a model, and the job's word that there is nothing to do."""
        twice = (answer(5, batch=0, parsed=0), answer(5, 4, batch=0, declared="no rule"))

        facts, _ = counted(PARSE, *twice, batch(0, 5, 0))

        assert (facts["asked"], facts["answered"], facts["quiet"]) == (5, 5, 5)
        assert counted(PARSE, *twice, batch(0, None, 0))[0]["asked"] == 10
        failed = (answer(5, batch=0, fault="parser"), answer(5, batch=0, fault="parser"))
        assert counted(PARSE, *failed, batch(0, 5, 0))[0]["asked"] == 5

    def test_what_only_ever_failed_was_asked_all_the_same(self) -> None:
        facts, _ = counted(PARSE, answer(5, batch=0, fault="parser"), batch(0, None, None))

        assert (facts["asked"], facts["recovered"]) == (5, 1)

    def test_a_tool_that_does_its_work_after_all_makes_its_faults_good(self) -> None:
        """Reports: a recovered tool error decided the run."""
        failed = answer(0, phase=None, source="search", fault="tool")
        other = answer(0, phase=None, source="fetch")
        works = answer(0, phase=None, source="search")
        facts, _ = counted(PARSE, batch(0, 5, 5), failed, failed, other)

        assert facts["tool_faults"] == 2
        facts, _ = counted(PARSE, batch(0, 5, 5), failed, failed, other, works)
        assert "tool_faults" not in facts
        assert facts["recovered"] == 2
        assert outcome_of(PARSE, batch(0, 5, 5), failed, works)[0] == "success"

    def test_beyond_a_bound_a_tool_cannot_make_its_faults_good(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(answers, "MOST_OPEN", 1)
        first = answer(0, phase=None, source="search", fault="tool")
        second = answer(0, phase=None, source="fetch", fault="tool")
        works = [answer(0, phase=None, source=source) for source in ("search", "fetch")]
        facts, _ = counted(PARSE, batch(0, 5, 5), first, second, *works)

        assert (facts["tool_faults"], facts["recovered"]) == (1, 1)

    def test_a_tool_that_failed_speaks_for_no_phase(self) -> None:
        """Field report 76: what came out came out all the same."""
        facts, _ = counted(PARSE, batch(0, 5, 5), answer(1, phase=None, fault="tool"))

        assert (facts["inputs"], facts["outputs"], facts["tool_faults"]) == (5, 5, 1)
        assert "asked" not in facts

    def test_beyond_a_bound_batches_are_not_told_apart(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(answers, "MOST_OPEN", 1)
        facts, _ = counted(
            PARSE,
            answer(5, batch=0, fault="tool"),
            answer(5, batch=1, fault="tool"),
            answer(5, batch=1, declared="x"),
            batch(0, 5, 5),
            batch(1, 5, 5),
        )

        assert (facts["tool_faults"], facts["recovered"], facts["quiet"]) == (1, 1, 5)


class TestDeclared:
    def test_nothing_to_do_is_counted_in_items(self) -> None:
        facts, evidence = counted(
            PARSE, answer(5, batch=0, declared="a"), batch(0, 5, 0), answer(2, declared="b")
        )

        assert (facts["quiet"], evidence["quiet"]) == (7, [4, 6, 2])

    def test_it_is_counted_once_however_often_it_is_said(self) -> None:
        """A killed attempt had said it already."""
        said = answer(5, batch=0, declared="a")

        assert counted(PARSE, said, said, batch(0, 5, 0))[0]["quiet"] == 5
        assert counted(PARSE, said, said, batch(0, None, None))[0]["quiet"] == 10

    def test_it_does_not_excuse_another_phase(self) -> None:
        """G12: items of one phase, and none of the other's came out."""
        send = fact(PhaseStarted, phase="send", safe_to_retry=True)
        history = (PARSE, answer(5, declared="a"), batch(0, 5, 0), send)

        assert outcome_of(*history, batch(0, 5, 0, phase="send")) == (
            "failed_semantic_empty",
            "no-item-parsed",
        )

    def test_a_few_reasons_are_kept(self) -> None:
        said = [answer(1, declared=f"reason {number % 7}") for number in range(20)]

        answers = running(PARSE, *said).run.answers["parse"]

        assert answers.reasons == [f"reason {number}" for number in range(5)]
        assert answers.quiet == 20


class TestFilters:
    def test_a_filter_says_what_was_extracted_and_what_is_left(self) -> None:
        facts, evidence = counted(
            FILTER, answer(9, phase="filter", filtered=6), PARSE, batch(0, 3, 3)
        )

        assert (facts["extracted"], facts["filtered"], facts["inputs"]) == (9, 6, 3)
        assert (evidence["extracted"], evidence["filtered"]) == ([4, 4, 1], [4, 4, 1])

    def test_its_own_batches_do_not_speak_for_the_run(self) -> None:
        """What it handed on is no output; what became of that is."""
        kept = (FILTER, answer(9, phase="filter", batch=0, filtered=6))
        done = batch(0, 9, 0, phase="filter")

        assert outcome_of(*kept, done, PARSE, batch(0, 3, 3)) == ("success", "all-done")
        assert outcome_of(*kept, done, PARSE, batch(0, 3, 0))[1] == "no-item-parsed"

    def test_unless_filtering_is_all_there_is(self) -> None:
        kept = (FILTER, answer(9, phase="filter", batch=0, filtered=6))

        assert outcome_of(*kept, batch(0, 9, 3, phase="filter")) == ("success", "all-done")

    def test_one_that_takes_everything_out_leaves_no_work(self) -> None:
        assert outcome_of(FILTER, answer(9, phase="filter", filtered=9)) == (
            "empty",
            "all-filtered",
        )


class TestExpectations:
    def test_what_was_declared_is_a_fact(self) -> None:
        said = Expectations(
            inputs=9, extracted=12, minimum_fraction=0.5, files=["/a"], deadline_us=NOW_US
        )
        facts, evidence = counted(do(Run.expect, ME, said), now_us=NOW_US + 1_500_000)

        assert facts == {
            "inputs": 9,
            "extracted": 12,
            "minimum_fraction": 0.5,
            "files_expected": 1,
            "deadline_left_seconds": -1.5,
        }
        assert evidence == {name: [3, 3, 1] for name in facts}

    def test_without_a_time_a_deadline_is_neither_near_nor_far(self) -> None:
        assert counted(do(Run.expect, ME, Expectations(deadline_us=NOW_US)))[0] == {}

    @pytest.mark.parametrize(("declared", "inputs"), [(12, 12), (5, 5), (4, 5), (0, 5)])
    def test_the_larger_number_of_inputs_counts(self, declared: int, inputs: int) -> None:
        """What was declared and did not go in is missing."""
        expect = do(Run.expect, ME, Expectations(inputs=declared))

        assert counted(expect, PARSE, batch(0, 5, 5))[0]["inputs"] == inputs

    def test_a_deadline_that_has_passed_was_that_of_an_earlier_attempt(self) -> None:
        expect = do(Run.expect, ME, Expectations(inputs=3, deadline_us=NOW_US))
        later = do(Run.expect, ME, Expectations(deadline_us=NOW_US + 1))

        assert given(CREATED, started(1), expect, started(2)).run.expectations == {"inputs": 3}
        assert given(CREATED, started(1), later, started(2)).run.expectations == {
            "deadline_us": NOW_US + 1
        }


class TestState:
    HISTORY: tuple[Fact | Do, ...] = (
        do(Run.expect, ME, Expectations(inputs=3, files=["/a"], traces={"/a": [1, 2, 3]})),
        PARSE,
        answer(5, batch=0, declared="x"),
        answer(5, batch=1, fault="parser"),
        answer(5, fault="filter", phase=None),
        batch(0, 5, 0, output=" "),
    )

    def test_answers_survive_a_snapshot(self) -> None:
        run = running(*self.HISTORY).run
        restored = Run()

        assert restored.restore(run.to_snapshot())
        assert restored.to_snapshot() == run.to_snapshot()
        assert count(restored).facts == count(run).facts
        assert count(restored).evidence == count(run).evidence

    def test_a_snapshot_and_its_run_go_separate_ways(self) -> None:
        run = running(*self.HISTORY).run
        snapshot = run.to_snapshot()
        restored = Run()
        restored.restore(snapshot)
        before = count(restored).facts.said()

        for more in (answer(5, batch=1, fault="parser"), answer(5, declared="y"), batch(1, 5, 5)):
            more.at(run.version + 1, PERSON).mutate(run)

        assert count(restored).facts.said() == before
        assert restored.to_snapshot() == snapshot

    def test_the_expectations_that_count_are_the_last(self) -> None:
        first = fact(ExpectationsDeclared, expectations={"inputs": 3})
        second = fact(ExpectationsDeclared, expectations={"inputs": 4})

        assert counted(first, second)[1]["inputs"] == [4, 4, 1]

    def test_a_new_attempt_keeps_what_came_back(self) -> None:
        again = fact(AttemptStarted, epoch=2, owner={})

        assert counted(PARSE, answer(5, parsed=5), again)[0]["parsed"] == 5


def test_facts_that_were_stated_go_before_those_that_were_counted() -> None:
    run = running(PARSE, batch(0, 5, 5)).run
    run.judge(ME, Facts(outputs=0))

    assert run.verdict is not None
    assert run.verdict["rule"] == "no-item-parsed"
