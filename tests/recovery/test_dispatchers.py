"""Who sends adapters, and who is sent: each ends what is its own, and nobody works beside another.

With real processes, which wait for each other by pipes and never by time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Self

import pytest
from abandoned import FINISHES, abandon, lives, watch
from command_line import TACHO, bash, history, tacho, topics
from stores import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("store_environment")

WAITS = """
import json, os, subprocess, sys
import tachograph

folder = sys.argv[1]
job = os.environ["TACHO_RUN_ID"]
helper = subprocess.Popen(["sleep", "600"])
with open(f"{folder}/{job}.begun", "w") as pipe:
    pipe.write(json.dumps([os.getpid(), helper.pid]))
with open(f"{folder}/{job}.go") as pipe:
    pipe.read()
helper.kill()
helper.wait()
with tachograph.record("report", run_id=job) as run:
    with run.phase("parse") as phase:
        for batch in phase.batches(["a", "b", "c"]):
            batch.complete(batch.index)
    run.judge(inputs=3, outputs=len(run.outputs("parse")))
"""
"""Tells its pid and that of a helper, waits until it is told to go on, and finishes its run."""


class Sent:
    """The adapter of a run, which waits."""

    def __init__(self, store: Path, folder: Path, run_id: str) -> None:
        self.begun = folder / f"{run_id}.begun"
        self.go = folder / f"{run_id}.go"
        for pipe in (self.begun, self.go):
            os.mkfifo(pipe)
        abandon(store, command=[sys.executable, "-c", WAITS, str(folder)], run_id=run_id)
        self.pids: list[int] = []

    def until_it_waits(self) -> None:
        """Return when it is at work."""
        self.pids = json.loads(self.begun.read_text())

    def go_on(self) -> None:
        """Let it finish."""
        self.go.write_text("")

    @property
    def living(self) -> list[int]:
        """Those of its processes that live."""
        return [pid for pid in self.pids if lives(pid)]

    def end(self) -> None:
        """Leave nothing behind when a test has failed."""
        for pid in self.living:
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def sent(store_path: Path, tmp_path: Path) -> Iterator[Callable[[str], Sent]]:
    """Make runs that a watchdog resumes, and whose adapters then wait."""
    made: list[Sent] = []

    def make(run_id: str) -> Sent:
        made.append(Sent(store_path, tmp_path, run_id))
        return made[-1]

    yield make
    for each in made:
        each.end()


class Dog:
    """A watchdog that looks again and again."""

    def __init__(self) -> None:
        command = [*TACHO, "watchdog", "run", "--interval", "0.1s", "--auto-resume"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.heard: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def until_it_says(self, text: str) -> None:
        """Listen until a line begins so; fails when it ends before."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.heard.append(line)
            if line.startswith(text):
                return
        pytest.fail(f"it ended before it said {text!r}: {self.heard}")


