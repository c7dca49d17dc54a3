"""The retention of jobs: what has its time goes in steps, and the log says when it is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from queue_bench import Clock, QueueBench, benches

from tachograph.domain.queue_selection import Selection
from tachograph.domain.queue_settings import DAY_US, QueuePlan, QueueSettings
from tachograph.domain.repair_errors import RepairDeniedError, RepairWaitError
from tachograph.domain.repair_policy import SWEEP, RepairPolicy
from tachograph.queue_repairkeeping import gatekeeper_of
from tachograph.queues import sweeping

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOUR = 3_600
PLAN = QueuePlan(
    {
        "memory": QueueSettings("memory"),
        "summary": QueueSettings("summary"),
        "brief": QueueSettings("brief", completed_kept_us=DAY_US, dead_kept_us=2 * DAY_US),
    }
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of everything."""
    return Clock(monkeypatch)


@pytest.fixture
def bench(store_path: Path, clock: Clock) -> Iterator[QueueBench]:
    """A store with three queues, of which one keeps little."""
    yield from benches(store_path, clock, PLAN)


def swept(bench: QueueBench) -> dict[str, object]:
    last = gatekeeper_of(bench.services, bench.plans).get(SWEEP).last
    assert last is not None
    return last


def test_each_job_has_its_time_from_its_end(bench: QueueBench, clock: Clock) -> None:
    """Case 45, its part about jobs: by completion and death, not by when they were enqueued."""
    held = bench.make("leased")[0]
    old = bench.make("completed")[0]
    dead = bench.make("dead")[0]
    clock.pass_by(days=10)
    bench.queueing.complete(held, 1)
    clock.pass_by(days=5)
    recent = bench.make("dead")[0]

    first = bench.sweeper().sweep()

    assert first.to_fields()["completedJobsPurged"] == 1
    assert first.total == 1
    assert bench.statuses(held, old, dead, recent) == ["completed", "pruned", "dead", "dead"]
    clock.pass_by(days=20)
    assert bench.sweeper().sweep().statuses == {"completed": 1, "dead": 1, "cancelled": 0}
    assert bench.statuses(held, dead, recent) == ["pruned", "pruned", "dead"]


def test_each_queue_keeps_as_long_as_it_says(bench: QueueBench, clock: Clock) -> None:
    done = [bench.make("completed", queue)[0] for queue in ("brief", "memory")]
    dead = [bench.make("dead", queue)[0] for queue in ("brief", "memory")]
    clock.pass_by(days=1.5)

    assert bench.sweeper().sweep().by_queue == {
        "brief": {"completed": 1, "dead": 0, "cancelled": 0}
    }
    clock.pass_by(days=1)
    assert bench.sweeper().sweep().by_queue == {
        "brief": {"completed": 0, "dead": 1, "cancelled": 0}
    }
    assert bench.statuses(*done, *dead) == ["pruned", "completed", "pruned", "dead"]


def test_cancelled_jobs_go_too(bench: QueueBench, clock: Clock) -> None:
    """Trap: cancelled jobs stayed for ever."""
    job_id = bench.make("pending")[0]
    bench.repairing().cancel(Selection(ids=[job_id]), "retired")
    clock.pass_by(days=31)

    found = bench.sweeper().sweep()

    assert found.to_fields() == {
        "completedJobsPurged": 0,
        "deadJobsPurged": 0,
        "cancelledJobsPurged": 1,
        "steps": 1,
        "archives": found.archives,
    }
    assert found.message() == "swept 1 job(s): 0 completed, 0 dead, 1 cancelled"


def test_jobs_that_wait_or_are_at_work_are_never_swept(bench: QueueBench, clock: Clock) -> None:
    ids = [bench.make(status)[0] for status in ("leased", "pending")]
    clock.pass_by(days=9_999)

    assert bench.sweeper().sweep().total == 0
    assert bench.statuses(*ids) == ["leased", "pending"]


def test_it_goes_in_steps_each_of_which_is_recorded(
    bench: QueueBench, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "STEP", 4)
    ids = bench.dead("memory", 10)
    clock.pass_by(days=31)

    shown = bench.sweeper().preview()
    found = bench.sweeper().sweep("the disk is full")

    assert (shown.total, shown.steps, shown.applied) == (10, 3, False)
    assert (found.total, found.steps, len(found.archives)) == (10, 3, 3)
    assert [bench.fields(job_id)["repair"] for job_id in ids] == [found.repair] * 10
    history = gatekeeper_of(bench.services, bench.plans).history(SWEEP)
    assert [topic for topic, _ in history] == [
        "repair.allowed",
        *["repair.step-done"] * 3,
        "repair.ended",
    ]
    assert history[1][1]["detail"] == {
        "queue": "memory",
        "status": "dead",
        "archive": found.archives[0],
    }
    assert (swept(bench)["affected"], swept(bench)["reason"]) == (10, "the disk is full")
    assert bench.repairing().restore(Selection(ids=ids[:2]), "needed").affected == 2


