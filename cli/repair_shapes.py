"""The JSON of the commands that repair queues, as models; see `shapes`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Shape


class Denied(Shape):
    """Why a repair was not allowed to begin."""

    rule: Literal["frozen", "disabled", "halted", "cooldown", "budget"]
    retry_after_sec: int | None = Field(
        description="After how many seconds it can be tried again; null: time alone does not help."
    )


class OfQueue(Shape):
    """How many jobs of a queue matched, and how many were changed."""

    matching: int
    affected: int


class JobBefore(Shape):
    """A job as it was before."""

    job_id: str
    queue: str
    type: str
    status: Literal["pending", "leased", "completed", "dead", "cancelled", "pruned"]
    age_sec: int = Field(description="Since the event that made it what it is.")
    error: str | None


class Repaired(Shape):
    """`queue requeue`, `queue cancel`, `queue prune` and `queue restore`."""

    action: Literal["requeueDeadJobs", "cancelObsoleteJobs", "pruneTerminalJobs", "restoreJobs"]
    applied: bool = Field(description="Whether it was to be done, or only to be shown.")
    success: bool
    affected: int
    message: str
    total_matching: int = Field(description="All that match, however few are taken.")
    by_queue: dict[str, OfQueue]
    preview: list[str] = Field(description="Ids of the first 100 that are taken.")
    jobs: list[JobBefore] = Field(description="These, as they were before.")
    skipped: dict[str, str] = Field(description="Jobs that were not taken, and why.")
    repair: str | None = Field(description="The name that events of the jobs give the repair.")
    archives: list[str] = Field(description="Files in the store's archive folder.")
    denied: Denied | None


class Swept(Shape):
    """`queue sweep`."""

    applied: bool
    success: bool
    message: str
    completed_jobs_purged: int
    dead_jobs_purged: int
    cancelled_jobs_purged: int
    steps: int
    archives: list[str]
    by_queue: dict[str, dict[str, int]] = Field(description="Numbers of jobs by status.")
    refused: dict[str, str] = Field(description="Jobs whose time is over that stay, and why.")
    repair: str | None
    denied: Denied | None


REPAIRS: dict[str, TypeAdapter[Any]] = {
    "queue-requeue": TypeAdapter(Repaired),
    "queue-cancel": TypeAdapter(Repaired),
    "queue-prune": TypeAdapter(Repaired),
    "queue-restore": TypeAdapter(Repaired),
    "queue-sweep": TypeAdapter(Swept),
}
"""The shape of each command."""
