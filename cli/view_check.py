"""`tacho view check`: whether views and queue index are what the log says, byte by byte."""

from __future__ import annotations

from tachograph.cli.exit_codes import DIVERGED, OK
from tachograph.cli.opening import open_store
from tachograph.cli.options import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Check that the views, and the index of the queues, are what the log says, byte by byte.",
    details="Makes them anew beside the stored ones and compares. Changes nothing.",
)


def run(_params: Params, out: Output) -> int:
    """Print every row that differs; exit code 5 when there is one."""
    from tachograph import storekeeping
    from tachograph.cli.bars import Bar

    services = open_store(out, read_only=True)
    with Bar(out, "check") as bar:
        found = storekeeping.check_views(services, bar)
    if out.json:
        out.document({"same": not found, "differences": [str(each) for each in found]})
    else:
        for each in found:
            out.line(str(each))
    if found:
        out.note("The views are not what the log says: run `tacho view rebuild`.")
        return DIVERGED
    out.note("The views are what the log says.")
    return OK
