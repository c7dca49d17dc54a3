"""`tacho run artifact`: record a file that the run made."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, attempt
from tachograph.cli.options import Argument, Spec
from tachograph.continuing import record_artifact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Record a file that the run made.",
    Argument("name", "What it is, such as report."),
    Argument("path", "Where it is.", complete="path"),
    RUN,
    EPOCH,
    details="Records its absolute path, its size and its SHA-256; the file stays where it is.",
)


def run(params: Params, out: Output) -> None:
    """Measure and record the file."""
    found = record_artifact(attempt(params, out), params.name, params.path)
    if out.json:
        out.document({"name": params.name, **found})
