"""`tacho run exec`: wrap any command as a run, and say truthfully what came of it."""

from __future__ import annotations

from tachograph.cli.options import NUMBER, WHOLE, Argument, Option, Spec
from tachograph.cli.recoveries import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Run any command as a run.",
    Argument("argv", "The command, after --.", multiple=True, metavar="-- COMMAND..."),
    Option("--name", "Name of the job; the program's name without it.", metavar="COMMAND"),
    Option("--id", "An id of your own.", metavar="ID"),
    Option("--input", "An input: key=text, or key:=json.", multiple=True, metavar="K=V"),
    Option("--title", "A line for people.", metavar="TEXT"),
    Option("--parent", "The run that this one is part of.", metavar="ID", complete="run"),
    Option(
        "--expect-output",
        "A file that it must make.",
        multiple=True,
        metavar="PATH",
        complete="path",
    ),
    Option(
        "--success-code",
        "An exit code that means success; 0 without it.",
        kind=WHOLE,
        multiple=True,
        metavar="N",
    ),
    Option(
        "--tail-bytes", "How much of its output to keep.", kind=WHOLE, default=16384, metavar="N"
    ),
    Option("--timeout", "Stop it after this time.", kind=NUMBER, metavar="SECONDS"),
    *OPTIONS,
    details="""The command runs as it would without tacho: its output passes through, signals
reach it, and its exit code is returned (128 and the signal when a signal killed it). An exit code
that means success is not yet a success: every --expect-output must have been written, and where
none is given the run ends as success_with_review. When files are missing after exit code 0, the
exit code is that of the outcome.

A keeper, a process of its own, does the work: when tacho itself is killed, the command goes on, and
how it ended is recorded all the same.

A run that was cut off is resumed by wrapping the same command again: by hand, by `tacho run
resume`, or by the watchdog with --auto-resume. Not by the watchdog when its input came through a
pipe or from a file (`… | tacho run exec`, `<data`), which would be empty then: a person wraps it
again with its input, or says `tacho run resume --despite unsafe_to_retry`.

The command finds the run in TACHO_STORE, TACHO_RUN_ID and TACHO_EPOCH and may record phases.

\b
  tacho run exec --expect-output report.pdf -- make report.pdf""",
)


def run(params: Params, out: Output) -> int:
    """Run the command to its end and return the exit code."""
    from tachograph.cli.wrapping import wrap

    return wrap(params, out)
