"""The page about the drop-in that is installed into a workspace."""

from __future__ import annotations

PAGE = """# Task recovery with Tachograph

The scripts in `scripts/` keep the cards of long-running tasks. What happens is recorded in a ledger
(`data/tachograph`); the files in `data/task-runs` show it, and are written anew after each change.

## A task

```bash
python3 scripts/task_runtime.py create --task-id weekly --task-type report --title "Weekly" \\
    --phase collect --resume-adapter skills/report/scripts/task_resume.py --allow-auto-resume
python3 scripts/task_runtime.py checkpoint weekly --phase render --artifact data=/tmp/data.json
python3 scripts/task_runtime.py complete weekly --artifact report=/tmp/report.pdf
```

Other commands: `update`, `block`, `fail`, `inspect`, `list`, `stale`, `mark-retry`; `--help` says
more. Each prints one JSON object; an error is `{"ok": false, "error": ...}` on stderr. Exit code 6
means that another attempt has taken the task over: stop.

## An adapter

Copy `templates/openclaw-task-recovery/task_resume.py`, or let `tacho workspace scaffold SLUG` make
one. It imports from `task_runtime`: `load_card`, `save_card`, `append_history`, `now_iso`; or
`load_run_card`, `update_run_card`. Repeat only what may be repeated. `save_card` applies what was
changed since `load_card`, so that nobody undoes what somebody else wrote.

## Rules

- Do not edit files in `data/task-runs`: an edit is kept aside and reported, and changes nothing.
- A finished task stays finished. `create` with the same id begins its next execution.
- `tacho run list`, `tacho run explain ID` and `tacho run timeline ID` show what happened, with
  `OPENCLAW_WORKSPACE` set to this workspace.
- `tacho workspace uninstall` takes all this out again and puts back what was there before.
"""
