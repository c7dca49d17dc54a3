"""Why a job is where it is: what a pending one waits for, what ended another. Never writes."""

from __future__ import annotations

from tachograph.domain.iso_time import iso
from tachograph.domain.queued_job import CANCELLED, COMPLETED, DEAD, LEASED, PENDING, PRUNED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.domain.queue_settings import QueueSettings
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.projections.queue_health import QueuesView

    Fields = dict[str, Any]


def why_pending(job: QueuedJob, settings: QueueSettings, view: QueuesView, now_us: int) -> str:
    """Say what a pending job waits for.

    `settings` are those of its queue, whose bounds may have become lower than the job's own.
    """
    bound = min(job.max_attempts, settings.max_attempts)
    if job.attempts >= bound:
        return f"its {job.attempts} attempts are used up: the next worker ends it"
    failed = f"attempt {job.attempts} of {bound} failed; " if job.error is not None else ""
    if job.available_us is not None and job.available_us > now_us:
        return f"{failed}it is not taken before {iso(job.available_us)}"
    most = settings.concurrency
    if most is not None and view.counts(job.queue, now_us).leased >= most:
        return f"{failed}{most} jobs of the queue are at work, as many as may be"
    key, most = job.concurrency_key, settings.per_key
    if key is not None:
        at_work = sum(each.concurrency_key == key for each in view.jobs(job.queue, LEASED))
        if at_work >= most:
            return f"{failed}as many jobs of the concurrency key {key!r} as may be are at work"
    return f"{failed}it waits for a worker"


def why_ended(job: QueuedJob, last: Fields) -> str:
    """Say why a job has ended, by the fields of its last event."""
    said = last.get("reason")
    because = f": {said}" if said else ""
    return {
        COMPLETED: "its holder did the work",
        DEAD: f"no further attempt is made ({job.code}){because or f': {job.error}'}",
        CANCELLED: f"it was cancelled{because}",
        PRUNED: f"it was pruned{because}; its events are in the archive {last.get('archive')}",
    }[job.status]


def why(
    job: QueuedJob,
    history: Sequence[Fields],
    settings: QueueSettings,
    view: QueuesView,
    now_us: int,
    holder: str,
) -> str:
    """Say why a job is in its state; `holder` is what is known of who holds a leased one."""
    if job.status == PENDING:
        return why_pending(job, settings, view, now_us)
    return holder if job.status == LEASED else why_ended(job, history[-1])
