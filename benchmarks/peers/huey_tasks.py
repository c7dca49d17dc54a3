"""The task of a huey consumer, in the file that BENCH_HUEY names when this is imported."""

from __future__ import annotations

import os
from typing import Any

from huey import SqliteHuey

huey = SqliteHuey("bench", filename=os.environ["BENCH_HUEY"], fsync=True, timeout=60)


@huey.task(name="work")  # type: ignore[untyped-decorator, unused-ignore]  # where it is not installed
def work(_payload: dict[str, Any]) -> None:
    """Say that a job was done."""
    os.write(int(os.environ["BENCH_PIPE"]), b".")
