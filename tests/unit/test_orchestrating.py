"""Going through the steps of an orchestrator run: real log and guards, hand-made clock and work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from viewed import Viewed

from tachograph import projecting, summing_up
from tachograph.domain.errors import RunOwnedError, StoreFullError
from tachograph.domain.maintenance_plan import MaintenancePlan, MaintenanceStep
from tachograph.domain.outcome import OUTCOMES, STEP_STATUSES, from_step_status, traits
from tachograph.orchestrating import Maintenance
from tachograph.orders import Orders, Worked, status_of
from tachograph.projections.maintenance_guards import standing
from tachograph.summing_up import summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.orders import Bounds
    from tachograph.session import Session

HOUR_US = 3_600_000_000
GOOD = Worked("success", "exit_code", "exit code 0", runs=["job-a-1"])
BAD = Worked("failed", "exit_code", "exit code 3", runs=["job-a-1"])
LIMITED = Worked("partial", "rate_limited", "HTTP 429", runs=["job-a-1"])
BUDGET = Worked("partial", "stopped_by_budget", "12 of 40", runs=["job-a-1"])


class Machine:
    """A machine whose clock goes as the test says; satisfies Surroundings."""

    def __init__(self, bench: Viewed) -> None:
        self.bench = bench
        self.seconds = 1_000.0
        self.naps: list[float] = []
        self.said: list[str] = []
        self.worked: list[str] = []
        self.bounds: list[Bounds] = []
        self.will: dict[str, Worked | BaseException] = {}
        self.takes: dict[str, float] = {}
        self.shut: set[str] = set()
        self.held: Callable[[str, int | None], str | None] = lambda _step, _started: None
        self.signal: str | None = None
        self.on_sleep: Callable[[], None] = lambda: None

    def now_us(self) -> int:
        return self.bench.now

    def monotonic(self) -> float:
        return self.seconds

    def passes(self, seconds: float) -> None:
        self.seconds += seconds
        self.bench.now += round(seconds * 1_000_000)

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.passes(seconds)
        self.on_sleep()

    def interrupted(self) -> str | None:
        return self.signal

    def gate_open(self, step: MaintenanceStep) -> bool:
        return step.name not in self.shut

    def standing(self, step: str, *, once: bool) -> Any:
        bench = self.bench
        return projecting.ask(
            bench.log, bench.codec, bench.views, lambda view: standing(view, step, once=once)
        )

    def holder(self, step: str, started: int | None) -> str | None:
        return self.held(step, started)

    def say(self, step: str, words: str) -> None:
        self.said.append(f"{step} {words}")

    def work(self, step: MaintenanceStep, bounds: Bounds) -> Worked:
        self.worked.append(step.name)
        self.bounds.append(bounds)
        self.passes(self.takes.get(step.name, 1.0))
        found = self.will.get(step.name, GOOD)
        if isinstance(found, BaseException):
            raise found
        return found


@pytest.fixture
def machine() -> Machine:
    bench = Viewed()
    bench.now = 1_700_000_000_000_000
    return Machine(bench)


def step(name: str, *depends_on: str, **named: Any) -> MaintenanceStep:
    given = {"guard_us": 20 * HOUR_US, "command": ["true"], **named}
    return MaintenanceStep(name, given.pop("tier", "nightly"), depends_on=depends_on, **given)


def begin(machine: Machine, run_id: str = "orch-1") -> Session:
    return machine.bench.start("maintenance-nightly", {"tier": "nightly"}, run_id=run_id)


def go(
    machine: Machine,
    *steps: MaintenanceStep,
    session: Session | None = None,
    plan: dict[str, Any] | None = None,
    inherited: int | None = None,
    **orders: Any,
) -> tuple[int, Maintenance]:
    made = MaintenancePlan(steps, **(plan or {}))
    wanted = Orders(**orders)
    if session is None and not wanted.dry_run:
        session = begin(machine, f"orch-{machine.bench.now}")
    maintenance = Maintenance(machine, made, "nightly", made.steps, wanted, session)
    return maintenance.run(inherited), maintenance


def statuses(maintenance: Maintenance) -> dict[str, str]:
    return {name: each["status"] for name, each in maintenance.steps.items()}


def words(maintenance: Maintenance, name: str) -> str:
    return str(maintenance.steps[name]["summary"])


# What is run.


def test_steps_are_run_in_order_and_recorded(machine: Machine) -> None:
    session = begin(machine)
    code, maintenance = go(machine, step("a"), step("b"), session=session)

    assert (code, machine.worked) == (0, ["a", "b"])
    assert machine.bench.topics("orch-1")[2:] == [
        "maintenance-planned",
        *(["maintenance-step-started", "maintenance-step-ended"] * 2),
        "finished",
    ]
    assert machine.said == ["a start", "a complete in 1s", "b start", "b complete in 1s"]
    assert session.run.outcome == "success"
    assert maintenance.steps["a"]["runs"] == ["job-a-1"]


def test_a_step_is_not_due_again_before_its_guard_has_passed(machine: Machine) -> None:
    go(machine, step("a"))
    machine.passes(3 * 3600)
    code, second = go(machine, step("a"))
    machine.passes(17 * 3600)
    go(machine, step("a"))

    assert (code, statuses(second)) == (0, {"a": "skipped_guard"})
    assert words(second, "a") == "guard (ran 3h ago)"
    assert machine.worked == ["a", "a"]


@pytest.mark.parametrize("worked", [BAD, LIMITED, BUDGET])
def test_a_step_that_did_not_do_its_work_is_due_at_once(machine: Machine, worked: Worked) -> None:
    machine.will["a"] = worked
    go(machine, step("a"))
    go(machine, step("a"))

    assert machine.worked == ["a", "a"]


def test_force_runs_what_is_not_due(machine: Machine) -> None:
    go(machine, step("a"))
    go(machine, step("a"), force=True)

    assert machine.worked == ["a", "a"]


def test_a_one_time_step_is_run_once_whatever_is_forced(machine: Machine) -> None:
    go(machine, step("a", guard_us=0, once=True), force=True)
    _, maintenance = go(machine, step("a", guard_us=0, once=True), force=True)

    assert machine.worked == ["a"]
    assert words(maintenance, "a") == "one-time marker exists"


def test_a_failed_one_time_step_is_run_again(machine: Machine) -> None:
    machine.will["a"] = BAD
    for _ in range(2):
        go(machine, step("a", guard_us=0, once=True))

    assert machine.worked == ["a", "a"]


def test_a_dependency_counts_when_it_was_done_in_this_run_or_ever(machine: Machine) -> None:
    machine.will["a"] = BAD
    _, first = go(machine, step("a"), step("b", "a"))
    machine.will["a"] = GOOD
    _, second = go(machine, step("a"), step("b", "a"))
    machine.passes(21 * 3600)
    machine.will["a"] = BAD
    _, third = go(machine, step("a"), step("b", "a"))

    assert statuses(first) == {"a": "failed", "b": "skipped_dep"}
    assert statuses(second) == {"a": "ok", "b": "ok"}
    assert statuses(third) == {"a": "failed", "b": "ok"}


def test_a_step_without_a_runner_and_a_shut_gate_are_passed_over(machine: Machine) -> None:
    machine.shut = {"b"}
    code, maintenance = go(machine, step("a", command=None), step("b"))

    assert statuses(maintenance) == {"a": "skipped_missing_runner", "b": "skipped_gate"}
    assert (code, machine.worked) == (0, [])


# Time.


def test_no_step_is_begun_when_the_time_is_up(machine: Machine) -> None:
    machine.takes["a"] = 61
    code, maintenance = go(machine, step("a"), step("b"), max_runtime_seconds=60)

    assert statuses(maintenance) == {"a": "ok", "b": "deferred"}
    assert words(maintenance, "b") == "time budget exceeded"
    assert code == 2


def test_a_step_is_told_the_deadline_and_stopped_soon_after_it(machine: Machine) -> None:
    begun = machine.bench.now
    go(
        machine,
        step("a", timeout_seconds=500),
        step("b", timeout_seconds=5),
        max_runtime_seconds=60,
    )
    first, second = machine.bounds

    assert (first.seconds, first.by_deadline) == (60 + 30, True)
    assert (second.seconds, second.by_deadline) == (5, False)
    assert first.deadline_us is not None
    assert abs(first.deadline_us - begun - 60_000_000) < 1000
    assert machine.bench.fields(f"orch-{begun}", "maintenance-planned")[0]["deadline_us"] == (
        first.deadline_us
    )


def test_without_a_deadline_only_its_own_time_limit_counts(machine: Machine) -> None:
    go(machine, step("a", timeout_seconds=500), step("b"))

    assert [each.seconds for each in machine.bounds] == [500, None]
    assert [each.deadline_us for each in machine.bounds] == [None, None]


def test_the_deadline_of_whoever_started_us_counts_too(machine: Machine) -> None:
    inherited = machine.bench.now + 5_000_000
    go(machine, step("a"), max_runtime_seconds=60, inherited=inherited)

    assert machine.bounds[0].seconds == pytest.approx(35, abs=0.01)


def test_a_deadline_that_has_passed_begins_nothing(machine: Machine) -> None:
    code, maintenance = go(machine, step("a"), inherited=machine.bench.now - 1)

    assert (code, statuses(maintenance), machine.worked) == (2, {"a": "deferred"}, [])


def test_a_clock_that_is_set_moves_no_deadline(machine: Machine) -> None:
    machine.bench.now += 10**12
    machine.takes["a"] = 30
    code, _ = go(machine, step("a"), step("b"), max_runtime_seconds=60)

    assert (code, machine.worked) == (0, ["a", "b"])


# Providers.


def test_a_pause_lies_between_two_steps_that_ask_a_provider(machine: Machine) -> None:
    go(machine, step("a", llm="nano"), step("b", llm="heavy"), step("c"), step("d", llm="embed"))

    assert machine.naps == [30.0]  # not after c, which asks none


def test_a_pause_is_no_longer_than_the_time_that_is_left(machine: Machine) -> None:
    machine.takes["a"] = 50
    _, maintenance = go(
        machine, step("a", llm="nano"), step("b", llm="nano"), max_runtime_seconds=60
    )

    assert machine.naps == [10.0]
    assert words(maintenance, "b") == "time budget exceeded"


def test_a_step_that_another_run_did_during_the_pause_is_not_run(machine: Machine) -> None:
    def other() -> None:
        session = begin(machine, "orch-other")
        session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["b"]))
        session.execute(lambda run, why: run.end_maintenance_step(why, "b", "ok", "x", guard=True))

    machine.on_sleep = other
    _, maintenance = go(machine, step("a", llm="nano"), step("b", llm="nano"))

    assert (machine.worked, statuses(maintenance)["b"]) == (["a"], "skipped_guard")


def test_two_rate_limits_in_a_row_keep_providers_from_being_asked(machine: Machine) -> None:
    machine.will.update(a=LIMITED, b=LIMITED)
    code, maintenance = go(
        machine,
        *(step(name, llm="nano") for name in "abc"),
        step("d", llm="local"),
        step("e"),
    )

    assert statuses(maintenance) == {
        "a": "rate_limited",
        "b": "rate_limited",
        "c": "deferred",
        "d": "ok",
        "e": "ok",
    }
    assert words(maintenance, "c") == "rate-limit circuit breaker"
    assert code == 2


def test_only_rate_limits_in_a_row_count(machine: Machine) -> None:
    machine.will.update(a=LIMITED, c=LIMITED)
    _, maintenance = go(machine, *(step(name, llm="nano") for name in "abcd"))

    assert statuses(maintenance)["d"] == "ok"


def test_a_failure_does_not_end_a_row_of_rate_limits(machine: Machine) -> None:
    machine.will.update(a=LIMITED, b=BAD, c=LIMITED)
    _, maintenance = go(machine, *(step(name, llm="nano") for name in "abcd"))

    assert statuses(maintenance)["d"] == "deferred"


def test_how_many_rate_limits_are_too_many_is_declared(machine: Machine) -> None:
    machine.will["a"] = LIMITED
    _, maintenance = go(
        machine, step("a", llm="nano"), step("b", llm="nano"), plan={"rate_limit_max_retries": 1}
    )

    assert statuses(maintenance)["b"] == "deferred"


# Others.


def test_a_step_that_another_run_is_at_is_passed_over(machine: Machine) -> None:
    machine.held = lambda step, started: "pid=17 host=ada held=5s" if step == "a" else None
    code, maintenance = go(machine, step("a"), step("b"))

    assert words(maintenance, "a") == (
        "locked by a concurrent maintenance run (pid=17 host=ada held=5s)"
    )
    assert (statuses(maintenance), code) == ({"a": "skipped_guard", "b": "ok"}, 0)


def test_of_two_that_start_a_step_at_once_the_later_one_leaves_it(machine: Machine) -> None:
    machine.held = lambda _step, started: None if started is None else "pid=17"
    session = begin(machine)
    _, maintenance = go(machine, step("a"), session=session)

    assert (machine.worked, statuses(maintenance)) == ([], {"a": "skipped_guard"})
    assert machine.bench.topics("orch-1")[-3:] == [
        "maintenance-step-started",
        "maintenance-step-ended",
        "finished",
    ]


def test_a_step_that_a_killed_attempt_has_left_at_work_is_still_to_be_done(
    machine: Machine,
) -> None:
    """G12: nobody will record what it comes to, so nothing here may count as done."""
    machine.will["a"] = RunOwnedError("job-a-1", "process 17 on ada")
    session = begin(machine)
    code, maintenance = go(machine, step("a"), step("b"), session=session)

    assert (code, statuses(maintenance)) == (2, {"a": "deferred", "b": "ok"})
    assert "still at work" in words(maintenance, "a")
    assert "process 17 on ada" in words(maintenance, "a")
    assert (session.run.outcome, session.run.reason_code) == ("partial", "still_at_work")
    assert not session.run.finished
    assert traits("partial", "still_at_work").unattended


def test_a_run_that_waits_for_what_was_left_at_work_does_it_when_taken_up_again(
    machine: Machine,
) -> None:
    machine.will["a"] = RunOwnedError("job-a-1", "process 17 on ada")
    session = begin(machine)
    go(machine, step("a"), session=session)
    machine.will["a"] = BAD
    again = begin(machine)
    code, _ = go(machine, step("a"), session=again)

    assert (code, again.run.outcome, again.epoch) == (1, "failed", 2)


@pytest.mark.parametrize("error", [ValueError("embedded null byte"), RuntimeError("no home")])
def test_a_step_that_cannot_be_run_fails_and_the_run_goes_on(
    error: Exception, machine: Machine
) -> None:
    machine.will["a"] = error
    code, maintenance = go(machine, step("a"), step("b"))

    assert (code, statuses(maintenance)) == (1, {"a": "failed", "b": "ok"})
    assert words(maintenance, "a") == f"{type(error).__name__}: {error}"


def test_a_store_that_fails_is_no_fault_of_a_step(machine: Machine) -> None:
    machine.will["a"] = StoreFullError("the disk is full", "/store")
    with pytest.raises(StoreFullError):
        go(machine, step("a"))


# What is recorded.


def test_steps_that_are_passed_over_are_recorded_together(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the next one that is run: a run that is killed has told nothing that is not so."""
    session, sizes = begin(machine), []
    append = machine.bench.log.append

    def noting(records: Any, **more: Any) -> Any:
        sizes.append([record.topic.removeprefix("run.maintenance-") for record in records])
        return append(records, **more)

    monkeypatch.setattr(machine.bench.log, "append", noting)
    machine.shut = set("abde")
    go(machine, *(step(name) for name in "abcde"), session=session)

    assert sizes == [
        ["planned"],
        ["step-ended", "step-ended"],
        ["step-started"],
        ["step-ended"],
        ["step-ended", "step-ended"],
        ["run.finished"],
    ]
    assert list(session.run.maintenance_steps) == list("abcde")


