"""Every event of a queued job. Topics and fields are frozen: old logs must stay readable (G9)."""

from __future__ import annotations

from tachograph.domain.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar
    from uuid import UUID

    from tachograph.domain.queued_job import QueuedJob
    from tachograph.domain.records import Record

    Fields = dict[str, Any]

PREFIX = "queue."
"""What the topics of all these events begin with."""


class JobEvent(Event):
    """A fact about a queued job; its stream is the job's id, a UUID."""

    def mutate(self, aggregate: QueuedJob | None) -> QueuedJob:  # type: ignore[override]
        """Apply this fact to the job (the library's protocol); None makes a new one."""
        if aggregate is None:
            from tachograph.domain.queued_job import QueuedJob

            aggregate = QueuedJob()
        aggregate.evolve(type(self).TOPIC, self.__dict__)
        return aggregate


class JobEnqueued(JobEvent):
    """A job waits in a queue."""

    TOPIC: ClassVar[str] = "queue.job-enqueued"
    queue: str
    type: str
    """What kind of work it is: by it a worker finds the handler."""
    payload: Any
    """What the handler is given (or a BlobRef)."""
    priority: int
    """Higher ones are taken first; 0 unless said otherwise."""
    available_us: int | None
    """Not taken before this time; None: at once."""
    max_attempts: int
    key: str | None
    """No other job of the queue may have this key while this one waits or is leased."""
    key_window_us: int | None
    """Microseconds for which the key stays taken after the job has ended."""
    concurrency_key: str | None
    """Jobs of one such key are at work a few at a time only."""


class JobLeased(JobEvent):
    """A worker took the job; earlier holders are fenced by its epoch."""

    TOPIC: ClassVar[str] = "queue.job-leased"
    epoch: int
    """1 for the first lease of the job, one more for each later one."""
    attempt: int
    """1 for the first attempt since it was enqueued or requeued."""
    owner: Any
    """Fields of `domain.owner.Owner`."""
    lease_seconds: float
    """How long the holder may be silent before the job is given to another."""
    boottime_us: int | None
    """Microseconds since the owner's machine was started: the clock that measures its silence."""
    metered: bool
    """Whether it counts towards the rate of the queue."""


class JobCompleted(JobEvent):
    """The holder did the work."""

    TOPIC: ClassVar[str] = "queue.job-completed"
    epoch: int
    result: Any
    """What the handler returned (or a BlobRef)."""
    outcome: str | None
    """Outcome of the run of the job, where it had one."""
    run: str | None
    """Id of that run."""


class JobFailed(JobEvent):
    """The holder's attempt failed; the job waits for another one, or died by the next event."""

    TOPIC: ClassVar[str] = "queue.job-failed"
    epoch: int
    attempt: int
    error: str
    code: str
    """What kind of failure, for programs."""
    terminal: bool
    """Whether no further attempt can help."""
    retry_us: int | None
    """When it is tried again; None when it is not."""
    run: str | None


class JobReleased(JobEvent):
    """The job was taken back from a holder that did not end it."""

    TOPIC: ClassVar[str] = "queue.job-released"
    epoch: int
    code: str
    """One of `queued_job.RELEASES`."""
    reason: str
    counted: bool
    """Whether the attempt stays counted: not when the holder gave it back in good order."""
    retry_us: int | None
    """When it may be taken again; None: at once."""


class JobDied(JobEvent):
    """No further attempt is made, until a person or a repair requeues it."""

    TOPIC: ClassVar[str] = "queue.job-died"
    code: str
    """One of `queued_job.DEATHS`."""
    error: str
    """The last error, or what took the place of one."""


class JobRequeued(JobEvent):
    """A dead or cancelled job waits again, as if it had never been tried."""

    TOPIC: ClassVar[str] = "queue.job-requeued"
    status_before: str
    reason: str
    repair: str | None
    """Id of the repair that did so; None for a single command."""


class JobCancelled(JobEvent):
    """Nobody is to do the job."""

    TOPIC: ClassVar[str] = "queue.job-cancelled"
    status_before: str
    reason: str
    repair: str | None


class JobPruned(JobEvent):
    """The job is in no list and no counter any more; its events are in an archive."""

    TOPIC: ClassVar[str] = "queue.job-pruned"
    status_before: str
    reason: str
    repair: str | None
    archive: str
    """Name of the file in the store's archive folder."""


class JobRestored(JobEvent):
    """A cancelled or pruned job is again what it was before."""

    TOPIC: ClassVar[str] = "queue.job-restored"
    status: str
    """What it is again; what was leased waits."""
    reason: str
    repair: str | None


QUEUE_EVENTS: dict[str, type[JobEvent]] = {
    cls.TOPIC: cls
    for cls in list(globals().values())
    if isinstance(cls, type) and issubclass(cls, JobEvent) and cls is not JobEvent
}
"""Every event of a queued job by its topic."""


def upcast(topic: str, fields: Fields) -> Fields:
    """Bring stored fields to today's version of their event, in place, and return them.

    Raises KeyError for an unknown topic, and for a version that only a newer Tachograph knows.
    """
    stored = fields.pop("class_version", 1)
    if stored > QUEUE_EVENTS[topic].class_version:
        raise KeyError(f"{topic} version {stored}")
    return fields


def placed(fields: Fields, record: Record) -> Fields:
    """Return stored fields as of today's version, with what their record says of their place."""
    fields["originator_id"] = str(record.stream)
    fields["originator_version"] = record.version
    fields.setdefault("time_us", record.time_us)
    return upcast(record.topic, fields)


def stream_of(job_id: str) -> UUID:
    """Return the stream of a job. Raises ValueError for a text that is no id."""
    from uuid import UUID

    return UUID(job_id)
