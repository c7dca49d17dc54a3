"""`tacho queue restore`: undo a cancelling or pruning. Never runs a job again that was done."""

from __future__ import annotations

from tachograph.cli.options import Option, Spec, UsageError
from tachograph.cli.queue_repairs import (
    DETAILS,
    OPTIONS,
    opened,
    reason_in,
    run_repair,
    selection_in,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Make cancelled and pruned jobs what they were before.",
    *OPTIONS,
    Option("--repair", "All that a repair did, by the name it was recorded as.", metavar="NAME~N"),
    details=f"""Takes cancelled and pruned jobs, 50 unless --max-batch says otherwise, and all of
them with --repair. A dead job is dead again, a completed one completed, and what waited or was
leased waits. It has no cooldown and no budget, so that a mistake can be undone at once.

\b
  tacho queue restore --repair cancelObsoleteJobs~3 --apply --reason 'they were needed'

{DETAILS}""",
)


def run(params: Params, out: Output) -> int:
    """Show what would be restored, or restore it."""
    from tachograph.domain.queue_selection import RESTORE_RULE

    reason = reason_in(params)
    selection = selection_in(params)
    if params.repair is not None and selection.ids is not None:
        raise UsageError("--repair and --ids exclude each other.")
    RESTORE_RULE.check(selection)
    services, plans = opened(params, out)
    if params.repair is not None:
        from tachograph.queue_repairkeeping import ids_of_repair

        ids = ids_of_repair(services, params.repair)
        if not ids:
            raise UsageError(
                f"No job is cancelled or pruned because of {params.repair!r}. Nothing was changed."
            )
        selection.ids = ids
    return run_repair(
        RESTORE_RULE,
        selection,
        reason,
        params,
        out,
        services,
        plans,
        exact=params.repair is not None,
    )
