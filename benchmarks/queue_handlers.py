"""The handler of the workers that are measured whole: it says that a job was done."""

from __future__ import annotations

import os

import tachograph


@tachograph.handler("report")
def report(_context: tachograph.JobContext) -> None:
    """Do nothing else."""
    os.write(int(os.environ["BENCH_PIPE"]), b".")
