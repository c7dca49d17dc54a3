"""Jobs of queues as people and programs see them: rows, JSON, and which queues are meant."""

from __future__ import annotations

from tachograph.cli.options import Option, UsageError
from tachograph.domain.iso_time import iso
from tachograph.projections.queue_health import matters_us, state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.queue_settings import QueuePlan
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.projections.queue_health import QueuesView

QUEUES = Option("--queues", "Only these queues.", metavar="A,B", complete="queue")
TABLES = Option("--tables", "The same as --queues.", metavar="A,B", complete="queue")
COLUMNS = ("JOB", "QUEUE", "TYPE", "STATE", "SINCE", "ATTEMPTS", "KEY", "ERROR")


def queues_in(params: Params, plan: QueuePlan, view: QueuesView) -> list[str]:
    """Return the queues that are meant; none where all are.

    Raises UsageError for an empty name, and UnknownQueueError for one that neither the project
    nor the log knows: a name that is passed over would widen what is asked for.
    """
    if params.queues is not None and params.tables is not None:
        raise UsageError("--tables is another word for --queues: give one of them.")
    text = params.tables if params.queues is None else params.queues
    if text is None:
        return []
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"--queues is {text!r}: give names of queues, with commas between them.")
    known = set(view.names())
    for name in names:
        if name not in known:
            plan.get(name)
    return list(dict.fromkeys(names))


def job_shape(job: QueuedJob, now_us: int) -> dict[str, Any]:
    """Return a job as JSON has it."""
    return {
        "jobId": job.id,
        "queue": job.queue,
        "type": job.type,
        "state": state_of(job, now_us),
        "since": iso(matters_us(job)),
        "priority": job.priority,
        "attempts": job.attempts,
        "maxAttempts": job.max_attempts,
        "key": job.key,
        "concurrencyKey": job.concurrency_key,
        "createdAt": iso(job.enqueued_us),
        "availableAt": iso(job.available_us),
        "leasedAt": iso(job.leased_us),
        "failedAt": iso(job.failed_us),
        "endedAt": iso(job.ended_us),
        "error": job.error,
        "code": job.code,
    }


def table(jobs: Iterable[QueuedJob], now_us: int, out: Output) -> None:
    """Print jobs as a table."""
    rows = [
        (
            job.id,
            job.queue,
            job.type,
            state_of(job, now_us),
            out.when(matters_us(job)),
            f"{job.attempts}/{job.max_attempts}",
            job.key or "",
            job.error or "",
        )
        for job in jobs
    ]
    out.table(COLUMNS, rows, whole=(COLUMNS[0],))  # the tails of ids are no beginnings
