"""Stopping hits the recorded processes and nobody else; real processes are started and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from stores import gone

from tachograph.domain.liveness import UNSEEN, Observer
from tachograph.domain.owner import Owner
from tachograph.infra import holding, processes, stopping
from tachograph.infra.stopping import Stopped

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="holds processes by pidfd")

PATIENT = 3600.0
"""Seconds of grace that no test waits for: the process ends by itself."""

POLITE = "say('up'); hear()"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN); say('up'); hear()"
PREAMBLE = """
import os, signal, subprocess, sys
def say(*words): print(*words, flush=True)
def hear(): sys.stdin.readline()
"""
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes that live until they are stopped, or the test ends."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, **options: Any) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + code], stdin=pipe, stdout=pipe, text=True, **options
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def stop(
    owner: Owner | int,
    worker: Owner | int | None = None,
    *,
    grace: float = PATIENT,
    kill: bool = False,
    here: Observer | None = None,
) -> Stopped:
    def described(process: Owner | int) -> Owner:
        return process if isinstance(process, Owner) else processes.describe(process)

    return stopping.stop(
        described(owner),
        None if worker is None else described(worker),
        here=here or processes.observer(),
        grace_seconds=grace,
        kill=kill,
    )


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def lives(process: subprocess.Popen[str]) -> bool:
    return processes.process_start(process.pid) is not None


@pytest.fixture(params=["pidfd", "start time"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of holding a process."""
    if request.param == "start time":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    elif not hasattr(os, "pidfd_open"):
        pytest.skip("this machine has no pidfd")
    return str(request.param)


def test_the_owner_is_asked_and_its_end_is_waited_for(start: Start, way: str) -> None:
    process = start(POLITE)
    stopped = stop(process.pid)

    assert stopped == Stopped([process.pid], ended=True)
    assert not lives(process)


def test_the_worker_is_asked_before_the_owner(start: Start) -> None:
    owner, worker = start(POLITE), start(POLITE)

    assert stop(owner.pid, worker.pid) == Stopped([worker.pid, owner.pid], ended=True)


def test_the_owner_is_asked_while_a_stubborn_worker_lives_on(start: Start) -> None:
    owner, worker = start(POLITE), start(STUBBORN)
    stopped = stop(owner.pid, worker.pid, grace=0.01)

    assert stopped.asked == [worker.pid, owner.pid]
    assert worker.pid in stopped.left


def test_a_worker_that_is_the_owner_is_asked_once(start: Start) -> None:
    process = start(POLITE)

    assert stop(process.pid, process.pid).asked == [process.pid]


def test_what_outlives_the_grace_is_left_and_named(start: Start, way: str) -> None:
    process = start(STUBBORN)
    stopped = stop(process.pid, grace=0)

    assert stopped == Stopped([process.pid], left=[process.pid])
    assert lives(process)


def test_what_outlives_the_grace_is_killed_on_request(start: Start, way: str) -> None:
    process = start(STUBBORN)
    stopped = stop(process.pid, grace=0, kill=True)

    assert stopped == Stopped([process.pid], [process.pid], ended=True)
    assert not lives(process)


def test_a_process_that_ends_in_time_is_not_killed(start: Start) -> None:
    assert stop(start(POLITE).pid, kill=True).killed == []


def test_a_frozen_process_hears_of_it(start: Start) -> None:
    process = start(POLITE)
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)

    assert stop(process.pid).ended
    assert process.wait() == -signal.SIGTERM


GROUP = """
child = subprocess.Popen([sys.executable, "-c", {child!r}], stdout=subprocess.PIPE{options})
child.stdout.readline()
say('up'); say(child.pid); hear()
"""


def test_the_group_that_a_process_leads_is_asked_with_it(start: Start) -> None:
    code = GROUP.format(child=PREAMBLE + "say('up'); signal.pause()", options="")
    process = start(code, start_new_session=True)
    child = int(heard(process))

    assert stop(process.pid) == Stopped([process.pid, child], ended=True)


def test_our_own_group_is_never_asked(start: Start) -> None:
    """The process is in the group of this test, which goes on."""
    bystander, process = start(POLITE), start(POLITE)
    stopped = stop(process.pid)

    assert os.getpgid(process.pid) == os.getpgrp()
    assert stopped.asked == [process.pid]
    assert lives(bystander)


def test_a_child_in_a_group_of_its_own_is_not_asked_but_killed_on_request(start: Start) -> None:
    child_code = PREAMBLE + "say('up'); signal.pause()"
    process = start(GROUP.format(child=child_code, options=", start_new_session=True"))
    child = int(heard(process))
    stopped = stop(process.pid, grace=0, kill=True)

    assert stopped.asked == [process.pid]
    assert child in stopped.killed
    assert (stopped.ended, stopped.left) == (True, [])
    assert processes.process_start(child) is None


