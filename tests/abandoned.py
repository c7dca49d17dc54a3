"""Runs on disk whose process is gone, and programs that continue them. Holds no test."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import psutil
from command_line import tacho
from stores import gone, opened

from tachograph.domain.recovery import Recovery
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tachograph.domain.owner import Owner

ITEMS = ["a", "b", "c"]

FINISHES = f"""
import tachograph

with tachograph.record("report", run_id="job") as run:
    with run.phase("parse") as phase:
        for batch in phase.batches({ITEMS}):
            batch.complete(batch.index)
    run.judge(inputs=3, outputs=len(run.outputs("parse")))
print('{{"ok": true}}')
"""
"""Does what is left of `abandon`'s run, and finishes it."""

ONE_BATCH = f"""
import os
import tachograph

with tachograph.record("report", run_id="job") as run:
    with run.phase("parse") as phase:
        for batch in phase.batches({ITEMS}):
            batch.complete(batch.index)
            os._exit(0)
"""
"""Takes it one batch further, and dies."""

NOTHING = "print('{\"ok\": true}')"
"""Says that all is well."""


def abandon(
    store: Path | str,
    code: str | None = FINISHES,
    *,
    run_id: str = "job",
    owner: Owner | None = None,
    **recovery: Any,
) -> None:
    """Make a run of three batches, one of them done, whose process is gone.

    `code` is the Python program that continues it, None for none. Without an `owner` the process
    is one of another time.
    """
    command = None if code is None else [sys.executable, "-c", code]
    declared = Recovery(
        **{"command": command, "auto_resume": True, "backoff_seconds": 0, **recovery}
    )
    with opened(store) as services:
        want = Start("report", run_id=run_id, recovery=declared)
        session = services.starter.start(want, owner or gone())
        session.start_phase("parse")
        session.complete_batch("parse", 0, output=0)


def watch(
    *options: str, code: int = 0, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Let a watchdog in a process of its own look once, and return its report."""
    done = tacho(
        "watchdog", "run", "--once", "--auto-resume", "--json", *options, environment=environment
    )
    assert done.returncode == code, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def lives(pid: int) -> bool:
    """Say whether a process is there, and is not just waiting to be reaped."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
