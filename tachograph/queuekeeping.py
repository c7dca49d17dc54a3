"""Build the queues of an open store from what infra offers. Knows no rule of a queue."""

from __future__ import annotations

import os

from tachograph.domain.queue_settings import QueuePlan
from tachograph.infra import clock
from tachograph.infra.job_ids import JobIds
from tachograph.infra.lmdb_queues import LMDBQueues
from tachograph.queues.queueing import Queueing
from tachograph.queues.repository import QueueRepository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.domain.queue_settings import QueueSettings
    from tachograph.domain.queued_job import QueuedJob


def queues_of(
    services: Services,
    plan: QueuePlan | None = None,
    *,
    validate: Callable[[QueueSettings, str, Any], None] | None = None,
) -> Queueing:
    """Return the queues of an open store."""
    repository = QueueRepository(services.log, services.packing)
    store = _store(services, repository)

    def beat(job_id: str, epoch: int, lease_seconds: float) -> None:
        services.presence.beat(job_id, epoch, lease_seconds=lease_seconds)

    return Queueing(
        store,
        repository,
        services.payloads,
        services.actor,
        QueuePlan() if plan is None else plan,
        new_id=JobIds(clock.now_us),
        random=_random,
        beat=beat,
        lost=lambda job: lost(services, job),
        boottime_us=clock.boottime_us,
        validate=(lambda _queue, _kind, _payload: None) if validate is None else validate,
    )


def index_of(services: Services) -> LMDBQueues | None:
    """Return the queue index of an open store, to look after it; None where there is none."""
    store = _store(services, QueueRepository(services.log, services.packing))
    return store if store.exists() else None


def _store(services: Services, repository: QueueRepository) -> LMDBQueues:
    return LMDBQueues(services.environment, services.log, services.codec, repository.records_of)


def _random() -> float:
    """Return 0 <= x < 1. Importing random costs a short command 4 ms."""
    return int.from_bytes(os.urandom(4), "big") / 2**32


def lost(services: Services, job: QueuedJob) -> tuple[str, str] | None:
    """Say why the holder of a leased job is to be taken for lost; None while it is not."""
    from tachograph.domain import queue_liveness
    from tachograph.infra import processes

    return queue_liveness.lost(
        job,
        here=services.observer,
        process_start=processes.process_start,
        lease=services.presence.lease(job.id),
        boottime_us=clock.boottime_us(),
        now_us=clock.now_us(),
    )
