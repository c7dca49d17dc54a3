"""`kill -9` of a process that writes to the log: nothing acknowledged is lost (G1, G2, G3)."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import pytest
from other_process import OtherProcess

from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 15

WRITER = """
log = LMDBLog(open_environment(folder, map_size=2**20))
lock = threading.Lock()

def write(stream):
    version = log.stream_version(stream)
    while True:
        size = 1 + version % 5
        records = [new(stream, version + 1 + n, b"%d" % n * 300 * size) for n in range(size)]
        log.append(records, snapshot=SnapshotRecord(stream, version + size, b"state"))
        version += size
        with lock:
            say(stream, version)

for number in range(3):
    threading.Thread(target=write, args=(f"s{number}",)).start()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_what_a_killed_writer_had_acknowledged_is_there(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    dice = random.Random(seed)
    folder = tmp_path / "log"
    acknowledged: dict[str, int] = {}

    def hear(line: str) -> None:
        stream, version = line.split()
        acknowledged[stream] = int(version)

    for kill in range(KILLS):
        with OtherProcess(WRITER, folder) as writer:
            for _ in range(dice.randrange(1, 60)):
                hear(writer.hear())
            writer.kill()
            for line in writer.rest():
                hear(line)

        environment = open_environment(folder)
        log = LMDBLog(environment)
        found = {stream: log.stream_version(stream) for stream in acknowledged}
        problems = list(log.verify(contiguous=True))
        snapshots = {stream: log.snapshot(stream) for stream in acknowledged}
        environment.close()

        assert problems == [], f"after kill {kill}"
        assert all(found[stream] >= version for stream, version in acknowledged.items())
        # All records of a call, or none; with them its snapshot.
        assert {stream: each.version for stream, each in snapshots.items() if each} == found