def test_so_many_steps_are_recorded_together_at_most(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tachograph.orchestrating.MOST_TOGETHER", 2)
    session, names = begin(machine), [str(number) for number in range(5)]
    machine.shut = set(names)
    go(machine, *(step(name) for name in names), session=session)

    assert list(session.run.maintenance_steps) == names


def test_what_the_environment_said_of_a_run_is_known_to_whoever_takes_it_up(
    machine: Machine,
) -> None:
    session = begin(machine)
    machine.will["a"] = BAD
    go(machine, step("a"), session=session, said={"job": "nightly", "refused_id": "no/id"})
    again = begin(machine)
    go(machine, step("a"), session=again)
    planned = again.run.maintenance or {}

    assert planned["options"]["job"] == "nightly"
    assert planned["options"]["refused_id"] == "no/id"


def test_no_deadline_is_further_away_than_clocks_can_count(machine: Machine) -> None:
    go(machine, step("a"), inherited=10**18)

    assert machine.bounds[0].seconds == pytest.approx(100 * 366 * 86_400 + 30)


# Outcomes and exit codes.


@pytest.mark.parametrize(
    ("worked", "status", "code"),
    [
        (GOOD, "ok", 0),
        (Worked("success_with_review", None, "49 of 50"), "ok", 0),
        (Worked("empty", None, "nothing"), "ok", 0),
        (Worked("skipped", None, "cooldown"), "ok", 0),
        (BAD, "failed", 1),
        (Worked("failed_semantic_empty", None, "0 of 50"), "failed", 1),
        (Worked("partial", None, "half"), "failed", 1),
        (BUDGET, "deferred", 2),
        (LIMITED, "rate_limited", 2),
        (Worked("failed", "rate_limited", "HTTP 429"), "rate_limited", 2),
    ],
)
def test_what_a_step_came_to_decides(
    machine: Machine, worked: Worked, status: str, code: int
) -> None:
    machine.will["a"] = worked
    found, maintenance = go(machine, step("a"))

    assert (statuses(maintenance)["a"], found) == (status, code)


@pytest.mark.parametrize("result", OUTCOMES)
@pytest.mark.parametrize("code", [None, "stopped_by_budget", "stopped_by_person", "rate_limited"])
def test_a_status_grants_a_guard_only_where_the_outcome_does(result: str, code: str | None) -> None:
    status = status_of(result, code)

    assert status in STEP_STATUSES
    assert (status == "ok") is not traits(result, code).withholds_guard
    if status == "failed":
        assert traits(from_step_status(status)).fails_step


def test_the_run_goes_on_after_a_failed_step(machine: Machine) -> None:
    machine.will["a"] = BAD
    code, _ = go(machine, step("a"), step("b"))

    assert (machine.worked, code) == (["a", "b"], 1)


@pytest.mark.parametrize(
    ("orders", "code"),
    [
        ({"force": True, "named": ["a"]}, 3),
        ({"force": True, "named": ["a"], "allow_skip": True}, 0),
        ({"force": True}, 0),
        ({"named": ["a"]}, 0),
        ({"force": True, "named": ["b"]}, 0),
    ],
)
def test_a_step_that_was_forced_by_name_and_did_not_run_is_told(
    machine: Machine, orders: dict[str, Any], code: int
) -> None:
    machine.shut = {"a"}

    assert go(machine, step("a"), step("b"), **orders)[0] == code


def test_another_code_is_not_hidden_by_it(machine: Machine) -> None:
    machine.shut, machine.will["b"] = {"a"}, BAD

    assert go(machine, step("a"), step("b"), force=True, named=["a"])[0] == 1


# Dry runs.


def test_a_dry_run_says_what_would_be_run_and_records_nothing(machine: Machine) -> None:
    machine.shut = {"c"}
    code, maintenance = go(
        machine, step("a"), step("b", "a"), step("c"), step("d", "c"), dry_run=True
    )

    assert statuses(maintenance) == {
        "a": "ok",
        "b": "ok",
        "c": "skipped_gate",
        "d": "skipped_dep",
    }
    assert words(maintenance, "a") == "dry-run (would execute)"
    assert (code, machine.worked, machine.bench.log.head().position) == (0, [], 0)


# Cut off, stopped, taken up again.


def test_a_run_that_was_cut_off_goes_on_with_what_is_left(machine: Machine) -> None:
    session = begin(machine)
    machine.will["b"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        go(machine, step("a", guard_us=0), step("b"), step("c"), session=session)
    machine.will["b"] = GOOD
    again = begin(machine)
    code, maintenance = go(machine, step("a", guard_us=0), step("b"), step("c"), session=again)

    assert again.epoch == 2
    assert machine.worked == ["a", "b", "b", "c"]
    assert statuses(maintenance) == dict.fromkeys("abc", "ok")
    assert (code, again.run.outcome) == (0, "success")


def test_a_failed_step_is_tried_again_when_the_run_is_taken_up(machine: Machine) -> None:
    machine.will["a"] = BAD
    session = begin(machine)
    code, _ = go(machine, step("a"), step("b"), session=session)
    machine.will["a"] = GOOD
    again = begin(machine)
    second, _ = go(machine, step("a"), step("b"), session=again)

    assert (code, second) == (1, 0)
    assert machine.worked == ["a", "b", "a"]
    assert again.run.outcome == "success"


@pytest.mark.parametrize(
    ("name", "code"), [("SIGINT", "stopped_by_person"), ("SIGTERM", "interrupted")]
)
def test_a_signal_ends_the_run_after_the_step_that_it_has_ended(
    machine: Machine, name: str, code: str
) -> None:
    machine.will["a"] = Worked("partial", code, "interrupted", asked=[name])
    session = begin(machine)
    _, maintenance = go(machine, step("a"), step("b"), session=session)

    assert machine.worked == ["a"]
    assert words(maintenance, "b") == f"not begun: the run was stopped by {name}"
    assert (session.run.outcome, session.run.reason_code) == ("partial", code)
    assert maintenance.stopped == name


def test_a_signal_during_a_pause_begins_no_step(machine: Machine) -> None:
    def asked() -> None:
        machine.signal = "SIGTERM"

    machine.on_sleep = asked
    _, maintenance = go(machine, step("a", llm="nano"), step("b", llm="nano"), step("c"))

    assert machine.worked == ["a"]
    assert statuses(maintenance) == {"a": "ok", "b": "deferred", "c": "deferred"}
    assert maintenance.stopped == "SIGTERM"


# The summary.


def test_the_summary_comes_from_the_log(machine: Machine) -> None:
    machine.will["b"] = BAD
    session = begin(machine)
    go(machine, step("a"), step("b"), step("c", "b"), session=session)
    run = machine.bench.repository.get("orch-1")
    assert run is not None
    found = summary(run, job="nightly")

    assert found["summaryLine"] == (
        "Maintenance nightly — 3 steps (1 ok, 1 skipped, 0 deferred, 1 failed)"
    )
    assert (found["runId"], found["job"], found["exitCode"]) == ("orch-1", "nightly", 1)
    assert [each["status"] for each in found["steps"]] == ["ok", "failed", "skipped_dep"]
    assert found["steps"][1] == {
        "name": "b",
        "status": "failed",
        "summary": "exit code 3",
        "durationMs": 1000,
        "jobRunId": "job-a-1",
        "semanticOutcome": "failed",
    }


def test_a_run_that_was_cut_off_is_never_summed_up_as_well_done(machine: Machine) -> None:
    session = begin(machine)
    machine.will["b"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        go(machine, step("a"), step("b"), step("c"), session=session)
    found = summary(session.reload())

    assert [(each["name"], each["status"]) for each in found["steps"]] == [
        ("a", "ok"),
        ("b", "deferred"),
    ]
    assert found["exitCode"] == 2


def test_a_run_of_something_else_has_no_such_summary(machine: Machine) -> None:
    session = machine.bench.start("work", run_id="job")

    with pytest.raises(ValueError, match="job is no run of maintenance"):
        summary(session.run)


def test_a_single_step_is_summed_up_with_the_tier_it_is_of() -> None:
    assert summing_up.tier_label("step", {"tier": "cycle"}) == "cycle"
    assert summing_up.tier_label("full", {"tier": "cycle"}) == "full"
