"""Processes that start the same run at the same instant, and owners that die."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tachograph.bootstrap import open_store

STARTER = """
import sys
from tachograph.bootstrap import open_store
from tachograph.domain.errors import RunOwnedError
from tachograph.starting import Start

services = open_store(sys.argv[1], create=True)
print("ready", flush=True)
sys.stdin.readline()
try:
    session = services.starter.start(Start("same", {"a": 1}), services.owner())
    print("got", session.run_id, session.epoch, flush=True)
except RunOwnedError:
    print("owned", flush=True)
sys.stdin.readline()
"""


def start(store: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", STARTER, str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


def test_of_many_that_start_at_once_one_gets_the_run(tmp_path: Path) -> None:
    """G5."""
    store = tmp_path / "store"
    processes = [start(store) for _ in range(5)]
    try:
        assert [hear(process) for process in processes] == [["ready"]] * 5
        for process in processes:
            tell(process)
        answers = sorted(hear(process)[0] for process in processes)
    finally:
        for process in processes:
            process.kill()
            process.communicate()

    assert answers == ["got", "owned", "owned", "owned", "owned"]
    services = open_store(str(store))
    topics = [record.topic for record in services.log.read()]
    services.close()
    assert topics == ["run.created", "run.attempt-started"]


def test_a_dead_owner_strands_nothing(tmp_path: Path) -> None:
    """G5, G7: after SIGKILL of the owner the next process gets the run at once."""
    store = tmp_path / "store"
    epochs = []
    for _ in range(3):
        process = start(store)
        hear(process)
        tell(process)
        epochs.append(hear(process)[2])
        process.kill()
        process.communicate()

    assert epochs == ["1", "2", "3"]
