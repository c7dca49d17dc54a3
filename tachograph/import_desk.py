"""What every import of job runs shares: what came of a file, and how a run is told and saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph.domain.checkpoint_shapes import items_of
from tachograph.domain.records import _Fields
from tachograph.record_times import AHEAD_US
from tachograph.telling import Voice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run
    from tachograph.payloads import Payloads
    from tachograph.record_files import Problem
    from tachograph.runs import RunRepository

KIND = "job-runs"
"""Kind of the origin of an imported run."""
ORIGIN_TOPIC = "run.origin-recorded"
BATCH_TOPIC = "run.batch-completed"

IMPORTED = "imported"
CONTINUED = "continued"
KNOWN = "known"
LEFT_ALONE = "left-alone"
UNREADABLE = "unreadable"
TRIES = 5
"""How often what another import recorded first is looked at again, before that is reported."""
OVERTAKEN = "others record its run just now: try again"
STATES = (IMPORTED, CONTINUED, KNOWN, LEFT_ALONE, UNREADABLE)
"""What came of a folder or file: `continued` has grown since it was imported, `known` has not, or
was recorded here in the first place."""


class Row(_Fields):
    """What came of one folder or file.

    `runs` are the ids it went into, `status` how the last of them stands.
    """

    __slots__ = ("attempts", "kind", "path", "problems", "runs", "state", "status")

    def __init__(self, kind: str, path: str, state: str, problems: Sequence[Problem] = ()) -> None:
        self.kind = kind
        self.path = path
        self.state = state
        self.problems = list(problems)
        self.runs: list[str] = []
        self.status: str | None = None
        self.attempts = 0


class Desk:
    """What an import works with. Without `apply` nothing is written anywhere.

    `by` is who imports, and when: a time long after that cannot be one.
    """

    def __init__(
        self, repository: RunRepository, payloads: Payloads, by: Cause, *, apply: bool
    ) -> None:
        self.repository = repository
        self.by = by
        self.latest_us = by.time_us + AHEAD_US
        self.apply = apply
        self._payloads = payloads

    def store(self, value: Any, root: str) -> Any:
        """Put a large value away, when something is to be written at all."""
        return self._payloads.store(value, root) if self.apply else value

    def digest(self, value: Any, root: str) -> str:
        """Return the digest of a value."""
        return self._payloads.digest(value, root)

    def voice(self, run: Run) -> Voice:
        """Return what tells a run its events."""
        return Voice(run, self.by, self.store, lambda phase: self._recorded(run, phase))

    def is_touched(self, run: Run) -> bool:
        """Say whether something was recorded of a run since it was imported."""
        newest = self.repository.log.read_stream(run.id, reverse=True, limit=1)
        return not newest or newest[0].topic != ORIGIN_TOPIC

    def _recorded(self, run: Run, phase: str) -> Iterator[Any]:
        """Yield the items of the finished batches of a phase, also of those not saved yet."""
        after = run.phases[phase].version
        records = self.repository.log.read_stream(run.id, after=after)
        told = [self.repository.fields(each) for each in records if each.topic == BATCH_TOPIC]
        told += [vars(event) for event in run.pending_events if event.TOPIC == BATCH_TOPIC]
        for fields in told:
            if fields["phase"] == phase:
                yield from items_of(self._payloads.load(fields["output"]))

    def save(self, run: Run) -> None:
        """Append what a run was told: one commit, durable on return."""
        if self.apply:
            self.repository.save(run)


def status(run: Run) -> str:
    """Return how a run stands as far as the log says, in a word."""
    return run.ended or run.outcome or "interrupted"
