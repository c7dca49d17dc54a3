"""`tacho maintenance run explain`: why a run stands as it does, in the original's words."""

from __future__ import annotations

from tachograph.cli.maintenance_runs import opened, record
from tachograph.cli.options import Argument, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Say in a few sentences why a run stands as it does.",
    Argument("run", "The run; a prefix of its id will do.", complete="run"),
    details="`tacho run explain` gives the whole reasoning, with rule, facts and events.",
)


def run(params: Params, out: Output) -> None:
    """Print the diagnosis."""
    from tachograph.maintenance_runs import explained

    services, found = opened(params, out)
    said = explained(services.repository, found, record(services, found))
    if out.json:
        out.document(said)
        return
    out.line(said["diagnosis"])
    if "lastEvent" in said:
        out.line(f"Last event: {said['lastEvent']}")
    if "resumeHint" in said:
        out.line(said["resumeHint"])
