"""Do a job as an attempt at its run, and say how its lease is to end. Ends no lease itself.

Each job has one run, `queue-<queue>-<job id>`; each lease is an attempt at it, so that a retry
goes on where the last one stopped. The gate judges every run (G12).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from tachograph.domain import outcome
from tachograph.domain.errors import RefusalError, RunOwnedError, TachographError
from tachograph.domain.ids import execution_id
from tachograph.domain.queue_errors import LeaseLostError
from tachograph.domain.queue_events import JobCompleted, JobFailed
from tachograph.domain.queued_job import run_id_of
from tachograph.measuring import describe
from tachograph.queues.job_calling import call, context_of, said_by
from tachograph.queues.job_ends import RUN_CANCELLED, end_attempt
from tachograph.queues.job_recordings import JobRecording
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from tachograph.domain.owner import Owner
    from tachograph.domain.policy import Policy
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.domain.run import Run
    from tachograph.keeping import Keeper
    from tachograph.queues.endings import Ending
    from tachograph.queues.handlers import Handler
    from tachograph.queues.holds import Hold
    from tachograph.queues.job_ends import Ends
    from tachograph.queues.job_processes import Processes
    from tachograph.queues.queueing import Queueing
    from tachograph.recording import Recording
    from tachograph.runs import RunRepository
    from tachograph.session import Session
    from tachograph.starting import Starter

    class Around(Protocol):
        """What is outside: payload models, processes of earlier holders, files of runs."""

        def model(self, handler: Handler, job: QueuedJob, payload: Any) -> Any:
            """Return a payload as its handler wants it. Raises PayloadError."""
            ...

        def end_leftover(self, run: Run) -> str | None:
            """End what an earlier holder left at work; say what lives on all the same."""
            ...

        def follow(self, recording: Recording) -> Keeper | None:
            """Return what keeps the artifact files of a run, where that is wanted."""
            ...


TAKEN_OVER = "its lease was given to another worker"


class Performer:
    """Does jobs by their handlers. `find` returns that of a queue's type; None: nobody is."""

    def __init__(
        self,
        queueing: Queueing,
        starter: Starter,
        repository: RunRepository,
        owner: Owner,
        find: Callable[[str, str], Handler | None],
        ends: Ends,
        processes: Processes,
        around: Around,
        policy: Callable[[], Policy] | None = None,
    ) -> None:
        self._queueing = queueing
        self._starter = starter
        self._repository = repository
        self._owner = owner
        self._find = find
        self._ends = ends
        self._processes = processes
        self._around = around
        self._policy = policy

    def perform(self, hold: Hold) -> Ending | None:
        """Do a job and return how its lease ends; None when it is another one's by now.

        KeyboardInterrupt of a handler ends the lease, and is raised then.
        """
        job = hold.job
        handler = self._find(job.queue, job.type)
        if handler is None:
            return self._ends.release(job, "nothing here does jobs of its type")
        before = self._ended_before(job)
        if before is not None:
            return before
        try:
            hold.session = session = self._start(job)
        except RefusalError as refusal:
            return self._ends.fail(job, str(refusal), "not_started")
        seconds = self._timeout(job, handler)
        if handler.command is not None:
            return self._processes.command(hold, session, handler, seconds)
        if seconds is not None:
            return self._processes.isolated(hold, session, handler, seconds)
        return self._call(hold, session, handler)

    def _timeout(self, job: QueuedJob, handler: Handler) -> float | None:
        if handler.timeout_seconds is not None:
            return handler.timeout_seconds
        return self._queueing.settings(job.queue).job_type(job.type).timeout_seconds

    # The run.

    def _ended_before(self, job: QueuedJob) -> Ending | None:
        """Return the end of a job whose run has ended already: it is not run again.

        A worker was killed between the end of the run and that of the job, or somebody has ended
        the run. A run whose end the job was told of belongs to what was before its requeue.
        """
        if job.epoch < 2:  # its first lease: it has no run
            return None
        run = self._last_run(run_id_of(job))
        if run is None or not run.finished or self._was_told(job, run.id):
            return None
        return self._ends.by_run(job, run)

    def _last_run(self, base: str) -> Run | None:
        found, execution = self._repository.get(base), 2
        while found is not None:
            later = self._repository.get(execution_id(base, execution))
            if later is None:
                return found
            found, execution = later, execution + 1
        return None

    def _was_told(self, job: QueuedJob, run_id: str) -> bool:
        for record, fields in self._queueing.repository.history(job.id):
            ended = record.topic == JobCompleted.TOPIC or (
                record.topic == JobFailed.TOPIC and fields.get("code") == RUN_CANCELLED
            )
            if ended and fields.get("run") == run_id:
                return True
        return False

    def _start(self, job: QueuedJob) -> Session:
        want = Start(
            job.type,
            {"job": job.id, "queue": job.queue, "type": job.type},
            run_id=run_id_of(job),
            title=f"{job.queue}: {job.type}",
        )
        try:
            session = self._starter.start(want, self._owner)
        except RunOwnedError:
            self._end_leftover(job)
            want.takeover_reason = TAKEN_OVER
            session = self._starter.start(want, self._owner)
        if self._policy is not None:
            session.judge_by(self._policy())
        return session

    def _end_leftover(self, job: QueuedJob) -> None:
        """End what an earlier holder left at work. Raises RunOwnedError when that fails."""
        run = self._last_run(run_id_of(job))
        left = None if run is None else self._around.end_leftover(run)
        if run is not None and left is not None:
            raise RunOwnedError(run.id, left)

    # A Python function, in this very thread.

    def _call(self, hold: Hold, session: Session, handler: Handler) -> Ending | None:
        recording = JobRecording(session, self._around.follow)
        raised: BaseException | None = None
        try:
            with recording:
                recording.result = self._result(hold, recording, handler)
        except BaseException as error:  # noqa: BLE001  # it ends the job first, whatever it is
            raised = error
            end_attempt(session, outcome.FAILED, describe(error), "exception")
        if hold.lost:
            return None
        ending = self._after_call(hold, session, raised, recording.result)
        if isinstance(raised, KeyboardInterrupt):
            with suppress(TachographError):  # what was raised says more
                self._queueing.end(ending)
            raise raised
        return ending

    def _result(self, hold: Hold, recording: Recording, handler: Handler) -> Any:
        def beat() -> None:
            if hold.lost or not self._queueing.beat(hold.job):
                raise LeaseLostError(hold.job.id, hold.job.epoch, "it was given to another one")

        if handler.function is None:
            raise ValueError(f"{handler} is no function")
        payload = self._around.model(handler, hold.job, hold.payload)
        bound = self._queueing.settings(hold.job.queue).max_attempts
        context = context_of(hold.job, payload, recording, beat, bound=bound)
        pid = os.getpid()
        try:
            return call(handler.function, context)
        finally:
            if os.getpid() != pid:  # a child that the handler has forked: it is no worker
                os._exit(0)

    def _after_call(
        self, hold: Hold, session: Session, raised: BaseException | None, result: Any
    ) -> Ending:
        run = session.run if not session.run.attempt_open else session.reload()
        if raised is None or run.finished:
            return self._ends.by_run(hold.job, run, result)
        if isinstance(raised, KeyboardInterrupt):
            return self._ends.release(hold.job, "interrupted by Ctrl-C")
        if run.outcome is not None and not outcome.traits(run.outcome, run.reason_code).fails_step:
            return self._ends.by_run(hold.job, run)  # it waits for an approval, for one
        return self._ends.by_error(hold.job, said_by(raised), run)
