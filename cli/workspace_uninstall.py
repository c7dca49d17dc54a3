"""`tacho workspace uninstall`: take the scripts out again, and put back what was there."""

from __future__ import annotations

from tachograph.cli.options import Spec
from tachograph.cli.workspace_install import DRY_RUN, WORKSPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Take the scripts out of a workspace, and put back what was there before.",
    WORKSPACE,
    DRY_RUN,
    details="""A file that was changed by hand after it was installed stays, and is named under
`kept`. HEARTBEAT.md gets its former content back; when somebody else has written to it since,
only the section is taken out. Cards and the store stay. Prints JSON.""",
)


def run(params: Params, out: Output) -> None:
    """Uninstall, and say what was done."""
    from tachograph.cli.workspaces import find_workspace
    from tachograph.dropin.installing import uninstall

    workspace = find_workspace(params)
    done = uninstall(workspace, dry_run=params.dry_run)
    out.document(
        {
            "ok": True,
            "workspace": str(workspace.root),
            "removed": done.removed,
            "restored": done.restored,
            "kept": done.kept,
            "heartbeat_changed": done.heartbeat_changed,
            "dry_run": params.dry_run,
        }
    )
    for path in done.kept:
        out.note(f"{path} was changed by hand and stays.")
