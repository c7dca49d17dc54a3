"""Queue workers under `kill -9`: no job is lost, none is done by two at once (G1, G5, G7, G10)."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
JOBS, KILLS = 300, 12


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_jobs_of_killed_workers_are_done_once_or_more_as_promised(tmp_path: Path) -> None:
    """The small form of `make soak`, which says what is checked."""
    seed = random.randrange(2**32)
    print("seed", seed)
    numbers = {"--jobs": JOBS, "--kills": KILLS, "--seed": seed}
    done = subprocess.run(
        [
            *(sys.executable, str(BENCHMARKS / "soak_queues.py"), "--folder", str(tmp_path)),
            *(str(word) for pair in numbers.items() for word in pair),
        ],
        capture_output=True,
        text=True,
    )

    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["problems"] == []
    assert done.returncode == 0
    assert report["kills"] >= KILLS - 2, "too few kills to prove anything"
    assert report["begun"] >= JOBS
    assert report["effects"] >= JOBS


class TestWhatMustNeverBe:
    """The soak would see it."""

    def test_two_at_the_same_job(self) -> None:
        seen = "1 7 begin 0 1\n2 8 begin 0 2\n3 8 end 0 2\n4 7 end 0 1\n"

        assert world(seen, {}) == ["job 0 was done twice at once"]

    def test_another_after_the_kill_of_the_first_is_allowed(self) -> None:
        seen = "1 7 begin 0 1\n9 8 begin 0 2\n10 8 end 0 2\n"

        assert world(seen, {7: 5}) == []

    def test_another_before_the_kill_of_the_first(self) -> None:
        seen = "1 7 begin 0 1\n3 8 begin 0 2\n10 8 end 0 2\n"

        assert world(seen, {7: 5}) == ["job 0 was done twice at once"]


SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from soak_world import World
world = World()
for line in sys.argv[2].splitlines():
    world.hear(line)
world.killed_ns = {int(pid): time for pid, time in json.loads(sys.argv[3]).items()}
print(json.dumps(world.overlaps()))
"""


def world(seen: str, killed: dict[int, int]) -> object:
    """Return what the soak says of a world."""
    command = [sys.executable, "-c", SCRIPT, str(BENCHMARKS), seen, json.dumps(killed)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
