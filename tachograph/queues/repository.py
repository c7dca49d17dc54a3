"""Load jobs from the log, and turn what they recorded into records. Knows no rule of a job."""

from __future__ import annotations

from tachograph.domain.bodies import ERASED
from tachograph.domain.queue_events import placed, stream_of
from tachograph.domain.queued_job import QueuedJob
from tachograph.domain.records import NewRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.domain.records import Record
    from tachograph.packing import Packing
    from tachograph.ports import EventLog

    Fields = dict[str, Any]


class QueueRepository:
    """Jobs in an event log."""

    def __init__(self, log: EventLog, packing: Packing) -> None:
        self.log = log
        self.packing = packing

    def get(self, job_id: str) -> QueuedJob | None:
        """Return a job as its events have left it; None where there is none, or one was erased.

        Raises BodyLostError.
        """
        job = QueuedJob()
        for record in self.records(job_id):
            if record.absent:
                return None
            job.evolve(record.topic, self.fields(record))
            if record.version == 1:
                job.position = record.position
        return job if job.version else None

    def records(self, job_id: str) -> Sequence[Record]:
        """Return the records of a job; none for what is no id of one."""
        try:
            stream = stream_of(job_id)
        except ValueError:
            return []
        return self.log.read_stream(stream)

    def history(self, job_id: str) -> list[tuple[Record, Fields]]:
        """Return the events of a job in order: record, fields as of today's version."""
        return [(record, self.fields(record)) for record in self.records(job_id)]

    def payload(self, job: QueuedJob) -> Any:
        """Return the stored form of a job's payload: `Payloads.load` makes the value of it."""
        records = self.log.read(after=job.position - 1, up_to=job.position, limit=1)
        return self.fields(records[0]).get("payload") if records else None

    def fields(self, record: Record) -> Fields:
        """Return the fields of an event as of today's version, with its place and version."""
        fields: Fields = {ERASED: True} if record.absent else self.packing.unpack(record.body)
        return placed(fields, record)

    def records_of(self, job: QueuedJob) -> list[NewRecord]:
        """Return the records of a job's pending events, and collect these."""
        return [self._record(event) for event in job.collect_events()]

    def _record(self, event: Any) -> NewRecord:
        fields = dict(vars(event))
        stream = stream_of(fields.pop("originator_id"))
        version = fields.pop("originator_version")
        return NewRecord(stream, version, event.TOPIC, event.time_us, self.packing.pack(fields, ""))
