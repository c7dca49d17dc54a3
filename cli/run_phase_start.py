"""`tacho run phase start`: begin a phase, or take it up again after a resume."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, attempt
from tachograph.cli.options import WHOLE, Argument, Option, Spec, flag
from tachograph.continuing import start_phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Start a phase of a run.",
    Argument("name", "Name of the phase.", complete="phase"),
    flag("--unsafe", "Repeating the phase from its start would do harm."),
    Option("--batches", "It will have this many batches.", kind=WHOLE, metavar="N"),
    RUN,
    EPOCH,
    details="""Prints nothing, unless an earlier attempt ended the phase already: then it prints
how (completed or skipped) and records nothing, so that a script can skip the work.""",
)


def run(params: Params, out: Output) -> None:
    """Start the phase."""
    status = start_phase(
        attempt(params, out),
        params.name,
        safe_to_retry=not params.unsafe,
        batches=params.batches,
    )
    if out.json:
        out.document({"phase": params.name, "status": status})
    elif status != "running":
        out.line(status)
