"""`tacho run heartbeat`: say that the attempt is alive. Records no event."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, attempt
from tachograph.cli.options import Spec
from tachograph.continuing import beat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Say that the attempt is alive.",
    RUN,
    EPOCH,
    details="""Needed for runs started with --unowned, and by scripts whose commands come from
shells that do not last. Ends with 6 when another attempt owns the run by now.""",
)


def run(params: Params, out: Output) -> None:
    """Renew the lease."""
    session = attempt(params, out)
    beat(session)
    if out.json:
        out.document({"jobRunId": session.run_id, "epoch": session.epoch})
