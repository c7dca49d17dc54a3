"""Jobs in a store on disk, in whatever state a test needs. Holds no test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tachograph.bootstrap import open_store
from tachograph.queuekeeping import queues_of
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.domain.queue_settings import QueuePlan


class Queued:
    """The queues of a store, driven as a worker drives them. `now_us` is when it was opened."""

    def __init__(self, folder: Path, plan: QueuePlan | None = None) -> None:
        self.services = open_store(str(folder), create=True, actor="test")
        self.queues = queues_of(self.services, plan)
        self.owner = self.services.owner()
        self.now_us = self.services.actor.now_us()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.services.close()

    def add(self, queue: str = "memory", payload: Any = None, **options: Any) -> str:
        """Enqueue a job and return its id."""
        return self.queues.enqueue(Enqueue(queue, "index", payload, **options)).job_id

    def leased(self, queue: str = "memory", **options: Any) -> str:
        """Enqueue a job and lease it before all others."""
        job_id = self.add(queue, priority=9, **options)
        assert [each.job.id for each in self.queues.lease([queue], self.owner)] == [job_id]
        return job_id

    def done(self, queue: str = "memory", **options: Any) -> str:
        job_id = self.leased(queue, **options)
        self.queues.complete(job_id, 1, {"ok": True})
        return job_id

    def failed(self, queue: str = "memory", error: str = "boom", **options: Any) -> str:
        job_id = self.leased(queue, **options)
        self.queues.fail(job_id, 1, error, retry_us=self.now_us + 10**12)
        return job_id

    def dead(self, queue: str = "memory", error: str = "boom", **options: Any) -> str:
        job_id = self.leased(queue, **options)
        self.queues.fail(job_id, 1, error, terminal=True)
        return job_id

    def cancel(self, job_id: str, reason: str = "not wanted") -> None:
        self.queues.change([job_id], lambda job, cause: job.cancel(cause, reason))

    def prune(self, job_id: str) -> None:
        self.queues.change([job_id], lambda job, cause: job.prune(cause, "old", "archive-1"))
