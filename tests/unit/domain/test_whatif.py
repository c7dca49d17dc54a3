"""What would have changed a verdict: the nearest other value of a fact, put to the same rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.default_policy import default_policy
from tachograph.domain.facts import MEANINGS, Facts
from tachograph.domain.gate import judge
from tachograph.domain.outcome import traits
from tachograph.domain.policy import Policy
from tachograph.domain.whatif import DECLARED, STOPPED, changes


def found(facts: Facts, policy: Policy | None = None) -> dict[tuple[str, Any], str]:
    """Return the outcome of each change, by the fact and its other value."""
    every = changes(facts, policy or default_policy())
    return {(each.fact, each.to): each.judgement.outcome for each in every}


def test_one_item_more_would_have_done() -> None:
    assert found(Facts(inputs=84, outputs=0))[("outputs", 1)] == "success_with_review"
    assert found(Facts(inputs=84, outputs=0))[("outputs", 84)] == "success"


def test_the_smallest_change_is_named_from_either_side() -> None:
    assert found(Facts(inputs=10, outputs=10)) == {
        ("inputs", 11): "success_with_review",
        ("outputs", 9): "success_with_review",
        ("outputs", 0): "failed_semantic_empty",
    }


def test_a_reason_that_was_given_may_not_have_been_given() -> None:
    assert found(Facts(inputs=4, outputs=4, stopped="deadline"))[("stopped", None)] == "success"


def test_where_a_person_should_look_the_reasons_that_were_not_given_are_named() -> None:
    asked = found(Facts(inputs=4, outputs=0))

    assert asked[("declared", DECLARED)] == "empty"
    assert asked[("stopped", STOPPED)] == "partial"
    assert ("stopped", STOPPED) not in found(Facts(inputs=4, outputs=4))


def test_what_cannot_be_is_not_proposed() -> None:
    """Less was not asked than was answered, and no more files are there than were expected."""
    asked = found(Facts(inputs=9, asked=9, answered=9, parsed=0))
    files = found(Facts(files_expected=2, files_present=2))

    assert ("asked", 0) not in asked
    assert all(to <= 2 for fact, to in files if fact == "files_present")


def test_where_nothing_is_said_of_the_output_it_may_have_been_counted() -> None:
    assert found(Facts())[("outputs", 1)] == "success"


def test_what_was_counted_another_way_is_changed_that_way() -> None:
    accepted = found(Facts(inputs=3, parsed=3, accepted=0))

    assert accepted[("accepted", 3)] == "success"
    assert not any(fact == "outputs" for fact, _ in accepted)


def test_a_declared_share_is_changed_to_what_was_reached() -> None:
    share = found(Facts(inputs=100, outputs=80, minimum_fraction=0.95))

    assert share[("minimum_fraction", 0.8)] == "success_with_review"
    assert all(0 <= to <= 1 for fact, to in share if fact == "minimum_fraction")


def test_the_thresholds_of_a_policy_are_tried() -> None:
    rule = {"version": 1, "reason_code": "x", "text": "x"}
    policy = Policy.from_fields(
        {
            "id": "ours",
            "version": 1,
            "rules": [
                {**rule, "id": "few", "when": ["outputs < 250"], "outcome": "failed"},
                {**rule, "id": "rest", "when": [], "outcome": "success"},
            ],
        },
        "ours.toml",
    )

    assert found(Facts(outputs=3), policy)[("outputs", 250)] == "success"
    assert found(Facts(outputs=900), policy)[("outputs", 249)] == "failed"


@pytest.mark.parametrize("fact", [name for name, (kind, _) in MEANINGS.items() if kind != "text"])
def test_no_count_falls_below_nothing(fact: str) -> None:
    for other, to in found(Facts(inputs=1, outputs=1).with_(**{fact: 0})):
        if other == fact and fact != "deadline_left_seconds":
            assert to >= 0


COUNTS = {
    name: st.none() | st.integers(0, 5) for name, (kind, _) in MEANINGS.items() if kind == "count"
}
FACTS = st.builds(
    Facts,
    declared=st.none() | st.just("nothing new"),
    stopped=st.none() | st.just("deadline"),
    deadline_left_seconds=st.none() | st.integers(-2, 2),
    minimum_fraction=st.none() | st.sampled_from([0.0, 0.5, 0.95, 1.0]),
    **COUNTS,
)


@given(FACTS)
def test_every_change_leads_where_it_says_and_nowhere_twice(facts: Facts) -> None:
    now = judge(facts)
    every = changes(facts, default_policy())

    for each in every:
        other = judge(facts.with_(**{each.fact: each.to}))
        assert other.to_fields() == each.judgement.to_fields()
        assert other.outcome != now.outcome
        assert each.was == getattr(facts, each.fact) != each.to
        if each.was is None and each.fact in ("declared", "stopped"):
            assert traits(now.outcome, now.reason_code).alerts
    led = [(each.fact, each.judgement.outcome) for each in every]
    assert len(led) == len(set(led))
