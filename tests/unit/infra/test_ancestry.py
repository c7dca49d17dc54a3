"""Which processes are above this one, and which of them works."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tachograph.infra.ancestry import Process, ancestors, this_process, worker
from tachograph.infra.processes import process_start


def process(pid: int, *words: str, session: int | None = 1, marked: bool | None = False) -> Process:
    return Process(pid, pid, list(words), session, marked)


HERE = process(1, "python3", "task_runtime.py")
JOB = process(2, "python3", "job.py")


def test_the_parent_comes_first() -> None:
    above = ancestors()

    assert above[0].pid == os.getppid()
    assert above[0].started == process_start(os.getppid())
    assert len({each.pid for each in above}) == len(above)


def test_this_process_is_seen_with_its_command() -> None:
    here = this_process()

    assert here is not None
    assert (here.pid, here.started) == (os.getpid(), process_start(os.getpid()))
    assert here.words


def test_a_process_that_is_gone_has_none_above() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()

    assert ancestors(child.pid) == []


def test_the_nearest_process_is_the_worker() -> None:
    assert worker([JOB, process(3, "bash", "run.sh")], HERE) == JOB
    assert worker([], HERE) is None


@pytest.mark.parametrize(
    "shell",
    [
        ("sh", "-c", "x; y"),
        ("/bin/bash", "-lc", "x"),
        ("-zsh",),
        ("bash", "--norc", "-i"),
        ("dash",),
    ],
)
def test_a_shell_for_others_is_passed_over(shell: tuple[str, ...]) -> None:
    assert worker([process(4, *shell), JOB], HERE) == JOB


@pytest.mark.parametrize("shell", [("bash", "job.sh"), ("/bin/sh", "-e", "-u", "job.sh", "-c")])
def test_a_shell_with_a_script_works(shell: tuple[str, ...]) -> None:
    script = process(4, *shell)

    assert worker([script, JOB], HERE) == script


@pytest.mark.parametrize("words", [("/usr/lib/systemd/systemd",), ("cron", "-f"), ()])
def test_what_starts_everything_works_at_nothing(words: tuple[str, ...]) -> None:
    assert worker([process(4, "sh", "-c", "x"), process(5, *words), JOB], HERE) is None


def test_an_agent_is_known_by_the_marker_that_it_sets() -> None:
    """OpenClaw sets it for what it starts, and has it not itself."""
    shell = process(4, "bash", "-lc", "x", marked=True)
    agent = process(5, "node", "gateway.js")
    job = process(6, "python3", "job.py", marked=True)

    assert worker([shell, agent], HERE) is None
    assert worker([agent], process(1, "python3", marked=True)) is None
    assert worker([job, shell, agent], process(1, "python3", marked=True)) == job


def test_an_agent_is_known_by_the_sessions_that_it_starts() -> None:
    assert worker([process(5, "node", session=7)], process(1, "python3", session=1)) is None
    assert worker([process(5, "node", session=None)], HERE) == process(5, "node", session=None)


def test_a_marker_is_seen_in_the_environment() -> None:
    code = "import sys; sys.path[:] = sys.argv[1:]\nfrom tachograph.infra.ancestry import *\n"
    code += "above = ancestors(); print(this_process().marked, above[0].marked)"
    done = subprocess.run(
        [sys.executable, "-c", code, *sys.path],
        env={**os.environ, "OPENCLAW_SHELL": "exec"},
        capture_output=True,
        text=True,
    )

    assert done.stderr == ""
    if sys.platform == "linux":
        assert done.stdout == "True False\n"


def test_other_systems_are_asked_through_psutil(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psutil")  # it looks at the platform when it is imported
    known = [each.pid for each in ancestors()]
    monkeypatch.setattr(sys, "platform", "darwin")

    assert [each.pid for each in ancestors()][: len(known)] == known
    here = this_process()
    assert here is not None
    assert here.pid == os.getpid()
