"""`tacho queue status`: how the queues are, as of now. Changes nothing."""

from __future__ import annotations

from tachograph.cli.finding import ask
from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.opening import open_store
from tachograph.cli.options import NUMBER, Argument, Option, Spec, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

INTERVAL = 2.0
"""Seconds between two looks of --watch."""

SPEC = Spec(
    "Show how the queues are, as of now.",
    Argument("queues", "Only these; all without.", required=False, multiple=True),
    flag("--watch", "Look again and again, until Ctrl-C."),
    Option("--interval", "Seconds between two looks of --watch; 2 without.", kind=NUMBER,
           metavar="S"),
    CONFIG,
    details="""Of each queue: p= pending, l= leased, c= completed, f= failed and waiting for
another attempt, d= dead, oldest= how long the one that waits or is at work has done so for
longest, dead= how long the oldest dead one has been dead, s= scheduled for later, x= cancelled.
Below it, what happened in the last hour and day, how long jobs waited until they were started,
and how long they then took: half of them at most P50, all but a twentieth at most P95.

--json prints the body of /api/diagnostics/queue.""",
)  # fmt: skip


def run(params: Params, out: Output) -> None:
    """Print the state of the queues, once or until Ctrl-C."""
    if params.interval is not None and not params.watch:
        raise UsageError("--interval goes with --watch.")
    if params.watch:
        from tachograph.cli.queue_watch import watch

        seconds = INTERVAL if params.interval is None else params.interval
        watch(open_store(out, read_only=True), params, seconds, out)
        return
    document = look(open_store(out, read_only=True), params, out)
    if out.json:
        out.document(document)
        return
    from tachograph.cli.queue_lines import block

    for line in block(document, styled=out.styled(), width=out.width()):
        out.line(line)


def look(services: Services, params: Params, out: Output) -> dict[str, Any]:
    """Return how the queues are, now. Raises UnknownQueueError."""
    from tachograph.queue_plans import plan_of
    from tachograph.queues.looking import health

    plans = plan_of(services, params.config)
    now_us = services.actor.now_us()

    def question(view: Any) -> dict[str, Any]:
        return health(view.queues, plans.plan, plans.thresholds, now_us, params.queues)

    return ask(services, out, question)
