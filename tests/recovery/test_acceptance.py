"""Fifteen steps with a side effect each, cut off in the eleventh: every one happens once.

With real processes, which wait for each other by pipes and never by time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from command_line import history, tacho, topics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("store_environment")

STEPS = 15
STOPS_IN = 11

JOB = f"""
import os
import sys

import tachograph

acts, when = sys.argv[1:]


def wait_here():
    # Only the first process stops: those that resume find that one has stopped already.
    try:
        os.close(os.open(acts + ".stopped", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    print("in step", flush=True)
    sys.stdin.readline()


def act(step):
    with open(acts, "a+") as file:
        if when == "before" and step == {STOPS_IN}:
            wait_here()
        file.seek(0)
        if f"{{step}}\\n" not in file.readlines():
            file.write(f"{{step}}\\n")
            file.flush()
        if when == "after" and step == {STOPS_IN}:
            wait_here()


try:
    with tachograph.record("fifteen", run_id="job", auto_resume=True) as run:
        with run.phase("steps") as phase:
            for batch in phase.batches(range(1, {STEPS} + 1)):
                (step,) = batch.items
                run.effect(f"step-{{step}}", act, step, idempotent=True)
                batch.complete(step)
        run.judge(inputs={STEPS}, outputs=len(run.outputs("steps")))
except tachograph.errors.FencedError as error:
    print(type(error).__name__, flush=True)
    sys.exit(6)
"""


class Job:
    """The first process of the job, which waits in its eleventh step until it is told to go on."""

    def __init__(self, folder: Path, when: str) -> None:
        self.acts = folder / "acts"
        script = folder / "fifteen.py"
        script.write_text(JOB)
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(self.acts), when],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def until_it_stops(self) -> None:
        """Return when it is in its eleventh step."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "in step\n"

    def freeze(self) -> None:
        """Stop it as a laptop lid does, and return when it has stopped."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def thaw(self) -> None:
        """Let it go on, out of its step too."""
        self.process.send_signal(signal.SIGCONT)
        assert self.process.stdin is not None
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self.process.kill()
        self.process.wait()

    def end(self) -> tuple[int, str]:
        """Return its exit code and what it printed."""
        printed, _ = self.process.communicate()
        return self.process.returncode, printed


@pytest.fixture(params=["before", "after"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Job]:
    """Start the job; it waits before its eleventh side effect, or right after it."""
    job = Job(tmp_path, request.param)
    job.until_it_stops()
    yield job
    job.process.kill()
    job.process.communicate()


def watch() -> dict[str, Any]:
    """Let a watchdog look once, and return its report."""
    done = tacho("watchdog", "run", "--once", "--auto-resume", "--json")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def each_side_effect_happened_once(job: Job) -> None:
    assert job.acts.read_text().split() == [str(step) for step in range(1, STEPS + 1)]
    done = [fields["key"] for topic, fields in history("job") if topic == "run.effect-done"]
    assert done == [f"step-{step}" for step in range(1, STEPS + 1)]


def the_history_is_whole(attempts: int) -> None:
    found = topics("job")
    assert found.count("batch-completed") == STEPS
    assert found.count("attempt-started") == attempts
    assert found.count("finished") == 1
    ended = [fields for topic, fields in history("job") if topic == "run.finished"]
    assert ended[0]["outcome"] == "success"
    verified = tacho("store", "verify")
    assert verified.returncode == 0, verified.stdout


def test_a_frozen_owner_is_not_robbed(job: Job, store_path: Path) -> None:
    """G5: a process that is stopped lives."""
    job.freeze()
    before = topics("job")
    report = watch()

    assert topics("job") == before
    assert (report["alerts"], report["resumed"], report["running_count"]) == ([], [], 1)
    assert tacho("run", "resume", "job").returncode == 6

    job.thaw()
    assert job.end() == (0, "")
    each_side_effect_happened_once(job)
    the_history_is_whole(attempts=1)


def test_after_sigkill_the_watchdog_resumes_it(job: Job) -> None:
    job.kill()
    report = watch()

    assert [each["task_id"] for each in report["alerts"]] == ["job"]
    assert [each["task_id"] for each in report["recoveries"]] == ["job"]
    assert report["recoveries"][0]["to_phase"] == "completed"
    each_side_effect_happened_once(job)
    the_history_is_whole(attempts=2)
    again = watch()
    assert (again["alerts"], again["recoveries"], again["active_needs_attention"]) == ([], [], [])


def test_a_frozen_process_that_was_superseded_is_refused_when_it_wakes(job: Job) -> None:
    """Report 31, G5: the late writer is fenced, though the run is finished by then."""
    job.freeze()
    resumed = tacho("run", "resume", "job", "--takeover", "--reason", "it is frozen")

    assert resumed.returncode == 0, resumed.stderr
    before = topics("job")
    job.thaw()

    assert job.end() == (6, "FencedError\n")
    assert topics("job") == before
    each_side_effect_happened_once(job)
    the_history_is_whole(attempts=2)
