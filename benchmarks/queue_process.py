"""A process that works at a queue for the benchmarks: `queue_process.py QUEUE FOLDER`.

Each line on standard input is a command, each is answered by a line:

    put N        enqueue jobs 0 to N - 1, and print each number once it is acknowledged
    drain [K]    do every job that there is, print their numbers; Tachograph does K between commits
    take         take one job, print its number
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peers.sqlite_queues import PEERS

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN = "tachograph"
LINES = 120


def payload(number: int) -> dict[str, Any]:
    """Return what a job is to be done with."""
    return {"number": number, "path": f"src/module_{number % 40}.py", "lines": LINES}


def opened(name: str, folder: Path) -> Any:
    """Open the queue of a name in a folder."""
    if name == OWN:
        from own_queue import OwnQueue

        return OwnQueue(folder)
    return PEERS[name](folder)


def drained(queue: Any, at_once: int = 1) -> Iterator[int]:
    """Do every job that there is, and yield their numbers."""
    if hasattr(queue, "drain"):
        yield from queue.drain(at_once)
        return
    while (taken := queue.take()) is not None:
        queue.end(taken)
        yield queue.number(taken)


def main(name: str, folder: str) -> None:
    """Obey the lines of standard input."""
    queue = opened(name, Path(folder))
    say("ready")
    for line in sys.stdin:
        command, *words = line.split()
        if command == "put":
            for number in range(int(words[0])):
                queue.put(payload(number))
                say(number)
        elif command == "drain":
            say(*drained(queue, *map(int, words)))
        elif command == "take":
            say(queue.number(queue.take()))


def say(*words: object) -> None:
    """Answer."""
    print(*words, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
