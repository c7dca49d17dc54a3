"""Acceptance cases 35 to 38, and the traps of spec §3.1 and §3.2: recommendations and cycles."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

import pytest
from command_line import here

from tachograph.cli import caring
from tachograph.domain.repair_policy import (
    EXECUTE,
    OBSERVE,
    RELEASE,
    REQUEUE,
    SWEEP,
    RepairPolicy,
)
from tachograph.health import acting
from tachograph.healthkeeping import HealthKeeping
from tachograph.queue_repairkeeping import gatekeeper_of
from tachograph.queues.repairing import Repairing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from queue_bench import Clock, QueueBench

    from tachograph.health.caring import CareReport

    Cycle = Callable[..., CareReport]


def kill_all(bench: QueueBench, queue: str = "memory") -> int:
    """Let every job of a queue that is due die; return how many."""
    leased = bench.queueing.lease([queue], bench.owner, limit=500)
    for each in leased:
        bench.queueing.fail(each.job.id, each.job.epoch, "boom", terminal=True)
    return len(leased)


def test_case_35_an_empty_store_asks_for_nothing(cycle: Cycle) -> None:
    """Case 35: no recommendation, nothing executed, the report of a healthy store."""
    report = cycle()

    assert (report.recommendations, report.executed, report.after) == ([], [], None)
    assert (report.before.score, report.before.status) == (1.0, "healthy")


def test_case_35_5_dead_of_10_are_requeued(bench: QueueBench, cycle: Cycle) -> None:
    """Case 35: recommended with the text of the spec, executed; the score has risen."""
    bench.make("completed", number=5)
    ids = bench.make("dead", number=5)
    report = cycle()

    assert [each.to_fields() for each in report.recommendations] == [
        {"domain": "queue", "action": "requeueDeadJobs", "trigger": "dead rate 50.0% > 1%"}
    ]
    assert [(each.action, each.success, each.message) for each in report.executed] == [
        (REQUEUE, True, "requeued 5 dead memory job(s) to pending")
    ]
    assert bench.statuses(*ids) == ["pending"] * 5
    assert report.after is not None
    assert report.delta > 0


@pytest.mark.parametrize("queue", ["memory", "summary"])
def test_a_backlog_of_one_queue_alone_is_recommended(
    bench: QueueBench, clock: Clock, cycle: Cycle, queue: str
) -> None:
    """§3.1: a dead backlog of summaries alone never was, nor one of more than an hour ago."""
    bench.dead(queue, 51)
    clock.pass_by(seconds=7200)
    report = cycle(OBSERVE)

    assert [(each.action, each.trigger) for each in report.recommendations] == [
        (REQUEUE, f"{queue}: 51 dead jobs, threshold 50")
    ]


def test_observing_changes_nothing_and_holds_nothing_against_an_action(
    bench: QueueBench, cycle: Cycle
) -> None:
    """Case 35, §3.2 step 4: executed is empty, and the halt tracker is untouched."""
    bench.make("dead", number=2)
    cycle()
    kill_all(bench)
    before = gatekeeper_of(bench.services, bench.plans).get(REQUEUE).version
    report = cycle(OBSERVE)
    after = gatekeeper_of(bench.services, bench.plans).get(REQUEUE).version

    assert (report.executed, [each.action for each in report.recommendations]) == ([], [REQUEUE])
    assert after == before


def test_case_36_a_lease_of_20_minutes_is_released(bench: QueueBench, cycle: Cycle) -> None:
    """Case 36: by its age since the lease; the cycle is half an hour later."""
    (job_id,) = bench.make("leased")
    report = cycle()

    assert [(each.action, each.trigger) for each in report.recommendations] == [
        (RELEASE, "1 stale lease(s)")
    ]
    assert [each.message for each in report.executed] == [
        "released 1 stale lease(s) back to pending"
    ]
    assert bench.statuses(job_id) == ["pending"]


def test_case_36_the_sweep_is_done_once_however_much_there_is(
    bench: QueueBench, clock: Clock, cycle: Cycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 36: `sweep()` is called once, not for each queue and status; §3.4: it says what went."""
    bench.make("completed")
    bench.make("completed", "summary")
    clock.pass_by(days=15)
    calls: list[int] = []
    swept = acting.sweep

    def counted(*arguments: Any) -> None:
        calls.append(1)
        swept(*arguments)

    monkeypatch.setattr(acting, "sweep", counted)
    report = cycle()

    assert calls == [1]
    assert [(each.action, each.affected, each.message) for each in report.executed] == [
        (SWEEP, 2, "swept 2 job(s): 2 completed, 0 dead, 0 cancelled")
    ]


