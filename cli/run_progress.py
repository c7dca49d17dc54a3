"""`tacho run progress`: record how far the run is."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, attempt
from tachograph.cli.options import WHOLE, Argument, Option, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Record how far the run is.",
    Argument("done", "Units that are done.", kind=WHOLE),
    Argument("total", "Units there are.", kind=WHOLE, required=False),
    Option("--unit", "What is counted.", default="units", metavar="WORD"),
    RUN,
    EPOCH,
)


def run(params: Params, out: Output) -> None:
    """Record the progress."""
    attempt(params, out).execute(
        lambda run, why: run.report_progress(why, params.done, params.total, params.unit)
    )
    if out.json:
        out.document(
            {
                "completedUnits": params.done,
                "totalUnits": params.total,
                "unitLabel": params.unit,
            }
        )
