"""`tacho workspace import`: take over the cards that a workspace had before, with their history."""

from __future__ import annotations

from tachograph.cli.options import Spec
from tachograph.cli.workspace_install import DRY_RUN, WORKSPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Take over the cards that a workspace has, with their history.",
    WORKSPACE,
    DRY_RUN,
    details="""Reads data/task-runs, in the published shape of a card and in that of the article. A
finished card becomes a finished run, one that runs an unfinished run with its last checkpoint.
Cards that are in the ledger already stay as they are, so that a second time changes nothing. A
file that cannot be read is named, and left alone.

Ends with 1 when there is such a file.""",
)


def run(params: Params, out: Output) -> int:
    """Import, and print a row for each file."""
    import contextlib

    from tachograph.cli.exit_codes import FAILURE, OK
    from tachograph.cli.workspaces import find_workspace, open_workspace
    from tachograph.domain.errors import StoreNotFoundError
    from tachograph.dropin.adopting import UNREADABLE, import_cards

    workspace, tasks = find_workspace(params), None
    with contextlib.suppress(StoreNotFoundError):  # in a dry run: no card is in the ledger
        tasks = open_workspace(params, out, create=not params.dry_run)
    rows = import_cards(workspace, tasks, dry_run=params.dry_run)
    if out.json:
        out.document(
            {
                "workspace": str(workspace.root),
                "dryRun": params.dry_run,
                "cards": [_shape(row) for row in rows],
            }
        )
    elif rows:
        out.table(("TASK", "STATUS", "RESULT"), [_row(row, params.dry_run) for row in rows])
    else:
        out.note(f"There are no cards in {workspace.cards}.")
    return FAILURE if any(row["state"] == UNREADABLE for row in rows) else OK


def _row(row: dict[str, Any], dry_run: bool) -> tuple[str, str, str]:
    from tachograph.dropin.adopting import IMPORTED, UNREADABLE

    if row["state"] == UNREADABLE:
        return row["task_id"], "-", f"left alone: {row['problem']}"
    done = "to be imported" if dry_run else "imported"
    said = done if row["state"] == IMPORTED else "in the ledger already"
    return row["task_id"], row["status"], said


def _shape(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "file": row["file"],
        "taskId": row["task_id"],
        "state": row["state"],
        "status": row["status"],
        "problem": row["problem"],
    }