def test_a_dry_run_changes_nothing_and_nobody_denies_it(bench: QueueBench, clock: Clock) -> None:
    bench.make("dead")
    clock.pass_by(days=31)
    before = bench.services.log.head().position

    found = bench.sweeper(RepairPolicy(frozen=True)).preview()

    assert found.message() == "would sweep 1 job(s): 0 completed, 1 dead, 0 cancelled"
    assert bench.services.log.head().position == before


def test_what_is_swept_by_hand_is_swept_within_limits(bench: QueueBench, clock: Clock) -> None:
    bench.sweeper(RepairPolicy()).sweep()

    with pytest.raises(RepairWaitError):
        bench.sweeper(RepairPolicy()).sweep()
    with pytest.raises(RepairDeniedError):
        bench.sweeper(RepairPolicy(frozen=True)).sweep()
    clock.pass_by(seconds=61)
    bench.sweeper(RepairPolicy()).sweep()


# When.


def test_a_store_without_a_sweep_is_swept_at_once_and_then_every_6_hours(
    bench: QueueBench, clock: Clock
) -> None:
    """Trap: nothing was swept at the start, so that workers that restart often never swept."""
    assert bench.sweeper().sweep_if_due() is not None
    for _ in range(3):  # as many starts of workers
        clock.pass_by(seconds=1.9 * HOUR)
        assert bench.sweeper().sweep_if_due() is None
    clock.pass_by(seconds=HOUR)

    assert bench.sweeper().sweep_if_due() is not None


def test_of_two_workers_one_sweeps(bench: QueueBench, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = bench.sweeper(RepairPolicy()), bench.sweeper(RepairPolicy())
    monkeypatch.setattr(second, "due", lambda: True)  # it looked before the first one began

    assert first.sweep_if_due() is not None
    assert second.sweep_if_due() is None
    assert gatekeeper_of(bench.services, bench.plans).get(SWEEP).count == 1


def test_where_repairs_are_frozen_a_worker_goes_on_without(bench: QueueBench) -> None:
    assert bench.sweeper(RepairPolicy(frozen=True)).sweep_if_due() is None
    assert bench.sweeper().sweep_if_due() is not None


def test_a_sweep_that_failed_is_repeated_sooner_and_keeps_what_it_did(
    bench: QueueBench, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "STEP", 2)
    ids = bench.dead("memory", 4)
    clock.pass_by(days=31)
    sweeper = bench.sweeper()
    prune, calls = sweeper._pruner.prune, []

    def failing(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise OSError("the disk has gone")
        return prune(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(sweeper._pruner, "prune", failing)
    with pytest.raises(OSError, match="gone"):
        sweeper.sweep_if_due()

    assert bench.statuses(*ids) == ["pruned", "pruned", "dead", "dead"]
    assert swept(bench)["success"] is False
    assert not bench.sweeper().due()
    clock.pass_by(seconds=601)
    found = bench.sweeper().sweep_if_due()
    assert found is not None
    assert found.total == 2


def test_a_sweep_that_was_cut_off_is_due_again(bench: QueueBench, clock: Clock) -> None:
    bench.gate(None, "daemon")(SWEEP, "retention", {})  # begun, and killed

    assert not bench.sweeper().due()
    clock.pass_by(seconds=601)
    assert bench.sweeper().due()


def test_a_sweep_of_a_clock_that_was_wrong_does_not_count(bench: QueueBench, clock: Clock) -> None:
    clock.pass_by(days=400)
    bench.sweeper().sweep()
    clock.pass_by(days=-400)

    assert bench.sweeper().due()


def test_a_job_that_cannot_go_does_not_hold_up_the_others(
    bench: QueueBench, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "STEP", 2)
    ids = bench.dead("memory", 3)
    clock.pass_by(days=31)
    bench.view(lambda view: view.names())
    change = type(bench.queueing).change

    def once(queueing: object, job_ids: list[str], command: object) -> object:
        monkeypatch.setattr(type(bench.queueing), "change", change)
        bench.queueing.change(ids[:2], lambda job, cause: job.requeue(cause, "by another"))
        return change(queueing, job_ids, command)  # type: ignore[arg-type]

    monkeypatch.setattr(type(bench.queueing), "change", once)
    found = bench.sweeper().sweep()

    assert bench.statuses(*ids) == ["pending", "pending", "pruned"]
    assert list(found.refused) == ids[:2]
    assert (found.total, found.steps) == (1, 1)
