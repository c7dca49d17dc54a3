#!/usr/bin/env python3
"""Start the task SLUG, or its next execution when it is finished; go on with it otherwise."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

SLUG = "SLUG"
TITLE = "TITLE"
ADAPTER = Path(__file__).resolve().with_name("task_resume.py")

if __name__ == "__main__":
    sys.path.insert(0, str(ADAPTER.parent))
    task_resume = importlib.import_module("task_resume")
    runtime = task_resume.task_runtime()
    if runtime.load_card(SLUG)["status"] in ("done", "cancelled", "expired"):
        begin = [sys.executable, runtime.__file__, "create", "--task-id", SLUG, "--title", TITLE]
        begin += ["--task-type", "adhoc", "--phase", "", "--allow-auto-resume"]
        begin += ["--resume-adapter", str(ADAPTER)]
        subprocess.run(begin, check=True, stdout=subprocess.DEVNULL)
    sys.exit(task_resume.main())
