"""What an orchestrator run records of its steps, and what it refuses to."""

from __future__ import annotations

import pytest
from given_when_then import attempt, do, fact, running
from workbench import Workbench

from tachograph.domain.errors import (
    FencedError,
    GuardWithheldError,
    InvalidValueError,
    StepUnplannedError,
)
from tachograph.domain.events import (
    MaintenancePlanned,
    MaintenanceStepEnded,
    MaintenanceStepStarted,
)
from tachograph.domain.run import Run

PLANNED = do(Run.plan_maintenance, attempt(1), "nightly", ["prune", "reflect"])
STARTED = do(Run.start_maintenance_step, attempt(1), "prune")
ENDED = do(Run.end_maintenance_step, attempt(1), "prune", "ok", "done", guard=True)


def test_a_plan_says_what_will_be_gone_through() -> None:
    running().when(
        Run.plan_maintenance,
        attempt(1),
        "nightly",
        ["prune"],
        options={"force": True},
        deadline_us=9,
    ).then(
        fact(
            MaintenancePlanned,
            tier="nightly",
            steps=["prune"],
            options={"force": True},
            deadline_us=9,
        )
    )


def test_the_same_plan_again_records_nothing() -> None:
    running(PLANNED).when(Run.plan_maintenance, attempt(1), "nightly", ["prune", "reflect"]).then()


def test_another_plan_replaces_it() -> None:
    running(PLANNED).when(Run.plan_maintenance, attempt(1), "nightly", ["prune"]).then(
        fact(MaintenancePlanned, tier="nightly", steps=["prune"], options={})
    )


@pytest.mark.parametrize(("tier", "steps"), [("", ["a"]), ("nightly", [""])])
def test_a_plan_names_its_tier_and_its_steps(tier: str, steps: list[str]) -> None:
    running().when(Run.plan_maintenance, attempt(1), tier, steps).then(InvalidValueError)


def test_a_step_is_started() -> None:
    running(PLANNED).when(Run.start_maintenance_step, attempt(1), "prune").then(
        fact(MaintenanceStepStarted, step="prune")
    )


def test_a_step_ends_with_what_came_of_it() -> None:
    running(PLANNED, STARTED).when(
        Run.end_maintenance_step,
        attempt(1),
        "prune",
        "ok",
        "12 rows",
        duration_us=5,
        runs=["job-a"],
        result="success",
        reason_code="exit_code",
        guard=True,
        once=True,
    ).then(
        fact(
            MaintenanceStepEnded,
            step="prune",
            status="ok",
            summary="12 rows",
            duration_us=5,
            runs=["job-a"],
            outcome="success",
            reason_code="exit_code",
            guard=True,
            once=True,
        )
    )


def test_a_step_that_was_passed_over_was_never_started() -> None:
    running(PLANNED).when(
        Run.end_maintenance_step, attempt(1), "reflect", "skipped_guard", "guard (ran 3h ago)"
    ).then(
        fact(
            MaintenanceStepEnded,
            step="reflect",
            status="skipped_guard",
            summary="guard (ran 3h ago)",
            duration_us=0,
            runs=[],
            guard=False,
            once=False,
        )
    )


@pytest.mark.parametrize(
    ("status", "result", "code"),
    [
        ("failed", None, None),
        ("deferred", None, None),
        ("rate_limited", "partial", "rate_limited"),
        ("ok", "failed", None),
        ("ok", "failed_semantic_empty", None),
        ("ok", "partial", None),
        ("ok", "partial", "stopped_by_budget"),
    ],
)
@pytest.mark.parametrize("granted", ["guard", "once"])
def test_what_did_not_do_its_work_gets_no_guard(
    status: str, result: str | None, code: str | None, granted: str
) -> None:
    running(PLANNED).when(
        Run.end_maintenance_step,
        attempt(1),
        "prune",
        status,
        "words",
        result=result,
        reason_code=code,
        guard=granted == "guard",
        once=granted == "once",
    ).then(GuardWithheldError, saying="'prune'")


@pytest.mark.parametrize(
    ("status", "summary", "duration"),
    [("done", "words", 0), ("ok", "", 0), ("ok", "words", -1)],
)
def test_an_end_that_makes_no_sense_is_refused(status: str, summary: str, duration: int) -> None:
    running(PLANNED).when(
        Run.end_maintenance_step, attempt(1), "prune", status, summary, duration_us=duration
    ).then(InvalidValueError)


@pytest.mark.parametrize("planned", [(), (PLANNED,)])
def test_a_step_that_is_not_planned_is_refused(planned: tuple[object, ...]) -> None:
    case = running(*planned)  # type: ignore[arg-type]
    case.when(Run.start_maintenance_step, attempt(1), "sweep").then(StepUnplannedError)
    case.when(Run.end_maintenance_step, attempt(1), "sweep", "ok", "x").then(StepUnplannedError)


def test_an_attempt_that_was_taken_over_records_nothing() -> None:
    """G5."""
    second = do(
        lambda run, why: run.start_attempt(why, {"kind": "unowned"}, live_owner=None), attempt(0)
    )
    running(PLANNED, second).when(Run.start_maintenance_step, attempt(1), "prune").then(FencedError)


def test_the_state_holds_what_became_of_each_step() -> None:
    run = running(PLANNED, STARTED).run

    assert run.maintenance_steps["prune"]["status"] is None
    run = running(PLANNED, STARTED, ENDED).run
    assert run.maintenance_steps["prune"]["status"] == "ok"
    assert run.maintenance_steps["prune"]["started_us"] is not None
    assert run.progress_version == run.version
    assert run.maintenance is not None
    assert run.maintenance["steps"] == ["prune", "reflect"]


@pytest.mark.parametrize(
    ("status", "result", "further"),
    [("ok", "success", True), ("failed", "failed", False), ("deferred", None, False)],
)
def test_only_a_step_that_did_its_work_is_a_step_further(
    status: str, result: str | None, further: bool
) -> None:
    """Else a watchdog would resume for ever what fails again and again."""
    bench = Workbench()
    session = bench.start("maintenance-nightly", run_id="orch-1")
    session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["prune"]))
    session.execute(lambda run, why: run.start_maintenance_step(why, "prune"))
    session.execute(
        lambda run, why: run.end_maintenance_step(why, "prune", status, "said", result=result)
    )

    assert (session.run.progress_version == session.run.version) is further
