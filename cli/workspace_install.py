"""`tacho workspace install`: put the task-recovery scripts into an OpenClaw workspace."""

from __future__ import annotations

from tachograph.cli.options import Option, Spec, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

WORKSPACE = Option("--workspace", "Folder of the workspace.", metavar="DIR", complete="path")
DRY_RUN = flag("--dry-run", "Only say what would be done.")

SPEC = Spec(
    "Put the task-recovery scripts into an OpenClaw workspace.",
    WORKSPACE,
    DRY_RUN,
    details="""The workspace is that of --workspace, else of OPENCLAW_WORKSPACE, else the nearest
folder upwards with an AGENTS.md. Writes scripts/task_runtime.py, task_runtime_watch.py and
task_runtime_resume.py, a template and a page, and the section "Task Recovery Check" of
HEARTBEAT.md; nothing else in that file changes. Run again, it refreshes what differs.

The scripts run under any python3 and use this Python for the ledger. `tacho workspace uninstall`
puts back what was there before. Prints JSON.""",
)


def run(params: Params, out: Output) -> None:
    """Install, and say what was written."""
    from tachograph.cli.workspaces import find_workspace
    from tachograph.dropin.installing import install

    workspace = find_workspace(params)
    done = install(workspace, dry_run=params.dry_run)
    out.document(
        {
            "ok": True,
            "workspace": str(workspace.root),
            "copied": done.copied,
            "unchanged": done.unchanged,
            "kept": done.kept,
            "heartbeat_changed": done.heartbeat_changed,
            "dry_run": params.dry_run,
        }
    )
    for path in done.kept:
        out.note(f"A file had been changed by hand since; the change is kept as {path}.")
    if not params.dry_run and done.copied:
        out.note("Next: `tacho workspace import` takes over the cards that are there.")
