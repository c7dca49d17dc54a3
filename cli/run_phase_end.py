"""`tacho run phase end`: end a phase."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, attempt
from tachograph.cli.options import Argument, Option, Spec
from tachograph.continuing import end_phase
from tachograph.domain.run import PHASE_ENDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "End a phase of a run.",
    Argument("name", "Name of the phase.", complete="phase"),
    Option("--status", "How it ended.", choices=PHASE_ENDS, default="completed"),
    Option("--summary", "A line for people.", metavar="TEXT"),
    RUN,
    EPOCH,
    details="""A phase is completed only when every planned batch is finished. One that an
earlier attempt ended the same way stays as it is.""",
)


def run(params: Params, out: Output) -> None:
    """End the phase."""
    session = attempt(params, out)
    end_phase(session, params.name, status=params.status, summary=params.summary)
    if out.json:
        out.document({"phase": params.name, "status": params.status})
