"""Say what has happened to a job, what is asked, and what follows: as `given_when_then` for runs.

given(ENQUEUED).when(QueuedJob.lease, holder(0), OWNER, 300.0).then(leased(1))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import pytest

from tachograph.domain import queue_events as events
from tachograph.domain.errors import TachographError
from tachograph.domain.event import COMMON, Cause
from tachograph.domain.queued_job import QueuedJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tachograph.domain.queue_events import JobEvent

P = ParamSpec("P")

JOB_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
START_US = 1_700_000_000_000_000
SECOND_US = 1_000_000
OWNER = {"kind": "process", "host": "ada", "pid": 17, "started": 99, "boot_id": "b"}


def holder(epoch: int, second: int = 0) -> Cause:
    """A command given by who holds a lease, at a second after the start."""
    return Cause(START_US + second * SECOND_US, "tacho", "ada", 17, epoch)


def person(second: int = 0) -> Cause:
    """A command given by nobody who holds the job."""
    return Cause(START_US + second * SECOND_US, "mira", "ada", 4711)


class Fact:
    """An event without its place, time and cause."""

    def __init__(self, kind: type[JobEvent], fields: dict[str, object], second: int) -> None:
        self.kind = kind
        self.fields = fields
        self.second = second

    def at(self, version: int, cause: Cause) -> JobEvent:
        """The event as it is recorded at a version."""
        return self.kind(
            **self.fields,
            originator_id=JOB_ID,
            originator_version=version,
            time_us=cause.time_us,
            by=cause.by(),
        )


def fact(kind: type[JobEvent], /, second: int = 0, **fields: object) -> Fact:
    """A fact; a field that is not named is None, and the event refuses names it does not have."""
    unnamed = dict.fromkeys(kind.field_names().keys() - COMMON)
    return Fact(kind, {**unnamed, **fields}, second)


def enqueued(second: int = 0, **said: object) -> Fact:
    """A job came into the queue."""
    usual = {"queue": "memory", "type": "ingest", "priority": 0, "max_attempts": 3}
    return fact(events.JobEnqueued, second, **{**usual, **said})


def leased(
    epoch: int, second: int = 0, *, attempt: int | None = None, metered: bool = False
) -> Fact:
    """A holder took the job."""
    return fact(
        events.JobLeased,
        second,
        epoch=epoch,
        attempt=epoch if attempt is None else attempt,
        owner=OWNER,
        lease_seconds=300.0,
        boottime_us=None,
        metered=metered,
    )


def failed(epoch: int, second: int = 0, *, retry: int | None = None, **said: object) -> Fact:
    """A holder's attempt failed; it is tried again at the second `retry`."""
    usual = {"attempt": epoch, "error": "boom", "code": "error", "terminal": False}
    retry_us = None if retry is None else START_US + retry * SECOND_US
    return fact(events.JobFailed, second, epoch=epoch, retry_us=retry_us, **{**usual, **said})


def released(epoch: int, second: int = 0, **said: object) -> Fact:
    """A job was taken from its holder."""
    usual = {"code": "owner_gone", "reason": "the process ended", "counted": True}
    return fact(events.JobReleased, second, epoch=epoch, **{**usual, **said})


def completed(epoch: int, second: int = 0, *, result: object = None) -> Fact:
    """A holder did the work."""
    return fact(events.JobCompleted, second, epoch=epoch, result=result)


def died(second: int = 0, code: str = "attempts_exhausted", error: str = "boom") -> Fact:
    """No further attempt is made."""
    return fact(events.JobDied, second, code=code, error=error)


def cancelled(before: str, second: int = 0) -> Fact:
    """Nobody is to do it."""
    return fact(events.JobCancelled, second, status_before=before, reason="so")


def pruned(before: str, second: int = 0) -> Fact:
    """It is in no list any more."""
    return fact(events.JobPruned, second, status_before=before, reason="so", archive="1.zst")


def requeued(before: str, second: int = 0) -> Fact:
    """It waits again."""
    return fact(events.JobRequeued, second, status_before=before, reason="so")


def restored(status: str, second: int = 0) -> Fact:
    """It is what it was before."""
    return fact(events.JobRestored, second, status=status, reason="so")


WAITING = (enqueued(),)
AT_WORK = (enqueued(), leased(1))
DONE = (*AT_WORK, completed(1))
DEAD = (enqueued(max_attempts=1), leased(1), failed(1), died())
CANCELLED = (enqueued(), cancelled("pending"))
PRUNED = (*DEAD, pruned("dead"))
HISTORIES = {
    "pending": WAITING,
    "leased": AT_WORK,
    "completed": DONE,
    "dead": DEAD,
    "cancelled": CANCELLED,
    "pruned": PRUNED,
}
"""One history that leads to each status."""


class Case:
    """A history, and then a command."""

    def __init__(self, history: Iterable[Fact]) -> None:
        self.events: list[JobEvent] = []
        self.job = QueuedJob()
        for entry in history:
            event = entry.at(self.job.version + 1, person(entry.second))
            event.mutate(self.job)
            self.events.append(event)
        self._before = self.job.to_row()
        self._call: Callable[[], object] | None = None
        self._cause = person()

    def when(
        self,
        method: Callable[Concatenate[QueuedJob, Cause, P], object],
        cause: Cause,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Case:
        """Name the command; `then` carries it out."""
        self._cause = cause
        self._call = lambda: method(self.job, cause, *args, **kwargs)
        return self

    def then(self, *expected: Fact | type[TachographError], saying: str = "") -> QueuedJob:
        """Expect exactly these facts, or this refusal, which has recorded nothing."""
        assert self._call is not None, "name the command with `when` first"
        first = expected[0] if expected else None
        if isinstance(first, type):
            with pytest.raises(TachographError) as caught:
                self._call()

            assert caught.type is first, str(caught.value)
            assert saying in str(caught.value)
            assert self.job.pending_events == []
            assert self.job.to_row() == self._before
        else:
            self._recorded([entry for entry in expected if isinstance(entry, Fact)])
        return self.job

    def _recorded(self, expected: list[Fact]) -> None:
        assert self._call is not None
        before = self.job.version
        self._call()
        recorded = list(self.job.collect_events())
        self.events += recorded

        assert recorded == [
            entry.at(before + place, self._cause) for place, entry in enumerate(expected, start=1)
        ]
        assert replayed(self.events).to_row() == self.job.to_row()


def given(*history: Fact) -> Case:
    """Begin a case with a history."""
    return Case(history)


def after(*history: Fact) -> QueuedJob:
    """Return the job that a history leaves."""
    return Case(history).job


def replayed(recorded: Iterable[JobEvent]) -> QueuedJob:
    """Fold events into a job from scratch."""
    job: Any = None
    for event in recorded:
        job = event.mutate(job)
    assert isinstance(job, QueuedJob), "a job has at least one event"
    return job
