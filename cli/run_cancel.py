"""`tacho run cancel`: stop a run's processes, and end it for good, on a person's word."""

from __future__ import annotations

from tachograph.cli.artifact_following import at_end
from tachograph.cli.exact import exact_run
from tachograph.cli.opening import open_store
from tachograph.cli.options import NUMBER, Argument, Option, Spec, UsageError, flag
from tachograph.cli.task_cards import follow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cancelling import Stopped
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.owner import Owner
    from tachograph.domain.run import Run

LONGEST_GRACE_SECONDS = 86_400.0

SPEC = Spec(
    "Stop the processes of a run, and end it for good.",
    Argument("run", "The run, by its whole id.", complete="run"),
    Option("--reason", "Why.", metavar="TEXT"),
    Option(
        "--grace",
        "How long its processes may take to end.",
        kind=NUMBER,
        default=10.0,
        metavar="SECONDS",
    ),
    flag("--kill", "Kill what is left after the grace, and all that descended from it."),
    details="Asks the process that does the work, and the one that owns the run, to end "
    "(SIGTERM), with the process groups that they lead. Whatever comes of that, the cancellation "
    "is recorded: nothing moves the run any more, and what still lives is refused at its next "
    "write. Only processes that are certainly the recorded ones are signalled; those of another "
    "host or container are not, nor is the shell that this is called from.",
)


def run(params: Params, out: Output) -> None:
    """Stop what can be stopped, record the cancellation, say what is left."""
    from tachograph.cancelling import cancel
    from tachograph.domain.ids import job_of_run

    if params.reason is None:
        raise UsageError("Why is it cancelled? Say so with --reason.")
    if not 0 <= params.grace <= LONGEST_GRACE_SECONDS:
        raise UsageError(f"--grace is {params.grace:g}: give seconds, 0 or more, at most a day.")
    services = open_store(out)
    run_id = exact_run(services, params.run, out)
    job_id = job_of_run(run_id)
    if job_id is not None:  # its process does other jobs, too
        raise UsageError(
            f"{run_id} is the run of a job: `tacho queue cancel --ids {job_id} --apply --reason …` "
            "cancels that."
        )

    def stop(owner: Owner, worker: Owner | None) -> Stopped:
        from tachograph.infra.stopping import stop

        return stop(
            owner,
            worker,
            here=services.observer,
            grace_seconds=params.grace,
            kill=params.kill,
        )

    session = services.session(run_id, 0)
    stopped = cancel(session, params.reason, stop=stop)
    follow(services, [run_id], out)
    at_end(services, [run_id], out)
    if out.json:
        out.document(_document(session.run, stopped))
    else:
        out.note(f"Cancelled {run_id}.{_done(stopped)}")
    if stopped is not None and not stopped.ended:
        out.warn(f"tacho: warning: {_left(stopped, killed=params.kill)}")


def _document(run: Run, stopped: Stopped | None) -> dict[str, Any]:
    return {
        "jobRunId": run.id,
        "ended": run.ended,
        "reason": run.reason,
        "asked": stopped.asked if stopped else [],
        "killed": stopped.killed if stopped else [],
        "stillRunning": stopped.left if stopped else [],
        "notStopped": stopped.reason if stopped and not stopped.ended else None,
    }


def _done(stopped: Stopped | None) -> str:
    if stopped is None or not stopped.asked:
        return ""
    killed = f" Killed {_processes(stopped.killed)}." if stopped.killed else ""
    return f" Asked {_processes(stopped.asked)} to end.{killed}"


def _left(stopped: Stopped, *, killed: bool) -> str:
    """Say what may still run, and what to do about it."""
    said = []
    if stopped.left:
        advice = "it may hang in the system" if killed else "cancel again with --kill to end it"
        said.append(f"{_processes(stopped.left)} still runs; {advice}.")
    if stopped.reason:
        said.append(f"Not stopped: {stopped.reason}.")
    return " ".join([*said, "Its writes to the run are refused."])


def _processes(pids: list[int]) -> str:
    """Name processes.

    >>> _processes([17]), _processes([17, 18])
    ('process 17', 'processes 17, 18')
    """
    return f"process{'es' if len(pids) > 1 else ''} {', '.join(map(str, pids))}"
