"""What a worker tells of itself: one object for each thing that happened, and counts."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from tachograph.domain.records import _Fields

if TYPE_CHECKING:
    from typing import Any

    from tachograph.domain.queued_job import QueuedJob

EVENTS = (
    "started",
    "begun",
    "completed",
    "failed",
    "dead",
    "released",
    "lost",
    "recovered",
    "overloaded",
    "swept",
    "stopping",
    "stopped",
    "error",
)
"""What can be told. `recovered`: of a lost holder. `lost`: our own lease is another one's now."""
SERIOUS = ("failed", "dead", "lost", "overloaded", "error")


class Told(_Fields):
    """Something that happened to a worker or to a job of it."""

    __slots__ = ("attempt", "code", "error", "event", "job", "outcome", "queue", "seconds", "type")

    def __init__(
        self,
        event: str,
        *,
        job: QueuedJob | str | None = None,
        queue: str | None = None,
        seconds: float | None = None,
        outcome: str | None = None,
        error: str | None = None,
        code: str | None = None,
    ) -> None:
        self.event = event
        known = None if isinstance(job, str) else job
        self.job = job if known is None else known.id
        self.queue = queue if known is None else known.queue
        self.type = None if known is None else known.type
        self.attempt = None if known is None else known.attempts
        self.seconds = seconds
        """How long the job was at work; how long nothing is leased, when `overloaded`."""
        self.outcome = outcome
        self.error = error
        self.code = code

    def to_fields(self) -> dict[str, Any]:
        """Return what is known, as plain values."""
        fields = {name: getattr(self, name) for name in ("event", "job", "queue", "type")}
        for name in ("attempt", "seconds", "outcome", "code", "error"):
            fields[name] = getattr(self, name)
        return {name: value for name, value in fields.items() if value is not None}


class Tally:
    """How many jobs a worker began, and what became of them. Threads share it."""

    def __init__(self) -> None:
        self.begun = 0
        self.completed = 0
        self.failed = 0
        """Attempts that failed, those of dead jobs included."""
        self.dead = 0
        self.released = 0
        self.lost = 0
        self.failing: set[str] = set()
        """Jobs whose last attempt here failed."""
        self._lock = Lock()

    def begin(self) -> None:
        """Count a job that is begun."""
        with self._lock:
            self.begun += 1

    def complete(self, job_id: str) -> None:
        """Count a completed job."""
        with self._lock:
            self.completed += 1
            self.failing.discard(job_id)

    def fail(self, job_id: str, *, dead: bool) -> None:
        """Count a failed attempt."""
        with self._lock:
            self.failed += 1
            self.dead += dead
            self.failing.add(job_id)
