"""`tacho maintenance lift-halt`: let a halted repair be done again, by a person's word."""

from __future__ import annotations

from tachograph.cli.maintenance_explain_action import check_action
from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Option, Spec, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Let a halted repair be done again.",
    Argument("action", "The repair action."),
    Option("--reason", "Why it will help now.", metavar="TEXT"),
    CONFIG,
    details="""`tacho maintenance explain-action` shows which are halted, and why. What was held
against the action is forgotten: it is halted again only after as many runs that do not help.""",
)


def run(params: Params, out: Output) -> None:
    """Lift the halt; an action that is not halted stays as it is."""
    from tachograph.queue_plans import plan_of
    from tachograph.queue_repairkeeping import gatekeeper_of

    check_action(params.action)
    if not (params.reason or "").strip():
        raise UsageError("Why will it help now? Say so with --reason.")
    services = open_store(out)
    gatekeeper = gatekeeper_of(services, plan_of(services, params.config))
    lifted = gatekeeper.decide(
        params.action, lambda repairs, cause: repairs.lift(cause, params.reason)
    )
    if out.json:
        out.document({"action": params.action, "lifted": lifted, "reason": params.reason})
    elif lifted:
        out.line(f"{params.action} may be done again")
    else:
        out.note(f"{params.action} is not halted.")
