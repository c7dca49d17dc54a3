"""What the published system got wrong about verdicts comes out right here. Named by spec §8."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here, tacho
from workbench import Workbench

import tachograph
from tachograph.bootstrap import DEADLINE
from tachograph.domain import outcome
from tachograph.domain.errors import GateFailedError

if TYPE_CHECKING:
    from pathlib import Path

INCIDENTS = ["a", "b", "c", "d"]


@pytest.fixture
def bench() -> Workbench:
    return Workbench()


def ended(bench: Workbench, run_id: str) -> dict[str, Any]:
    return bench.fields(run_id, "finished")[-1]


def traits_of(found: dict[str, Any]) -> outcome.Traits:
    return outcome.traits(found["outcome"], found["reason_code"])


class TestDeadlines:
    def test_8_5_a_run_cut_short_by_its_deadline_is_partial_and_due_again(
        self, bench: Workbench
    ) -> None:
        """The original returned success although batches remained, and wrote its guard."""
        with bench.record() as run, run.phase("analyse") as phase:
            run.expect(deadline=60)
            for batch in phase.batches(INCIDENTS, size=2):
                if batch.index == 1:
                    phase.stop("deadline")
                    break
                batch.complete(["fix", "fix"])

        found = ended(bench, run.id)
        assert (found["outcome"], found["reason_code"]) == ("partial", "stopped_by_budget")
        assert traits_of(found).withholds_guard
        assert traits_of(found).resumable
        assert not traits_of(found).fails_step

    def test_8_5_nobody_has_to_say_so(self, bench: Workbench) -> None:
        """A job that just ends after its deadline, with batches left, is cut short by it."""
        session = bench.start()
        session.start_phase("analyse")
        session.plan_batches("analyse", 2, 2, None)
        session.complete_batch("analyse", 0, inputs=2, parsed=2)
        session.expect(expectations(deadline_us=1))

        assert session.finish() == "partial"
        assert ended(bench, session.run_id)["reason_code"] == "stopped_by_budget"

    def test_8_6_a_deadline_that_passed_before_the_first_batch_suspects_no_model(
        self, store_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The original called this `failed_semantic_empty` and deleted the checkpoint."""
        monkeypatch.setenv(DEADLINE, "1700000000000")
        with tachograph.record("analyse", store=store_path) as run:
            run.expect(inputs=len(INCIDENTS))
            with run.phase("analyse") as phase:
                for _batch in phase.batches(INCIDENTS, size=2):
                    assert run.deadline_left is not None
                    assert run.deadline_left < 0
                    phase.stop("deadline")
                    break
        state = run.state

        assert (state.outcome, state.reason_code) == ("partial", "stopped_before_output")
        meaning = outcome.traits("partial", state.reason_code)
        assert meaning.keeps_checkpoint
        assert meaning.alerts  # night after night nothing comes out: a person hears of that
        assert not meaning.fails_step

    def test_8_6_it_is_so_for_a_job_that_says_nothing_about_it(self, bench: Workbench) -> None:
        session = bench.start()
        session.expect(expectations(inputs=4, deadline_us=1))
        session.start_phase("analyse")
        session.plan_batches("analyse", 2, 2, None)

        assert session.finish() == "partial"
        assert session.run.verdict is not None
        assert session.run.verdict["rule"] == "deadline-before-output"

    def test_8_6_a_deadline_in_the_middle_of_a_batch_is_no_parser_fault(
        self, bench: Workbench
    ) -> None:
        """The items of that batch come back without content, and nobody could not read them."""
        with bench.record() as run, run.phase("analyse") as phase:
            for batch in phase.batches(INCIDENTS, size=2):
                batch.answered(None, answered=0, parsed=0)
                phase.stop("deadline")
                break

        assert ended(bench, run.id)["reason_code"] == "stopped_before_output"


