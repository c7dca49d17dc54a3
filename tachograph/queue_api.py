"""Queues from Python: enqueue, take a job, look. The rules of a queue are not here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tachograph.api import _codec, _services
from tachograph.bootstrap import find
from tachograph.domain.errors import InvalidValueError
from tachograph.infra import clock
from tachograph.infra.payload_models import PayloadModels, plain
from tachograph.queue_leases import LONGEST, LeasedJob, Leasing, span_us
from tachograph.queue_plans import plan_in
from tachograph.queuekeeping import queues_of
from tachograph.queues.enqueueing import Enqueue, Enqueued
from tachograph.queues.wanting import check

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Mapping

    from tachograph.bootstrap import Services
    from tachograph.queues.queueing import Queueing


def queue(
    name: str,
    store: str | os.PathLike[str] | None = None,
    *,
    config: str | os.PathLike[str] | None = None,
) -> Queue:
    """Return a queue by its name, as it is declared in `tachograph.toml`.

    That file is looked for from the current folder upwards and beside the store, unless `config`
    names it; without one there are the queues memory and summary. `store` is found as for
    `record`, and made by the first job. Raises UnknownQueueError and ProjectFileError.
    """
    return Queue(
        name, None if store is None else str(store), None if config is None else str(config)
    )


class Queue:
    """A queue. May be shared by threads. Made by `tachograph.queue`."""

    def __init__(self, name: str, store: str | None, config: str | None) -> None:
        self._plans = plan_in(find(store)[0], config)
        self.settings = self._plans.plan.get(name)
        """What is declared of it."""
        self.name = name
        self._models = PayloadModels(self._plans.folder)
        self._store = store
        self._queueing: Queueing | None = None

    def enqueue(
        self,
        kind: str,
        payload: Any = None,
        *,
        key: str | None = None,
        key_window: timedelta | float | None = None,
        priority: int = 0,
        at: datetime | timedelta | None = None,
        max_attempts: int | None = None,
        concurrency_key: str | None = None,
    ) -> Enqueued:
        """Put a job of a type in the queue, and return its id once it is durable (G1).

        While a job with the same `key` waits or is being done, and for `key_window` (seconds)
        after it has ended, nothing is enqueued: `created` is False then, and the id is that
        job's. Higher priorities are taken first. The job is not taken before `at`, a time or how
        long from now; a time without a zone is local. Of one concurrency key only few jobs are
        done at once. An instance of a pydantic model is stored as plain values.

        Raises InvalidValueError, and PayloadError for what the model of the type refuses.
        """
        want = self._wanted(
            kind,
            payload,
            key=key,
            key_window=key_window,
            priority=priority,
            at=at,
            max_attempts=max_attempts,
            concurrency_key=concurrency_key,
        )
        return self._queues().enqueue(want)

    def enqueue_many(self, jobs: Iterable[Mapping[str, Any]]) -> list[Enqueued]:
        """Put jobs in the queue: each a mapping with `type` and the parameters of `enqueue`.

        All are checked before the first is recorded, then they are recorded by 500. An error
        says in a note which job it is about.
        """
        wants = []
        for number, each in enumerate(jobs, start=1):
            try:
                said = dict(each)
                kind, payload = said.pop("type", None), said.pop("payload", None)
                want = self._wanted(kind, payload, **said)
                _codec.pack(want.payload, "payload")  # the commit of the first is another one
                wants.append(want)
            except Exception as error:
                error.add_note(f"It is about job {number} of enqueue_many; none was enqueued.")
                raise
        return self._queues().enqueue_many(wants) if wants else []

    def lease(self, types: Collection[str] | None = None) -> Leasing:
        """Take the next job that is due, for a `with` block; None where there is none.

        Leaving the block completes the job. An exception in it lets the job be tried again after
        the backoff of its queue, and goes on; a TerminalJobError makes it dead at once. Ctrl-C and
        `sys.exit` give the job back. The lease is kept up while the block lasts; should it be lost
        all the same, LeaseLostError is raised at the end of the block.

        A worker (`tacho queue worker`) does more: it records each execution as a run.
        """
        return Leasing(lambda: self._take(types), self.settings.lease_seconds / 3)

    def status(self) -> dict[str, Any]:
        """Return how the queue is, as of now: what `tacho queue status --json` has under its name.

        Counts, ages in seconds, the last error, rates and latencies.
        """
        from tachograph.looking import ask
        from tachograph.queues.looking import health

        services, plans = self._services(), self._plans
        now_us = services.actor.now_us()
        document = ask(
            services,
            lambda view: health(view.queues, plans.plan, plans.thresholds, now_us, [self.name]),
        )
        found: dict[str, Any] = document["queues"][self.name]
        return found

    def _wanted(
        self,
        kind: str,
        payload: Any,
        *,
        key: str | None = None,
        key_window: timedelta | float | None = None,
        priority: int = 0,
        at: datetime | timedelta | None = None,
        max_attempts: int | None = None,
        concurrency_key: str | None = None,
    ) -> Enqueue:
        want = Enqueue(
            self.name,
            kind,
            plain(payload),
            key=key,
            key_window_us=None if key_window is None else span_us("key window", key_window),
            priority=priority,
            available_us=None if at is None else _time_us(at),
            max_attempts=max_attempts,
            concurrency_key=concurrency_key,
        )
        check(self._plans.plan, want, self._models.check)
        return want

    def _services(self) -> Services:
        return _services(self._store)

    def _queues(self) -> Queueing:
        if self._queueing is None:
            self._queueing = queues_of(
                self._services(), self._plans.plan, validate=self._models.check
            )
        return self._queueing

    def _take(self, types: Collection[str] | None) -> LeasedJob | None:
        queues, owner = self._queues(), self._services().owner()
        found = queues.lease([self.name], owner, types=types)
        if not found and queues.release_stale().pending:
            found = queues.lease([self.name], owner, types=types)
        return LeasedJob(queues, found[0], self._models) if found else None


def _time_us(at: datetime | timedelta) -> int:
    """Return a time, or one so long from now, in microseconds since 1970; naive ones are local."""
    if isinstance(at, timedelta):
        if not timedelta(0) <= at <= LONGEST:
            raise InvalidValueError("at", at, "give a time from now on, within 100 years")
        return clock.now_us() + at // timedelta(microseconds=1)
    if not isinstance(at, datetime):
        raise InvalidValueError("at", at, "give a datetime, or a timedelta from now")
    return (at.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
