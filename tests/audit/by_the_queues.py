"""Golden runs of queued jobs, and of the maintenance that repairs queues.

Each function records a run and returns its id. Holds no test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from audit.bench import golden
from audit.by_its_end import printed
from recovering import process

from tachograph.domain.queue_settings import QueuePlan
from tachograph.domain.queue_thresholds import HealthThresholds
from tachograph.domain.queued_job import run_id_of
from tachograph.domain.repair_policy import EXECUTE, OBSERVE, RELEASE, REQUEUE, RepairPolicy
from tachograph.health.caring import Carer
from tachograph.health.judging import WAITS, Judging
from tachograph.health.keeping_diary import COMMAND, RunDiary
from tachograph.health.queue_domain import queue_domain
from tachograph.infra.memory_queues import MemoryQueues
from tachograph.queues.enqueueing import Enqueue
from tachograph.queues.gatekeeping import Gatekeeper
from tachograph.queues.handlers import Handler
from tachograph.queues.holds import Hold
from tachograph.queues.job_ends import Ends, end_lost
from tachograph.queues.job_processes import ChildEnd, Processes
from tachograph.queues.queueing import Leased, Queueing
from tachograph.queues.repository import QueueRepository
from tachograph.recording import Recording
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Callable

    from audit.bench import Audited

    from tachograph.domain.ended import Ended
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.queues.gatekeeping import Permit
    from tachograph.session import Session


class Ward:
    """The queues of the bench's log by their numbers, and what maintenance does about them."""

    def __init__(self, bench: Audited) -> None:
        self.bench = bench
        self.dead = 0
        self.stale = 0
        self.breaks = False

    def facts(self) -> dict[str, Any]:
        """Return the facts about the queues."""
        return {
            "depth": 0,
            "deadRate": self.dead / 10,
            "leaseAnomalies": self.stale,
            "expired": 0,
            "queues": {
                "memory": {"dead": self.dead, "oldestAgeSec": 0, "oldestDeadAgeSec": 0},
            },
        }

    def requeue(self, permit: Permit) -> None:
        """Let the dead jobs wait again."""
        if self.breaks:
            raise OSError(28, "No space left on device")
        permit.done(self.dead, f"{self.dead} jobs were requeued", watched=["a job"])
        self.dead = 0

    def release(self, permit: Permit) -> None:
        """Release the stale leases."""
        permit.done(self.stale, f"{self.stale} leases were released")
        self.stale = 0

    def cycle(self, mode: str = EXECUTE) -> str:
        """Do a maintenance cycle, as a run, and return its id."""
        bench = self.bench
        bench.begun += 1
        pid = 1000 + bench.begun
        bench.processes[pid] = pid
        want = Start(COMMAND, {}, title="Maintenance cycle")
        keeper = Gatekeeper(bench.log, bench.repository.packing, bench.actor, RepairPolicy())
        carer = Carer(
            lambda: [queue_domain(self.facts, HealthThresholds())],
            keeper,
            {REQUEUE: self.requeue, RELEASE: self.release},
            Judging(keeper, lambda _action, _job, _kept: WAITS, lambda: bench.now),
            lambda: bench.now,
        )
        recording = Recording(
            lambda: bench.starter.start(want, process(pid)), lambda: 3600.0, log_warnings=False
        )
        with recording:
            carer.cycle(RunDiary(recording), mode)
        bench.kill(recording.id)
        return recording.id


@golden
def care_nothing_to_repair(bench: Audited) -> str:
    """A maintenance cycle while all is well."""
    return Ward(bench).cycle()


@golden
def care_repairs_done(bench: Audited) -> str:
    """Jobs had died, and holders of others; maintenance repaired both."""
    ward = Ward(bench)
    ward.dead, ward.stale = 6, 2
    return ward.cycle()


@golden
def care_repairs_observed(bench: Audited) -> str:
    """The same, by a watchdog that is to tell and not to repair."""
    ward = Ward(bench)
    ward.dead, ward.stale = 6, 2
    return ward.cycle(OBSERVE)


@golden
def care_repairs_put_off(bench: Audited) -> str:
    """The jobs died again within the cooldown of the last repair."""
    ward = Ward(bench)
    ward.dead = 6
    ward.cycle()
    ward.dead = 4
    return ward.cycle()


@golden
def care_repairs_not_done(bench: Audited) -> str:
    """The disk was full; the other repair was done all the same."""
    ward = Ward(bench)
    ward.dead, ward.stale, ward.breaks = 6, 2, True
    return ward.cycle()


class Working:
    """A worker of the queue `memory` of the bench's log; `child` is how its process ends."""

    def __init__(self, bench: Audited) -> None:
        self.bench = bench
        repository = QueueRepository(bench.log, bench.repository.packing)
        self.queueing = Queueing(
            MemoryQueues(bench.log, bench.codec, repository.records_of),
            repository,
            bench.payloads,
            bench.actor,
            QueuePlan(),
            new_id=lambda: str(UUID(int=0x1234)),
            random=lambda: 0.0,
            beat=lambda _job, _epoch, _seconds: None,
            lost=lambda _job: None,
        )
        self.ended: Ended | None = None

    def take(self) -> tuple[QueuedJob, Session]:
        """Enqueue a job, take it, and begin its run."""
        self.bench.processes[1001] = 1001
        self.queueing.enqueue(Enqueue("memory", "ingest", {"note": 7}))
        (leased,) = self.queueing.lease(["memory"], process(1001))
        job = leased.job
        want = Start(
            job.type,
            {"job": job.id, "queue": job.queue, "type": job.type},
            run_id=run_id_of(job),
            title=f"{job.queue}: {job.type}",
        )
        return job, self.bench.starter.start(want, process(1001))

    def do(self, ended: Ended) -> str:
        """Do a job by a command that ends so, and return the id of its run."""
        job, session = self.take()
        self.ended = ended
        ends = Ends(self.queueing, lambda _run_id, _epoch: session)
        hold = Hold(Leased(job, lambda: {"note": 7}), 0, 0.0)
        handler = Handler("ingest", command=["ingest-note"])
        ending = Processes(cast("Any", self), ends).command(hold, session, handler, None)
        assert ending is not None
        self.queueing.end(ending)
        self.bench.kill(session.run_id)
        return session.run_id

    # What makes processes, and the one process that it makes.

    def command(self, *_: object) -> Working:
        """Return the process of a command."""
        return self

    isolated = command

    def describe(self, pid: int) -> Any:
        """Describe a process."""
        self.bench.processes[pid] = pid
        return process(pid)

    def run(self, on_started: Callable[[int], None]) -> ChildEnd:
        """Run to the end."""
        assert self.ended is not None
        on_started(2002)
        del self.bench.processes[2002]
        return ChildEnd(self.ended)

    def stop(self, *, at_once: bool) -> None:
        """Never asked here."""
        raise AssertionError(at_once)


@golden
def job_no_attempt_can_help(bench: Audited) -> str:
    """The command of a job said by exit code 65 that no further attempt can help."""
    return Working(bench).do(printed(65, "note 7 is no JSON\n"))


@golden
def job_lease_lost(bench: Audited) -> str:
    """The worker was silent for too long, and the job was given to another one."""
    _job, session = Working(bench).take()
    session.start_phase("ingest")
    session.plan_batches("ingest", 2, 50, "notes")
    session.complete_batch("ingest", 0, inputs=50, parsed=50, output="ok")
    end_lost(session)
    bench.kill(session.run_id)
    return session.run_id
