"""What an explanation is made of, where the golden audit does not say it in itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from audit.bench import Audited
from audit.by_the_gate import blank_output, no_item_parsed, outputs_present, work
from audit.unfinished import STRICT

from tachograph import audit_words, auditing
from tachograph.audit_page import page
from tachograph.domain.facts import Facts

Fields = dict[str, Any]


@pytest.fixture
def bench(tmp_path: Path) -> Audited:
    return Audited(tmp_path)


class TestKinds:
    def test_a_run_that_ended_by_its_verdict_is_judged(self, bench: Audited) -> None:
        assert bench.audit(outputs_present(bench))["kind"] == auditing.JUDGED

    def test_another_outcome_than_the_verdict_s_was_named(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        session.judge(Facts(inputs=1, outputs=1))
        bench.ends(session, "failed", reason="boom", reason_code="exception")
        audit = bench.audit("job")

        assert audit["kind"] == auditing.NAMED
        assert audit["judged"]["outcome"] == "success"
        assert (audit["ruled_out"], audit["what_if"]) == ([], [])

    def test_a_run_that_is_judged_and_goes_on_is_unfinished(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        session.judge(Facts(inputs=1, outputs=1))
        audit = bench.audit("job")

        assert audit["kind"] == auditing.UNFINISHED
        assert audit["judged"]["outcome"] == "success"
        assert audit["doing"]["attempt"] == 1

    def test_a_run_that_was_judged_and_cancelled_was_ended(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        session.judge(Facts(inputs=1, outputs=1))
        bench.kill("job")
        bench.attempt("job", 0).execute(lambda run, why: run.cancel(why, "not wanted"))
        audit = bench.audit("job")

        assert audit["kind"] == auditing.NAMED
        assert audit["ending"]["topic"] == "run.cancelled"


class TestNoVerdictYet:
    def test_no_run_is_called_a_success_while_a_batch_is_missing(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        work(session, "embed", [(50, 50, "ok")], total=3, end=False)
        check = bench.audit("job")["check"]

        assert check["would_be"]["outcome"] == "success"
        assert check["text"] == "no verdict: 2 planned batches are not finished"

    def test_what_has_failed_already_is_told_all_the_same(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        work(session, "embed", [(50, 0, "?")], total=3, end=False)

        assert bench.audit("job")["check"]["text"].startswith(
            "the gate would judge by what is recorded: failed_semantic_empty ("
        )


class TestRuledOut:
    def test_a_rule_about_what_nobody_declared_is_not_mentioned(self, bench: Audited) -> None:
        told = {
            each["rule"]: each["text"] for each in bench.audit(outputs_present(bench))["ruled_out"]
        }

        assert told["stopped-before-output"] == "it was not stopped early"
        assert told["deadline-passed"] is None
        assert told["below-minimum"] is None
        assert told["provider-failed"] is None

    def test_the_same_is_not_said_twice(self, bench: Audited) -> None:
        texts = [each["text"] for each in bench.audit(no_item_parsed(bench))["ruled_out"]]
        said = [text for text in texts if text is not None]

        assert len(said) == len(set(said))
        assert "deadline not reached: 44 min left" in said
        assert "the provider answered 84 of 84" in said


class TestExcerpts:
    def test_what_was_handed_over_as_it_came_back_is_shown_once(self, bench: Audited) -> None:
        whats = [each["what"] for each in bench.audit(no_item_parsed(bench))["excerpts"]]

        assert whats == ["answer", "answer"]

    def test_a_blank_output_is_shown(self, bench: Audited) -> None:
        texts = [each["text"] for each in bench.audit(blank_output(bench))["excerpts"]]

        assert texts == [" \n\t", "(no text output)"]

    def test_of_a_long_text_the_beginning_is_shown_and_all_of_it_is_proved(
        self, bench: Audited
    ) -> None:
        from hashlib import blake2b

        text = "no " * 1_000
        session = bench.job("index-notes", run_id="job")
        session.receive_answer(asked=1, answered=1, parsed=0, fault="parser", text=text)
        bench.ends(session)
        (excerpt,) = bench.audit("job")["excerpts"]

        assert excerpt["text"].endswith("… (2400 characters left out)")
        assert excerpt["characters"] == 3_000
        assert excerpt["digest"] == blake2b(text.encode(), digest_size=32).hexdigest()

    def test_what_is_no_text_is_shown_as_json_or_as_far_as_it_is_text(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        values: tuple[Any, ...] = ({"rows": []}, b"caf\xe9")
        for value in values:
            session.receive_answer(asked=1, answered=1, parsed=0, fault="parser", text=value)
        bench.ends(session)

        assert [each["text"] for each in bench.audit("job")["excerpts"]] == [
            "caf\ufffd",
            '{"rows": []}',
        ]


class TestPolicies:
    def test_the_policy_in_force_has_no_say_in_an_old_verdict(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        work(session, "embed", [(50, 50, "ok")])
        session.judge(Facts(), by=STRICT)
        bench.ends(session)
        audit = bench.audit("job")

        assert audit["judged"]["policy"]["id"] == "strict"
        assert audit["meaning"] is None
        assert audit["judged"]["rule_text"] == "{outputs} outputs, and at least 100 are wanted"
        assert audit["check"]["follows"] is True


class TestWords:
    @pytest.mark.parametrize("missing", ["run_id", "facts", "check"])
    def test_a_page_and_a_screen_tell_the_same(self, bench: Audited, missing: str) -> None:
        run_id = no_item_parsed(bench)
        audit, screen = bench.audit(run_id), bench.screen(run_id)
        shown = page(audit)

        assert audit[missing]
        for text in (audit["check"]["text"], *(each["reason"] for each in audit["what_if"])):
            assert text in screen
            assert text in shown

    def test_a_fact_that_repeats_another_is_not_told(self) -> None:
        def fact(name: str, value: int, source: str) -> Fields:
            return {"name": name, "value": value, "source": source}

        facts = [
            fact("inputs", 3, "counted"),
            fact("outputs", 0, "stated"),
            fact("work", 3, "derived"),
            fact("done", 1, "derived"),
            fact("made", 2, "derived"),
            fact("unaccounted", 0, "derived"),
        ]

        assert [each["name"] for each in audit_words.telling(facts)] == [
            "inputs",
            "outputs",
            "done",
        ]

    def test_a_backquote_alone_is_no_code(self, bench: Audited) -> None:
        audit = bench.audit(outputs_present(bench))

        assert "<b>Next:</b> it`s" in page({**audit, "next_step": "it`s"})
        assert "run <code>tacho</code>" in page({**audit, "next_step": "run `tacho`"})
