"""Say how a lease ends by what the run of its job came to. Ends none itself."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tachograph.domain import outcome
from tachograph.domain.errors import RefusalError
from tachograph.domain.queued_job import STOPPED
from tachograph.queues.endings import Release
from tachograph.queues.job_recordings import result_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.domain.queued_job import QueuedJob
    from tachograph.domain.run import Run
    from tachograph.queues.endings import Ending
    from tachograph.queues.job_calling import Said
    from tachograph.queues.queueing import Queueing
    from tachograph.session import Session

RUN_CANCELLED = "run_cancelled"
"""Code of a job whose run was ended for good by somebody else: a person, or a deadline."""


class Ends:
    """Makes the ends of leases. `session_of` opens a session of a run's attempt, to read."""

    def __init__(self, queueing: Queueing, session_of: Callable[[str, int], Session]) -> None:
        self._queueing = queueing
        self._session_of = session_of

    def by_run(self, job: QueuedJob, run: Run, result: Any = None) -> Ending:
        """Return the end of a job whose run's attempt has ended.

        What is over and no failure completes the job; what stopped without failing lets it wait,
        with the attempt not counted; all else is a failure, for the run's reason.
        """
        if run.ended is not None:
            words = f"its run {run.id} was {run.ended}: {run.reason or 'no reason was given'}"
            return self.fail(job, words, RUN_CANCELLED, run=run, terminal=True)
        how, code = run.outcome or outcome.FAILED, run.reason_code
        if outcome.traits(how, code).terminal:
            if result is None:
                result = result_of(self._session_of(run.id, run.epoch))
            return self._queueing.completion(job.id, job.epoch, result, outcome=how, run=run.id)
        seconds = outcome.due_again_seconds(how, code)
        if seconds is not None:
            return self.release(job, run.reason or how, seconds=seconds)
        return self.fail(job, run.reason or how, code or how, run=run)

    def by_error(self, job: QueuedJob, said: Said, run: Run | None = None) -> Ending:
        """Return the end of a job whose handler raised."""
        return self.fail(
            job,
            said.error,
            said.code,
            run=run,
            terminal=said.terminal,
            retry_seconds=said.retry_seconds,
        )

    def fail(
        self,
        job: QueuedJob,
        error: str,
        code: str,
        *,
        run: Run | None = None,
        terminal: bool = False,
        retry_seconds: float | None = None,
    ) -> Ending:
        """Return a failure."""
        return self._queueing.failure(
            job.id,
            job.epoch,
            error,
            code=code,
            terminal=terminal,
            retry_us=self._in(retry_seconds),
            run=None if run is None else run.id,
        )

    def release(self, job: QueuedJob, reason: str, *, seconds: float | None = None) -> Ending:
        """Return a release in good order, whose attempt does not count."""
        return Release(job.id, job.epoch, STOPPED, reason, self._in(seconds))

    def _in(self, seconds: float | None) -> int | None:
        return None if seconds is None else self._queueing.now_us() + round(seconds * 1_000_000)


def end_attempt(session: Session, how: str, reason: str, code: str) -> None:
    """End an attempt that nothing else ended; one that another has taken over is left alone."""
    with suppress(RefusalError):
        if session.reload().attempt_open:
            session.finish(how, reason=reason, reason_code=code)


def end_lost(session: Session | None) -> None:
    """End the attempt of a job that was given to another one, so that it records no more (G5)."""
    if session is not None:
        end_attempt(session, outcome.PARTIAL, "its lease was lost", "lease_lost")
