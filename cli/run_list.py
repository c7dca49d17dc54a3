"""`tacho run list`: the runs, newest first, each with its status as of now."""

from __future__ import annotations

from tachograph.cli import run_rows
from tachograph.cli.finding import ask
from tachograph.cli.limits import limit, limit_of
from tachograph.cli.opening import open_store
from tachograph.cli.options import Option, Spec, flag
from tachograph.domain.outcome import OUTCOMES
from tachograph.reading import STATUSES, list_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "List the runs, newest first, each with its status as of now.",
    Option("--since", "Only runs in which something happened since, such as 7d.", metavar="TIME"),
    Option("--status", "Only this status; may be repeated.", choices=STATUSES, multiple=True),
    Option("--outcome", "Only this outcome; may be repeated.", choices=OUTCOMES, multiple=True),
    Option("--command", "Only runs of this command.", metavar="NAME", complete="command"),
    flag("--needs-attention", "Only runs that need a person."),
    limit("At most so many; 0 for all.", 20),
    details="`running` is shown only while the owner is alive, judged at this moment; a run that "
    "has lost its process is `interrupted`.",
)


def run(params: Params, out: Output) -> None:
    """Print a card for each run."""
    from tachograph.infra.clock import now_us, parse_time
    from tachograph.looking import judge_of

    since_us = None if params.since is None else parse_time(params.since, now_us())
    most = limit_of(params) or None
    services = open_store(out, read_only=True)
    judge = judge_of(services)
    cards = ask(
        services,
        out,
        lambda view: list_runs(
            view,
            judge,
            since_us=since_us,
            statuses=params.status,
            outcomes=params.outcome,
            command=params.command,
            needing=params.needs_attention,
            limit=most,
        ),
    )
    if out.json:
        from tachograph.shapes import card_shape

        out.document([card_shape(card) for card in cards])
    elif cards:
        run_rows.table(cards, out)
    else:
        out.note("There are no such runs.")
