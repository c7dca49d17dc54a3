"""`tacho queue cancel`: let nobody do some jobs. What they were is kept, and can be restored."""

from __future__ import annotations

from tachograph.cli.options import Spec
from tachograph.cli.queue_repairs import DETAILS, OPTIONS, repair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Let nobody do some jobs; restore makes them what they were.",
    *OPTIONS,
    details=f"""Takes jobs that are dead or completed for 30 days, unless --older-than says
otherwise; jobs that wait or are leased only where --status or --ids names them, and those whatever
their age. The holder of a leased job is refused when it wants to end it. At most 1,000 in one call.

\b
  tacho queue cancel --queues memory --status pending --apply --reason 'retired'

{DETAILS}""",
)


def run(params: Params, out: Output) -> int:
    """Show what would be cancelled, or cancel it."""
    from tachograph.domain.queue_selection import CANCEL_RULE

    return repair(CANCEL_RULE, params, out)
