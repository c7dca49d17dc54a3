"""The same run as an aggregate of the `eventsourcing` library, on SQLite with its JSON transcoder.

The events carry the same fields as Tachograph's, the library's `timestamp` in place of `time_us`.
They are classes with `apply`, the fastest form that the library offers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate

if TYPE_CHECKING:
    from pathlib import Path

By = list[str | int]


class LibraryRun(Aggregate):
    """A run: what it began with, its phases, its finished batches."""

    phases: dict[str, dict[str, Any]]

    class Created(Aggregate.Created):
        """A run exists."""

        by: By
        command: str
        fingerprint: str
        inputs: dict[str, Any]
        inputs_digest: str
        title: str | None
        parent: str | None
        model_policy: Any

    class AttemptStarted(Aggregate.Event):
        """A process took the run over."""

        by: By
        epoch: int
        owner: dict[str, Any]
        reason: str | None

        def apply(self, aggregate: LibraryRun) -> None:
            aggregate.epoch = self.epoch
            aggregate.owner = self.owner
            aggregate.attempt_open = True

    class PhaseStarted(Aggregate.Event):
        """A phase began."""

        by: By
        phase: str
        safe_to_retry: bool

        def apply(self, aggregate: LibraryRun) -> None:
            aggregate.phases[self.phase] = {
                "status": "running",
                "epoch": aggregate.epoch,
                "safe_to_retry": self.safe_to_retry,
                "done": set(),
                "inputs": 0,
                "parsed": 0,
            }

    class BatchesPlanned(Aggregate.Event):
        """A phase will work through this many batches."""

        by: By
        phase: str
        total: int
        size: int
        items_digest: str | None

        def apply(self, aggregate: LibraryRun) -> None:
            phase = aggregate.phases[self.phase]
            phase["total"] = self.total
            phase["size"] = self.size

    class BatchCompleted(Aggregate.Event):
        """A batch was finished."""

        by: By
        phase: str
        index: int
        inputs: int | None
        parsed: int | None
        output: Any

        def apply(self, aggregate: LibraryRun) -> None:
            phase = aggregate.phases[self.phase]
            phase["done"].add(self.index)
            phase["inputs"] += self.inputs
            phase["parsed"] += self.parsed

    class CheckpointSaved(Aggregate.Event):
        """Where a resume may go on."""

        by: By
        phase: str | None
        kind: str
        state: Any

        def apply(self, aggregate: LibraryRun) -> None:
            aggregate.checkpoint = {"kind": self.kind, "state": self.state}

    def __init__(
        self,
        by: By,
        command: str,
        fingerprint: str,
        inputs: dict[str, Any],
        inputs_digest: str,
        title: str | None,
        parent: str | None,
        model_policy: Any,
    ) -> None:
        self.by = by
        self.command = command
        self.fingerprint = fingerprint
        self.inputs = inputs
        self.inputs_digest = inputs_digest
        self.title = title
        self.parent = parent
        self.model_policy = model_policy
        self.epoch = 0
        self.owner: dict[str, Any] = {}
        self.attempt_open = False
        self.phases = {}
        self.checkpoint: dict[str, Any] | None = None

    def record(self, topic: str, fields: dict[str, Any]) -> None:
        """Record one of Tachograph's events as this aggregate's own."""
        self.trigger_event(EVENTS[topic], **fields)


EVENTS = {
    "run.attempt-started": LibraryRun.AttemptStarted,
    "run.phase-started": LibraryRun.PhaseStarted,
    "run.batches-planned": LibraryRun.BatchesPlanned,
    "run.batch-completed": LibraryRun.BatchCompleted,
    "run.checkpoint-saved": LibraryRun.CheckpointSaved,
}


def application(database: Path) -> Application[Any]:
    """Return an application of the library on an SQLite file, otherwise as it comes."""
    return Application(
        env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(database)}
    )


def from_events(events: list[Any]) -> LibraryRun:
    """Return the aggregate with the same history as the events of a Tachograph run."""
    first, *rest = [(event.TOPIC, _fields(event)) for event in events]
    run = LibraryRun(**first[1])
    for topic, fields in rest:
        run.record(topic, fields)
    return run


def _fields(event: Any) -> dict[str, Any]:
    library = ("originator_id", "originator_version", "time_us")
    return {name: value for name, value in vars(event).items() if name not in library}
