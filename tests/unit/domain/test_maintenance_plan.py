"""What steps can be declared, in which order they are gone through, and which a run takes."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.errors import MaintenanceStepNotFoundError, PlanError
from tachograph.domain.maintenance_plan import (
    FULL,
    HOUR_US,
    MaintenancePlan,
    MaintenanceStep,
    cadence,
)

DAY_US = 24 * HOUR_US


def step(name: str, *depends_on: str, tier: str = "nightly", **named: Any) -> MaintenanceStep:
    return MaintenanceStep(name, tier, depends_on=depends_on, command=["true"], **named)


def names(steps: list[MaintenanceStep]) -> list[str]:
    return [each.name for each in steps]


def test_steps_stay_in_the_order_they_were_declared_in() -> None:
    assert MaintenancePlan([step("c"), step("a"), step("b")]).names == ["c", "a", "b"]


def test_a_step_comes_after_those_it_depends_on() -> None:
    plan = MaintenancePlan([step("c", "b"), step("b", "a"), step("x"), step("a")])

    assert plan.names == ["a", "b", "c", "x"]


@given(st.permutations(range(8)), st.data())
def test_every_order_respects_every_dependency(order: list[int], data: st.DataObject) -> None:
    after = {
        n: data.draw(st.lists(st.integers(0, n - 1), unique=True), str(n)) if n else []
        for n in range(8)
    }
    plan = MaintenancePlan([step(str(n), *map(str, after[n])) for n in order])
    place = {name: number for number, name in enumerate(plan.names)}

    assert sorted(place) == [str(n) for n in range(8)]
    assert all(place[str(other)] < place[str(n)] for n in after for other in after[n])


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([step("a"), step("a")], "2 steps named 'a'"),
        ([step("reflect"), step("b", "reflec")], "'reflec', which is no step. Did you mean 'refl"),
        ([step("a", "b"), step("b", "c"), step("c", "a")], "in a circle: a → b → c → a"),
        ([step("x"), step("a", "a")], "in a circle: a → a"),
        ([MaintenanceStep("a", "cycle", command=["x"], job="m:f")], "a command and a job"),
        ([MaintenanceStep("a", "cycle", command=[])], "a command without a program"),
        ([MaintenanceStep("a", "cycle", command=[""])], "a command without a program"),
        ([MaintenanceStep("a", "cycle", command=["  "])], "a command without a program"),
        ([step("z"), step("a", "z", "b"), step("b", "z", "a")], "in a circle: a → b → a"),
    ],
)
def test_steps_that_cannot_be_are_refused(steps: list[MaintenanceStep], words: str) -> None:
    with pytest.raises(PlanError) as caught:
        MaintenancePlan(steps)

    assert words in str(caught.value)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_long_chain_of_steps_is_no_burden(backwards: bool) -> None:
    steps = [step("0"), *(step(str(n), str(n - 1)) for n in range(1, 20_000))]
    plan = MaintenancePlan(steps[::-1] if backwards else steps)

    assert plan.names == [str(n) for n in range(20_000)]


def test_a_circle_at_the_end_of_a_long_chain_is_found() -> None:
    chain = [step("0", "4999"), *(step(str(n), str(n - 1)) for n in range(1, 5_000))]
    with pytest.raises(PlanError, match="in a circle: 0 → 4999 → 4998"):
        MaintenancePlan(chain)


PLAN = MaintenancePlan(
    [step("prune", tier="cycle"), step("distill"), step("reflect", "distill"), step("dream")]
)


@pytest.mark.parametrize(
    ("tier", "options", "expected"),
    [
        ("cycle", {}, ["prune"]),
        ("nightly", {}, ["distill", "reflect", "dream"]),
        (FULL, {}, ["prune", "distill", "reflect", "dream"]),
        ("nightly", {"include": ["dream", "distill"]}, ["distill", "dream"]),
        ("nightly", {"exclude": ["distill"]}, ["reflect", "dream"]),
        (FULL, {"include": ["prune", "dream"], "exclude": ["dream"]}, ["prune"]),
    ],
)
def test_a_run_takes_the_steps_of_its_tier(
    tier: str, options: dict[str, list[str]], expected: list[str]
) -> None:
    assert names(PLAN.chosen(tier, **options)) == expected


@pytest.mark.parametrize("option", ["include", "exclude"])
def test_a_name_that_no_step_has_is_refused_with_those_there_are(option: str) -> None:
    with pytest.raises(MaintenanceStepNotFoundError) as caught:
        PLAN.chosen("nightly", **{option: ["distil"]})

    assert str(caught.value) == (
        "There is no maintenance step 'distil'. Did you mean 'distill'? "
        "There are: prune, distill, reflect, dream."
    )
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_step_of_the_other_tier_is_not_silently_left_out() -> None:
    with pytest.raises(PlanError, match="'prune' is of the tier cycle, not nightly"):
        PLAN.chosen("nightly", include=["prune"])


@pytest.mark.parametrize(
    ("guard_us", "once", "label"),
    [
        (0, True, "one-time"),
        (0, False, "always"),
        (HOUR_US, False, "every night"),
        (20 * HOUR_US, False, "every night"),
        (20 * HOUR_US + 1, False, "~every other night"),
        (44 * HOUR_US, False, "~every other night"),
        (68 * HOUR_US, False, "~every 3rd night"),
        (5 * DAY_US, False, "weekly"),
        (25 * DAY_US, False, "monthly"),
        (90 * DAY_US, False, "every 90 days"),
    ],
)
def test_a_guard_interval_has_a_name(guard_us: int, once: bool, label: str) -> None:
    assert cadence(guard_us, once=once) == label
    assert step("a", guard_us=guard_us, once=once).cadence == label