def cancel(run_id: str) -> dict[str, Any]:
    done = tacho("run", "cancel", run_id, "--reason", "wrong folder", "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def result_of(run_id: str) -> dict[str, Any]:
    """Return what was recorded of the one resume of a run."""
    (returned,) = (fields for topic, fields in history(run_id) if topic == "run.resume-returned")
    found: dict[str, Any] = returned["result"]
    return found


def test_cancelling_a_run_ends_its_adapter_and_neither_the_watchdog_nor_others(
    sent: Callable[[str], Sent],
) -> None:
    one, two = sent("one"), sent("two")
    with Dog() as dog:
        one.until_it_waits()
        two.until_it_waits()
        found = cancel("one")
        after = (one.living, two.living, dog.process.poll())
        dog.until_it_says("error      one: it was killed by signal 15")
        again = tacho("run", "cancel", "one", "--reason", "I said so")
        two.go_on()
        dog.until_it_says("recovered  report:two went on by itself (attempt 2); it ended as")

        assert dog.process.poll() is None

    assert found["asked"] == one.pids
    assert (found["stillRunning"], found["notStopped"]) == ([], None)
    assert after == ([], two.pids, None)
    assert again.returncode == 1, again.stderr
    assert topics("one")[-2:] == ["cancelled", "resume-returned"]
    assert result_of("one")["signal"] == signal.SIGTERM
    assert topics("two")[-2:] == ["finished", "resume-returned"]
    assert result_of("two")["exit_code"] == 0


def test_so_it_does_where_a_process_in_the_background_waits_for_both(
    sent: Callable[[str], Sent],
) -> None:
    one, two = sent("one"), sent("two")
    command = [*TACHO, "watchdog", "run", "--once", "--no-wait", "--auto-resume"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as dog:
        one.until_it_waits()
        two.until_it_waits()
        code = dog.wait()
        found = cancel("one")
        after = (one.living, two.living)
        two.go_on()
        assert dog.stderr is not None
        told = dog.stderr.read().decode()  # until the process in the background has ended

    assert code == 0
    assert (found["asked"], found["notStopped"]) == (one.pids, None)
    assert after == ([], two.pids)
    assert "error      one: it was killed by signal 15" in told
    assert "recovered  report:two" in told
    assert topics("one")[-2:] == ["cancelled", "resume-returned"]
    assert topics("two")[-2:] == ["finished", "resume-returned"]


SILENT_ONCE = """
import os, signal, sys
try:
    os.close(os.open(sys.argv[1], os.O_CREAT | os.O_EXCL))
    signal.pause()
except FileExistsError:
    pass
"""
"""Does nothing at all, but only the first time."""


def test_a_stalled_adapter_is_stopped_by_the_watchdog_that_sent_it_and_resumed(
    store_path: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", SILENT_ONCE + FINISHES, str(tmp_path / "seen")]
    abandon(
        store_path,
        command=command,
        stale_after_seconds=2,
        kill_stalled=True,
        max_retries=100,
    )
    with Dog() as dog:
        dog.until_it_says("recovered  report:job")
        assert dog.process.poll() is None

    assert "attention-raised" not in topics("job")
    assert not [line for line in dog.heard if line.startswith("attention")]
    returns = [fields for topic, fields in history("job") if topic == "run.resume-returned"]
    assert returns[0]["result"]["signal"] == signal.SIGTERM
    assert (returns[-1]["progressed"], topics("job").count("finished")) == (True, 1)


LEAVES = """
import os, subprocess, sys
pids, go = sys.argv[1:]
try:
    os.close(os.open(pids + ".first", os.O_CREAT | os.O_EXCL))
    child = subprocess.Popen(["sh", "-c", 'read -r word <"$0"', go])
    with open(pids, "w") as pipe:
        pipe.write(f"{os.getpid()} {child.pid}")
    child.wait()
    os._exit(0)
except FileExistsError:
    pass
"""
"""The first time it lets a child work, in its own session, and waits for that."""


def test_nobody_works_beside_what_a_killed_adapter_and_dispatcher_have_left(
    store_path: Path, tmp_path: Path
) -> None:
    pids, go = tmp_path / "pids", tmp_path / "go"
    os.mkfifo(pids)
    os.mkfifo(go)
    abandon(store_path, command=[sys.executable, "-c", LEAVES + FINISHES, str(pids), str(go)])
    command = [*TACHO, "watchdog", "run", "--once", "--auto-resume"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as dog:
        adapter, child = map(int, pids.read_text().split())
        dog.kill()
        dog.wait()
    os.kill(adapter, signal.SIGKILL)
    until_it_ended(adapter)
    meanwhile = watch()
    refused = tacho("run", "resume", "job")
    shown = json.loads(tacho("run", "list", "--json").stdout)[0]
    go.write_text("go on\n")
    until_it_ended(child)
    afterwards = watch()

    assert (meanwhile["alerts"], meanwhile["resumed"], meanwhile["running_count"]) == ([], [], 1)
    assert refused.returncode == 6
    assert f"process {adapter} has ended; what it has started is still at work" in refused.stderr
    assert (shown["status"], shown["liveness"]) == ("running", "alive")
    assert [each["task_id"] for each in afterwards["recoveries"]] == ["job"]
    assert topics("job").count("attempt-started") == 3
    assert topics("job").count("finished") == 1


def until_it_ended(pid: int) -> None:
    """Return when a process that is no child of this one has ended."""
    while lives(pid):
        os.sched_yield()


DAEMON = """
import os, subprocess, sys
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
with open(sys.argv[1], "w") as file:
    file.write(str(child.pid))
sys.exit({code})
"""


def test_what_a_failed_adapter_leaves_is_ended(store_path: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    abandon(store_path, command=[sys.executable, "-c", DAEMON.format(code=1), str(pid)])
    report = watch()

    assert not lives(int(pid.read_text()))
    assert report["resumed"][0]["error"] == "exit code 1"
    assert (result_of("job")["left_running"], report["running_count"]) == ([], 0)


def test_what_a_successful_adapter_leaves_works_on_as_the_owner(
    store_path: Path, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    abandon(store_path, command=[sys.executable, "-c", DAEMON.format(code=0), str(pid)])
    watch()
    daemon = int(pid.read_text())
    try:
        left = lives(daemon)
        meanwhile = watch()
        with opened(store_path) as services:
            run = services.repository.get("job")
        found = cancel("job")
    finally:
        if lives(daemon):
            os.kill(daemon, signal.SIGKILL)

    assert left
    assert run is not None
    assert (run.owner["pid"], result_of("job")["left_running"]) == (daemon, [daemon])
    assert (meanwhile["resumed"], meanwhile["running_count"]) == ([], 1)
    assert found["asked"] == [daemon]


TWICE = r"""
job() {
    if exported=$(tacho run start report --id job --export --quiet 2>>errors); then
        eval "$exported"
        echo began >>fates
    else
        echo "refused $?" >>fates
        exit
    fi
    # So that it is at work for as long as the other one may want to begin.
    until mapfile -t fates <fates; [ ${#fates[@]} = 2 ]; do :; done
    tacho run phase start parse --batches 3
    for index in $(tacho run batch parse --pending); do
        echo "$index" >>worked
        tacho run batch parse "$index" --output-json "$index"
    done
    tacho run phase end parse
    tacho run finish success
}
job &
job &
wait
"""
"""A command that starts the same job twice, at the same time."""


def test_a_command_that_starts_its_job_twice_does_every_batch_once(
    store_path: Path, tmp_path: Path
) -> None:
    abandon(store_path, command=bash(TWICE, tmp_path), working_folder=str(tmp_path))
    report = watch()

    assert sorted((tmp_path / "fates").read_text().splitlines()) == ["began", "refused 6"]
    assert (tmp_path / "worked").read_text().split() == ["1", "2"]
    assert topics("job").count("batch-completed") == 3
    assert topics("job").count("attempt-started") == 2
    assert [each["task_id"] for each in report["recoveries"]] == ["job"]
    joined = [fields["joined"] for topic, fields in history("job") if topic == "run.worker-started"]
    assert joined == [False, True]


def test_one_after_the_other_may_join(store_path: Path, tmp_path: Path) -> None:
    once = """
job() { (
    eval "$(tacho run start report --id job --export --quiet)"
    tacho run checkpoint --state $1
) }
job 1
job 2
"""
    abandon(store_path, command=bash(once, tmp_path), working_folder=str(tmp_path))
    watch()
    states = [
        fields["state"] for topic, fields in history("job") if topic == "run.checkpoint-saved"
    ]

    assert states == [1, 2]
    assert topics("job").count("attempt-started") == 2
