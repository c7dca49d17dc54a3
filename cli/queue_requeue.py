"""`tacho queue requeue`: let dead jobs wait again. Touches no job that is done or waits."""

from __future__ import annotations

from tachograph.cli.options import Spec
from tachograph.cli.queue_repairs import DETAILS, OPTIONS, repair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Let dead jobs wait again, as if they had never been tried.",
    *OPTIONS,
    details=f"""Takes dead jobs of any age (or cancelled ones, with --status or --ids), 50
unless --max-batch says otherwise. Their attempts count from nought again, their error is cleared. A
job whose key another one has meanwhile is passed over.

\b
  tacho queue requeue --error-pattern 'connection refused' --older-than 10m
  tacho queue requeue --queues memory --max-batch 500 --apply --reason 'the model is back'

{DETAILS}""",
)


def run(params: Params, out: Output) -> int:
    """Show what would be requeued, or requeue it."""
    from tachograph.domain.queue_selection import REQUEUE_RULE

    return repair(REQUEUE_RULE, params, out)
