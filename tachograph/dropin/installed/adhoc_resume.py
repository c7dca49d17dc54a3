#!/usr/bin/env python3
"""Work of the task SLUG, phase by phase: it begins here, and goes on here when it was cut off.

Write your own phases below. Each may run twice, so let it do the same again: write files whole,
and leave what sends, pays or publishes to a person. `job.py` starts the task; the watchdog runs
this file as `python3 task_resume.py --task-id ID --timeout-seconds N`.
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

HERE = Path(__file__).resolve().parent


def collect(_card: Card) -> Path:
    """Gather what there is to work on."""
    rows = [{"row": number} for number in range(10)]
    return keep("collected.json", rows)


def analyze(card: Card) -> Path:
    """Work on what was collected."""
    rows = json.loads(Path(card["artifacts"]["collect"]).read_text(encoding="utf-8"))
    return keep("analyzed.json", [{**row, "square": row["row"] ** 2} for row in rows])


def render(card: Card) -> Path:
    """Make the result that people want."""
    rows = json.loads(Path(card["artifacts"]["analyze"]).read_text(encoding="utf-8"))
    return keep("result.json", {"rows": len(rows), "sum": sum(row["square"] for row in rows)})


PHASES: list[Callable[[Card], Path]] = [collect, analyze, render]
"""The phases in their order; what each returns is kept as an artifact under its name."""


def keep(name: str, value: Any) -> Path:
    """Write a file whole, beside this one, and return where it is."""
    path = HERE / name
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(value), encoding="utf-8")
    draft.replace(path)
    return path


def work(task_id: str) -> Card:
    """Run the phases that are left, with a checkpoint before each."""
    runtime = task_runtime()
    card: Card = runtime.load_card(task_id)
    card["status"] = "running"
    runtime.save_card(card)
    names = [phase.__name__ for phase in PHASES]
    first = names.index(card["phase"]) if card["phase"] in names else 0
    for phase in PHASES[first:]:
        card["phase"] = phase.__name__
        save(runtime, card, "checkpoint")
        card["artifacts"][phase.__name__] = str(phase(card))
    card["status"] = "done"
    save(runtime, card, "complete")
    return {"ok": True, "task_id": card["id"], "status": card["status"]}


def save(runtime: Any, card: Card, event: str) -> None:
    """Save the card as a checkpoint."""
    card["last_checkpoint_at"] = runtime.now_iso()
    runtime.append_history(card, event, phase=card["phase"], status=card["status"])
    runtime.save_card(card)


def task_runtime() -> Any:
    """Return the module of the workspace by which cards are read and written."""
    named = os.environ.get("OPENCLAW_WORKSPACE")
    above = [folder for folder in HERE.parents if (folder / "AGENTS.md").exists()]
    workspace = Path(named).expanduser() if named else above[0]
    sys.path.insert(0, str(workspace / "scripts"))
    return importlib.import_module("task_runtime")


def main() -> int:
    """Work on the task that the command line names, and tell as JSON what came of it."""
    parser = argparse.ArgumentParser(description="Go on with the task SLUG.")
    parser.add_argument("--task-id", default="SLUG")
    parser.add_argument("--timeout-seconds", type=int, default=0)
    args = parser.parse_args()
    try:
        done = work(args.task_id)
    except Exception as error:  # noqa: BLE001  # whatever it was, it is told as JSON
        sys.stderr.write(json.dumps({"ok": False, "error": str(error)}) + "\n")
        return 2
    sys.stdout.write(json.dumps(done) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
