"""`tacho maintenance step`: run one maintenance step, if it is due."""

from __future__ import annotations

from tachograph.cli.maintenance_options import BOUNDS, DETAILS
from tachograph.cli.options import Argument, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Run one maintenance step, if it is due.",
    Argument("name", "The step.", metavar="NAME"),
    *BOUNDS,
    details=f"{DETAILS}\n\nWithout --max-runtime-min the step has 4 minutes.",
)


def run(params: Params, out: Output) -> int:
    """Run it and return the exit code."""
    from tachograph.cli.maintaining import maintain

    return maintain("step", params, out, params.name)
