"""`tacho maintenance run resume`: `tacho run resume` under the name of the original.

What is run comes from the log and its plan, never from the text of a file.
"""

from __future__ import annotations

from tachograph.cli.run_resume import SPEC, resume

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

__all__ = ["SPEC", "run"]


def run(params: Params, out: Output) -> int:
    """Resume the run, found as the original finds it, and print what came of it."""
    from tachograph.cli.maintenance_runs import found_id

    return resume(params, out, found_id)
