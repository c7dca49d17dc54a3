"""Load runs from the log and append what they recorded. Knows no rule of a run."""

from __future__ import annotations

from tachograph.domain.bodies import ERASED
from tachograph.domain.errors import MalformedValueError, UnknownEventTypeError
from tachograph.domain.events import upcast
from tachograph.domain.records import NewRecord, SnapshotRecord
from tachograph.domain.run import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.domain.event import Event
    from tachograph.domain.records import Record
    from tachograph.packing import Packing
    from tachograph.ports import EventLog

    Fields = dict[str, Any]

SNAPSHOT_EVERY = 500
"""Events between snapshots: a load replays at most this many."""


class RunRepository:
    """Runs in an event log."""

    def __init__(
        self,
        log: EventLog,
        packing: Packing,
        *,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> None:
        self.log = log
        self.packing = packing
        self._snapshot_every = snapshot_every

    def get(self, run_id: str, *, up_to: int | None = None) -> Run | None:
        """Return a run as of its latest event (or of version `up_to`), or None.

        Starts from the latest snapshot, so the time does not grow with the length of the run.
        """
        run = self._from_snapshot(run_id, up_to)
        self.refresh(run, run_id, up_to=up_to)
        return run if run.version else None

    def _from_snapshot(self, run_id: str, up_to: int | None) -> Run:
        """Return the run as its latest snapshot has it, a blank one where none can be read."""
        run = Run()
        snapshot = self.log.snapshot(run_id, up_to=up_to)
        if snapshot is None:
            return run
        try:
            return run if run.restore(self.packing.unpack(snapshot.body)) else Run()
        except MalformedValueError:  # derived data: the events say the same
            return Run()

    def refresh(self, run: Run, run_id: str | None = None, *, up_to: int | None = None) -> None:
        """Apply the events that were recorded since."""
        records = self.log.read_stream(run_id or run.id, after=run.version, up_to=up_to)
        for record in records:
            run.evolve(record.topic, self.fields(record))

    def save(self, run: Run) -> list[int]:
        """Append the run's pending events, durable on return; all or none.

        Raises VersionConflictError when another writer was first, UnstorableValueError when a
        value has no stored form. In both cases nothing is written and the run is of no more
        use: load it again.
        """
        events = run.collect_events()
        if not events:
            return []
        snapshot = None
        before = run.version - len(events)
        if run.version // self._snapshot_every > before // self._snapshot_every:
            snapshot = SnapshotRecord(
                run.id, run.version, self.packing.pack(run.to_snapshot(), "state")
            )
        return self.log.append([self.record_of(event) for event in events], snapshot=snapshot)

    def fields(self, record: Record) -> Fields:
        """Return an event's fields as of today's version, with its place and version.

        Of an event whose body was erased, only these are known. Raises UnknownEventTypeError,
        and BodyLostError when an archive cannot give the body back.
        """
        if record.absent:
            return header_fields(record)
        fields: Fields = self.packing.unpack(record.body)
        fields["originator_id"] = record.stream
        fields["originator_version"] = record.version
        try:
            return upcast(record.topic, fields)
        except KeyError:
            place = f"position {record.position}"
            raise UnknownEventTypeError(record.topic, place) from None

    def record_of(self, event: Event) -> NewRecord:
        """Return an event as the log takes it."""
        fields = dict(vars(event))
        stream = fields.pop("originator_id")
        version = fields.pop("originator_version")
        if event.class_version > 1:
            fields["class_version"] = event.class_version
        return NewRecord(stream, version, event.TOPIC, event.time_us, self.packing.pack(fields, ""))


def header_fields(record: Record) -> Fields:
    """Return what is known of an event without its body."""
    return {
        ERASED: True,
        "time_us": record.time_us,
        "originator_id": record.stream,
        "originator_version": record.version,
    }