class TestBudgets:
    def test_8_7_stopped_by_a_budget_is_told_from_a_batch_that_failed(
        self, bench: Workbench
    ) -> None:
        with bench.record("bounded") as run, run.phase("analyse") as phase:
            for batch in phase.batches(INCIDENTS):
                if batch.index == 3:
                    phase.stop("budget")
                    break
                batch.complete("fix")
        healthy = ended(bench, run.id)
        with pytest.raises(ValueError, match="bad JSON"), bench.record("broken") as run:
            with run.phase("analyse") as phase:
                for _batch in phase.batches(INCIDENTS):
                    raise ValueError("bad JSON")
        broken = ended(bench, run.id)

        assert healthy["outcome"] == "partial"
        assert (traits_of(healthy).fails_step, traits_of(healthy).alerts) == (False, False)
        assert (traits_of(broken).fails_step, traits_of(broken).alerts) == (True, True)

    def test_8_7_a_tolerance_is_declared_and_kept_with_the_run(self, bench: Workbench) -> None:
        """The original invented thresholds in its validator: five percent may fail."""
        for done, result in ((19, "success_with_review"), (18, "failed")):
            with bench.record(inputs={"done": done}) as run:
                run.expect(inputs=20, minimum_fraction=0.95)
                run.judge(outputs=done)
            assert ended(bench, run.id)["outcome"] == result


class TestSilence:
    def test_8_8_an_empty_list_is_no_word_that_there_is_nothing_to_do(
        self, bench: Workbench
    ) -> None:
        with bench.record() as run, run.phase("analyse") as phase:
            for batch in phase.batches(INCIDENTS, size=2):
                batch.answered("[]", parsed=0)
                batch.complete([])

        assert ended(bench, run.id)["outcome"] == "failed_semantic_empty"

    def test_8_8_the_explicit_word_is(self, bench: Workbench) -> None:
        with bench.record() as run, run.phase("analyse") as phase:
            for batch in phase.batches(INCIDENTS, size=2):
                batch.answered('{"actions": []}', declared="no rule applies")
                batch.complete([])

        found = ended(bench, run.id)
        assert (found["outcome"], found["reason_code"]) == ("empty", "declared_no_work")

    def test_8_8_one_empty_half_does_not_discard_the_good_one(self, bench: Workbench) -> None:
        with bench.record() as run, run.phase("analyse") as phase:
            left, right = phase.batches(INCIDENTS, size=2)
            left.complete(["fix", "fix"])
            right.complete([])

        found = ended(bench, run.id)
        assert (found["outcome"], found["reason"]) == (
            "success_with_review",
            "2 of 4 items came out",
        )
        assert run.outputs("analyse") == ["fix", "fix"]

    def test_8_8_nor_does_it_when_it_says_that_there_is_nothing_to_do(
        self, bench: Workbench
    ) -> None:
        with bench.record() as run, run.phase("analyse") as phase:
            left, right = phase.batches(INCIDENTS, size=2)
            left.complete(["fix", "fix"])
            right.complete(tachograph.Nothing("no rule applies"))

        assert ended(bench, run.id)["outcome"] == "success"

    def test_8_9_one_item_that_cannot_be_read_leaves_the_others(self, bench: Workbench) -> None:
        """The original rejected the whole array."""
        with bench.record() as run, run.phase("analyse") as phase:
            for batch in phase.batches(INCIDENTS, size=4):
                batch.answered('[{"fix": 1}, {"fix": 2}, {"fix": 3}, {]', parsed=3, accepted=3)
                batch.complete([1, 2, 3])

        found = ended(bench, run.id)
        assert (found["outcome"], found["reason"]) == (
            "success_with_review",
            "3 of 4 items came out",
        )
        assert run.outputs("analyse") == [1, 2, 3]

    def test_8_9_an_array_that_was_cut_off_is_told_from_one_that_is_short(
        self, bench: Workbench
    ) -> None:
        """The original salvaged its first object only, and then called that a parse failure."""
        with bench.record() as run, run.phase("analyse") as phase:
            for batch in phase.batches(INCIDENTS, size=4):
                batch.answered('[{"fix": 1}, {"f', parsed=1, fault="truncated")
                batch.answered('[{"fix": 1}, {"fix": 2}, …]', parsed=4)
                batch.complete([1, 2, 3, 4])
        facts = bench.fields(run.id, "semantic-gate-judged")[0]["facts"]

        assert ended(bench, run.id)["outcome"] == "success"
        assert (facts["recovered"], facts["asked"]) == (1, 4)

    def test_8_19_a_classifier_that_cannot_be_read_is_no_proof_of_no_work(
        self, bench: Workbench
    ) -> None:
        """The original ended green: four were found, an unreadable answer kept none of them."""
        with bench.record() as run:
            with run.phase("classify") as phase:
                for batch in phase.batches(INCIDENTS, size=4):
                    batch.answered("I think none of th", fault="filter", error="no JSON")
                    batch.complete([])
            with run.phase("analyse") as phase:
                for batch in phase.batches(run.outputs("classify"), size=2):
                    batch.complete("fix")

        found = ended(bench, run.id)
        assert (found["outcome"], found["reason_code"]) == (
            "failed_semantic_empty",
            "filter_unreadable",
        )
        assert "the 4 items it was given" in found["reason"]

    def test_8_19_the_extracted_count_is_what_the_gate_compares_with(
        self, bench: Workbench
    ) -> None:
        """Even where the classifier's failure was not noticed by the job itself."""
        with bench.record() as run:
            run.expect(extracted=len(INCIDENTS))
            run.judge(inputs=0, outputs=0)

        assert ended(bench, run.id)["outcome"] == "failed_semantic_empty"

    def test_8_19_a_classifier_that_could_be_read_may_let_nothing_through(
        self, bench: Workbench
    ) -> None:
        with bench.record() as run, run.phase("classify") as phase:
            for batch in phase.batches(INCIDENTS, size=4):
                batch.answered("[]", parsed=4, filtered=4)
                batch.complete([])

        found = ended(bench, run.id)
        assert (found["outcome"], found["reason_code"]) == ("empty", "all_filtered")


