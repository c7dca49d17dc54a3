"""What an orchestrator run comes to, and its exit code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain import outcome
from tachograph.domain.outcome import OUTCOMES, STEP_STATUSES
from tachograph.domain.roll_up import did_not_run, roll_up

Step = dict[str, Any]


def step(status: str, result: str | None = None, code: str | None = None) -> Step:
    return {"status": status, "outcome": result, "reason_code": code}


OK = step("ok", "success", "exit_code")
FAILED = step("failed", "failed", "exit_code")
GUARD = step("skipped_guard", None, "guard_holds")
DEFERRED = step("deferred", None, "deadline_reached")
BUDGET = step("deferred", "partial", "stopped_by_budget")
LIMITED = step("rate_limited", "partial", "rate_limited")
BREAKER = step("deferred", None, "breaker_open")

CASES = [
    ([OK], "success", 0),
    ([OK, GUARD], "success", 0),
    ([step("ok", "empty"), step("ok", "skipped")], "empty", 0),
    ([step("ok", "success_with_review"), OK], "success_with_review", 0),
    ([GUARD, step("skipped_gate")], "skipped", 0),
    ([step("skipped_missing_runner"), step("skipped_dep")], "skipped", 0),
    ([], "skipped", 0),
    ([FAILED], "failed", 1),
    ([FAILED, GUARD], "failed", 1),
    ([OK, FAILED], "partial", 1),
    ([FAILED, DEFERRED, LIMITED], "failed", 1),
    ([step("failed", "failed_semantic_empty")], "failed", 1),
    # What says that it is fine, and is not, fails the run too.
    ([OK, step("ok", "failed_semantic_empty")], "partial", 1),
    ([step("ok", "partial")], "failed", 1),
    ([OK, DEFERRED], "partial", 2),
    ([BUDGET], "partial", 2),
    ([LIMITED, GUARD], "partial", 2),
]


@pytest.mark.parametrize(("steps", "result", "exit_code"), CASES)
def test_a_run_comes_to_what_its_steps_came_to(
    steps: list[Step], result: str, exit_code: int
) -> None:
    rolled = roll_up({str(n): each for n, each in enumerate(steps)})

    assert (rolled.outcome, rolled.exit_code) == (result, exit_code)


@pytest.mark.parametrize(
    ("steps", "code", "is_a_failure"),
    [
        ([OK, DEFERRED], "stopped_by_budget", False),
        ([DEFERRED], "stopped_before_output", False),
        ([OK, LIMITED], "rate_limited", False),
        ([LIMITED, BREAKER], "rate_limited", False),
        ([OK, BREAKER], "rate_limited", False),
        ([OK, FAILED], "steps_failed", True),
        ([OK], "steps_done", False),
        ([GUARD], "nothing_due", False),
        ([OK, step("deferred", None, "still_at_work")], "still_at_work", False),
        ([step("deferred", None, "still_at_work"), LIMITED], "rate_limited", False),
    ],
)
def test_the_reason_says_whether_it_is_a_failure(
    steps: list[Step], code: str, is_a_failure: bool
) -> None:
    rolled = roll_up({str(n): each for n, each in enumerate(steps)})

    assert rolled.reason_code == code
    assert outcome.traits(rolled.outcome, code).fails_step is is_a_failure


def test_the_reason_names_the_steps() -> None:
    assert roll_up({"reflect": FAILED, "a": OK}).reason == "failed: reflect"
    assert roll_up({"reflect": BUDGET, "a": OK}).reason == "still to be done: reflect"
    assert roll_up({"reflect": GUARD, "a": OK}).reason == "1 of 2 steps were run"


STEPS = st.builds(
    step,
    st.sampled_from(STEP_STATUSES),
    st.none() | st.sampled_from(OUTCOMES),
    st.none() | st.sampled_from(["stopped_by_budget", "rate_limited", "exit_code"]),
)


@given(st.lists(STEPS, max_size=6))
def test_exit_code_and_outcome_never_contradict_each_other(steps: list[Step]) -> None:
    rolled = roll_up({str(n): each for n, each in enumerate(steps)})
    meant = outcome.traits(rolled.outcome, rolled.reason_code)

    assert rolled.reason
    assert rolled.exit_code in (0, 1, 2)
    assert meant.fails_step is (rolled.exit_code == 1)
    assert meant.withholds_guard is (rolled.exit_code != 0)


@given(st.lists(STEPS, min_size=1, max_size=6), st.data())
def test_a_failed_step_is_never_hidden_by_others(steps: list[Step], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(steps)))
    with_one = [*steps[:place], FAILED, *steps[place:]]

    assert roll_up({str(n): each for n, each in enumerate(with_one)}).exit_code == 1


def test_what_was_named_and_not_run_is_known() -> None:
    steps = {"a": OK, "b": GUARD, "c": FAILED, "d": step("deferred", None, "deadline_reached")}

    assert did_not_run(steps, ["a", "b", "c", "d", "e"]) == ["b", "d", "e"]
