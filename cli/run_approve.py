"""`tacho run approve`: agree to exactly what a run asks for."""

from __future__ import annotations

from tachograph.cli.approvals import APPROVAL, REASON, RUN, SUBJECT, decide
from tachograph.cli.options import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Agree to what a run asks approval for.",
    RUN,
    APPROVAL,
    SUBJECT,
    REASON,
    details="""An approval counts for exactly what was asked for. When the job asks for something
else later, it is void, and a person decides again.""",
)


def run(params: Params, out: Output) -> None:
    """Record the approval."""
    decide("granted", params, out)
