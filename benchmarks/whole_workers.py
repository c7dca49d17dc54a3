"""Workers as people start them, at jobs that do nothing: what each job costs beside its work.

With Tachograph each job is a run of its own as well: created, attempted, judged, finished.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from own_queue import KIND, QUEUE, OwnQueue
from queue_process import payload

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
WORKERS = 4
JOBS = 200


class WorkerError(Exception):
    """A worker ended before its jobs did."""


class Own:
    """`tacho queue worker`, four processes."""

    def __init__(self, folder: Path) -> None:
        self._queue = OwnQueue(folder)
        self._folder = folder

    def rate(self) -> float:
        """Return how many jobs they do per second."""
        for number in range(JOBS):
            self._queue.put(payload(number))
        code = "from tachograph.cli.main import main; main()"
        words = ("queue", "worker", QUEUE, "--handlers", "queue_handlers", "--max-load", "0")
        command = [sys.executable, "-c", code, *words]
        store = str(self._folder / "store")
        return _rate([command] * WORKERS, self._folder, TACHO_STORE=store, PYTHONPATH=str(HERE))


class Huey:
    """`huey_consumer`, one process with four worker processes below it."""

    def __init__(self, folder: Path) -> None:
        os.environ["BENCH_HUEY"] = str(folder / "huey.db")  # tasks belong to a file from the import
        from peers import huey_tasks

        self._task = huey_tasks.work
        self._folder = folder

    def rate(self) -> float:
        """Return how many jobs they do per second."""
        for number in range(JOBS):
            self._task(payload(number))
        code = "from huey.bin.huey_consumer import consumer_main; consumer_main()"
        words = ("peers.huey_tasks.huey", "-w", str(WORKERS), "-k", "process", "-n", "-q")
        command = [sys.executable, "-c", code, *words]
        return _rate([command], self._folder, PYTHONPATH=str(HERE))


def _rate(commands: list[list[str]], folder: Path, **variables: str) -> float:
    """Start workers and return their rate from the first job to the last."""
    out, inside = os.pipe()
    environment = {**os.environ, **variables, "BENCH_PIPE": str(inside)}
    workers = [
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            pass_fds=[inside],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for command in commands
    ]
    os.close(inside)
    try:
        return _measured(lambda: os.read(out, JOBS))
    finally:
        for worker in workers:
            worker.send_signal(signal.SIGINT)
        for worker in workers:
            worker.wait()
        os.close(out)


def _measured(hear: Callable[[], bytes]) -> float:
    first = hear()
    started, done = time.perf_counter(), len(first)
    left = JOBS - done
    while done < JOBS:
        told = hear()
        if not told:
            raise WorkerError(f"the workers ended after {done} of {JOBS} jobs")
        done += len(told)
    return left / (time.perf_counter() - started)


assert KIND == "report"
