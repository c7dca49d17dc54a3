"""Fold events of jobs into the queue index: for those that were recorded without it."""

from __future__ import annotations

from tachograph.domain.bodies import ERASED
from tachograph.domain.queue_events import PREFIX, upcast
from tachograph.domain.queued_job import QueuedJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any
    from uuid import UUID

    from tachograph.domain.records import Record
    from tachograph.infra.codec import Codec
    from tachograph.infra.queue_rows import QueueRows

    Read = Callable[[str, int], Sequence[Record]]


def is_of_a_job(topic: str) -> bool:
    """Say whether a topic is one of a queued job."""
    return topic.startswith(PREFIX)


def fold(rows: QueueRows, codec: Codec, records: Sequence[Record], read: Read) -> None:
    """Apply records, in their order; those of other things are passed over.

    `read` returns the records of a job up to a version: an ended job has no row, and its events
    say what it was.
    """
    changed: dict[str, QueuedJob] = {}
    for record in records:
        if not is_of_a_job(record.topic):
            continue
        job_id = str(record.stream)
        job = changed.get(job_id) or rows.job(job_id)
        if job is None:
            job = replay(codec, read(job_id, record.version - 1)) if record.version > 1 else None
        job = apply(job or QueuedJob(), codec, record)
        changed[job_id] = job
        rows.put(job)


def replay(codec: Codec, records: Sequence[Record]) -> QueuedJob | None:
    """Return the job that events leave; None without any."""
    job = QueuedJob()
    for record in records:
        apply(job, codec, record)
    return job if job.version else None


def apply(job: QueuedJob, codec: Codec, record: Record) -> QueuedJob:
    """Apply a record to its job, and return the job."""
    job.evolve(record.topic, fields_of(codec, record))
    if record.version == 1:
        job.position = record.position
    return job


def fields_of(codec: Codec, record: Record) -> dict[str, Any]:
    """Return the fields of an event as of today's version."""
    fields: dict[str, Any] = {ERASED: True} if record.absent else codec.unpack(record.body)
    fields["originator_id"] = str(record.stream)
    fields["originator_version"] = record.version
    fields.setdefault("time_us", record.time_us)
    return upcast(record.topic, fields)


def stream_of(job_id: str) -> UUID:
    """Return the stream of a job."""
    from uuid import UUID

    return UUID(job_id)
