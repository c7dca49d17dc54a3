#!/usr/bin/env python3
"""Template of an adapter: continues a task from its card. Copy it, and write your phases.

Put the copy where you like in the workspace, for example `skills/<skill>/scripts/task_resume.py`,
and name it with `--resume-adapter` when the task is created. It is run as
`python3 task_resume.py --task-id ID --timeout-seconds N`, prints one JSON object, and ends with
exit code 0, or 2 when it could not go on. Only what may be repeated belongs here: a phase that
sends, pays or publishes needs a person.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Card = dict[str, Any]


def find_workspace() -> Path:
    """Return the workspace: OPENCLAW_WORKSPACE, else the folder above that holds AGENTS.md."""
    named = os.environ.get("OPENCLAW_WORKSPACE")
    if named:
        return Path(named).expanduser().resolve()
    for folder in Path(__file__).resolve().parents:
        if (folder / "AGENTS.md").exists():
            return folder
    raise RuntimeError("There is no AGENTS.md above this file: set OPENCLAW_WORKSPACE.")


def task_runtime() -> Any:
    """Return the module by which the card is read and written."""
    sys.path.insert(0, str(find_workspace() / "scripts"))
    return importlib.import_module("task_runtime")


def render(card: Card) -> str:
    """Make the report anew from what an earlier phase left, and return where it is."""
    source = Path(str(card["artifacts"].get("data", "")))
    if not source.is_file() or not source.stat().st_size:
        raise RuntimeError(f"artifact `data` is missing or empty: {source}")
    report = source.with_suffix(".report.txt")
    report.write_text(source.read_text(encoding="utf-8").upper(), encoding="utf-8")
    return str(report)


PHASES: dict[str, Callable[[Card], str]] = {"render": render}
"""The phases that may be repeated."""


def resume(task_id: str) -> Card:
    """Continue the task, and return what was done."""
    runtime = task_runtime()
    card = runtime.load_card(task_id)
    phase = str(card.get("phase") or "")
    if phase not in PHASES:
        raise RuntimeError(f"no phase {phase!r} that may be repeated")
    card["artifacts"]["report"] = PHASES[phase](card)
    card["status"] = "done"
    card["last_checkpoint_at"] = runtime.now_iso()
    runtime.append_history(card, "resumed", phase=phase, status="done")
    runtime.save_card(card)
    return {"ok": True, "task_id": card["id"], "phase": phase, "artifacts": card["artifacts"]}


def main() -> int:
    """Resume the task that the command line names."""
    parser = argparse.ArgumentParser(description="Continue a task from its card.")
    parser.add_argument("--task-id", required=True)
    parser.add_argument("--timeout-seconds", type=int, default=180)
    args = parser.parse_args()
    try:
        result = resume(args.task_id)
    except Exception as error:  # noqa: BLE001  # whatever it was, it is told as JSON
        sys.stderr.write(json.dumps({"ok": False, "error": str(error)}) + "\n")
        return 2
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
