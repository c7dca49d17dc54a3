"""Fold events of jobs into the queue index: for those that were recorded without it."""

from __future__ import annotations

from tachograph.domain.errors import VersionGapError
from tachograph.domain.queue_events import PREFIX, placed, stream_of
from tachograph.domain.queued_job import QueuedJob
from tachograph.infra.queue_rows import IndexDamagedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from tachograph.domain.records import Record, StreamId
    from tachograph.infra.codec import Codec
    from tachograph.infra.queue_rows import QueueRows

    Read = Callable[[str, int], Sequence[Record]]

    class Log(Protocol):
        """Where the events are."""

        def read_stream(self, stream: StreamId, *, up_to: int) -> Sequence[Record]:
            """Return the records of a stream up to a version."""
            ...


CHUNK = 2_000
"""Records that are folded at a time."""


def is_of_a_job(topic: str) -> bool:
    """Say whether a topic is one of a queued job."""
    return topic.startswith(PREFIX)


def fold(rows: QueueRows, codec: Codec, records: Sequence[Record], read: Read) -> None:
    """Apply records, in their order; those of other things are passed over.

    `read` returns the records of a job up to a version: an ended job has no row, and its events
    say what it was. A job of which an event was erased is unknown from there on.
    """
    changed: dict[str, QueuedJob | None] = {}
    for record in records:
        if not is_of_a_job(record.topic):
            continue
        job_id = str(record.stream)
        if job_id not in changed:
            changed[job_id] = rows.job(job_id) or _replay(codec, record, read)
        job = changed[job_id]
        if job is None or record.absent:
            changed[job_id] = None
            rows.drop(job_id)
        else:
            try:
                job = apply(job, codec, record)
            except VersionGapError as error:
                raise IndexDamagedError(job_id) from error  # a row is not what its events say
            rows.put(job)


def _replay(codec: Codec, record: Record, read: Read) -> QueuedJob | None:
    """Return the job as it was before a record; None where that is not known any more."""
    job = QueuedJob()
    for earlier in read(str(record.stream), record.version - 1) if record.version > 1 else ():
        if earlier.absent:
            return None
        apply(job, codec, earlier)
    return job


def apply(job: QueuedJob, codec: Codec, record: Record) -> QueuedJob:
    """Apply a record to its job, and return the job."""
    job.evolve(record.topic, placed(codec.unpack(record.body), record))
    if record.version == 1:
        job.position = record.position
    return job


def reader(log: Log) -> Read:
    """Return what reads the records of a job of a log up to a version."""
    return lambda job_id, up_to: log.read_stream(stream_of(job_id), up_to=up_to)
