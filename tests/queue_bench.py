"""A store with queues, a clock by hand and jobs in every state. Holds no test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph import looking, queue_repairkeeping
from tachograph.bootstrap import open_store
from tachograph.domain.queue_settings import DAY_US, QueuePlan
from tachograph.domain.queued_job import COMPLETED, DEAD, LEASED, PENDING
from tachograph.domain.repair_policy import RepairPolicy
from tachograph.queue_plans import QueuePlans
from tachograph.queuekeeping import queues_of
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pytest

    from tachograph.domain.owner import Owner
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.queues.repairing import Repairing
    from tachograph.queues.sweeping import Sweeper

START_US = 1_700_000_000_000_000


class Clock:
    """The time of everything in this process that asks for it."""

    def __init__(self, patch: pytest.MonkeyPatch | None = None) -> None:
        self.now_us = START_US
        if patch is not None:
            patch.setattr("tachograph.infra.clock.now_us", lambda: self.now_us)

    def pass_by(self, *, days: float = 0, seconds: float = 0) -> None:
        """Let time pass."""
        self.now_us += round(days * DAY_US + seconds * 1_000_000)


class QueueBench:
    """An open store, its queues and repairs; `policy` holds for those without one."""

    def __init__(self, path: Path, clock: Clock, plan: QueuePlan | None = None) -> None:
        self.path = path
        self.clock = clock
        self.services = open_store(str(path), create=True, actor="test")
        self.services.actor.now_us = lambda: clock.now_us
        self.plans = QueuePlans(plan or QueuePlan())
        self.queueing = queues_of(self.services, self.plans.plan)
        self.owner: Owner = self.services.owner()

    def close(self) -> None:
        """Close the store."""
        self.services.close()

    def repairing(self, policy: RepairPolicy | None = None, kind: str = "operator") -> Repairing:
        """Return the repairs, without a cooldown unless a policy says so."""
        gate = self.gate(policy, kind)
        return queue_repairkeeping.repairing_of(self.services, self.plans, gate)

    def sweeper(self, policy: RepairPolicy | None = None, kind: str = "daemon") -> Sweeper:
        """Return the sweeper."""
        gate = self.gate(policy, kind)
        return queue_repairkeeping.sweeper_of(self.services, self.plans, gate)

    def gate(self, policy: RepairPolicy | None, kind: str) -> Any:
        """Return the gate for a kind of actor."""
        self.plans.repair = unlimited() if policy is None else policy
        return queue_repairkeeping.gate_of(self.services, self.plans, kind)

    # Jobs.

    def make(self, status: str, queue: str = "memory", number: int = 1, **want: Any) -> list[str]:
        """Make jobs in a state: completed, dead, pending, leased; the clock goes on by 1 s each."""
        want.setdefault("error", "boom")
        error = want.pop("error")
        found = []
        for _ in range(number):
            self.clock.pass_by(seconds=1)
            kind = want.get("kind", "ingest")
            rest = {name: value for name, value in want.items() if name != "kind"}
            job_id = self.queueing.enqueue(Enqueue(queue, kind, {"n": 1}, **rest)).job_id
            found.append(job_id)
            if status == PENDING:
                continue
            job = next(
                leased.job
                for leased in iter(lambda: self._lease(queue), None)
                if leased.job.id == job_id
            )
            if status == COMPLETED:
                self.queueing.complete(job_id, job.epoch, {"ok": True})
            elif status == DEAD:
                self.queueing.fail(job_id, job.epoch, error, terminal=True)
            elif status != LEASED:
                raise ValueError(status)
        return found

    def dead(self, queue: str = "memory", number: int = 1, error: str = "boom") -> list[str]:
        """Make dead jobs, many in a commit."""
        from tachograph.queues.endings import Failure

        wants = [Enqueue(queue, "ingest", {"n": index}) for index in range(number)]
        ids = [each.job_id for each in self.queueing.enqueue_many(wants)]
        left, terminal = number, True
        while left:
            leased = self.queueing.lease([queue], self.owner, limit=min(left, 500))
            ends = [
                Failure(each.job.id, each.job.epoch, error, "error", terminal, None, None, float)
                for each in leased
            ]
            self.queueing.end(*ends)
            left -= len(leased)
        self.clock.pass_by(seconds=1)
        return ids

    def _lease(self, queue: str) -> Any:
        found = self.queueing.lease([queue], self.owner)
        return found[0] if found else None

    # Looking.

    def job(self, job_id: str) -> QueuedJob:
        """Return a job as the log tells it."""
        return self.queueing.get(job_id)

    def statuses(self, *job_ids: str) -> list[str]:
        """Return the statuses of jobs."""
        return [self.job(job_id).status for job_id in job_ids]

    def topics(self, job_id: str) -> list[str]:
        """Return the topics of a job's events."""
        records = self.queueing.repository.records(job_id)
        return [record.topic.removeprefix("queue.job-") for record in records]

    def fields(self, job_id: str, place: int = -1) -> dict[str, Any]:
        """Return the fields of one event of a job, the last one unless said otherwise."""
        return self.queueing.repository.history(job_id)[place][1]

    def view(self, question: Any) -> Any:
        """Ask the view of queues."""
        return looking.ask(self.services, lambda view: question(view.queues))


def unlimited() -> RepairPolicy:
    """Return a policy under which repairs may follow each other at once."""
    from tachograph.domain.repair_policy import ACTIONS, ActionLimits

    return RepairPolicy(limits={action: ActionLimits(0, 1_000) for action in ACTIONS})


def benches(path: Path, clock: Clock, plan: QueuePlan | None = None) -> Iterator[QueueBench]:
    """Yield a bench for the length of a fixture."""
    bench = QueueBench(path, clock, plan)
    try:
        yield bench
    finally:
        bench.close()


def opened_bench(
    path: Path, clock: Clock, plan: QueuePlan | None = None
) -> AbstractContextManager[QueueBench]:
    """Return a `with` block of a bench."""
    from contextlib import contextmanager

    return contextmanager(benches)(path, clock, plan)
