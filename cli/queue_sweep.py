"""`tacho queue sweep`: prune the jobs whose time is over. Takes no other."""

from __future__ import annotations

from tachograph.cli.exit_codes import FAILURE, OK
from tachograph.cli.options import Spec
from tachograph.cli.queue_repairs import (
    WHO,
    denied_code,
    gate_in,
    opened,
    reason_in,
    show_sweep,
    told,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Prune the jobs whose time is over.",
    *WHO,
    details="""Completed jobs have 14 days, dead and cancelled ones 30, unless `keep_completed` and
`keep_dead` of [queues.NAME] in tachograph.toml say otherwise. They go as with `tacho queue prune`,
500 in a commit, and `tacho queue restore` brings them back. Workers sweep by themselves, every 6
hours; whether that is due, the log says. Shows what would go, and changes nothing, without --apply.
Ends with 1 where a job whose time is over was refused, and says why; the others went.

\b
  tacho queue sweep
  tacho queue sweep --apply --reason 'the disk is full'""",
)


def run(params: Params, out: Output) -> int:
    """Show what would go, or let it go."""
    from tachograph.cli.finding import warn
    from tachograph.domain.repair_errors import RepairDeniedError
    from tachograph.queue_repairkeeping import sweeper_of

    reason = reason_in(params)
    services, plans = opened(params, out)
    sweeper = sweeper_of(services, plans, gate_in(services, plans, params), report=warn(out))
    denial = None
    try:
        swept = sweeper.preview() if reason is None else sweeper.sweep(reason)
    except RepairDeniedError as error:
        swept, denial = sweeper.preview(), error
    if out.json:
        out.document(
            {
                "applied": swept.applied,
                "success": denial is None and not swept.refused,
                "message": swept.message() if denial is None else str(denial),
                **swept.to_fields(),
                "byQueue": swept.by_queue,
                "refused": swept.refused,
                "repair": swept.repair,
                "denied": told(denial),
            }
        )
    elif denial is not None:
        out.line(f"[denied] {denial}")
    else:
        show_sweep(swept, out)
        if not swept.applied and swept.total:
            out.note("Nothing was changed. Add --apply --reason TEXT to do it.")
    if denial is not None:
        return denied_code(denial)
    return FAILURE if swept.refused else OK
