"""What became of a job after a repair, read from its events alone."""

from __future__ import annotations

from tachograph.domain import queue_events as events
from tachograph.domain.queued_job import LEASE_EXPIRED, OWNER_GONE
from tachograph.domain.repair_policy import RELEASE
from tachograph.health.judging import AGAIN, DONE, GONE, WAITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    Fields = dict[str, Any]
    Told = tuple[str, Fields]
    """Topic and fields of an event."""

_LOST = (OWNER_GONE, LEASE_EXPIRED)


def after_requeue(told: Iterable[Told], repair: str | None, ended_us: int) -> str:
    """Return what became of a job that a repair requeued, by all events of the job.

    The event of the requeue names the repair; where it does not, the last one until `ended_us`
    is meant. What happened after a later requeue says nothing about this one.
    """
    fate = WAITS
    for topic, _fields in _since(told, events.JobRequeued.TOPIC, repair, ended_us):
        if topic == events.JobRequeued.TOPIC:
            break
        if topic in _FATES:
            fate = _FATES[topic]
    return fate


def after_release(
    told: Iterable[Told], ended_us: int, *, lost_now: Callable[[], bool] = lambda: False
) -> str:
    """Return what became of a job that was taken from a lost holder.

    `lost_now` says whether its present holder is lost: asked only where there is one.
    """
    since = list(_since(told, events.JobReleased.TOPIC, None, ended_us))
    leased = False
    for topic, fields in since:
        if topic == events.JobLeased.TOPIC:
            leased = True
        elif topic == events.JobReleased.TOPIC and fields.get("code") in _LOST:
            return AGAIN
        elif topic in (events.JobCompleted.TOPIC, events.JobFailed.TOPIC, events.JobDied.TOPIC):
            return DONE
        elif topic in (events.JobCancelled.TOPIC, events.JobPruned.TOPIC):
            return GONE
    if not leased:
        return WAITS
    return AGAIN if lost_now() else DONE


def fate(action: str, told: Sequence[Told], kept: Fields, *, lost_now: Callable[[], bool]) -> str:
    """Return what became of a job since a repair; `kept` is what is known of the repair."""
    if action == RELEASE:
        return after_release(told, kept["ended_us"], lost_now=lost_now)
    return after_requeue(told, kept.get("repair"), kept["ended_us"])


_FATES = {
    events.JobCompleted.TOPIC: DONE,
    events.JobDied.TOPIC: AGAIN,
    events.JobCancelled.TOPIC: GONE,
    events.JobPruned.TOPIC: GONE,
}


def _since(told: Iterable[Told], topic: str, repair: str | None, ended_us: int) -> list[Told]:
    """Return the events after the one by which the repair changed the job."""
    every = list(told)
    chosen = None
    for number, (name, fields) in enumerate(every):
        if name != topic or fields["time_us"] > ended_us:
            continue
        if repair is None or fields.get("repair") in (None, repair):
            chosen = number
    return [] if chosen is None else every[chosen + 1 :]
