"""Which commands there are, and the module of each. Imports no command."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Names = dict[str, Any]

COMMANDS: Names = {
    "run": {
        "start": "run_start",
        "phase": {"start": "run_phase_start", "end": "run_phase_end"},
        "batch": "run_batch",
        "checkpoint": "run_checkpoint",
        "heartbeat": "run_heartbeat",
        "effect": "run_effect",
        "artifact": "run_artifact",
        "progress": "run_progress",
        "retry": "run_retry",
        "fallback": "run_fallback",
        "note": "run_note",
        "judge": "run_judge",
        "finish": "run_finish",
        "fail": "run_fail",
        "cancel": "run_cancel",
        "expire": "run_expire",
        "block": "run_block",
        "archive": "run_archive",
        "clean": "run_clean",
        "exec": "run_exec",
        "explain": "run_explain",
        "plan": "run_plan",
        "resume": "run_resume",
        "recovery": "run_recovery",
        "approval": "run_approval",
        "approve": "run_approve",
        "reject": "run_reject",
        "list": "run_list",
        "status": "run_status",
        "timeline": "run_timeline",
        "events": "run_events",
        "artifacts": "run_artifacts",
        "replay": "run_replay",
    },
    "job": {"run": {"code-report": "job_code_report"}, "list": "job_list"},
    "watchdog": {
        "run": "watchdog_run",
        "install": "watchdog_install",
        "uninstall": "watchdog_uninstall",
    },
    "workspace": {
        "install": "workspace_install",
        "uninstall": "workspace_uninstall",
        "import": "workspace_import",
        "sync": "workspace_sync",
        "scaffold": "workspace_scaffold",
    },
    "view": {"list": "view_list", "rebuild": "view_rebuild", "check": "view_check"},
    "store": {
        "info": "store_info",
        "verify": "store_verify",
        "backup": "store_backup",
        "export": "store_export",
        "import": "store_import",
        "compact": "store_compact",
    },
    "config": {"show": "config_show", "path": "config_path"},
    "doctor": "doctor",
    "demo": "demo",
    "completion": "completion",
}
"""Module names below `tachograph.cli`; a table of names is a group of commands."""

GROUPS = {
    "": "Record long-running jobs, see what happened, and explain why.",
    "run": "Record runs from a shell, and look at them.",
    "run phase": "Start and end a phase of a run.",
    "watchdog": "Look after runs that were cut off, and resume them.",
    "workspace": "Task recovery in an OpenClaw workspace.",
    "view": "Keep the views that are read from the log.",
    "store": "Check, copy and measure the store.",
    "config": "See where settings come from.",
    "job": "Run the jobs that come with Tachograph.",
    "job run": "Run a job, or resume it.",
}
"""Help of each group, by its words."""
