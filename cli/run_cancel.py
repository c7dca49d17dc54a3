"""`tacho run cancel`: end a run for good, on a person's word."""

from __future__ import annotations

from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Option, Spec, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "End a run for good.",
    Argument("run", "The run, by its whole id.", complete="run"),
    Option("--reason", "Why.", metavar="TEXT"),
    details="Nothing moves a cancelled run any more; its owner, if it lives, is refused.",
)


def run(params: Params, out: Output) -> None:
    """Record the cancellation."""
    if params.reason is None:
        raise UsageError("Why is it cancelled? Say so with --reason.")
    session = open_store(out).session(params.run, 0)
    session.execute(lambda run, why: run.cancel(why, params.reason))
    if out.json:
        out.document({"jobRunId": params.run, "ended": "cancelled", "reason": params.reason})
    else:
        out.note(f"Cancelled {params.run}.")
