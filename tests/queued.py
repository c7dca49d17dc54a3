"""Queues in memory, with a hand-made clock, for tests of workers. Holds no test."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any
from uuid import UUID

from workbench import Workbench

from tachograph.domain.owner import Owner
from tachograph.domain.queue_settings import QueuePlan, QueueSettings
from tachograph.infra.memory_queues import MemoryQueues
from tachograph.queues.enqueueing import Enqueue
from tachograph.queues.handlers import Handler, Handlers
from tachograph.queues.job_ends import Ends
from tachograph.queues.job_processes import Processes
from tachograph.queues.performing import Performer
from tachograph.queues.queueing import Queueing
from tachograph.queues.repository import QueueRepository
from tachograph.queues.working import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tachograph.domain.queued_job import QueuedJob
    from tachograph.queues.handlers import JobContext
    from tachograph.queues.told import Told

SECOND_US = 1_000_000
START_US = 1_700_000_000 * SECOND_US


class Clock:
    """Seconds since some moment; waiting is to move it on."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waits: list[float] = []
        self.woken = 0
        self.on_wait: Callable[[], None] = lambda: None

    def now(self) -> float:
        return self.seconds

    def now_us(self) -> int:
        return START_US + round(self.seconds * SECOND_US)

    def mark(self) -> object:
        return None

    def wait(self, seconds: float, mark: object) -> None:
        self.waits.append(seconds)
        self.seconds += seconds
        self.on_wait()

    def wake(self) -> None:
        self.woken += 1


class Around:
    """Nothing is outside; what an earlier holder left is `left`."""

    def __init__(self) -> None:
        self.left: str | None = None
        self.ended: list[str] = []

    def model(self, handler: Handler, job: QueuedJob, payload: Any) -> Any:
        return payload if handler.model is None else handler.model(payload)

    def end_leftover(self, run: Any) -> str | None:
        self.ended.append(run.id)
        return self.left

    def follow(self, recording: Any) -> None:
        return None


class Bench:
    """Queues, handlers and a worker on one log in memory."""

    def __init__(self, *settings: QueueSettings, seed: float = 0.0) -> None:
        self.clock = Clock()
        self.runs = Workbench()
        self.runs.actor.now_us = self.clock.now_us
        self.random: Callable[[], float] = lambda: seed
        self.lost: dict[str, tuple[str, str]] = {}
        self.told: list[Told] = []
        self.around = Around()
        self.handlers = Handlers()
        self.children: Any = None
        packing = self.runs.repository.packing
        repository = QueueRepository(self.runs.log, packing)
        self.store = MemoryQueues(self.runs.log, self.runs.codec, repository.records_of)
        numbers = random.Random(7)
        self.queueing = Queueing(
            self.store,
            repository,
            self.runs.payloads,
            self.runs.actor,
            QueuePlan({each.name: each for each in settings}) if settings else QueuePlan(),
            new_id=lambda: str(UUID(int=numbers.getrandbits(128))),
            random=self.random,
            beat=lambda _job, _epoch, _seconds: None,
            lost=lambda job: self.lost.get(job.id),
        )

    def handle(
        self, kind: str, function: Callable[[JobContext], Any], *, queue: str | None = None
    ) -> None:
        self.handlers.add(Handler(kind, function, queue=queue))

    def enqueue(
        self, queue: str = "memory", kind: str = "work", payload: Any = None, **more: Any
    ) -> str:
        return self.queueing.enqueue(Enqueue(queue, kind, payload, **more)).job_id

    def worker(self, queues: Sequence[str] = ("memory",), **options: Any) -> Worker:
        ends = Ends(self.queueing, self.session)
        owner = Owner("here", pid=1)
        performer = Performer(
            self.queueing,
            self.runs.starter,
            self.runs.repository,
            owner,
            self.handlers.find,
            ends,
            Processes(self.children, ends),
            self.around,
        )
        given = {
            "takes": self.handlers.types,
            "sleeper": self.clock,
            "now": self.clock.now,
            "random": self.random,
            "tell": self.told.append,
            **options,
        }
        perform = given.pop("perform", performer.perform)
        return Worker(self.queueing, queues, owner, perform, **given)

    def session(self, run_id: str, epoch: int) -> Any:
        from tachograph.session import Session

        runs = self.runs
        return Session(
            runs.repository, runs.payloads, runs.presence.beat, runs.actor, run_id, epoch
        )

    def job(self, job_id: str) -> QueuedJob:
        return self.queueing.get(job_id)

    def events(self) -> list[str]:
        return [told.event for told in self.told]

    def topics(self, job_id: str) -> list[str]:
        records = self.queueing.repository.records(job_id)
        return [record.topic.removeprefix("queue.job-") for record in records]
