"""`tacho run artifacts`: the files that a run made, and whether they are still what they were."""

from __future__ import annotations

from tachograph.cli.exit_codes import FAILURE, OK
from tachograph.cli.finding import load_run
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Spec
from tachograph.cli.sizes import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "List the files that a run made, and whether they are still what they were.",
    Argument("run", "The run; a prefix of its id will do.", complete="run"),
    details="Reads each file and compares its size and SHA-256. Ends with 1 when one is missing, "
    "changed or unreadable.",
)


def run(params: Params, out: Output) -> int:
    """Print each file with its state."""
    from tachograph.inspecting import artifacts

    services = open_store(out, read_only=True)
    recorded = load_run(services, params.run, out)
    found = list(artifacts(recorded))
    if out.json:
        shown = [
            {
                "name": each.name,
                "path": each.path,
                "size": each.size,
                "sha256": each.sha256,
                "state": each.state,
            }
            for each in found
        ]
        out.document({"jobRunId": recorded.id, "artifacts": shown})
    elif found:
        rows = [(each.name, size(each.size), each.state, each.path) for each in found]
        out.table(("NAME", "SIZE", "STATE", "PATH"), rows)
    else:
        out.note(f"Run {recorded.id} recorded no files.")
    return OK if all(each.state == "ok" for each in found) else FAILURE
