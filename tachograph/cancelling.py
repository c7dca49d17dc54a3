"""End a run for good on a person's word, after its processes were stopped. Signals nothing itself.

`stop` is handed in: it stops the processes of a run and says what came of it.
"""

from __future__ import annotations

from tachograph.domain.errors import RunFinishedError
from tachograph.domain.owner import Owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from tachograph.domain.run import Run
    from tachograph.session import Session

    class Stopped(Protocol):
        """What came of stopping: pids, and why something was left alone."""

        @property
        def asked(self) -> list[int]:
            """Those that were asked to end."""
            ...

        @property
        def killed(self) -> list[int]:
            """Those that were killed."""
            ...

        @property
        def left(self) -> list[int]:
            """Those that still live."""
            ...

        @property
        def ended(self) -> bool:
            """Whether none is left for certain."""
            ...

        @property
        def reason(self) -> str | None:
            """Why something was left alone."""
            ...

    class Stop(Protocol):
        """Stops the owner and the worker of a run."""

        def __call__(self, owner: Owner, worker: Owner | None) -> Stopped:
            """Ask, wait, and kill as it was told to."""
            ...


CANCELLED = "cancelled"


def cancel(session: Session, reason: str, *, stop: Stop) -> Stopped | None:
    """Stop the processes of a run's open attempt, then record its cancellation.

    It is recorded whatever came of the stopping: what still lives is fenced by it (G6). Returns
    what came of it, None when no attempt was open. A run that is cancelled already, and whose
    processes still live, may be cancelled again to stop them; that records nothing more.
    Raises RunFinishedError before anything is stopped.
    """
    run = session.reload()
    again = run.ended == CANCELLED and _was_open(run)
    if run.finished and not again:
        raise RunFinishedError(run.id, run.ended or run.outcome)
    stopped = _stop(run, stop) if run.attempt_open or again else None
    if not again:
        session.execute(lambda run, why: run.cancel(why, reason))
    elif stopped is None or not (stopped.asked or stopped.killed):
        raise RunFinishedError(run.id, run.ended)
    return stopped


def _was_open(run: Run) -> bool:
    """Say whether a cancelled run had an attempt that had not said how it ended."""
    return run.epoch > 0 and run.outcome is None


def _stop(run: Run, stop: Stop) -> Stopped | None:
    """Stop the processes that work for this run alone; None when there are none."""
    processes = [Owner.from_fields(process) for process in run.own_processes]
    if not processes:
        return None
    return stop(processes[-1], processes[0] if len(processes) > 1 else None)
