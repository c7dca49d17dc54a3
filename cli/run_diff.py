"""`tacho run diff`: how two runs differ, and where their histories part."""

from __future__ import annotations

from tachograph.cli.exit_codes import FAILURE, OK
from tachograph.cli.finding import find_run
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Spec, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Show how two runs differ, and the first event at which their histories part.",
    Argument("left", "A run; a prefix of its id will do.", complete="run"),
    Argument("right", "Another run.", complete="run"),
    flag("--exit-code", "End with 1 when they differ, or when nobody can tell."),
    details="""Compares inputs, model policy, expectations, phases, batches and steps (by the digest
of what they gave), answers and faults, effects, files, retries, fallbacks, models, the number of
attempts, verdicts with their facts, and outcomes; and shows how long each phase took. Times, hosts,
processes, positions and versions make no difference. Values are shown as they are stored, large
ones by their digest.

Histories part at the first event that differs in type or content. What the runs were created with
is compared by itself, and who worked on them, remarks, and where files and bodies went do not
count. Of an erased run only the types and the order of its events are left to compare.""",
)


def run(params: Params, out: Output) -> int:
    """Print the comparison."""
    from tachograph.cli import diff_lines
    from tachograph.cli.bars import Bar
    from tachograph.differing import compare

    services = open_store(out, read_only=True)
    left, right = (find_run(services, text, out) for text in (params.left, params.right))
    with Bar(out, "compare") as bar:
        found = compare(services.repository, services.payloads, left, right, bar)
    if out.json:
        out.document(diff_lines.shape(found))
    else:
        diff_lines.show(found, out)
    return FAILURE if params.exit_code and not found.same else OK
