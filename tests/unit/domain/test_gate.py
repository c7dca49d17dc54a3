"""The semantic gate: success is earned (G12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain import default_policy, outcome
from tachograph.domain.default_policy import known_policy
from tachograph.domain.facts import COUNT, MEANINGS, TEXT
from tachograph.domain.gate import Facts, judge
from tachograph.domain.policy import shadowed

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST, NEWEST = default_policy.default_policy(1), default_policy.default_policy()

counts = st.none() | st.integers(0, 4)
reasons = st.none() | st.just("because")
OF_KIND: dict[str, st.SearchStrategy[Any]] = {COUNT: counts, TEXT: reasons}
OF_FACT: dict[str, st.SearchStrategy[Any]] = {
    "deadline_left_seconds": st.none() | st.sampled_from([-5.0, 0.0, 90.5]),
    "minimum_fraction": st.none() | st.sampled_from([0.0, 0.3, 0.5, 1.0]),
}


def strategy(name: str) -> st.SearchStrategy[Any]:
    """Return values that a fact may have, None for unsaid among them."""
    return OF_FACT[name] if name in OF_FACT else OF_KIND[MEANINGS[name][0]]


every_fact = st.fixed_dictionaries({name: strategy(name) for name in MEANINGS})
few_facts = st.dictionaries(st.sampled_from(list(MEANINGS)), st.just(1), max_size=6).flatmap(
    lambda some: st.fixed_dictionaries({name: strategy(name) for name in some})
)
facts = (every_fact | few_facts).map(lambda said: Facts(**said))
facts_of_version_1 = st.builds(Facts, counts, counts, reasons, reasons, st.integers(0, 3))


class TestReleasedPolicies:
    """A verdict names its policy: with other rules under the same number it means nothing."""

    @pytest.mark.parametrize(
        ("version", "digest"),
        [
            (1, "2be18b0b9af63d3a70874371ffb6323d"),
            (2, "de34e870aba471d48dba093f9b55d3ac"),
        ],
    )
    def test_the_rules_of_a_released_version_never_change(self, version: int, digest: str) -> None:
        assert default_policy.default_policy(version).digest == digest

    def test_every_version_is_pinned_here(self) -> None:
        assert default_policy.NEWEST == 2
        with pytest.raises(KeyError):
            default_policy.default_policy(3)

    def test_a_known_policy_is_one_of_the_package(self) -> None:
        assert known_policy("default", 2) is NEWEST
        assert known_policy("default", 3) is None
        assert known_policy("mine", 2) is None

    @pytest.mark.parametrize("policy", [FIRST, NEWEST], ids=["1", "2"])
    def test_every_rule_can_decide(self, policy: Any) -> None:
        assert shadowed(policy) == []

    def test_a_rule_that_both_versions_have_is_the_same_or_has_another_version(self) -> None:
        for rule in FIRST.rules:
            newer = NEWEST.rule(rule.id)
            if newer is not None and newer.version == rule.version:
                same = {**rule.to_fields(), "text": newer.text, "otherwise": newer.otherwise}
                assert newer.to_fields() == same


Row = tuple[str, Facts, str, str]

TABLE: list[Row] = [
    (
        "stopped-before-output",
        Facts(inputs=9, outputs=0, stopped="deadline"),
        "stopped_before_output",
        "stopped early (deadline) before anything came out of 9 items",
    ),
    (
        "stopped-before-output",
        Facts(inputs=9, stopped="deadline", batches_done=0, batches_missing=2),
        "stopped_before_output",
        "stopped early (deadline) before anything came out of 9 items",
    ),
    (
        "stopped-early",
        Facts(inputs=9, outputs=1, stopped="deadline"),
        "stopped_by_budget",
        "stopped early (deadline) with 1 of 9 items done; batches unfinished: 0",
    ),
    (
        "stopped-early",
        Facts(stopped="budget"),
        "stopped_by_budget",
        "stopped early (budget) with ? of ? items done; batches unfinished: 0",
    ),
    (
        "stopped-early",
        Facts(stopped="budget", declared="nothing new", faults=2),
        "stopped_by_budget",
        "stopped early (budget) with ? of ? items done; batches unfinished: 0",
    ),
    (
        "deadline-before-output",
        Facts(inputs=9, batches_done=0, batches_missing=1, deadline_left_seconds=0),
        "stopped_before_output",
        "its deadline passed before anything came out; batches unfinished: 1",
    ),
    (
        "deadline-passed",
        Facts(inputs=9, outputs=3, batches_missing=1, deadline_left_seconds=0),
        "stopped_by_budget",
        "its deadline passed; batches unfinished: 1",
    ),
    (
        "provider-failed",
        Facts(inputs=4, asked=4, answered=0, provider_faults=2),
        "provider_failed",
        "the provider answered none of 4 items; its faults: 2",
    ),
    (
        "filter-unreadable",
        Facts(inputs=0, outputs=0, extracted=9, filter_faults=1),
        "filter_unreadable",
        (
            "answers of the filter could not be read (1): that it let nothing through says nothing "
            "about the 9 items it was given"
        ),
    ),
    (
        "faults-only",
        Facts(faults=1),
        "faults_only",
        "faults (1) and no output, so nothing says that there was nothing to do",
    ),
    (
        "faults-only",
        Facts(parser_faults=2, tool_faults=1),
        "faults_only",
        "faults (3) and no output, so nothing says that there was nothing to do",
    ),
    (
        "faults-only",
        Facts(failed_phases=1),
        "faults_only",
        "faults (1) and no output, so nothing says that there was nothing to do",
    ),
    (
        "faults-only",
        Facts(inputs=0, outputs=0, faults=2),
        "faults_only",
        "faults (2) and no output, so nothing says that there was nothing to do",
    ),
    (
        "faults-only",
        Facts(declared="nothing new", faults=1),
        "faults_only",
        "faults (1) and no output, so nothing says that there was nothing to do",
    ),
    (
        "faults-only",
        Facts(inputs=3, quiet=3, faults=1),
        "faults_only",
        "faults (1) and no output, so nothing says that there was nothing to do",
    ),
    (
        "faults-only",
        Facts(asked=4, answered=1, provider_faults=2),
        "faults_only",
        "faults (2) and no output, so nothing says that there was nothing to do",
    ),
    (
        "declared-no-work",
        Facts(inputs=5, outputs=0, declared="all up to date"),
        "declared_no_work",
        "the job declared that there was nothing to do: all up to date",
    ),
    (
        "declared-no-work",
        Facts(declared="{inputs}"),
        "declared_no_work",
        "the job declared that there was nothing to do: {inputs}",
    ),
    (
        "declared-no-work",
        Facts(declared="x", recovered=3),
        "declared_no_work",
        "the job declared that there was nothing to do: x",
    ),
    (
        "declared-for-each",
        Facts(inputs=5, outputs=0, quiet=5),
        "declared_no_work",
        "for each of 5 items it was declared that there is nothing to do",
    ),
    (
        "all-filtered",
        Facts(extracted=9, filtered=9),
        "all_filtered",
        "9 items were found, and a filter that could be read took all of them out",
    ),
    ("no-input", Facts(inputs=0), "no_input", "there was no input"),
    ("no-input", Facts(inputs=0, outputs=0, extracted=0), "no_input", "there was no input"),
    (
        "outputs-without-input",
        Facts(inputs=0, outputs=5, faults=1),
        "outputs_without_input",
        "something came out (5) although there was no input",
    ),
    (
        "never-asked",
        Facts(inputs=3, outputs=0, asked=0),
        "never_asked",
        "3 items were there, and none was put to a model or parser",
    ),
    (
        "blank-output",
        Facts(inputs=1, outputs=0, blank=1),
        "blank_output",
        "all that came out is whitespace or a placeholder; blank outputs: 1",
    ),
    (
        "no-item-parsed",
        Facts(inputs=1, outputs=0),
        "no_item_parsed",
        "1 items went in, none came out, and nobody declared that there was nothing to do",
    ),
    (
        "no-item-parsed",
        Facts(inputs=5, outputs=0, quiet=4),
        "no_item_parsed",
        "5 items went in, none came out, and nobody declared that there was nothing to do",
    ),
    (
        "no-item-parsed",
        Facts(inputs=0, outputs=0, extracted=9),
        "no_item_parsed",
        "9 items went in, none came out, and nobody declared that there was nothing to do",
    ),
    (
        "no-item-parsed",
        Facts(inputs=3, parsed=0, asked=3),
        "no_item_parsed",
        "3 items went in, none came out, and nobody declared that there was nothing to do",
    ),
    (
        "no-item-parsed",
        Facts(inputs=3, parsed=3, accepted=0),
        "no_item_parsed",
        "3 items went in, none came out, and nobody declared that there was nothing to do",
    ),
    (
        "no-item-parsed",
        Facts(inputs=3, outputs=0, effects=1, faults=1),
        "no_item_parsed",
        "3 items went in, none came out, and nobody declared that there was nothing to do",
    ),
    (
        "no-item-parsed",
        Facts(inputs=3, outputs=0, files_expected=1, files_present=1),
        "no_item_parsed",
        "3 items went in, none came out, and nobody declared that there was nothing to do",
    ),
    (
        "files-missing",
        Facts(files_expected=2, files_present=0),
        "expected_files_missing",
        "none of the files it was to make is there (0 of 2)",
    ),
    (
        "below-minimum",
        Facts(inputs=10, outputs=4, minimum_fraction=0.5),
        "below_minimum_fraction",
        "4 of 10 items came out, less than the declared fraction 0.5",
    ),
    (
        "some-files-missing",
        Facts(files_expected=2, files_present=1),
        "expected_files_missing",
        "of the files it was to make, 1 of 2 are there",
    ),
    (
        "some-files-missing",
        Facts(inputs=2, outputs=2, files_expected=1, files_present=0),
        "expected_files_missing",
        "of the files it was to make, 0 of 1 are there",
    ),
    ("fewer-outputs", Facts(inputs=9, outputs=8), "fewer_outputs", "8 of 9 items came out"),
    (
        "fewer-outputs",
        Facts(inputs=9, outputs=1, declared="rest is old"),
        "fewer_outputs",
        "1 of 9 items came out",
    ),
    (
        "fewer-outputs",
        Facts(inputs=9, outputs=8, faults=2),
        "fewer_outputs",
        "8 of 9 items came out",
    ),
    (
        "fewer-outputs",
        Facts(inputs=10, outputs=5, minimum_fraction=0.5),
        "fewer_outputs",
        "5 of 10 items came out",
    ),
    (
        "faults-seen",
        Facts(inputs=9, outputs=9, faults=2),
        "faults_seen",
        "9 came out, with faults on the way: 2",
    ),
    (
        "faults-seen",
        Facts(effects=2, faults=1),
        "faults_seen",
        "0 came out, with faults on the way: 1",
    ),
    (
        "faults-seen",
        Facts(inputs=0, effects=1, faults=1),
        "faults_seen",
        "0 came out, with faults on the way: 1",
    ),
    (
        "faults-seen",
        Facts(files_expected=1, files_present=1, tool_faults=1),
        "faults_seen",
        "0 came out, with faults on the way: 1",
    ),
    ("all-done", Facts(inputs=9, outputs=9), "outputs_present", "9 in, 9 out"),
    ("all-done", Facts(inputs=9, outputs=20), "outputs_present", "9 in, 20 out"),
    ("all-done", Facts(outputs=4), "outputs_present", "? in, 4 out"),
    ("all-done", Facts(inputs=9, outputs=6, quiet=3), "outputs_present", "9 in, 6 out"),
    (
        "all-done",
        Facts(inputs=3, extracted=9, filtered=6, outputs=3),
        "outputs_present",
        "3 in, 3 out",
    ),
    ("all-done", Facts(inputs=9, outputs=9, recovered=4), "outputs_present", "9 in, 9 out"),
    (
        "all-done",
        Facts(inputs=9, outputs=9, deadline_left_seconds=-3),
        "outputs_present",
        "9 in, 9 out",
    ),
    (
        "files-made",
        Facts(files_expected=2, files_present=2),
        "outputs_present",
        "every file it was to make is there (2 of 2)",
    ),
    (
        "effects-done",
        Facts(effects=1),
        "effects_done",
        "its recorded effects were done (1), and nothing else was declared as its work",
    ),
    (
        "not-judged",
        Facts(),
        "not_judged",
        "inputs and outputs were not both declared, so nothing says that the job did its work",
    ),
    (
        "not-judged",
        Facts(inputs=9),
        "not_judged",
        "inputs and outputs were not both declared, so nothing says that the job did its work",
    ),
    (
        "not-judged",
        Facts(outputs=0),
        "not_judged",
        "inputs and outputs were not both declared, so nothing says that the job did its work",
    ),
    (
        "not-judged",
        Facts(inputs=3, effects=1),
        "not_judged",
        "inputs and outputs were not both declared, so nothing says that the job did its work",
    ),
]


class TestRules:
    @pytest.mark.parametrize(("rule", "said", "code", "reason"), TABLE)
    def test_the_first_rule_that_holds_decides(
        self, rule: str, said: Facts, code: str, reason: str
    ) -> None:
        """G12."""
        verdict = judge(said)

        assert (verdict.rule, verdict.reason_code) == (rule, code)
        assert verdict.reason == reason

    def test_the_table_has_every_rule(self) -> None:
        assert {row[0] for row in TABLE} == {rule.id for rule in NEWEST.rules}

    def test_one_input_and_no_output_is_the_threshold(self) -> None:
        """G12."""
        assert judge(Facts(inputs=1, outputs=0)).outcome == "failed_semantic_empty"
        assert judge(Facts(inputs=0, outputs=0)).outcome == "empty"
        assert judge(Facts(inputs=1, outputs=1)).outcome == "success"

    @pytest.mark.parametrize(
        ("said", "result"),
        [
            (Facts(inputs=10, outputs=5, minimum_fraction=0.5), "success_with_review"),
            (Facts(inputs=10, outputs=4, minimum_fraction=0.5), "failed"),
            (Facts(inputs=10, outputs=4, quiet=1, minimum_fraction=0.5), "success_with_review"),
            (Facts(inputs=10, outputs=4, minimum_fraction=0), "success_with_review"),
            (Facts(inputs=10, outputs=9, minimum_fraction=1), "failed"),
            (Facts(inputs=10, outputs=10, minimum_fraction=1), "success"),
        ],
    )
    def test_the_declared_minimum_is_reached_or_not(self, said: Facts, result: str) -> None:
        assert judge(said).outcome == result

    @pytest.mark.parametrize(
        ("left", "result"), [(0.001, "success_with_review"), (0, "partial"), (-1, "partial")]
    )
    def test_a_deadline_has_passed_at_its_very_second(self, left: float, result: str) -> None:
        said = Facts(inputs=9, outputs=8, batches_missing=1, deadline_left_seconds=left)

        assert judge(said).outcome == result

    def test_a_run_that_stops_before_any_output_each_night_is_heard_of(self) -> None:
        late = judge(Facts(inputs=9, outputs=0, stopped="deadline"))
        bounded = judge(Facts(inputs=9, outputs=3, stopped="deadline"))

        assert outcome.traits(late.outcome, late.reason_code).alerts
        assert not outcome.traits(bounded.outcome, bounded.reason_code).alerts
        assert not outcome.traits(late.outcome, late.reason_code).fails_step


class TestPromises:
    @given(facts)
    def test_every_run_is_judged(self, said: Facts) -> None:
        verdict = judge(said)

        assert outcome.is_outcome(verdict.outcome)
        assert "None" not in verdict.reason
        assert "{" not in verdict.reason

    @given(facts)
    def test_nothing_out_is_never_a_success(self, said: Facts) -> None:
        """G12: but files that were to be made, and effects that are all there was to do."""
        if judge(said).outcome == "success":
            earned = (said.value("produced"), said.value("made"), said.value("effects"))
            assert any(earned)

    @given(facts)
    def test_a_fault_without_any_output_is_never_empty(self, said: Facts) -> None:
        """G12: a classifier that could not be read lets nothing through."""
        assert judge(said).outcome != "empty" or not said.value("faults")

    @given(facts)
    def test_a_fault_that_nothing_made_good_is_no_plain_success(self, said: Facts) -> None:
        assert judge(said).outcome != "success" or not said.value("faults")

    @given(facts)
    def test_a_run_with_outputs_is_never_empty(self, said: Facts) -> None:
        """G12."""
        assert judge(said).outcome != "empty" or not said.value("produced")

    @given(facts)
    def test_what_stopped_early_is_partial(self, said: Facts) -> None:
        late = judge(said).rule in ("deadline-before-output", "deadline-passed")

        assert (judge(said).outcome == "partial") == (said.value("stopped") is not None or late)

    @given(facts)
    def test_recovered_faults_decide_nothing(self, said: Facts) -> None:
        """A recovered tool error must not decide the run."""
        calm = said.with_(recovered=None)

        assert judge(said.with_(recovered=7)).to_fields() == judge(calm).to_fields()

    @given(facts)
    def test_a_verdict_depends_on_the_facts_alone(self, said: Facts) -> None:
        same = Facts.from_fields(said.to_fields())

        assert same == said
        assert judge(same).to_fields() == judge(said).to_fields()

    @given(facts)
    def test_what_is_said_when_a_rule_does_not_hold_can_be_said(self, said: Facts) -> None:
        for rule in NEWEST.rules:
            assert "{" not in (rule.otherwise or "").format(**said.with_(declared="x").words())


# The rules of version 1 as they were released: functions, which are the oracle here.
OLD: list[tuple[str, Callable[[Any], bool]]] = [
    ("stopped-early", lambda facts: facts.stopped is not None),
    ("faults-only", lambda facts: facts.faults > 0 and not facts.outputs),
    ("declared-no-work", lambda facts: facts.declared is not None and not facts.outputs),
    ("no-input", lambda facts: facts.inputs == 0 and not facts.outputs),
    ("outputs-without-input", lambda facts: facts.inputs == 0),
    ("no-item-parsed", lambda facts: bool(facts.inputs) and facts.outputs == 0),
    (
        "fewer-outputs",
        lambda facts: (
            facts.inputs is not None and facts.outputs is not None and facts.outputs < facts.inputs
        ),
    ),
    ("faults-seen", lambda facts: facts.faults > 0 and facts.outputs is not None),
    ("all-done", lambda facts: facts.outputs is not None and facts.outputs > 0),
    ("not-judged", lambda _facts: True),
]


class TestVersion1:
    @given(facts_of_version_1)
    def test_it_decides_as_it_did_when_its_rules_were_functions(self, said: Facts) -> None:
        expected = next(rule for rule, holds in OLD if holds(said))

        assert judge(said, FIRST).rule == expected

    def test_it_said_what_it_still_says(self) -> None:
        verdict = judge(Facts(inputs=9, outputs=3, stopped="deadline", faults=0), FIRST)

        assert verdict.to_fields() == {
            "outcome": "partial",
            "rule": "stopped-early",
            "rule_version": 1,
            "reason_code": "stopped_by_budget",
            "reason": "stopped early (deadline) with 3 of 9 items done",
        }
