"""`tacho maintenance run artifacts`: where the files of a run are."""

from __future__ import annotations

from tachograph.cli.maintenance_runs import opened
from tachograph.cli.options import Argument, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Show where the files of a run are.",
    Argument("run", "The run; a prefix of its id will do.", complete="run"),
    details="Of a job run: summary, events, checkpoint and report; of an orchestrator run: "
    "summary, log, exit and validation. A file that is not there has no path: `tacho run "
    "artifacts RUN --update` writes those that the log can give back.",
)


def run(params: Params, out: Output) -> None:
    """Print each file."""
    from tachograph.cli.artifact_roots import finder
    from tachograph.maintenance_runs import files

    services, found = opened(params, out)
    paths = files(found, finder(services, found))
    if out.json:
        out.document(paths)
        return
    for kind, path in paths.items():
        out.line(f"{kind}: {path or '-'}")
