"""Kill writers, readers and rebuilders of one store again and again, and compare with a model.

A program of its own, run by test_store_kill.py: it forks its workers from a warm process, so that
hundreds of kills take seconds. Every worker tells what was acknowledged through a pipe, byte by
byte as it happens; the kill comes after a random number of acknowledgements and a random moment.
Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from typing import TYPE_CHECKING

from tachograph.bootstrap import Services, open_store
from tachograph.domain.errors import RunOwnedError
from tachograph.projecting import catch_up, rebuild
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Callable


def write(services: Services, tell: Callable[[str], None]) -> None:
    """Finish batch after batch of one run, telling each index once it is acknowledged."""
    session = services.starter.start(Start("ground", {}), services.owner())
    tell(f"attempt {session.epoch}")
    if "work" not in session.run.phases or session.run.phases["work"].epoch < session.epoch:
        session.start_phase("work")
    index = len(session.run.phases["work"].done)
    while True:
        session.complete_batch("work", index, inputs=1, parsed=1, output=[index] * (index % 90))
        tell(f"batch {index}")
        if index % 7 == 0:
            session.save_checkpoint({"offset": index, "total": index}, kind="offset")
        index += 1


def read(services: Services, tell: Callable[[str], None]) -> None:
    """Catch the views up again and again."""
    while True:
        tell(f"caught {catch_up(services.log, services.codec, services.views())}")


def rebuild_views(services: Services, tell: Callable[[str], None]) -> None:
    """Rebuild the views again and again."""
    while True:
        tell(f"rebuilt {rebuild(services.log, services.codec, services.views())}")


WORKERS = {"write": write, "read": read, "rebuild": rebuild_views}


def spawn(store: str, kind: str) -> tuple[int, int]:
    """Fork a worker; return its pid and the pipe it tells through."""
    out, inside = os.pipe()
    pid = os.fork()
    if pid:
        os.close(inside)
        return pid, out
    try:
        os.close(out)
        services = open_store(store, create=True)
        WORKERS[kind](services, lambda text: _tell(inside, text))
    except RunOwnedError:
        os._exit(3)
    except BaseException as error:
        os.write(inside, f"error {type(error).__name__}: {error}\n".encode())
    os._exit(1)


def _tell(pipe: int, text: str) -> None:
    os.write(pipe, f"{text}\n".encode())


def kill_at_random(pid: int, pipe: int, chance: random.Random) -> list[str]:
    """Let a worker tell a random number of things, kill it a random moment later."""
    wanted, told = chance.randrange(6), b""
    deadline = time.monotonic() + 20
    while told.count(b"\n") < wanted and time.monotonic() < deadline:
        if select.select([pipe], [], [], 0.05)[0]:
            piece = os.read(pipe, 65536)
            if not piece:
                break
            told += piece
    until = time.perf_counter() + chance.random() * 0.004
    while time.perf_counter() < until:
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while piece := os.read(pipe, 65536):
        told += piece
    os.close(pipe)
    return told.decode().splitlines()


def main(store: str, kills: int, seed: int) -> None:
    """Kill `kills` workers and print what was acknowledged and what went wrong."""
    chance = random.Random(seed)
    acknowledged: set[int] = set()
    problems: list[str] = []
    attempts = 0
    for number in range(kills):
        kinds = chance.choice((["write"], ["write", "read"], ["write", "rebuild"]))
        workers = [(kind, *spawn(store, kind)) for kind in kinds]
        for kind, pid, pipe in workers:
            for line in kill_at_random(pid, pipe, chance):
                word, _, rest = line.partition(" ")
                if word == "batch":
                    acknowledged.add(int(rest))
                elif word == "attempt":
                    attempts += 1
                elif word == "error":
                    problems.append(f"kill {number}, {kind}: {rest}")
    report = {"acknowledged": sorted(acknowledged), "attempts": attempts, "problems": problems}
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
