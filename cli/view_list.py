"""`tacho view list`: which views there are, and how far each is behind the log."""

from __future__ import annotations

from tachograph.cli.opening import open_store
from tachograph.cli.options import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "List the views, and how far each is behind the log.",
    details="A view that lags is no fault: whoever reads it lets it catch up first.",
)


def run(_params: Params, out: Output) -> None:
    """Print name, version, position and lag of each view."""
    from tachograph.projecting import lag
    from tachograph.projections.views import VERSIONS

    services = open_store(out, read_only=True)
    behind = lag(services.log, services.views())
    head = services.log.head().position
    found = [
        {"name": name, "version": VERSIONS[name], "position": head - lack, "lag": lack}
        for name, lack in behind.items()
    ]
    if out.json:
        out.document({"head": head, "views": found})
    else:
        rows = [[str(value) for value in row.values()] for row in found]
        out.table(("VIEW", "VERSION", "POSITION", "LAG"), rows)