def test_case_36_switched_off_a_cycle_that_is_asked_for_repairs(
    bench: QueueBench, cycle: Cycle
) -> None:
    """Case 36, §3.2: `enabled = false` holds back agents and the interval, not such a cycle."""
    bench.plans.repair = RepairPolicy(enabled=False)
    ids = bench.make("dead")
    report = cycle()

    assert [each.success for each in report.executed] == [True]
    assert bench.statuses(*ids) == ["pending"]


def test_frozen_each_action_is_denied_and_in_the_report(bench: QueueBench, cycle: Cycle) -> None:
    """§3.2: each is reported with success false, and none is silently left out."""
    bench.plans.repair = RepairPolicy(frozen=True)
    ids = [*bench.make("dead"), *bench.make("leased")]
    report = cycle()

    assert [(each.action, each.success, each.denied) for each in report.executed] == [
        (REQUEUE, False, "frozen"),
        (RELEASE, False, "frozen"),
    ]
    assert report.after is None
    assert bench.statuses(*ids) == ["dead", "leased"]


def test_case_37_three_that_did_not_help_halt_it_for_every_process(
    bench: QueueBench, cycle: Cycle, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 37, §3.2 (b): requeued, dead again, requeued: each time the score rose at once.

    The fourth is not done; a person is told so too, and may overrule it.
    """
    bench.make("dead", number=3)
    for _ in range(3):
        assert [each.denied for each in cycle().executed] == [None]
        assert kill_all(bench) == 3
    halted = cycle()
    refused = here(capsys, "queue", "requeue", "--apply", "--reason", "again")
    why = here(capsys, "maintenance", "explain-action", REQUEUE)
    forced = here(capsys, "queue", "requeue", "--apply", "--reason", "again", "--force")

    assert [each.denied for each in halted.executed] == ["halted"]
    assert (refused.returncode, forced.returncode) == (8, 0)
    assert "halted" in why.stdout
    assert f"{REQUEUE}~1, {REQUEUE}~2, {REQUEUE}~3 did not help" in why.stdout


def test_case_37_a_clean_cycle_resets(bench: QueueBench, clock: Clock, cycle: Cycle) -> None:
    """Case 37: nothing recommended and nothing still waited for: the action may be done again."""
    ids = bench.make("dead", number=3)
    for _ in range(3):
        cycle()
        kill_all(bench)
    halted = cycle()
    bench.queueing.change(ids, lambda job, cause: job.cancel(cause, "given up"))
    clean = cycle()
    bench.make("dead", number=3)
    again = cycle()

    assert [each.denied for each in halted.executed] == ["halted"]
    assert clean.reset == [REQUEUE]
    assert [each.denied for each in again.executed] == [None]


def test_case_37_a_strike_is_of_one_action_alone(bench: QueueBench, cycle: Cycle) -> None:
    """§3.2 (a): one flag for all that a cycle did cleared what was against a useless one."""
    bench.make("dead", number=2)
    for _ in range(3):
        bench.make("leased", "summary")  # to release it helps, in each of these cycles
        done = {each.action for each in cycle().executed}
        assert done == {REQUEUE, RELEASE}
        kill_all(bench)
        bench.queueing.lease(["summary"], bench.owner, limit=9)
    keeper = gatekeeper_of(bench.services, bench.plans)
    denied = [each.denied for each in cycle().executed if each.action == REQUEUE]
    assert denied == ["halted"]
    assert not keeper.get(RELEASE).halted


def test_a_denied_repair_is_no_strike(bench: QueueBench, clock: Clock, cycle: Cycle) -> None:
    """§3.2 (a): a denied action counted as one that did not help."""
    bench.plans.repair = RepairPolicy(frozen=True)
    bench.dead("memory", 51)
    for _ in range(4):
        assert [each.denied for each in cycle().executed] == ["frozen"]
    bench.plans.repair = RepairPolicy()

    assert gatekeeper_of(bench.services, bench.plans).get(REQUEUE).strikes == 0
    assert [each.denied for each in cycle().executed] == [None]


def test_case_38_a_repair_that_raises_is_in_the_report(
    bench: QueueBench, cycle: Cycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 38: with success false and its reason; the next action is done all the same."""
    bench.make("dead")
    (leased,) = bench.make("leased", "summary")

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(Repairing, "requeue", broken)
        report = cycle()

    assert [(each.action, each.success, each.message) for each in report.executed] == [
        (REQUEUE, False, "a bug"),
        (RELEASE, True, "released 1 stale lease(s) back to pending"),
    ]
    assert bench.statuses(leased) == ["pending"]


def test_case_38_without_a_provider_a_cycle_returns(
    bench: QueueBench, cycle: Cycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 38, issue 990: a domain that cannot be looked at ends no cycle, and is told."""

    def broken(_keeping: object) -> None:
        raise OSError("no provider")

    bench.make("dead")
    monkeypatch.setattr(HealthKeeping, "provider_facts", broken)
    report = cycle()
    found = report.before.domain("providers")

    assert found is not None
    assert (found.error, found.status) == ("no provider", "degraded")
    assert [each.success for each in report.executed] == [True]


def test_the_report_of_a_cycle_for_programs(
    bench: QueueBench, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """§3.2: report, recommendations, executed; and here what was judged and by how much it rose."""
    bench.make("dead")
    done = here(capsys, "maintenance", "worker", "--once", "--json")
    said = json.loads(done.stdout)

    assert done.returncode == 0
    assert list(said) == [
        *("run", "mode", "report", "recommendations", "executed", "judged", "reset", "after"),
        "delta",
    ]
    assert said["mode"] == EXECUTE
    assert said["executed"] == [
        {
            "action": REQUEUE,
            "affected": 1,
            "denied": None,
            "message": "requeued 1 dead memory job(s) to pending",
            "repair": f"{REQUEUE}~1",
            "success": True,
        }
    ]


class Asked:
    """Asks a maintenance worker to stop after three waits."""

    def __init__(self) -> None:
        self.waits = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def is_set(self) -> bool:
        return self.waits >= 3

    def wait(self, _seconds: float) -> None:
        self.waits += 1


def test_a_worker_that_is_at_work_obeys_when_repairs_are_switched_off(
    bench: QueueBench,
    clock: Clock,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """§3.2: no maintenance worker goes on by itself with `enabled = false`, whenever that was set.

    What is declared is read anew before each cycle, and `frozen`, `mode` and `interval` count.
    """
    monkeypatch.chdir(tmp_path)
    bench.make("dead")
    care = HealthKeeping.care
    cycles: list[str] = []

    def last(keeping: HealthKeeping, mode: str) -> CareReport:
        cycles.append(mode)
        (tmp_path / "tachograph.toml").write_text("[repair]\nenabled = false\n", encoding="utf-8")
        clock.pass_by(seconds=1800)
        return care(keeping, mode)

    monkeypatch.setattr(HealthKeeping, "care", last)
    monkeypatch.setattr(caring, "Asked", lambda **_how: Asked())
    here(capsys, "maintenance", "worker", "--interval", "30m")

    assert len(cycles) == 1
