"""Jobs in a log in memory, and the view of them, for tests of what reads queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from viewed import Viewed

from tachograph import projecting
from tachograph.domain.event import Cause
from tachograph.domain.queued_job import QueuedJob
from tachograph.infra.codec import Codec
from tachograph.infra.memory_views import MemoryViews
from tachograph.packing import Packing
from tachograph.queues.repository import QueueRepository

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.projections.queue_health import QueuesView

SECOND_US = 1_000_000
NOON_US = 1_800_000_000 * SECOND_US
"""A time far enough from both ends of time."""
OWNER = {"kind": "process", "host": "here", "pid": 7}


class Jobs(Viewed):
    """A log in which jobs get events at times that a test says, in seconds from NOON_US."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.queues = QueueRepository(self.log, Packing(self.codec))
        self.made = 0

    def at(self, seconds: float, epoch: int = 0) -> Cause:
        """Return the cause of an event at a time."""
        return Cause(us(seconds), "tester", "here", 7, epoch)

    def add(self, seconds: float = 0, queue: str = "memory", **options: Any) -> str:
        """Enqueue a job and return its id."""
        self.made += 1
        job_id = str(UUID(int=(0x0190 << 112) + (self.made << 100) + self.made))
        job = QueuedJob.enqueue(self.at(seconds), job_id, queue, "index", None, **options)
        self.log.append(self.queues.records_of(job))
        return job_id

    def do(self, job_id: str, command: str, seconds: float, *args: Any, **options: Any) -> None:
        """Let something happen to a job at a time; a holder's command is its holder's."""
        job = self.queues.get(job_id)
        assert job is not None
        epoch = job.epoch if command in ("complete", "fail") else 0
        getattr(job, command)(self.at(seconds, epoch), *args, **options)
        self.log.append(self.queues.records_of(job))

    def lease(self, job_id: str, seconds: float) -> None:
        self.do(job_id, "lease", seconds, OWNER, 300.0)

    def complete(self, job_id: str, seconds: float) -> None:
        self.do(job_id, "complete", seconds)

    def fail(self, job_id: str, seconds: float, error: str = "boom", **options: Any) -> None:
        self.do(job_id, "fail", seconds, error, **options)

    def done(self, seconds: float = 0, **options: Any) -> str:
        """Add a job, and let it be done within a second."""
        job_id = self.add(seconds, **options)
        self.lease(job_id, seconds)
        self.complete(job_id, seconds + 1)
        return job_id

    def dead(self, seconds: float = 0, error: str = "boom", **options: Any) -> str:
        """Add a job, and let it die at once."""
        job_id = self.add(seconds, **options)
        self.lease(job_id, seconds)
        self.fail(job_id, seconds, error, terminal=True)
        return job_id

    def prune(self, job_id: str, seconds: float) -> None:
        self.do(job_id, "prune", seconds, "old", "archive-1")

    def look(self, question: Callable[[QueuesView], Any]) -> Any:
        """Catch up, then ask the view of queues."""
        return projecting.ask(self.log, self.codec, self.views, lambda view: question(view.queues))

    def counts(self, seconds: float = 0, queue: str = "memory") -> dict[str, int]:
        """Return the counts that are not 0."""
        found = self.look(lambda view: view.counts(queue, us(seconds)))
        return {name: number for name in found.__slots__ if (number := getattr(found, name))}

    def ids(self, *args: Any, **options: Any) -> list[str]:
        """Return the ids of the jobs in a list."""
        found: list[str] = self.look(lambda view: [job.id for job in view.jobs(*args, **options)])
        return found

    def found(self, job_id: str) -> QueuedJob | None:
        """Return a job as the view has it, or None."""
        found: QueuedJob | None = self.look(lambda view: view.job(job_id))
        return found

    def kept(self, job_id: str) -> QueuedJob:
        """Return a job as the view has it."""
        job = self.found(job_id)
        assert job is not None
        return job


def us(seconds: float) -> int:
    """Return the time so many seconds after NOON_US."""
    return NOON_US + round(seconds * SECOND_US)


def made_anew(bench: Jobs) -> list[tuple[str, bytes, bytes]]:
    """Return what the views of a log are when they are made in one go."""
    fresh = MemoryViews(Codec())
    projecting.catch_up(bench.log, bench.codec, fresh)
    return bench.content(fresh)
