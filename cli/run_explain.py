"""`tacho run explain`: exactly why a run stands as it does."""

from __future__ import annotations

from tachograph.cli.finding import find_run, warn
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Option, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Say exactly why a run stands as it does.",
    Argument("run", "The run; a prefix of its id will do.", complete="run"),
    Option("--html", "Write it as one page of HTML to this file; - is stdout.", metavar="FILE"),
    details="""Everything comes from the log: the verdict with its rule; the facts, and the events
that they were counted from; what the model or parser had returned; what was ruled out; what would
have changed the verdict; who judged; later revisions; and for a run that has not ended what it
was doing, since when, and what is in doubt. The verdict is judged again from the events before
it: an explanation says when it does not follow from them.""",
)

MOST_ENTRIES = 500
"""Entries of the timeline that a page shows."""


def run(params: Params, out: Output) -> None:
    """Print the explanation."""
    from tachograph.looking import audit_of

    services = open_store(out, read_only=True)
    audit = audit_of(services, find_run(services, params.run, out), report=warn(out))
    if params.html is not None:
        from tachograph.cli.pages import write_page

        write_page(audit, _timeline(services, audit["run_id"], out), params.html, out)
    elif out.json:
        from tachograph.shapes import explanation_shape

        out.document(explanation_shape(audit))
    else:
        from tachograph.cli.audit_lines import print_audit

        print_audit(audit, out)


def _timeline(services: Services, run_id: str, out: Output) -> list[dict[str, Any]]:
    """Return the newest entries of what happened."""
    from tachograph.cli.finding import ask
    from tachograph.looking import judge_of
    from tachograph.reading import timeline

    judge = judge_of(services)
    return ask(services, out, lambda view: timeline(view, judge, run_id, newest=MOST_ENTRIES))
