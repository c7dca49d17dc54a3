"""`tacho run timeline`: what happened in a run, in order."""

from __future__ import annotations

from tachograph.cli.finding import ask, find_run
from tachograph.cli.limits import limit, limit_of
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Spec
from tachograph.reading import timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Show what happened in a run, in order.",
    Argument("run", "The run; a prefix of its id will do.", complete="run"),
    limit("Only the newest so many entries."),
    details="Batches stand with their phase, checkpoints and steps in one entry per attempt; "
    "`tacho run events` shows every event.",
)


def run(params: Params, out: Output) -> None:
    """Print the entries of the timeline."""
    from tachograph.cli.timeline_lines import line
    from tachograph.looking import judge_of

    services = open_store(out, read_only=True)
    run_id = find_run(services, params.run, out)
    judge = judge_of(services)
    newest = limit_of(params)
    entries = ask(services, out, lambda view: timeline(view, judge, run_id, newest=newest))
    if out.json:
        from tachograph.shapes import timeline_shape

        out.document({"jobRunId": run_id, "entries": timeline_shape(entries)})
    else:
        for entry in entries:
            out.line(line(entry, out))
