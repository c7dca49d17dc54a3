"""`tacho run reject`: refuse what a run asks for."""

from __future__ import annotations

from tachograph.cli.approvals import APPROVAL, REASON, RUN, SUBJECT, decide
from tachograph.cli.options import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Refuse what a run asks approval for.",
    RUN,
    APPROVAL,
    SUBJECT,
    REASON,
    details="The run is not resumed unattended then; cancel it, or let the job ask anew.",
)


def run(params: Params, out: Output) -> None:
    """Record the refusal."""
    decide("rejected", params, out)
