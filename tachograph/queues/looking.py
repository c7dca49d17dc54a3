"""Answer how queues are and which job is meant, from their view as of one moment. Never writes."""

from __future__ import annotations

from tachograph.domain.iso_time import iso
from tachograph.domain.queue_errors import AmbiguousJobError, JobNotFoundError
from tachograph.domain.queued_job import DEAD
from tachograph.projections.queue_traffic import COUNTS, percentile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from tachograph.domain.queue_settings import QueuePlan
    from tachograph.domain.queue_thresholds import HealthThresholds
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.projections.queue_health import QueuesView
    from tachograph.projections.queue_traffic import Buckets

    Document = dict[str, Any]

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
WINDOWS = {"lastHour": HOUR_US, "lastDay": 24 * HOUR_US}
"""The spans of time that rates and latencies are told of."""
MOST_CANDIDATES = 10
"""Ids that an ambiguous beginning lists."""
_LATENCIES = {"enqueueToStart": "waits", "startToEnd": "works"}
_NAMED = {"oldestDeadSummaryJob": "summary", "oldestDeadMemoryJob": "memory"}
"""Members of the report that are of one queue."""


def health(
    view: QueuesView,
    plan: QueuePlan,
    thresholds: HealthThresholds,
    now_us: int,
    queues: Collection[str] = (),
) -> Document:
    """Return the body of `/api/diagnostics/queue`: how each queue is, as of now.

    Declared queues come first, empty ones too; then those that only the log knows. `queues`
    keeps some of them. Raises UnknownQueueError for one that is neither.
    """
    known = list(dict.fromkeys([*plan.queues, *view.names()]))
    for name in queues:
        if name not in known:
            plan.get(name)  # raises, with a near name
    names = [name for name in known if not queues or name in queues]
    dead = {name: oldest_dead(view, name) for name in names}
    return {
        "timestamp": iso(now_us),
        "queues": {name: _queue(view, name, now_us) for name in names},
        **{member: dead.get(name) for member, name in _NAMED.items()},
        "oldestDeadJobs": dead,
        "thresholds": thresholds.as_document(names),
    }


def oldest_dead(view: QueuesView, queue: str) -> Document | None:
    """Return the job of a queue that has been dead for longest, as a report shows it."""
    job = next(view.jobs(queue, DEAD), None)
    if job is None:
        return None
    return {
        "id": job.id,
        "harness": job.type,
        "sessionKey": job.key,
        "createdAt": iso(job.enqueued_us),
        "attempts": job.attempts,
        "error": job.error,
    }


def find_job(view: QueuesView, text: str) -> str:
    """Return the id of the job that a person means, by an id or the unique beginning of one.

    Raises AmbiguousJobError or JobNotFoundError.
    """
    found = view.find(text, MOST_CANDIDATES + 1) if text else []
    if not found:
        raise JobNotFoundError(text, "")
    if len(found) > 1:
        more = ["…"] if len(found) > MOST_CANDIDATES else []
        raise AmbiguousJobError(text, ", ".join([*found[:MOST_CANDIDATES], *more]))
    return found[0]


def _queue(view: QueuesView, name: str, now_us: int) -> Document:
    counts = view.counts(name, now_us)
    dead: QueuedJob | None = next(view.jobs(name, DEAD), None)
    traffic = {window: view.traffic(name, now_us - us, now_us) for window, us in WINDOWS.items()}
    return {
        "pending": counts.pending,
        "leased": counts.leased,
        "completed": counts.completed,
        "failed": counts.failed,
        "dead": counts.dead,
        "cancelled": counts.cancelled,
        "scheduled": counts.scheduled,
        "oldestAgeSec": _age(view.waits_since_us(name), now_us),
        "oldestDeadAgeSec": _age(None if dead is None else dead.ended_us, now_us),
        "lastError": view.last_error(name),
        "rates": {
            window: {count: getattr(seen, count) for count in COUNTS}
            for window, seen in traffic.items()
        },
        "latencies": {
            window: {name: _latency(getattr(seen, kept)) for name, kept in _LATENCIES.items()}
            for window, seen in traffic.items()
        },
    }


def _latency(buckets: Buckets) -> Document:
    return {"p50Sec": _seconds(buckets, 0.5), "p95Sec": _seconds(buckets, 0.95)}


def _seconds(buckets: Buckets, share: float) -> float | None:
    found = percentile(buckets, share)
    return None if found is None else round(found / SECOND_US, 3)


def _age(since_us: int | None, now_us: int) -> int:
    """Return how many whole seconds ago a time was; 0 for none, and for one that is to come."""
    return 0 if since_us is None else max(0, now_us - since_us) // SECOND_US
