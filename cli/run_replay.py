"""`tacho run replay`: what a run was at any of its events, from the events alone."""

from __future__ import annotations

from tachograph.cli.finding import find_run
from tachograph.cli.opening import open_store
from tachograph.cli.options import WHOLE, Argument, Option, Spec, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Show what a run was at any of its events, from the events alone.",
    Argument("run", "The run; a prefix of its id will do.", complete="run"),
    Option("--to", "Up to this version.", kind=WHOLE, metavar="VERSION"),
    Option("--at", "Up to this time, such as 2h or 2026-03-01T14:30.", metavar="TIME"),
    flag("--diff", "Show what each event changed."),
    flag("--strict", "Compare with everything that is stored about the run."),
    details="--strict replays the whole run and ends with 5 where its stored snapshots, summary "
    "or card are not what the events say, naming the first such event.",
)


def run(params: Params, out: Output) -> None:
    """Print the state, or the changes, or how the comparison went."""
    from tachograph.cli import replay_lines
    from tachograph.infra.clock import now_us, parse_time

    if params.to is not None and params.at is not None:
        raise UsageError("Give --to or --at, not both.")
    if params.strict and (params.diff or params.to is not None or params.at is not None):
        raise UsageError("--strict replays the whole run: leave out --to, --at and --diff.")
    at_us = None if params.at is None else parse_time(params.at, now_us())
    services = open_store(out, read_only=True)
    run_id = find_run(services, params.run, out)
    if params.strict:
        replay_lines.compare(services, out, run_id)
    elif params.diff:
        replay_lines.show_changes(services, out, run_id, params.to, at_us)
    else:
        replay_lines.show_state(services, out, run_id, params.to, at_us)
