"""The JSON of the commands that show queues, as models; see `shapes`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import EventLine, Free, Moment, Shape

State = Literal[
    "pending", "scheduled", "failed", "leased", "completed", "dead", "cancelled", "pruned"
]


class QueueRates(Shape):
    """What happened in a span of time."""

    enqueued: int
    leased: int
    completed: int
    failed: int = Field(description="Attempts that failed, or whose holder was lost.")
    died: int


class SpanRates(Shape):
    """What happened lately."""

    last_hour: QueueRates
    last_day: QueueRates


class Latency(Shape):
    """How long something took, within a tenth; null where it never happened."""

    p50_sec: float | None = Field(alias="p50Sec")
    p95_sec: float | None = Field(alias="p95Sec")


class Latencies(Shape):
    """How long jobs waited, and how long they were at work."""

    enqueue_to_start: Latency = Field(description="From when a job could be taken to its lease.")
    start_to_end: Latency = Field(description="From the lease to the completion.")


class SpanLatencies(Shape):
    """How long it took lately."""

    last_hour: Latencies
    last_day: Latencies


class QueueState(Shape):
    """A queue; each of its jobs is in exactly one of the counters."""

    pending: int = Field(description="Could be taken now.")
    leased: int = Field(description="At work.")
    completed: int
    failed: int = Field(description="Wait for another attempt after a failed one.")
    dead: int
    cancelled: int
    scheduled: int = Field(description="Their time has not come.")
    oldest_age_sec: int = Field(
        description="Since when a job that waits or is at work has done so, the longest; else 0."
    )
    oldest_dead_age_sec: int = Field(description="How long the oldest dead job has been dead.")
    last_error: str | None = Field(description="The latest of pending, leased and dead jobs.")
    rates: SpanRates
    latencies: SpanLatencies


class OldestDeadJob(Shape):
    """The job of a queue that has been dead for longest."""

    id: str
    harness: str = Field(description="Type of the job.")
    session_key: str | None = Field(description="Unique key of the job.")
    created_at: Moment
    attempts: int
    error: str | None


class QueueReport(Shape):
    """`queue status`: the body of `/api/diagnostics/queue`."""

    timestamp: Moment
    queues: dict[str, QueueState]
    oldest_dead_summary_job: OldestDeadJob | None
    oldest_dead_memory_job: OldestDeadJob | None
    oldest_dead_jobs: dict[str, OldestDeadJob | None] = Field(description="By queue.")
    thresholds: dict[str, int | float] = Field(
        description="With which health is scored: `<queue>DeadWarn` and so on."
    )


class JobRow(Shape):
    """A job, in `queue list`."""

    job_id: str
    queue: str
    type: str
    state: State
    since: Moment | None = Field(description="The event that matters for its age in its state.")
    priority: int
    attempts: int
    max_attempts: int
    key: str | None
    concurrency_key: str | None
    created_at: Moment
    available_at: Moment | None
    leased_at: Moment | None
    failed_at: Moment | None
    ended_at: Moment | None
    error: str | None
    code: str | None


class JobShown(JobRow):
    """`queue show`."""

    why: str = Field(description="What it waits for, who holds it, or what ended it.")
    holder: dict[str, Any] | None = Field(description="The process that holds it.")
    epoch: int = Field(description="Leases so far.")
    lease_seconds: float | None
    run_id: str | None = Field(description="The run of its executions.")
    payload: Free = None
    payload_missing: str | None = Field(description="Why the payload cannot be read.")
    history: list[EventLine]


QUEUES: dict[str, TypeAdapter[Any]] = {
    "queue-status": TypeAdapter(QueueReport),
    "queue-list": TypeAdapter(list[JobRow]),
    "queue-show": TypeAdapter(JobShown),
}