def test_a_child_that_outlives_its_parent_is_named(start: Start) -> None:
    child_code = PREAMBLE + "say('up'); signal.pause()"
    process = start(GROUP.format(child=child_code, options=", start_new_session=True"))
    child = int(heard(process))
    stopped = stop(process.pid, grace=0)
    os.kill(child, signal.SIGKILL)

    assert child in stopped.left
    assert not stopped.ended


def test_a_later_process_with_the_same_pid_is_not_hit(start: Start, way: str) -> None:
    process = start(POLITE)
    owner = processes.describe(process.pid)
    assert owner.started is not None
    owner.started -= 1
    stopped = stop(owner)

    assert stopped == Stopped(ended=True, reason=f"process {process.pid} has ended")
    assert lives(process)


def test_a_pid_that_is_used_again_while_it_is_looked_at_is_not_hit(
    start: Start, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorded one is seen, then ends, and the pid is another's before it is held."""
    process = start(POLITE)
    owner = processes.describe(process.pid)
    seen = [owner.started, owner.started]
    for module in (stopping, holding):
        monkeypatch.setattr(module, "process_start", lambda pid: seen.pop() if seen else 1)
    stopped = stop(owner)
    monkeypatch.undo()

    assert (stopped.asked, stopped.ended) == ([], True)
    assert lives(process)


def changed(owner: Owner, **fields: Any) -> Owner:
    for name, value in fields.items():
        setattr(owner, name, value)
    return owner


@pytest.mark.parametrize(
    ("fields", "ended", "why"),
    [
        ({"kind": "unowned"}, False, "no process stands for the run"),
        ({"started": None}, False, "was recorded without what tells it from others"),
        ({"pid": None}, False, "was recorded without what tells it from others"),
        ({"boot_id": None}, False, "was recorded without what tells it from others"),
        ({"boot_id": "other"}, True, "before this machine was restarted"),
        ({"boot_id": "other", "host": "elsewhere"}, False, "is on another machine"),
        ({"pid_namespace": "17"}, False, "is in another container"),
    ],
)
def test_a_process_that_is_not_certainly_the_recorded_one_is_left_alone(
    start: Start, fields: dict[str, Any], ended: bool, why: str
) -> None:
    process = start(POLITE)
    stopped = stop(changed(processes.describe(process.pid), **fields), kill=True)

    assert (stopped.asked, stopped.killed, stopped.ended) == ([], [], ended)
    assert why in str(stopped.reason)
    assert lives(process)


def test_a_machine_that_does_not_know_its_boot_stops_nothing(start: Start) -> None:
    process = start(POLITE)
    stopped = stop(process.pid, here=Observer("here"))

    assert (stopped.asked, stopped.ended) == ([], False)
    assert "which boot" in str(stopped.reason)


def test_a_process_that_may_not_be_looked_at_is_left_alone(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start(POLITE)
    owner = processes.describe(process.pid)
    monkeypatch.setattr(stopping, "process_start", lambda pid: UNSEEN)
    stopped = stop(owner)
    monkeypatch.undo()

    assert (stopped.asked, stopped.ended) == ([], False)
    assert "may not be looked at" in str(stopped.reason)
    assert lives(process)


@pytest.mark.parametrize("platform", [sys.platform, "freebsd14"])
@pytest.mark.parametrize("pid", [os.getpid(), os.getppid()], ids=["this one", "its parent"])
def test_the_processes_that_this_one_runs_below_are_left_alone(
    pid: int, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    owner = changed(processes.describe(pid), boot_id="here", pid_namespace=None)
    stopped = stop(owner, here=Observer("here", "here"), kill=True)

    assert (stopped.asked, stopped.killed, stopped.ended) == ([], [], False)
    assert f"below process {pid}" in str(stopped.reason)


def test_a_dead_worker_does_not_save_the_owner(start: Start) -> None:
    owner = start(POLITE)
    stopped = stop(owner.pid, gone())

    assert stopped == Stopped([owner.pid], ended=True, reason=f"process {os.getpid()} has ended")


def test_a_whole_tree_of_processes_is_killed(start: Start) -> None:
    tree = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(3):
    os.fork()
if os.getpid() == os.getpgrp():
    say('up')
signal.pause()
"""
    process = start(tree, start_new_session=True)
    stopped = stop(process.pid, grace=0, kill=True)

    assert (stopped.ended, stopped.left) == (True, [])
    assert process.pid in stopped.killed


def test_no_descriptor_is_left_open(no_open_files_left: None, start: Start) -> None:
    assert stop(start(STUBBORN).pid, grace=0, kill=True).ended


def test_what_was_stopped_is_worth_comparing() -> None:
    assert Stopped([1]) == Stopped([1]) != Stopped([2])
