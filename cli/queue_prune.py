"""`tacho queue prune`: take ended jobs out of the lists. What they were is in an archive first."""

from __future__ import annotations

from tachograph.cli.options import Spec
from tachograph.cli.queue_repairs import DETAILS, OPTIONS, repair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Take ended jobs out of all lists, their events into an archive.",
    *OPTIONS,
    details=f"""Takes jobs that are completed, dead or cancelled for 90 days, unless --older-than
says otherwise; at most 1,000 in one call. Their events move into a file in the folder archive of
the store, from which history and restore read them; `tacho store compact` then makes the log
smaller.

\b
  tacho queue prune --older-than 180d --status completed --apply --reason 'tidy up'

{DETAILS}""",
)


def run(params: Params, out: Output) -> int:
    """Show what would be pruned, or prune it."""
    from tachograph.domain.queue_selection import PRUNE_RULE

    return repair(PRUNE_RULE, params, out)
