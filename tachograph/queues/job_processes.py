"""Do a job in a process of its own, which can be stopped, and judge how that ended (G12)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tachograph.continuing import record_worker, start_phase
from tachograph.domain import outcome
from tachograph.domain.errors import RefusalError
from tachograph.domain.queue_errors import TerminalJobError
from tachograph.executing import PHASE, Expected, as_text, conclude, described
from tachograph.queues.job_calling import Said
from tachograph.queues.job_ends import end_attempt
from tachograph.step_calling import returned_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from tachograph.domain.ended import Ended
    from tachograph.domain.owner import Owner
    from tachograph.domain.run import Run
    from tachograph.queues.endings import Ending
    from tachograph.queues.handlers import Handler
    from tachograph.queues.holds import Hold
    from tachograph.queues.job_ends import Ends
    from tachograph.session import Session

    class Child(Protocol):
        """A process that does the work of a job."""

        def run(self, on_started: Callable[[int], None]) -> ChildEnd:
            """Run it to its end; it works only once `on_started` has returned.

            Raises OSError when it cannot be run at all.
            """
            ...

        def stop(self, *, at_once: bool) -> None:
            """End it and all it has started; called by another thread."""
            ...

    class Children(Protocol):
        """Makes processes, and knows them."""

        def command(
            self, hold: Hold, session: Session, handler: Handler, timeout_seconds: float | None
        ) -> Child:
            """Return the process of an executable that is given the job."""
            ...

        def isolated(
            self, hold: Hold, session: Session, handler: Handler, timeout_seconds: float
        ) -> Child:
            """Return the process in which a Python handler can be stopped."""
            ...

        def describe(self, pid: int) -> Owner:
            """Describe a process. Raises ProcessNotFoundError."""
            ...


LATER, NEVER = 75, 65
"""Exit codes of an executable: not now (EX_TEMPFAIL), and no further attempt (EX_DATAERR)."""
LAST_LINE = 300
"""Characters of the last line of its output that are told with an exit code."""


class ChildEnd:
    """How a process ended: `said` what its handler raised, `result` what it gave back."""

    __slots__ = ("ended", "result", "said")

    def __init__(self, ended: Ended, *, result: Any = None, said: Said | None = None) -> None:
        self.ended = ended
        self.result = result
        self.said = said


class Processes:
    """Does jobs in processes."""

    def __init__(self, children: Children, ends: Ends) -> None:
        self._children = children
        self._ends = ends

    def command(
        self, hold: Hold, session: Session, handler: Handler, timeout_seconds: float | None
    ) -> Ending | None:
        """Run an executable and return how the lease ends; None when it is not ours any more."""
        start_phase(session, PHASE)
        child = self._children.command(hold, session, handler, timeout_seconds)
        try:
            end = self._run(hold, session, child)
        except OSError as error:
            return self._not_run(hold, session, (handler.command or [""])[0], error)
        if hold.lost:
            return None
        ended = end.ended
        if end.result is not None:
            with suppress(RefusalError):  # the command has ended the attempt itself
                session.complete_step(returned_key(session.epoch), end.result)
        try:
            conclude(session, ended, Expected(session.reload(), ()), said=_said_by(ended))
        except RefusalError as refusal:
            end_attempt(session, outcome.FAILED, str(refusal), "refused")
        run = session.reload()
        return self._stopped(hold, run) or self._judged(hold, run, end)

    def _judged(self, hold: Hold, run: Run, end: ChildEnd) -> Ending:
        how = outcome.traits(run.outcome or outcome.FAILED, run.reason_code)
        if run.ended is not None or how.terminal:
            return self._ends.by_run(hold.job, run, end.result)
        if end.ended.exit_code == NEVER and not end.ended.timed_out:
            said = Said(_with_last_line(run, end.ended), TerminalJobError.code, terminal=True)
            return self._ends.by_error(hold.job, said, run)
        if end.ended.exit_code == 0 or end.ended.timed_out:
            return self._ends.by_run(hold.job, run)
        code = run.reason_code or "exit_code"
        return self._ends.fail(hold.job, _with_last_line(run, end.ended), code, run=run)

    def isolated(
        self, hold: Hold, session: Session, handler: Handler, timeout_seconds: float
    ) -> Ending | None:
        """Call a Python handler in a process; it records, and ends its attempt, by itself."""
        child = self._children.isolated(hold, session, handler, timeout_seconds)
        try:
            end = self._run(hold, session, child)
        except OSError as error:
            return self._not_run(hold, session, str(handler), error)
        if hold.lost:
            return None
        end_attempt(session, *_abrupt(end.ended, asked=hold.asked))
        run = session.reload()
        stopped = self._stopped(hold, run)
        if stopped is not None or end.said is None or run.finished:
            return stopped or self._ends.by_run(hold.job, run, end.result)
        if run.outcome is not None and not outcome.traits(run.outcome, run.reason_code).fails_step:
            return self._ends.by_run(hold.job, run)
        return self._ends.by_error(hold.job, end.said, run)

    def _run(self, hold: Hold, session: Session, child: Child) -> ChildEnd:
        hold.attach(child.stop)
        try:
            return child.run(lambda pid: record_worker(session, self._children.describe, pid))
        finally:
            hold.detach()

    def _not_run(self, hold: Hold, session: Session, name: str, error: OSError) -> Ending:
        reason = f"{name} cannot be run: {error.strerror or error}"
        end_attempt(session, outcome.FAILED, reason, "not_run")
        return self._ends.fail(hold.job, reason, "not_run", run=session.run)

    def _stopped(self, hold: Hold, run: Run) -> Ending | None:
        """Return the release of a job whose process was stopped before it came to an end."""
        if not hold.asked or run.finished:
            return None
        return self._ends.release(hold.job, "its worker was stopped")


def _said_by(ended: Ended) -> tuple[str, str, str] | None:
    """Return outcome, reason and code of an exit code that means more to queues than elsewhere."""
    if ended.timed_out or ended.asked:
        return None
    if ended.exit_code == LATER:
        return outcome.PARTIAL, described(ended), "try_later"
    if ended.exit_code == NEVER:
        return outcome.FAILED, described(ended), TerminalJobError.code
    return None


def _abrupt(ended: Ended, *, asked: bool) -> tuple[str, str, str]:
    """Return outcome, reason and code of an attempt that its process did not end."""
    if ended.timed_out:
        return outcome.FAILED, f"stopped at its time limit, {described(ended)}", "timeout"
    words = f"its process ended before its handler: {described(ended)}"
    if asked:
        return outcome.PARTIAL, words, "interrupted"
    return outcome.FAILED, words, "exit_code" if ended.signal is None else "killed"


def _with_last_line(run: Run, ended: Ended) -> str:
    """Return the reason of a run with the last line of what its command printed."""
    reason = run.reason or run.outcome or described(ended)
    text = as_text(ended.output)
    lines = text.split("\n") if isinstance(text, str) else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"{reason}: {last[-LAST_LINE:]}" if last else reason
