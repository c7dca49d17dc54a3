"""`tacho run events`: the events of a run or of all, as they are stored, or as they come in."""

from __future__ import annotations

from tachograph.cli.finding import find_run
from tachograph.cli.limits import limit, limit_of
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Option, Spec, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Print the events of a run, or of all runs.",
    Argument("run", "The run; a prefix of its id will do.", required=False, complete="run"),
    flag("--all", "The events of everything, by position."),
    Option("--type", "Only this type, such as phase-ended; may be repeated.", multiple=True),
    limit("Only the newest so many."),
    flag("--reverse", "Newest first."),
    flag("--follow", "Go on with new events as any process records them; Ctrl-C ends it."),
    flag("--until-finished", "With --follow: end when the run has ended or lost its process."),
    details="With --json each line is an event as `tacho store export` writes it.",
)


def run(params: Params, out: Output) -> None:
    """Print events, oldest first unless asked otherwise."""
    from tachograph.cli import event_lines

    if (params.run is None) != params.all:
        raise UsageError("Which events? Name one run, or give --all.")
    if params.follow and params.reverse:
        raise UsageError("--follow goes forwards: leave out --reverse.")
    if params.until_finished and not (params.follow and params.run):
        raise UsageError("--until-finished needs a run and --follow.")
    topics = [event_lines.topic(text) for text in params.type]
    services = open_store(out, read_only=True)
    run_id = None if params.all else find_run(services, params.run, out)
    event_lines.show(
        services,
        out,
        run_id,
        topics,
        limit=limit_of(params),
        reverse=params.reverse,
        follow=params.follow,
        until_finished=params.until_finished,
    )
