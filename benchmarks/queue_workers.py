"""Processes that work at queues, and what a `kill -9` leaves of what they did."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import queue_process
from harness import timed

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

SCRIPT = Path(__file__).with_name("queue_process.py")
ACKNOWLEDGED = 300
"""Jobs whose enqueueing is acknowledged before the kill."""


class Worker:
    """A child process that obeys `queue_process`, for a `with` block."""

    def __init__(self, name: str, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), name, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        """Wait until it has opened its queue. Raises RuntimeError."""
        if self.hear() != "ready":
            raise RuntimeError("a worker could not open its queue")
        return self

    def say(self, command: str) -> None:
        """Give it a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        """Wait for its answer."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> list[str]:
        """End it as `kill -9` does, and return what it has said until then."""
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        return [line for line in self._process.stdout.read().split("\n")[:-1] if line]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let it end at the end of its input; if something went wrong, at once."""
        if kind is not None:
            self._process.kill()
        self._process.communicate()


class Crew:
    """Workers at one queue that begin together, for a `with` block."""

    def __init__(self, name: str, folder: Path, workers: int) -> None:
        self._workers = [Worker(name, folder) for _ in range(workers)]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Wait until all have opened the queue."""
        for worker in self._workers:
            self._stack.enter_context(worker)
        return self

    def drain(self, at_once: int = 1) -> tuple[list[int], float]:
        """Let them do every job; return the numbers of the jobs and the seconds it took."""
        done: list[int] = []

        def work() -> None:
            for worker in self._workers:
                worker.say(f"drain {at_once}")
            for worker in self._workers:
                done.extend(map(int, worker.hear().split()))

        seconds = timed(work)
        return done, seconds

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the workers."""
        self._stack.__exit__(kind, error, trace)


def acknowledged_and_lost(name: str, folder: Path) -> tuple[int, int]:
    """Kill a process that enqueues; return how many jobs it had acknowledged, and lost of them."""
    folder.mkdir()
    with Worker(name, folder) as worker:
        worker.say(f"put {1000 * ACKNOWLEDGED}")
        told = {int(worker.hear()) for _ in range(ACKNOWLEDGED)}
        told |= set(map(int, worker.kill()))
    found = set(queue_process.drained(queue_process.opened(name, folder)))
    return len(told), len(told - found)


def taken_and_lost(name: str, folder: Path) -> bool:
    """Kill a process that has taken the only job; say whether nobody ever gets that job again."""
    folder.mkdir()
    queue = queue_process.opened(name, folder)
    queue.put(queue_process.payload(0))
    with Worker(name, folder) as worker:
        worker.say("take")
        worker.hear()
        worker.kill()
    queue.take_back()
    return queue.take() is None
