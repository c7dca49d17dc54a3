"""`tacho run resume`: continue a run that was cut off, from where it stands."""

from __future__ import annotations

from tachograph.cli.finding import find_run
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Option, Spec, UsageError, flag
from tachograph.cli.recoveries import timeout_of
from tachograph.cli.task_cards import follow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.resuming import Resumption

SPEC = Spec(
    "Continue a run that was cut off, from where it stands.",
    Argument("run", "The run; a prefix of its id will do.", complete="run"),
    Option("--timeout", "How long the adapter may take.", metavar="SPAN"),
    Option("--plan", "Resume only by the plan of this digest.", metavar="DIGEST"),
    Option(
        "--despite",
        "Disregard what `run plan` shows in brackets; needs --reason.",
        multiple=True,
        metavar="CODE",
    ),
    flag("--takeover", "Take the run from an owner that is alive; needs --reason."),
    Option("--reason", "Why you say so.", metavar="TEXT"),
    flag("--unattended", "Under the rules for a watchdog, and counted as its resume."),
    details="""Replays the run to its last checkpoint, takes a new attempt (earlier ones are
fenced), and runs the adapter or command that the job has named, with TACHO_STORE, TACHO_RUN_ID,
TACHO_EPOCH and TACHO_CHECKPOINT. `tacho run plan` shows beforehand what it does.

Ends with 0 when the run got further and its adapter ended well, 1 when not, 8 when a person has
to decide first, 6 when somebody is at work on it, 75 when it is too early.""",
)


def run(params: Params, out: Output) -> int:
    """Resume the run and print what came of it."""
    return resume(params, out, find_run)


def resume(params: Params, out: Output, find: Callable[[Services, str, Output], str]) -> int:
    """Resume the run that `find` finds, and print what came of it."""
    given = bool(params.despite or params.takeover)
    if given != (params.reason is not None):
        raise UsageError("--despite or --takeover, and --reason, go together: say why.")
    services = open_store(out)
    run_id = find(services, params.run, out)
    if params.despite:
        _check(services, run_id, params)
    done = services.dispatcher.resume(
        run_id,
        unattended=params.unattended,
        timeout_seconds=timeout_of(params),
        despite=params.despite,
        takeover=params.takeover,
        reason=params.reason,
        agreed=params.plan,
    )
    follow(services, [run_id], out)
    return report(run_id, done, out)


def _check(services: Services, run_id: str, params: Params) -> None:
    """Refuse what cannot be disregarded, or is not in the way.

    The dispatcher plans anew: what comes into the way after this look still stops it.
    """
    from tachograph.domain.plan import FINISHED

    plan = services.planner.plan(
        run_id, unattended=params.unattended, timeout_seconds=timeout_of(params)
    )
    may = [each.code for each in plan.obstacles if each.despite]
    wrong = [code for code in params.despite if code not in may]
    if not wrong or any(each.code == FINISHED for each in plan.obstacles):
        return
    codes = [each.code + ("" if each.despite else " (not to be disregarded)")
             for each in plan.obstacles]  # fmt: skip
    raise UsageError(
        f"--despite {wrong[0]} says nothing: in the way of {run_id} is "
        f"{', '.join(codes) or 'nothing'}. `tacho run plan {run_id}` shows more."
    )


def report(run_id: str, done: Resumption, out: Output) -> int:
    """Print what came of a resume, and return the exit code."""
    from tachograph.cli.exit_codes import FAILURE, FENCED, OK

    if out.json:
        from tachograph.shapes import resumption_shape

        out.document(resumption_shape(run_id, done))
    else:
        out.line(run_id)
        out.note(sentence(run_id, done))
    if done.fenced:
        return FENCED
    return OK if done.progressed and done.error is None else FAILURE


def sentence(run_id: str, done: Resumption) -> str:
    """Return what came of a resume, for people."""
    if done.fenced:
        return f"Attempt {done.epoch} of {run_id} was superseded by another one meanwhile."
    how = "got further" if done.progressed else "got no further"
    ended = "is unfinished" if done.outcome is None else f"ended as {done.outcome}"
    text = f"Attempt {done.epoch} of {run_id} {how}; the run {ended}."
    return text if done.error is None else f"{text} Its adapter: {done.error}."
