"""A job that a program of one's own has taken: what it is, and how its lease ends."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tachograph.domain.errors import InvalidValueError
from tachograph.domain.queue_errors import LeaseLostError
from tachograph.domain.queued_job import STOPPED
from tachograph.keeping import Heartbeat
from tachograph.queues.job_calling import said_by

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tachograph.infra.payload_models import PayloadModels
    from tachograph.queues.queueing import Leased, Queueing

LONGEST = timedelta(days=36_600)
_SECOND_US = 1_000_000


class LeasedJob:
    """A job that this process may do now. Set `result` to what is to be kept of it."""

    def __init__(self, queues: Queueing, leased: Leased, models: PayloadModels) -> None:
        self._queues = queues
        self._job = job = leased.job
        self._models = models
        self._given = leased.payload
        self._ended = False
        self.id = job.id
        self.queue = job.queue
        self.type = job.type
        self.attempt = job.attempts
        """1 for the first attempt since it was enqueued or requeued."""
        self.max_attempts = min(job.max_attempts, queues.settings(job.queue).max_attempts)
        self.epoch = job.epoch
        """The number of this lease, by which earlier holders are fenced (G5)."""
        self.result: Any = None

    @property
    def payload(self) -> Any:
        """What it was enqueued with, as an instance of the type's model where one is declared.

        Raises PayloadError when the model does not take it any more.
        """
        model = self._queues.settings(self.queue).job_type(self.type).model
        if model is None:
            return self._given
        return self._models.load(model, self._given, kind=self.type, queue=self.queue)

    def complete(self, result: Any = None) -> None:
        """Record that it is done, before the block ends. Raises LeaseLostError."""
        self._queues.complete(self.id, self.epoch, result)
        self._ended = True

    def fail(
        self,
        error: str,
        *,
        code: str = "error",
        terminal: bool = False,
        retry_in: timedelta | float | None = None,
    ) -> None:
        """Record that the attempt failed; `terminal`: no other can help. Raises LeaseLostError."""
        retry_us = None
        if retry_in is not None:
            retry_us = self._queues.now_us() + span_us("retry in", retry_in)
        self._queues.fail(
            self.id, self.epoch, error, code=code, terminal=terminal, retry_us=retry_us
        )
        self._ended = True

    def release(self, reason: str) -> None:
        """Give it back undone; the attempt does not count. Raises LeaseLostError."""
        self._queues.release(self.id, self.epoch, STOPPED, reason)
        self._ended = True

    def heartbeat(self) -> None:
        """Say that it is being done. Raises LeaseLostError when it was given to another."""
        if not self._queues.beat(self._job):
            raise LeaseLostError(self.id, self.epoch, "its lease was given up, or given to another")

    def end(self, error: BaseException | None) -> None:
        """Record how the block ended, unless the block itself has."""
        if self._ended:
            return
        if error is None:
            self.complete(self.result)
        elif isinstance(error, Exception):
            said = said_by(error)
            self.fail(
                said.error, code=said.code, terminal=said.terminal, retry_in=said.retry_seconds
            )
        else:
            self.release(f"the holder was stopped by {type(error).__name__}")


class Leasing:
    """The `with` block of `Queue.lease`."""

    def __init__(self, take: Callable[[], LeasedJob | None], beat_seconds: float) -> None:
        self._take = take
        self._beat_seconds = beat_seconds
        self._job: LeasedJob | None = None
        self._heartbeat: Heartbeat | None = None

    def __enter__(self) -> LeasedJob | None:
        self._job = job = self._take()
        if job is not None:
            self._heartbeat = Heartbeat(job.heartbeat, self._beat_seconds)
            self._heartbeat.start()
        return job

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._job is None:
            return
        try:
            self._job.end(error)
        except LeaseLostError as lost:
            if error is None:
                raise
            error.add_note(str(lost))


def span_us(what: str, span: timedelta | float) -> int:
    """Return a length of time, given as such or as seconds, in microseconds."""
    if isinstance(span, int | float) and not isinstance(span, bool) and 0 <= span < 2**32:
        return round(span * _SECOND_US)
    if isinstance(span, timedelta) and timedelta(0) <= span <= LONGEST:
        return span // timedelta(microseconds=1)
    raise InvalidValueError(what, span, "give seconds, or a timedelta, from 0 to 100 years")
