"""Build the queues of an open store from what infra offers. Knows no rule of a queue."""

from __future__ import annotations

from tachograph.domain.queue_settings import QueuePlan
from tachograph.domain.queued_job import LEASE_EXPIRED, OWNER_GONE
from tachograph.infra import clock
from tachograph.infra.job_ids import JobIds
from tachograph.infra.lmdb_queues import LMDBQueues
from tachograph.infra.queue_folding import stream_of
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
    from random import random

    repository = QueueRepository(services.log, services.packing)
    store = LMDBQueues(services.environment, services.log, services.codec, repository.records_of)

    def beat(job_id: str, epoch: int, lease_seconds: float) -> None:
        services.presence.beat(stream_of(job_id), epoch, lease_seconds=lease_seconds)

    return Queueing(
        store,
        repository,
        services.payloads,
        services.actor,
        QueuePlan() if plan is None else plan,
        new_id=JobIds(clock.now_us),
        random=random,
        beat=beat,
        lost=lambda job: lost(services, job),
        validate=(lambda _queue, _kind, _payload: None) if validate is None else validate,
    )


def lost(services: Services, job: QueuedJob) -> tuple[str, str] | None:
    """Say why the holder of a leased job is to be taken for lost; None while it is not.

    A process that has ended frees its jobs at once. One that lives, or that cannot be looked at,
    does so when it has been silent for longer than the lease: by the clock that counts since
    boot, or by the wall clock where it has never shown itself.
    """
    from tachograph.domain.liveness import ALIVE, GONE, judge, span
    from tachograph.domain.owner import Owner
    from tachograph.infra import processes

    owner = Owner.from_fields(job.owner or {})
    lease = services.presence.lease(stream_of(job.id))
    boottime_us = clock.boottime_us()
    judged = judge(
        owner,
        here=services.observer,
        process_start=processes.process_start,
        lease=lease,
        boottime_us=boottime_us,
        epoch=job.epoch,
    )
    if judged.state == GONE:
        return OWNER_GONE, judged.reason
    here = services.observer.boot_id
    if lease is not None and lease.epoch == job.epoch and lease.boot_id == here:
        silent_us = boottime_us - lease.boottime_us
    elif judged.state == ALIVE and job.leased_us is None:
        return None
    else:
        silent_us = clock.now_us() - (job.leased_us or 0)
    if silent_us <= job.lease_seconds * clock.SECOND_US:
        return None
    words = f"{owner} was silent for {span(silent_us)}, its lease is {job.lease_seconds:g}s"
    return LEASE_EXPIRED, words
