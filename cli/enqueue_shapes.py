"""The JSON of `queue enqueue`; see `shapes`."""

from __future__ import annotations

from typing import Any

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Shape


class EnqueuedJob(Shape):
    """A job that does what was wanted."""

    job_id: str
    created: bool = Field(description="False: its key had a job already, which is this one.")


class Enqueued(EnqueuedJob):
    """`queue enqueue`."""

    queue: str
    type: str


class EnqueuedMany(Shape):
    """`queue enqueue` with `--jsonl`."""

    queue: str
    enqueued: int = Field(description="Jobs that are new.")
    existing: int = Field(description="Lines whose key had a job already.")
    jobs: list[EnqueuedJob] = Field(description="The job of each line, in their order.")


ENQUEUE: dict[str, TypeAdapter[Any]] = {"queue-enqueue": TypeAdapter(Enqueued | EnqueuedMany)}
