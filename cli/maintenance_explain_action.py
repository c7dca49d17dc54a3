"""`tacho maintenance explain-action`: why a repair was denied or halted, with the events."""

from __future__ import annotations

from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.opening import open_store
from tachograph.cli.options import WHOLE, Argument, Option, Spec, UsageError
from tachograph.domain.repair_policy import ACTIONS, DAEMON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Say whether a repair may be done now, and why not, with the events that say so.",
    Argument("action", "The repair action; all of them without it.", required=False),
    Option("--events", "How many events to show, the newest.", kind=WHOLE, default=10, metavar="N"),
    CONFIG,
    details=f"Actions: {', '.join(ACTIONS)}.",
)


def run(params: Params, out: Output) -> None:
    """Print what is known of the action, or of each."""
    from tachograph.cli import health_lines
    from tachograph.cli.times import when
    from tachograph.queue_plans import plan_of
    from tachograph.queue_repairkeeping import gatekeeper_of

    if params.action is not None:
        check_action(params.action)
    if params.events < 0:
        raise UsageError(f"--events is {params.events}: give 0 or more.")
    services = open_store(out)
    plans = plan_of(services, params.config)
    gatekeeper = gatekeeper_of(services, plans)
    documents = []
    for action in ACTIONS if params.action is None else (params.action,):
        repairs = gatekeeper.get(action)
        denial = gatekeeper.look(action, DAEMON)
        history = gatekeeper.history(action, params.events) if params.events else []
        if out.json:
            documents.append(health_lines.repairs_document(repairs, plans.repair, denial, history))
            continue
        out.line(health_lines.explanation(repairs, denial))
        for topic, fields in history:
            time = when(fields["time_us"], out.time or "iso")
            out.line(f"  {time}  {health_lines.in_short(topic, fields)}")
    if out.json:
        out.document({"actions": documents})


def check_action(name: str) -> None:
    """Require an action of this name. Raises UsageError, with a near one."""
    if name not in ACTIONS:
        from difflib import get_close_matches

        near = get_close_matches(name, ACTIONS, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise UsageError(f"There is no action {name!r}.{hint} There are {', '.join(ACTIONS)}.")
