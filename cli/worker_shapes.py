"""The JSON of the command that does the jobs of queues, as a model; see `shapes`."""

from __future__ import annotations

from typing import Any

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Shape


class WorkerEnded(Shape):
    """`queue worker`, once it has ended."""

    queues: list[str]
    begun: int = Field(description="Leases.")
    completed: int = Field(description="Jobs.")
    failed: int = Field(description="Attempts, those after which a job was dead included.")
    dead: int = Field(description="Jobs that have no attempt left, or that none can help.")
    released: int = Field(description="Leases that were given back; the attempt does not count.")
    lost: int = Field(description="Leases that were another worker's before their job was done.")
    failing: list[str] = Field(description="Jobs whose last attempt here failed.")
    left_at_work: list[str] = Field(description="Jobs whose handler did not end in time.")
    seconds: float


WORKER: dict[str, TypeAdapter[Any]] = {"queue-worker": TypeAdapter(WorkerEnded)}
