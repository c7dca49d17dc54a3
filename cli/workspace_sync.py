"""`tacho workspace sync`: write the card files anew from the ledger."""

from __future__ import annotations

from tachograph.cli.options import Spec
from tachograph.cli.workspace_install import WORKSPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Write the card files of a workspace anew from the ledger.",
    WORKSPACE,
    details="""The files in data/task-runs show what the ledger says; every command of the scripts
and every tick of the watchdog writes those that it changes. A file that was edited by hand is
kept aside, and the edit is reported: it changes nothing in the ledger.

Ends with 1 when a file could not be written.""",
)


def run(params: Params, out: Output) -> int:
    """Write the files, and say which ones differed."""
    from tachograph.cli.exit_codes import FAILURE, OK
    from tachograph.cli.workspaces import open_workspace
    from tachograph.dropin.syncing import sync_tasks

    tasks = open_workspace(params, out)
    written, problems = sync_tasks(tasks)
    if out.json:
        root = str(tasks.workspace.root)
        out.document({"workspace": root, "written": written, "problems": problems})
    else:
        for task_id in written:
            out.line(str(tasks.workspace.card_file(task_id)))
        for problem in problems:
            out.warn(problem)
        if not written:
            out.note("Every card file is up to date." if not problems else "No file was written.")
    return FAILURE if problems else OK
