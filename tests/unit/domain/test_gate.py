"""The semantic gate: success is earned (G12)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain import outcome
from tachograph.domain.gate import DEFAULT_POLICY, POLICY_VERSION, Facts, judge

counts = st.none() | st.integers(0, 5)
reasons = st.none() | st.just("because")
facts = st.builds(Facts, counts, counts, reasons, reasons, st.integers(0, 3))


class TestPolicy:
    def test_the_rules_of_this_policy_are_frozen(self) -> None:
        """A verdict names the version of the policy: other rules need another version."""
        rules = [(rule.id, rule.outcome, rule.reason_code) for rule in DEFAULT_POLICY]

        assert POLICY_VERSION == 1
        assert rules == [
            ("stopped-early", "partial", "stopped_by_budget"),
            ("faults-only", "failed_semantic_empty", "faults_only"),
            ("declared-no-work", "empty", "declared_no_work"),
            ("no-input", "empty", "no_input"),
            ("outputs-without-input", "success_with_review", "outputs_without_input"),
            ("no-item-parsed", "failed_semantic_empty", "no_item_parsed"),
            ("fewer-outputs", "success_with_review", "fewer_outputs"),
            ("faults-seen", "success_with_review", "faults_seen"),
            ("all-done", "success", "outputs_present"),
            ("not-judged", "success_with_review", "not_judged"),
        ]

    @given(facts)
    def test_every_run_is_judged(self, said: Facts) -> None:
        verdict = judge(said)

        assert outcome.is_outcome(verdict.outcome)
        assert "None" not in verdict.reason
        assert "{" not in verdict.reason


class TestRules:
    @pytest.mark.parametrize(
        ("said", "rule", "reason"),
        [
            (
                Facts(inputs=9, outputs=3, stopped="deadline"),
                "stopped-early",
                "stopped early (deadline) with 3 of 9 items done",
            ),
            (Facts(stopped="budget"), "stopped-early", "stopped early (budget) with ? of ? items"),
            (Facts(stopped="budget", declared="nothing new"), "stopped-early", "stopped early"),
            (Facts(inputs=0, outputs=0, faults=2), "faults-only", "2 faults and no output"),
            (Facts(inputs=5, outputs=0, faults=1), "faults-only", "1 faults and no output"),
            (Facts(faults=1), "faults-only", "1 faults and no output"),
            (Facts(declared="nothing new", faults=1), "faults-only", "1 faults and no output"),
            (
                Facts(inputs=5, outputs=0, declared="all up to date"),
                "declared-no-work",
                "the job declared that there was nothing to do: all up to date",
            ),
            (Facts(declared="{inputs}"), "declared-no-work", "nothing to do: {inputs}"),
            (Facts(inputs=0), "no-input", "there was no input"),
            (Facts(inputs=0, outputs=0), "no-input", "there was no input"),
            (
                Facts(inputs=0, outputs=5, faults=1),
                "outputs-without-input",
                "5 outputs although there was no input",
            ),
            (Facts(inputs=1, outputs=0), "no-item-parsed", "1 items went in, none came out"),
            (Facts(inputs=9, outputs=8), "fewer-outputs", "8 of 9 items came out"),
            (
                Facts(inputs=9, outputs=1, declared="rest is old"),
                "fewer-outputs",
                "1 of 9 items came out",
            ),
            (Facts(inputs=9, outputs=8, faults=2), "fewer-outputs", "8 of 9 items came out"),
            (Facts(inputs=9, outputs=9, faults=2), "faults-seen", "2 faults on the way to 9"),
            (Facts(inputs=9, outputs=9), "all-done", "9 outputs from 9 inputs"),
            (Facts(inputs=9, outputs=20), "all-done", "20 outputs from 9 inputs"),
            (Facts(outputs=4), "all-done", "4 outputs from ? inputs"),
            (Facts(), "not-judged", "inputs and outputs were not both declared"),
            (Facts(inputs=9), "not-judged", "inputs and outputs were not both declared"),
            (Facts(outputs=0), "not-judged", "inputs and outputs were not both declared"),
        ],
    )
    def test_the_first_rule_that_holds_decides(self, said: Facts, rule: str, reason: str) -> None:
        """G12."""
        verdict = judge(said)

        assert verdict.rule == rule
        assert reason in verdict.reason

    def test_one_input_and_no_output_is_the_threshold(self) -> None:
        """G12."""
        assert judge(Facts(inputs=1, outputs=0)).outcome == "failed_semantic_empty"
        assert judge(Facts(inputs=0, outputs=0)).outcome == "empty"
        assert judge(Facts(inputs=1, outputs=1)).outcome == "success"


class TestPromises:
    @given(facts)
    def test_nothing_out_is_never_a_success(self, said: Facts) -> None:
        """G12."""
        verdict = judge(said)

        assert verdict.outcome != "success" or said.outputs

    @given(facts)
    def test_a_fault_without_any_output_is_never_empty(self, said: Facts) -> None:
        """G12: a classifier that could not be read lets nothing through."""
        verdict = judge(said)

        assert verdict.outcome != "empty" or not said.faults

    @given(facts)
    def test_a_run_with_outputs_is_never_empty(self, said: Facts) -> None:
        """G12."""
        verdict = judge(said)

        assert verdict.outcome != "empty" or not said.outputs

    @given(facts)
    def test_what_stopped_early_is_partial(self, said: Facts) -> None:
        assert (judge(said).outcome == "partial") == (said.stopped is not None)

    @given(facts)
    def test_a_verdict_depends_on_the_facts_alone(self, said: Facts) -> None:
        same = Facts(**said.to_fields())  # type: ignore[arg-type]

        assert judge(same).to_fields() == judge(said).to_fields()
