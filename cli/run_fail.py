"""`tacho run fail`: end the attempt as failed."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN
from tachograph.cli.options import Option, Spec, UsageError
from tachograph.cli.run_finish import finish
from tachograph.domain.outcome import FAILED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "End the attempt as failed.",
    Option("--reason", "Why.", metavar="TEXT"),
    RUN,
    EPOCH,
    details="""The same as finish --outcome failed: it ends with 1, the exit code of that outcome.
A failed run can be resumed.""",
)


def run(params: Params, out: Output) -> int:
    """End the attempt."""
    if params.reason is None:
        raise UsageError("Why did it fail? Say so with --reason.")
    return finish(params, out, FAILED)
