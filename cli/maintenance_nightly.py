"""`tacho maintenance nightly`: run the long tier of maintenance."""

from __future__ import annotations

from tachograph.cli.maintenance_options import DETAILS, TIER_OPTIONS
from tachograph.cli.options import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Run the maintenance steps that are due: the long tier, once a night.",
    *TIER_OPTIONS,
    details=DETAILS,
)


def run(params: Params, out: Output) -> int:
    """Run them and return the exit code."""
    from tachograph.cli.maintaining import maintain

    return maintain("nightly", params, out)
