"""The facts about the queues, from their view as of one moment. Judges nothing."""

from __future__ import annotations

from itertools import islice, takewhile

from tachograph.domain.queue_selection import CANCEL_RULE, PRUNE_RULE
from tachograph.domain.queue_settings import SECOND_US, QueueSettings
from tachograph.domain.queued_job import CANCELLED, COMPLETED, DEAD, LEASED, PENDING
from tachograph.queues.sweeping import SWEPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tachograph.domain.queue_settings import QueuePlan
    from tachograph.domain.queue_thresholds import HealthThresholds
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.projections.queue_health import QueuesView

    Facts = dict[str, Any]

RATE_US = 3600 * SECOND_US
"""The time over which the dead rate counts back."""
OBSOLETE_US = CANCEL_RULE.age_us or 0
"""Dead jobs that are older are obsolete, where their queue keeps them for longer."""
PRUNABLE_US = PRUNE_RULE.age_us or 0
"""Cancelled jobs that are older can be pruned, where their queue keeps them for longer."""
MOST_COUNTED = 1_000
"""Old jobs, and newly dead ones, are counted up to here: more is as bad."""


def queue_facts(
    view: QueuesView,
    plan: QueuePlan,
    thresholds: HealthThresholds,
    now_us: int,
    is_lost: Callable[[QueuedJob], bool],
) -> Facts:
    """Return the facts about all queues that are declared or hold jobs.

    `is_lost` says whether the holder of a leased job is lost. `depth` is what waits: failed jobs
    that wait for another attempt, too, and not those whose time has not come.
    """
    names = list(dict.fromkeys([*plan.queues, *view.names()]))
    queues = {name: _counts(view, name, now_us) for name in names}
    completed = sum(view.traffic(name, now_us - RATE_US, now_us).completed for name in names)
    died = sum(_newly_dead(view, name, now_us) for name in names)
    ended = completed + died
    facts = {
        "depth": sum(counts["pending"] + counts["failed"] for counts in queues.values()),
        "oldestAgeSec": max((counts["oldestAgeSec"] for counts in queues.values()), default=0),
        "deadRate": died / ended if ended else 0.0,
        "leaseAnomalies": sum(map(is_lost, view.jobs(status=LEASED))),
        "completedLastHour": completed,
        "deadLastHour": died,
        "queues": queues,
        "thresholds": thresholds.as_document(names),
    }
    return facts | _old(view, plan, names, now_us)


def _counts(view: QueuesView, name: str, now_us: int) -> Facts:
    counts = view.counts(name, now_us)
    since_us = view.waits_since_us(name)
    dead = next(view.jobs(name, DEAD), None)
    waiting = next(view.jobs(name, PENDING), None)
    found = {state: getattr(counts, state) for state in counts.__slots__}
    return {
        **found,
        "oldestAgeSec": _age(since_us, now_us),
        "oldestWaitingSec": _age(None if waiting is None else waiting.waiting_us, now_us),
        "oldestDeadAgeSec": _age(None if dead is None else dead.ended_us, now_us),
        "lastError": view.last_error(name),
    }


def _age(since_us: int | None, now_us: int) -> int:
    return 0 if since_us is None else max(0, now_us - since_us) // SECOND_US


def _newly_dead(view: QueuesView, name: str, now_us: int) -> int:
    """Return how many jobs died within the hour and are dead still."""
    newest = view.jobs(name, DEAD, reverse=True)
    recent = takewhile(lambda job: now_us - (job.ended_us or 0) < RATE_US, newest)
    found = _some(recent)
    if found < MOST_COUNTED:
        return found
    # More than are looked at one by one: of those that died, the ones that are dead at most.
    return min(view.counts(name, now_us).dead, view.traffic(name, now_us - RATE_US, now_us).died)


def _some(jobs: Iterable[QueuedJob]) -> int:
    return sum(1 for _ in islice(jobs, MOST_COUNTED))


def _old(view: QueuesView, plan: QueuePlan, names: list[str], now_us: int) -> Facts:
    """Return how many jobs are past what they are kept for; each counts for one repair."""
    found = {"expired": 0, "obsolete": 0, "prunable": 0}
    for name in names:
        settings = plan.queues.get(name) or QueueSettings(name)
        kept_us: dict[str, int] = dict.fromkeys(SWEPT, settings.dead_kept_us)
        kept_us[COMPLETED] = settings.completed_kept_us
        for status, each_us in kept_us.items():
            jobs = view.jobs(name, status, older_than_us=now_us - each_us)
            found["expired"] += _some(jobs)
        for fact, status, age_us in (
            ("obsolete", DEAD, OBSOLETE_US),
            ("prunable", CANCELLED, PRUNABLE_US),
        ):
            found[fact] += _between(view, name, status, now_us - kept_us[status], now_us - age_us)
    return found


def _between(view: QueuesView, name: str, status: str, since_us: int, before_us: int) -> int:
    """Return how many jobs have been in a status since a time between two."""
    if before_us <= since_us:
        return 0
    newest = view.jobs(name, status, older_than_us=before_us, reverse=True)
    return _some(takewhile(lambda job: (job.ended_us or 0) >= since_us, newest))
