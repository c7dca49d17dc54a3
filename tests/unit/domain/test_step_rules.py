"""Which rule decides about a maintenance step: the first one that holds, in this order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.maintenance_plan import LLM_TIERS, Gate, MaintenanceStep
from tachograph.domain.outcome import STEP_STATUSES
from tachograph.domain.step_rules import RULES, StepFacts, ago, cools_down, evaluate, guard_holds

HOUR = 3_600_000_000


def step(**named: Any) -> MaintenanceStep:
    """A step whose every rule can hold: once, guarded, asks a provider."""
    given = {"guard_us": 20 * HOUR, "llm": "nano", "once": True, "command": ["true"], **named}
    return MaintenanceStep("distill", "nightly", **given)


HOLDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "deadline": ({}, {"deadline_reached": True}),
    "gate": ({}, {"gate_open": False}),
    "once": ({}, {"once_done": True}),
    "dependencies": ({}, {"unmet": ["reflect", "sweep"]}),
    "guard": ({}, {"guard_age_us": 3 * HOUR}),
    "runner": ({"command": None}, {}),
    "breaker": ({}, {"breaker_open": True}),
    "dry-run": ({}, {"dry_run": True}),
}
"""By rule: what of the step and of the facts makes it hold."""

SAYS = {
    "deadline": ("deferred", "deadline_reached", "time budget exceeded"),
    "gate": ("skipped_gate", "feature_disabled", "feature disabled"),
    "once": ("skipped_guard", "done_for_good", "one-time marker exists"),
    "dependencies": (
        "skipped_dep",
        "dependency_unmet",
        "depends on reflect, sweep, which has not been done",
    ),
    "guard": ("skipped_guard", "guard_holds", "guard (ran 3h ago)"),
    "runner": (
        "skipped_missing_runner",
        "no_runner",
        "no command and no job is declared for it",
    ),
    "breaker": ("deferred", "breaker_open", "rate-limit circuit breaker"),
    "dry-run": ("ok", "dry_run", "dry-run (would execute)"),
}


def decide(*rules: str, **facts: Any) -> Any:
    of_step: dict[str, Any] = {}
    for name in rules:
        of_step.update(HOLDS[name][0])
        facts.update(HOLDS[name][1])
    return evaluate(step(**of_step), StepFacts(**facts))


def test_the_rules_come_in_the_order_of_the_contract() -> None:
    assert [rule.id for rule in RULES] == list(HOLDS)
    assert {rule.status for rule in RULES} <= set(STEP_STATUSES)


@pytest.mark.parametrize("rule", HOLDS)
def test_a_rule_says_what_becomes_of_the_step(rule: str) -> None:
    decision = decide(rule)

    assert decision.rule == rule
    assert (decision.status, decision.code, decision.words) == SAYS[rule]
    assert not decision.runs


@pytest.mark.parametrize(("first", "second"), list(pairwise(HOLDS)))
def test_of_two_rules_that_hold_the_first_decides(first: str, second: str) -> None:
    assert decide(first, second).rule == first


@pytest.mark.parametrize("first", range(len(HOLDS)))
def test_the_first_of_all_that_hold_decides(first: int) -> None:
    names = list(HOLDS)[first:]

    assert decide(*names).rule == names[0]


def test_a_step_that_no_rule_keeps_is_run() -> None:
    decision = decide()

    assert (decision.runs, decision.status, decision.rule) == (True, None, "run")


@pytest.mark.parametrize("rule", [name for name in HOLDS if name != "guard"])
def test_force_sets_aside_the_guard_alone(rule: str) -> None:
    assert decide(rule, force=True).rule == rule
    assert decide("guard", force=True).runs


def test_a_one_time_marker_means_nothing_for_a_step_that_is_done_again_and_again() -> None:
    assert evaluate(step(once=False), StepFacts(once_done=True)).runs


@pytest.mark.parametrize("llm", LLM_TIERS)
def test_the_breaker_holds_back_what_a_provider_serves(llm: str) -> None:
    decision = evaluate(step(llm=llm, once=False), StepFacts(breaker_open=True))

    assert decision.runs == (llm in ("none", "local"))


def test_a_job_is_a_runner_too() -> None:
    assert evaluate(step(command=None, job="jobs:prune"), StepFacts()).runs


# Guards.


@pytest.mark.parametrize(
    ("interval", "age", "holds"),
    [
        (20 * HOUR, None, False),
        (20 * HOUR, 0, True),
        (20 * HOUR, 20 * HOUR - 1, True),
        (20 * HOUR, 20 * HOUR, False),
        (20 * HOUR, -HOUR, True),  # the clock was set back a little
        (20 * HOUR, -20 * HOUR, False),  # it was wrong by more: no step is kept back for ever
        (0, 5, False),
    ],
)
def test_a_guard_holds_for_its_interval(interval: int, age: int | None, holds: bool) -> None:
    assert guard_holds(interval, age) is holds


@given(st.integers(0, 10**15), st.integers(-(10**15), 10**15))
def test_a_guard_never_holds_longer_than_its_interval_from_any_clock(
    interval: int, age: int
) -> None:
    if guard_holds(interval, age):
        assert -interval < age < interval


@given(st.integers(-(10**15), 10**15))
def test_how_long_ago_is_always_said(age: int) -> None:
    assert ago(age)[-1] in "hm"


# The pause between steps that ask a provider.


@pytest.mark.parametrize(
    ("before", "now", "pauses"),
    [
        (None, "heavy", False),
        ("heavy", "nano", True),
        ("embed", "embed", True),
        ("local", "nano", False),
        ("nano", "none", False),
    ],
)
def test_a_pause_belongs_between_two_steps_that_ask_a_provider(
    before: str | None, now: str, pauses: bool
) -> None:
    earlier = None if before is None else step(llm=before)

    assert cools_down(earlier, step(llm=now)) is pauses


# Gates.


@pytest.mark.parametrize(
    ("gate", "environment", "is_open"),
    [
        (Gate(), {}, True),
        (Gate(opened=False), {}, False),
        (Gate(variable="X"), {}, False),
        (Gate(variable="X"), {"X": ""}, False),
        (Gate(variable="X"), {"X": "0"}, True),
        (Gate(variable="X", equals="1"), {"X": "0"}, False),
        (Gate(variable="X", equals="1"), {"X": "1"}, True),
        (Gate(variable="X", equals=""), {}, True),
    ],
)
def test_a_gate_is_open(gate: Gate, environment: dict[str, str], is_open: bool) -> None:
    assert gate.is_open(environment) is is_open


def test_a_gate_says_when_it_is_open() -> None:
    assert [str(each) for each in (Gate(), Gate(opened=False), Gate(variable="X", equals="1"))] == [
        "open",
        "gate = false",
        "open when X is '1'",
    ]
    assert str(Gate(variable="X")) == "open when X is set"
    assert [Gate().conditional, Gate(variable="X").conditional] == [False, True]
