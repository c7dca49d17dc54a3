"""`tacho queue worker`: do the jobs of queues, one after the other, until it is stopped."""

from __future__ import annotations

from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.options import NUMBER, WHOLE, Argument, Option, Spec, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Do the jobs of queues.",
    Argument(
        "queues",
        "The queues; all that have handlers without any.",
        required=False,
        multiple=True,
        metavar="QUEUE",
        complete="queue",
    ),
    Option("--concurrency", "Jobs at once.", kind=WHOLE, default=1, metavar="N"),
    flag("--once", "Do one job, where there is one, and end."),
    flag("--drain", "End when nothing is due any more, or waits for another attempt."),
    Option("--handlers", "A module with handlers.", multiple=True, metavar="MODULE"),
    Option("--exec", "A command that does every job without a handler.", metavar="COMMAND"),
    Option("--grace", "How long a stop waits for jobs.", default="30s", metavar="SPAN"),
    Option(
        "--max-load",
        "Load of each processor above which nothing is begun; 0: any. "
        "0.8, and any with --once and --drain.",
        kind=NUMBER,
        metavar="X",
    ),
    Option("--poll", "How often an idle worker looks; its queues' without.", metavar="SPAN"),
    flag("--watch", "Show at a terminal what is at work."),
    Option(
        "--log-format",
        "Lines on stderr for people, or JSON.",
        choices=("text", "json"),
        default="text",
        metavar="FORMAT",
    ),
    CONFIG,
    details="""Handlers are Python functions decorated with @tachograph.handler("type"), or
executables that tachograph.toml declares for a type. Each job is a run: its phases, checkpoints and
effects are recorded, a retry goes on at the last checkpoint, and the gate judges what came of it.

SIGTERM or Ctrl-C stops it: nothing more is begun, jobs at work may end within --grace, then
processes are stopped and their jobs given back. A second signal stops at once.

An executable gets the payload as JSON on stdin and in the file TACHO_JOB_PAYLOAD_FILE. Exit code 0
is judged as `tacho run exec` does, 75 means later, 65 never again, any other is a failure. A JSON
object on the last line of its output is the job's result.

\b
  tacho queue worker --handlers jobs
  tacho queue worker memory --concurrency 4 --drain --exec ./embed""",
)


def run(params: Params, out: Output) -> int:
    """Work until stopped, or until there is nothing left with --once and --drain."""
    if params.once and params.drain:
        raise UsageError("--once and --drain exclude each other.")
    if params.concurrency < 1:
        raise UsageError(f"--concurrency is {params.concurrency}: give 1 or more.")
    if params.once and params.concurrency > 1:
        raise UsageError("--once does one job: leave --concurrency out.")
    if params.max_load is not None and not params.max_load >= 0:
        raise UsageError(f"--max-load is {params.max_load}: give a load of 0 or more.")
    grace = _seconds("--grace", params.grace)
    poll = None if params.poll is None else _seconds("--poll", params.poll)
    if poll is not None and not poll > 0:
        raise UsageError(f"--poll is {params.poll}: give a time above 0.")
    from tachograph.cli.worker_running import work

    return work(params, out, grace_seconds=grace, poll_seconds=poll)


def _seconds(option: str, text: str) -> float:
    from tachograph.domain.errors import InvalidSpanError
    from tachograph.infra.clock import parse_span

    try:
        return parse_span(text) / 1_000_000
    except InvalidSpanError as error:
        raise UsageError(f"{option}: {error}") from error
