"""Which jobs there are, in which state and since when, and what goes through the queues. No clock.

Every number is a fold of the log: nobody counts rows to answer how a queue is.
"""

from __future__ import annotations

from tachograph.domain import queue_events as events
from tachograph.domain.queued_job import (
    CANCELLED,
    COMPLETED,
    DEAD,
    LEASED,
    PENDING,
    PRUNED,
    QueuedJob,
)
from tachograph.domain.records import _Fields
from tachograph.projections.folding import ERASED, clip, small
from tachograph.projections.queue_traffic import (
    HOUR,
    KEPT,
    MINUTE,
    MINUTE_US,
    MINUTES,
    Traffic,
    note,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    Fields = dict[str, Any]
    Entry = tuple[str, int]
    """A list, and a job's place in it: a time in µs."""
    Span = tuple[str, str, int]
    """Queue, MINUTE or HOUR, number of the minute or hour since 1970."""

    class QueuesView(Protocol):
        """Where jobs and the state of queues are found, as of one moment."""

        def names(self) -> list[str]:
            """Return every queue that a job was ever put in, in order of their names."""
            ...

        def counts(self, queue: str, now_us: int) -> Counts:
            """Return how many jobs are in which state; at a cost that no number of jobs raises."""
            ...

        def job(self, job_id: str) -> QueuedJob | None:
            """Return a job, a pruned one too; None when there is none of this id."""
            ...

        def find(self, prefix: str, limit: int) -> list[str]:
            """Return at most so many ids that begin so, pruned jobs' too, in their order."""
            ...

        def jobs(
            self,
            queue: str | None = None,
            status: str | None = None,
            *,
            older_than_us: int | None = None,
            reverse: bool = False,
        ) -> Iterator[QueuedJob]:
            """Yield jobs in the order of the event that matters, the longest ago first.

            That is since when a pending job waits (or when it is due), when a leased one was
            leased, when another was completed, died or was cancelled; of a pruned one, what it
            was before. `status` is one of `LISTS`; None: all but pruned ones. `older_than_us`
            is a time: only jobs whose event was before it. No more is read than is taken.
            """
            ...

        def waits_since_us(self, queue: str) -> int | None:
            """Return since when the job waits that waited first, leased or not; None for none.

            It is in the future where none of them is due yet.
            """
            ...

        def last_error(self, queue: str) -> str | None:
            """Return the latest error among jobs that are pending, leased or dead, else None."""
            ...

        def traffic(self, queue: str, since_us: int, until_us: int) -> Traffic:
            """Return what happened in a span of time, in whole minutes, of at most two days."""
            ...

    class QueuesWriter(QueuesView, Protocol):
        """Where they are kept."""

        def put_job(self, job: QueuedJob) -> None:
            """Keep a job."""
            ...

        def drop_job(self, job_id: str) -> None:
            """Drop a job."""
            ...

        def put_entry(self, queue: str, entry: Entry, job_id: str) -> None:
            """Add a job to a list; where it is SCHEDULED, to those that are due at a time, too."""
            ...

        def drop_entry(self, queue: str, entry: Entry, job_id: str) -> None:
            """Take a job out of a list, and of those that are due at a time."""
            ...

        def tally(self, queue: str) -> dict[str, int]:
            """Return how many jobs are in which list, and how many spans are kept."""
            ...

        def put_tally(self, queue: str, tally: dict[str, int]) -> None:
            """Keep these numbers."""
            ...

        def span(self, span: Span) -> Traffic | None:
            """Return the traffic of a span, or None."""
            ...

        def put_span(self, span: Span, traffic: Traffic) -> None:
            """Keep the traffic of a span."""
            ...

        def drop_first_span(self, queue: str, length: str) -> None:
            """Drop the earliest span of this length."""
            ...


WAITING = "waiting"
"""List of pending jobs that have not failed, and could be taken at once when they began to wait."""
SCHEDULED = "scheduled"
"""Of pending jobs that have not failed, and that are (or were) to wait for a time."""
FAILED = "failed"
"""Of pending jobs that wait for another attempt after a failed one."""
COUNTED = (WAITING, SCHEDULED, FAILED, LEASED, COMPLETED, DEAD, CANCELLED)
"""The lists in which each job that is not pruned is once."""
AT_WORK = "at-work"
"""Of leased jobs, by when they began to wait."""
ERRORS = "errors"
"""Of pending, leased and dead jobs with an error, by when it was."""
LISTS: dict[str | None, tuple[str, ...]] = {
    None: COUNTED,
    PENDING: (WAITING, SCHEDULED, FAILED),
    **{name: (name,) for name in (*COUNTED, PRUNED)},
}
"""What can be asked for, and the lists that answer it."""
TALLIED = (*COUNTED, MINUTE, HOUR)
"""The numbers that are kept of each queue."""

_LATEST_US = 2**63 - 1
"""The end of time that a view can hold."""
_RELEASED = events.JobReleased.TOPIC
_TRAFFIC = {
    events.JobEnqueued.TOPIC: "enqueued",
    events.JobLeased.TOPIC: "leased",
    events.JobCompleted.TOPIC: "completed",
    events.JobFailed.TOPIC: "failed",
    _RELEASED: "failed",
    events.JobDied.TOPIC: "died",
}


class Counts(_Fields):
    """How many jobs of a queue are in which state; each that is not pruned is in exactly one."""

    __slots__ = (
        "cancelled",
        "completed",
        "dead",
        "failed",
        "leased",
        "pending",
        "scheduled",
    )

    def __init__(self, tally: dict[str, int], not_due: int) -> None:
        self.pending = tally[WAITING] + tally[SCHEDULED] - not_due
        """They could be taken now."""
        self.scheduled = not_due
        """Their time has not come, and they have not failed."""
        self.failed = tally[FAILED]
        """They wait for another attempt after a failed one."""
        self.leased = tally[LEASED]
        self.completed = tally[COMPLETED]
        self.dead = tally[DEAD]
        self.cancelled = tally[CANCELLED]


def state_of(job: QueuedJob, now_us: int) -> str:
    """Return the state in which a job is counted: a name of `Counts`, or `pruned`."""
    name = list_of(job)
    if name not in (WAITING, SCHEDULED):
        return name
    return SCHEDULED if name == SCHEDULED and job.waiting_us > now_us else PENDING


def list_of(job: QueuedJob) -> str:
    """Return the one list of `COUNTED` that a job is in, or PRUNED."""
    if job.status != PENDING:
        return job.status
    if job.error is not None:
        return FAILED
    # It waits since it was due, and not since it was put there.
    return SCHEDULED if job.available_us == job.waiting_us else WAITING


def matters_us(job: QueuedJob) -> int:
    """Return the time of the event that matters for the age of a job in its state."""
    if job.status == PENDING:
        return job.waiting_us
    return (job.leased_us if job.status == LEASED else job.ended_us) or 0


def _entries(job: QueuedJob) -> list[Entry]:
    """Return all lists that a job is in, and where; its own first."""
    found = [(list_of(job), matters_us(job))]
    if job.status == LEASED:
        found.append((AT_WORK, job.waiting_us))
    if job.error is not None and job.status in (PENDING, LEASED, DEAD):
        found.append((ERRORS, (job.ended_us if job.status == DEAD else job.failed_us) or 0))
    return [(name, min(max(0, time_us), _LATEST_US)) for name, time_us in found]


class _Met:
    """A job that was met: as it is now, and the places that are stored of it."""

    __slots__ = ("job", "queue", "stored")

    def __init__(self, job: QueuedJob | None) -> None:
        self.job = job
        self.queue = "" if job is None else job.queue
        self.stored = [] if job is None else _entries(job)


class QueueHealth:
    """Folds events of jobs."""

    __slots__ = ("_met", "_minutes", "_tallies", "_view")

    def __init__(self, view: QueuesWriter) -> None:
        self._view = view
        self._met: dict[str, _Met] = {}
        self._minutes: dict[tuple[str, int], Traffic] = {}
        """What is to be added to stored spans, by queue and minute since 1970."""
        self._tallies: dict[str, dict[str, int]] = {}

    def fold(self, topic: str, fields: Fields, position: int, stream: str) -> None:
        """Apply one event."""
        met = self._met.get(stream)
        if met is None:
            met = self._met[stream] = _Met(self._view.job(stream))
        if ERASED in fields:  # what is left says nothing of the job any more
            met.job = None
            return
        if topic == events.JobEnqueued.TOPIC:
            met.job = QueuedJob()
            met.job.position = position
        job = met.job
        if job is None:
            return  # its first event is gone
        waiting_us, leased_us = job.waiting_us, job.leased_us
        job.evolve(topic, fields)
        job.error = clip(job.error)
        if job.owner is not None:
            job.owner = small(job.owner)
        met.queue = job.queue
        self._count(topic, fields, job.queue, waiting_us, leased_us)

    def flush(self) -> None:
        """Write every job and every number that changed."""
        for job_id, met in self._met.items():
            self._write(job_id, met)
        for span, traffic in self._spans().items():
            self._add(span, traffic)
        for queue, tally in self._tallies.items():
            self._trim(queue, tally)
            self._view.put_tally(queue, tally)
        self._met, self._minutes, self._tallies = {}, {}, {}

    def _count(
        self, topic: str, fields: Fields, queue: str, waiting_us: int, leased_us: int | None
    ) -> None:
        """Add an event to the traffic of its minute."""
        name = _TRAFFIC.get(topic)
        if name is None or (topic == _RELEASED and not fields["counted"]):
            return
        time_us = fields["time_us"]
        minute = (queue, max(0, time_us) // MINUTE_US)
        traffic = self._minutes.get(minute)
        if traffic is None:
            traffic = self._minutes[minute] = Traffic()
        setattr(traffic, name, getattr(traffic, name) + 1)
        if name == "leased":
            note(traffic.waits, time_us - waiting_us)
        elif name == "completed" and leased_us is not None:
            note(traffic.works, time_us - leased_us)

    def _spans(self) -> dict[Span, Traffic]:
        """Return what is to be added to minutes and hours."""
        spans: dict[Span, Traffic] = {}
        for (queue, minute), traffic in self._minutes.items():
            for length, number in ((MINUTE, minute), (HOUR, minute // MINUTES)):
                spans.setdefault((queue, length, number), Traffic()).add(traffic)
        return spans

    def _write(self, job_id: str, met: _Met) -> None:
        """Bring what is stored of a job to what it is."""
        now = [] if met.job is None else _entries(met.job)
        for entry in met.stored:
            if entry not in now:
                self._view.drop_entry(met.queue, entry, job_id)
        for entry in now:
            if entry not in met.stored:
                self._view.put_entry(met.queue, entry, job_id)
        if met.job is not None:
            self._view.put_job(met.job)
        elif met.stored:
            self._view.drop_job(job_id)
        if met.queue:
            tally = self._tally(met.queue)
            for entries, step in ((met.stored[:1], -1), (now[:1], 1)):
                for name, _ in entries:
                    if name != PRUNED:
                        tally[name] += step

    def _add(self, span: Span, traffic: Traffic) -> None:
        """Add to what is stored of a span."""
        stored = self._view.span(span)
        if stored is None:
            self._tally(span[0])[span[1]] += 1
        else:
            traffic.add(stored)
        self._view.put_span(span, traffic)

    def _trim(self, queue: str, tally: dict[str, int]) -> None:
        """Drop the earliest spans where there are more than are kept."""
        for length, kept in KEPT.items():
            while tally[length] > kept:
                self._view.drop_first_span(queue, length)
                tally[length] -= 1

    def _tally(self, queue: str) -> dict[str, int]:
        found = self._tallies.get(queue)
        if found is None:
            found = self._tallies[queue] = self._view.tally(queue)
        return found
