"""A DBOS workflow on SQLite that takes one step for each line on standard input.

Run as a process of its own, so that its threads disturb nobody: `dbos_steps.py FILE`. For each
line, an offset, it prints how many seconds the step took, measured inside the workflow.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from dbos import DBOS


@DBOS.step()  # type: ignore[untyped-decorator, unused-ignore]  # where it is not installed
def checkpoint(offset: int, total: int) -> dict[str, Any]:
    """Return what Tachograph records as a checkpoint; DBOS keeps a step's result."""
    return {"offset": offset, "total": total, "parsed": offset}


@DBOS.workflow()  # type: ignore[untyped-decorator, unused-ignore]
def job() -> None:
    """Take steps until the input ends."""
    print("ready", flush=True)
    for line in sys.stdin:
        offset = int(line)
        started = time.perf_counter()
        checkpoint(offset, 1_000_000)
        print(time.perf_counter() - started, flush=True)


def main() -> None:
    """Run the workflow on a new database."""
    DBOS(
        config={
            "name": "benchmark",
            "system_database_url": f"sqlite:///{sys.argv[1]}",
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    try:
        job()
    finally:
        DBOS.destroy()


if __name__ == "__main__":
    main()
