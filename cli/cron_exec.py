"""`tacho cron exec`: run a cron line so that what came of it can be seen and proven."""

from __future__ import annotations

from tachograph.cli.options import NUMBER, Argument, Option, Spec, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Run a cron line, and judge what it did.",
    Argument("argv", "The command, after --.", multiple=True, metavar="-- COMMAND..."),
    Option("--job", "Name of the job.", metavar="NAME"),
    Option(
        "--required-steps",
        "Steps that must end well, separated by commas; the job itself without it.",
        multiple=True,
        metavar="STEPS",
    ),
    flag("--allow-skip", "A required step may be skipped."),
    Option("--root", "Folder of the logs.", metavar="DIR", complete="path"),
    Option("--timeout", "Stop it after this time.", kind=NUMBER, metavar="SECONDS"),
    Option("--id", "An id of your own (RUN_ID); once more, it takes up that run.", metavar="ID"),
    Option("--title", "A line for people.", metavar="TEXT"),
    Option("--parent", "The run that this one is part of.", metavar="ID", complete="run"),
    details="""The command runs as it would without tacho, as a run of the store: its output passes
through, signals reach it, and when tacho itself is killed a keeper brings it to its end.

Beside that it leaves the files of a cron job: JOB-RUN_ID.log and .exit.txt in the folder of the
logs, .summary.json and .validation.json in its folder of the day, and JOB.ms, the guard, when the
job has done its work. The command finds them in HM_LOG, HM_EXIT, HM_SUMMARY, HM_VALIDATION_JSON,
its names in HM_JOB, HM_RUN_ID, HM_ORCHESTRATOR_RUN_ID, and the run in TACHO_STORE, TACHO_RUN_ID and
TACHO_EPOCH. Steps inside a script are recorded by `tacho cron step`.

The folder of the logs is --root, else OpenClaw's logs/cron-hybrid-mem where OPENCLAW_HOME is set
or the folder is there, else `cron` in the store; one for temporary files when it cannot be written.

\b
Exit code: that of the command when it is not 0; 129, 130, 131 or 143 when it was sent a signal;
124 at the time limit; else that of `tacho cron validate` (0, 1, 2). 75: the job is at work already,
and --allow-skip was not given. 1 also when the files could not be written.

\b
  0 2 * * *  tacho cron exec --job backup -- /usr/local/bin/backup.sh""",
)


def run(params: Params, out: Output) -> int:
    """Run the command to its end and return the exit code."""
    from tachograph.cli.cron_wrapping import wrap

    return wrap(params, out)
