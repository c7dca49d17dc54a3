"""How a holder ends its lease: the work is done, the attempt failed, or the job is given back."""

from __future__ import annotations

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from tachograph.domain.event import Cause
    from tachograph.domain.queue_settings import QueueSettings
    from tachograph.domain.queued_job import QueuedJob

    class Ending(Protocol):
        """How a holder ends its lease."""

        job_id: str
        epoch: int

        def apply(self, job: QueuedJob, cause: Cause, settings: QueueSettings) -> None:
            """Record the end."""
            ...


class Completion(_Fields):
    """The holder did the work."""

    __slots__ = ("epoch", "job_id", "outcome", "result", "run")

    def __init__(
        self, job_id: str, epoch: int, result: Any, outcome: str | None, run: str | None
    ) -> None:
        self.job_id = job_id
        self.epoch = epoch
        self.result = result
        self.outcome = outcome
        self.run = run

    def apply(self, job: QueuedJob, cause: Cause, settings: QueueSettings) -> None:  # noqa: ARG002
        """Record the end."""
        job.complete(cause, self.result, outcome=self.outcome, run=self.run)


class Failure(_Fields):
    """The attempt failed."""

    __slots__ = ("code", "epoch", "error", "job_id", "random", "retry_us", "run", "terminal")

    def __init__(
        self,
        job_id: str,
        epoch: int,
        error: str,
        code: str,
        terminal: bool,
        retry_us: int | None,
        run: str | None,
        random: Callable[[], float],
    ) -> None:
        self.job_id = job_id
        self.epoch = epoch
        self.error = error
        self.code = code
        self.terminal = terminal
        self.retry_us = retry_us
        self.run = run
        self.random = random

    def apply(self, job: QueuedJob, cause: Cause, settings: QueueSettings) -> None:
        """Record the end."""
        retry_us = self.retry_us
        if retry_us is None:
            retry_us = cause.time_us + settings.backoff.delay_us(job.attempts, self.random)
        job.fail(
            cause,
            self.error,
            code=self.code,
            terminal=self.terminal,
            retry_us=retry_us,
            max_attempts=settings.max_attempts,
            run=self.run,
        )


class Release(_Fields):
    """The holder gives the job back."""

    __slots__ = ("code", "epoch", "job_id", "reason", "retry_us")

    def __init__(
        self, job_id: str, epoch: int, code: str, reason: str, retry_us: int | None
    ) -> None:
        self.job_id = job_id
        self.epoch = epoch
        self.code = code
        self.reason = reason
        self.retry_us = retry_us

    def apply(self, job: QueuedJob, cause: Cause, settings: QueueSettings) -> None:
        """Record the end."""
        job.release(
            cause,
            self.code,
            self.reason,
            retry_us=self.retry_us,
            max_attempts=settings.max_attempts,
        )
