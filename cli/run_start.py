"""`tacho run start`: start a run from a shell, or take up the unfinished one of the same inputs."""

from __future__ import annotations

from tachograph.cli.opening import open_store
from tachograph.cli.options import WHOLE, Argument, Option, Spec, flag
from tachograph.cli.recoveries import OPTIONS, declared
from tachograph.cli.starts import environment, inputs, owner, quoted, takeover_reason
from tachograph.starting import Start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Start a run, or resume the unfinished one of the same inputs.",
    Argument("command", "Name of the job, such as nightly-report.", complete="command"),
    Option("--id", "An id of your own.", metavar="ID"),
    Option("--input", "An input: key=text, or key:=json.", multiple=True, metavar="K=V"),
    Option("--inputs", "All inputs as a JSON object, or @file.", metavar="JSON"),
    Option("--title", "A line for people.", metavar="TEXT"),
    Option("--parent", "The run that this one is part of.", metavar="ID", complete="run"),
    Option("--owner-pid", "The process that does the work.", kind=WHOLE, metavar="PID"),
    flag("--unowned", "No process stands for the work; heartbeats do."),
    flag("--takeover", "Take the run from an owner that is alive; needs --reason."),
    Option("--reason", "Why it is taken over.", metavar="TEXT"),
    flag("--export", "Print shell code to eval, so that later commands know the attempt."),
    Option(
        "--depends-on",
        "A run that has to end well first.",
        multiple=True,
        metavar="RUN",
        complete="run",
    ),
    *OPTIONS,
    details="""Prints the id of the run. The calling shell owns the run: when it ends, the run
counts as dead and the next start resumes it. With --auto-resume and --resume-command or
--adapter the watchdog does so by itself; what is said about that when the run is created is kept
with it (see `tacho run recovery`).

\b
  eval "$(tacho run start nightly-report --input root=/data --export)"
  tacho run phase start analyse --batches 10
  for i in $(tacho run batch analyse --pending); do
    work "$i" && tacho run batch analyse "$i"
  done
  tacho run phase end analyse
  tacho run finish""",
)


def run(params: Params, out: Output) -> None:
    """Start the run and print how to refer to it."""
    from tachograph.bootstrap import joined, orchestrator

    want = Start(
        params.command,
        inputs(params),
        run_id=params.id,
        title=params.title,
        parent=params.parent or orchestrator(),
        takeover_reason=takeover_reason(params),
        recovery=declared(params),
        depends_on=params.depends_on or None,
        joins=joined(),
    )
    services = open_store(out, create=True)
    session = services.starter.start(want, owner(params, services))
    resumed = session.epoch > 1
    if resumed and want.recovery is not None and session.run.recovery != want.recovery.to_fields():
        out.note("What was declared about resuming when the run was created still stands.")
    if out.json:
        out.document({"jobRunId": session.run_id, "epoch": session.epoch, "resumed": resumed})
    elif params.export:
        for name, value in environment(services.folder, session.run_id, session.epoch).items():
            out.line(f"export {name}={quoted(value)}")
    else:
        out.line(session.run_id)
    if resumed:
        out.note(f"Resumed {session.run_id}: attempt {session.epoch}.")
