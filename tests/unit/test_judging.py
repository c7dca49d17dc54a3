"""Verdicts of a session: the policy in force, the files that were to be made, what is declared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from workbench import Workbench

import tachograph
from tachograph.bootstrap import DEADLINE, deadline_us, open_store
from tachograph.domain import errors
from tachograph.domain.blobref import BlobRef
from tachograph.domain.expectations import Expectations
from tachograph.domain.gate import Facts
from tachograph.domain.policy import Policy
from tachograph.expecting import facts_of_files, problems
from tachograph.measuring import microseconds
from tachograph.starting import Start

if TYPE_CHECKING:
    from pathlib import Path

POLICY = """
id = "mine"
version = 1

[[rules]]
id = "anything-goes"
when = ["outputs >= 1"]
outcome = "success_with_review"
reason_code = "looked_at"
text = "somebody should look at {outputs} outputs"
"""


def own() -> Policy:
    rule = {
        "id": "strict",
        "version": 1,
        "when": [],
        "outcome": "failed",
        "reason_code": "strict",
        "text": "no",
    }
    return Policy.from_fields({"id": "own", "version": 1, "rules": [rule]}, "here")


@pytest.fixture
def bench() -> Workbench:
    return Workbench()


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return path


def verdict(store: Path, run_id: str) -> dict[str, Any]:
    services = open_store(str(store), read_only=True)
    records = services.log.read_stream(run_id)
    (judged,) = [record for record in records if record.topic == "run.semantic-gate-judged"]
    fields = services.repository.fields(judged)
    stored = fields["policy"]["rules"]
    fields["rules"] = None if stored is None else services.payloads.load(stored)
    services.close()
    return fields


class TestPolicy:
    def test_the_rules_of_a_policy_of_ones_own_are_kept_with_the_verdict(
        self, bench: Workbench
    ) -> None:
        """A file can be changed or lost; the verdict has to follow from the log alone."""
        session = bench.start()
        session.judge_by(own())

        assert session.judge(Facts(outputs=3)) == "failed"
        stored = bench.fields(session.run_id, "semantic-gate-judged")[0]["policy"]["rules"]
        assert isinstance(stored, BlobRef)
        again = Policy.from_fields(session.payloads.load(stored), "the store")
        assert again.digest == own().digest

    def test_one_judgement_can_be_by_another_policy(self, bench: Workbench) -> None:
        session = bench.start()

        assert session.judge(Facts(outputs=3), by=own()) == "failed"
        assert session.judge(Facts(outputs=3)) == "success"

    def test_the_policy_of_tachograph_is_not_stored(self, bench: Workbench) -> None:
        session = bench.start()
        session.finish()

        assert bench.fields(session.run_id, "semantic-gate-judged")[0]["policy"]["rules"] is None
        assert bench.blobs.kept == {}

    def test_a_recording_is_judged_by_the_file_it_names(
        self, store_path: Path, policy: Path
    ) -> None:
        with tachograph.record("work", store=store_path, policy=policy) as run:
            policy.unlink()  # it was read when the run began
            run.judge(outputs=2)

        found = verdict(store_path, run.id)
        assert (found["rule"], found["reason"]) == (
            "anything-goes",
            "somebody should look at 2 outputs",
        )
        assert found["rules"]["id"] == "mine"

    def test_a_policy_that_cannot_be_used_stops_the_run_before_it_starts(
        self, store_path: Path, policy: Path
    ) -> None:
        policy.write_text("id = ")

        with (
            pytest.raises(errors.PolicyError),
            tachograph.record("work", store=store_path, policy=policy),
        ):
            raise AssertionError("not reached")
        services = open_store(str(store_path))
        assert services.log.head().position == 0
        services.close()

    def test_the_setting_names_the_policy_of_every_run(
        self, store_environment: Path, policy: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TACHO_POLICY", str(policy))
        services = open_store(create=True)
        session = services.starter.start(Start("work"), services.owner())

        assert session.judge(Facts(outputs=1)) == "success_with_review"
        assert services.session(session.run_id, session.epoch).policy().id == "mine"
        services.close()


class TestFiles:
    def test_a_file_that_was_to_be_made_and_is_there_is_a_success(
        self, bench: Workbench, tmp_path: Path
    ) -> None:
        report = tmp_path / "report.html"
        with bench.record() as run:
            run.expect(files=[report])
            report.write_text("all is well")

        assert bench.fields(run.id, "finished")[0]["outcome"] == "success"

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (None, "was not made"),
            ("", "is empty"),
            (" \n", "holds nothing but blanks, or a placeholder"),
            ("(No text output)\n", "holds nothing but blanks, or a placeholder"),
        ],
    )
    def test_a_file_that_says_nothing_was_not_made(
        self, bench: Workbench, tmp_path: Path, content: str | None, problem: str
    ) -> None:
        report = tmp_path / "report.html"
        with bench.record() as run:
            run.expect(files=[report])
            if content is not None:
                report.write_text(content)
            found = problems(Expectations.from_fields(run.state.expectations))

        assert found == {str(report): problem}
        assert bench.fields(run.id, "finished")[0]["outcome"] == "failed_semantic_empty"

    def test_a_file_of_yesterday_was_not_made(self, bench: Workbench, tmp_path: Path) -> None:
        report = tmp_path / "report.html"
        report.write_text("all was well")
        with bench.record() as run:
            run.expect(files=[report])

        assert bench.fields(run.id, "finished")[0]["reason_code"] == "expected_files_missing"

    def test_what_an_earlier_attempt_has_written_counts(
        self, bench: Workbench, tmp_path: Path
    ) -> None:
        report = tmp_path / "report.html"
        for attempt in (1, 2):
            try:
                with bench.record() as run:
                    run.expect(files=[report])
                    if attempt == 1:
                        report.write_text("all is well")
                        raise RuntimeError("cut off")
            except RuntimeError:
                continue

        assert bench.fields(run.id, "finished")[-1]["outcome"] == "success"

    def test_a_large_file_is_not_looked_into(self, tmp_path: Path) -> None:
        path = tmp_path / "spaces"
        path.write_text(" " * 300)

        assert problems(Expectations(files=[str(path)], traces={str(path): None})) == {}

    def test_a_path_is_not_empty(self, bench: Workbench) -> None:
        with bench.record() as run, pytest.raises(errors.InvalidValueError, match="expected file"):
            run.expect(files=[""])

    def test_what_cannot_be_read_is_taken_to_say_something(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_path: Path) -> bytes:
            raise PermissionError

        path = tmp_path / "secret"
        path.write_text(" ")
        monkeypatch.setattr(type(path), "read_bytes", refuse)

        assert problems(Expectations(files=[str(path)], traces={str(path): None})) == {}

    def test_a_run_that_is_to_make_no_file_says_nothing_about_files(self) -> None:
        assert facts_of_files(None) == facts_of_files({"inputs": 3}) == Facts()


class TestDeadline:
    @pytest.mark.parametrize(
        ("given", "at_us"),
        [
            (30, 1_000 + 30_000_000),
            (0.5, 1_000 + 500_000),
            (-1, 1_000 - 1_000_000),
            (timedelta(minutes=1), 1_000 + 60_000_000),
            (datetime(1970, 1, 1, 0, 1, tzinfo=UTC), 60_000_000),
        ],
    )
    def test_a_deadline_is_a_time_or_a_span_from_now(self, given: Any, at_us: int) -> None:
        assert microseconds("deadline", given, 1_000) == at_us

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            (datetime(2026, 3, 1), "give it a time zone"),  # noqa: DTZ001
            ("tomorrow", "give a datetime with a time zone, or seconds from now"),
            (True, "give a datetime"),
            (float("nan"), "give a datetime"),
            (float("inf"), "give a datetime"),
        ],
    )
    def test_what_is_no_time_is_refused(self, given: Any, problem: str) -> None:
        with pytest.raises(errors.InvalidValueError, match=problem):
            microseconds("deadline", given, 0)

    def test_a_recording_knows_how_much_time_is_left(self, bench: Workbench) -> None:
        with bench.record() as run:
            assert run.deadline_left is None
            run.expect(deadline=60)
            assert run.deadline_left is not None
            assert 59 < run.deadline_left < 60

    def test_the_orchestrator_gives_its_deadline_to_every_run(
        self, store_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Spec 1.11."""
        monkeypatch.setenv(DEADLINE, "1700000000000")
        with tachograph.record("work", store=store_path) as run:
            run.expect(inputs=3)
            known = dict(run.state.expectations)
            assert run.deadline_left is not None
            assert run.deadline_left < 0

        assert known == {"inputs": 3, "deadline_us": 1_700_000_000_000_000}

    def test_the_next_attempt_has_a_deadline_of_its_own(
        self, store_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(DEADLINE, "1700000000000")
        with tachograph.record("work", store=store_path) as run:
            run.finish("partial")
        monkeypatch.delenv(DEADLINE)
        with tachograph.record("work", store=store_path) as run:
            assert run.resumed
            assert run.deadline_left is None

    @pytest.mark.parametrize("text", ["soon", "-1", "1.5", "1" * 16, "\uff11"])
    def test_a_deadline_that_is_no_time_starts_nothing(
        self, text: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(DEADLINE, text)

        with pytest.raises(errors.InvalidValueError, match="milliseconds since 1970"):
            deadline_us()

    @pytest.mark.parametrize("text", ["", " "])
    def test_an_empty_variable_is_none(self, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(DEADLINE, text)

        assert deadline_us() is None


class TestAnswers:
    def test_an_answer_has_sensible_defaults(self, bench: Workbench) -> None:
        with bench.record() as run, run.phase("ask") as phase:
            for batch in phase.batches(["a", "b"], size=2):
                batch.answered(fault="provider", error=TimeoutError("30 s"), source="large")
                batch.answered("[1, 2]", parsed=2)
                batch.complete([1, 2])

        down, well = bench.fields(run.id, "answer-received")
        assert (down["asked"], down["answered"], down["phase"], down["batch"]) == (2, 0, "ask", 0)
        assert (down["error"], down["source"]) == ("TimeoutError: 30 s", "large")
        assert (well["asked"], well["answered"], well["parsed"]) == (2, 2, 2)
        assert well["text"] == "[1, 2]"
        assert bench.fields(run.id, "finished")[0]["outcome"] == "success"

    def test_a_blank_text_parses_to_nothing(self, bench: Workbench) -> None:
        with bench.record() as run:
            run.answered("(No text output)", asked=3)
            run.answered("  ", asked=3, parsed=1)
            run.answered(None, asked=3)

        parsed = [fields["parsed"] for fields in bench.fields(run.id, "answer-received")]
        assert parsed == [0, 1, None]

    def test_a_long_text_goes_to_the_blobs(self, bench: Workbench) -> None:
        with bench.record() as run:
            run.answered("x" * 100_000, asked=1, parsed=1)

        assert isinstance(bench.fields(run.id, "answer-received")[0]["text"], BlobRef)

    def test_a_phase_can_be_asked_as_a_whole(self, bench: Workbench) -> None:
        with bench.record() as run, run.phase("classify") as phase:
            phase.answered("yes to none", asked=9, filtered=9, source="small")

        assert bench.fields(run.id, "finished")[0]["reason_code"] == "all_filtered"

    def test_a_phase_can_be_stopped_early(self, bench: Workbench) -> None:
        with bench.record() as run, run.phase("ask") as phase:
            for batch in phase.batches([1, 2, 3]):
                if batch.index == 2:
                    phase.stop("budget")
                    break
                batch.complete(1)

        ended = bench.fields(run.id, "finished")[0]
        assert (ended["outcome"], ended["reason_code"]) == ("partial", "stopped_by_budget")
        assert (
            ended["reason"]
            == "stopped early (budget) with 2 of 2 items done; batches unfinished: 1"
        )
        assert "phase-ended" not in bench.topics(run.id)
        with bench.record() as run, run.phase("ask") as phase:
            for batch in phase.batches([1, 2, 3]):
                batch.complete(1)
        assert bench.fields(run.id, "finished")[1]["outcome"] == "success"

    def test_that_it_was_stopped_is_known_to_every_later_judgement(self, bench: Workbench) -> None:
        """A job that judges itself at its end does not forget why it got there."""
        with bench.record() as run:
            with run.phase("ask") as phase:
                for batch in phase.batches([1, 2]):
                    if batch.index:
                        phase.stop("deadline")
                        break
                    batch.complete(1)
            assert run.judge(inputs=2, outputs=len(run.outputs("ask"))) == "partial"

        assert bench.fields(run.id, "finished")[0]["outcome"] == "partial"

    def test_a_stop_has_a_reason(self, bench: Workbench) -> None:
        with bench.record() as run:
            with pytest.raises(errors.InvalidValueError, match="stopped is ' '"):
                run.stop(" ")
            assert run.judge(inputs=1, outputs=1) == "success"