@pytest.mark.usefixtures("store_environment")
class TestFromAShell:
    """The same through processes: each command is one of its own."""

    @pytest.fixture
    def job(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
        here(capsys, "run", "start", "analyse", "--id", "job", "--unowned")
        monkeypatch.setenv("TACHO_RUN_ID", "job")
        monkeypatch.setenv("TACHO_EPOCH", "1")

        def run(line: str, *more: str) -> str:
            done = here(capsys, "run", *line.split(), *more)
            assert done.returncode in (0, 7, 75), done.stderr
            return done.stdout.strip()

        return run

    def test_8_19_an_unreadable_classifier(self, job: Any) -> None:
        job("phase start classify --batches 1")
        job("answer --phase classify --batch 0 --asked 4 --fault filter --text", "I think no")
        job("batch classify 0")
        job("phase end classify")

        assert job("finish") == "failed_semantic_empty"

    def test_8_6_a_deadline_that_has_passed(self, job: Any) -> None:
        job("expect --inputs 4 --deadline 2024-01-01T00:00Z")
        job("phase start analyse --batches 2")

        assert job("finish") == "partial"

    def test_8_8_the_explicit_word(self, job: Any) -> None:
        job("phase start analyse --batches 1")
        job("answer --phase analyse --batch 0 --asked 4 --declared", "no rule applies")
        job("batch analyse 0 --inputs 4 --parsed 0")
        job("phase end analyse")

        assert job("finish") == "empty"


def test_8_16_no_text_of_a_log_decides(tmp_path: Path, store_environment: Path) -> None:
    """A wrapped command may print what it likes: `status=success` is no success."""
    done = tacho(
        *("run", "exec", "--json", "--expect-output", str(tmp_path / "report"), "--"),
        *("echo", "status=success_analyzed semantic=success"),
    )
    lines = done.stderr.splitlines()
    told = (
        json.loads("\n".join(lines[lines.index("{") :])) if "{" in lines else json.loads(lines[-1])
    )

    assert (told["outcome"], done.returncode) == ("failed_semantic_empty", 7)


def test_a_job_cannot_name_its_way_out_of_it(bench: Workbench) -> None:
    """G12."""
    session = bench.start()
    session.start_phase("analyse")
    session.complete_batch("analyse", 0, inputs=4, parsed=0)
    session.end_phase("analyse")
    assert session.judge(facts()) == "failed_semantic_empty"

    with pytest.raises(GateFailedError):
        session.finish("success")


def expectations(**said: Any) -> Any:
    from tachograph.domain.expectations import Expectations

    return Expectations(**said)


def facts(**said: Any) -> Any:
    from tachograph.domain.gate import Facts

    return Facts(**said)
