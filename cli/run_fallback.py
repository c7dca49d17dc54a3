"""`tacho run fallback`: record that the job goes on with something else than it wanted."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, attempt
from tachograph.cli.options import Argument, Option, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Record that the job goes on with something else.",
    Argument("source", "What it wanted, such as a model.", metavar="FROM"),
    Argument("target", "What it uses instead.", metavar="TO"),
    Option("--reason", "Why.", metavar="TEXT"),
    RUN,
    EPOCH,
)


def run(params: Params, out: Output) -> None:
    """Record the fallback."""
    attempt(params, out).execute(
        lambda run, why: run.take_fallback(why, params.source, params.target, reason=params.reason)
    )
    if out.json:
        out.document({"from": params.source, "to": params.target, "reason": params.reason})
