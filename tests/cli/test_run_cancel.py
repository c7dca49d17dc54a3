"""Cancelling stops the processes of a run, and ends the run whatever becomes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from command_line import TACHO, bash, here, topics

from tachograph.infra.processes import process_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Capture = pytest.CaptureFixture[str]
Job = subprocess.Popen[str]

JOB = """
import signal, sys, tachograph
{before}
with tachograph.record("work", run_id="job") as run:
    print("up", flush=True)
    sys.stdin.readline()
    with run.phase("late"):
        print("wrote", flush=True)
"""
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.fixture
def job(store_environment: Path) -> Iterator[Callable[[str], Job]]:
    """Start jobs that wait for a line before they write again."""
    started: list[Job] = []

    def start(before: str = "") -> Job:
        pipe = subprocess.PIPE
        code = JOB.format(before=before)
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def cancel(capsys: Capture, *options: str, code: int = 0) -> Any:
    done = here(capsys, "run", "cancel", "job", "--reason", "wrong folder", "--json", *options)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout), done.stderr


def test_the_process_of_a_run_is_asked_to_end(job: Callable[[str], Job], capsys: Capture) -> None:
    process = job("")
    found, said = cancel(capsys)

    assert found == {
        "jobRunId": "job",
        "ended": "cancelled",
        "reason": "wrong folder",
        "asked": [process.pid],
        "killed": [],
        "stillRunning": [],
        "notStopped": None,
    }
    assert said == ""
    assert process.wait() != 0
    assert topics("job")[-1] == "cancelled"


def test_what_lives_on_is_named_and_refused_at_its_next_write(
    job: Callable[[str], Job], capsys: Capture
) -> None:
    process = job(STUBBORN)
    found, said = cancel(capsys, "--grace", "0")
    written, errors = process.communicate("go on\n")

    assert found["stillRunning"] == [process.pid]
    assert f"process {process.pid} still runs; cancel again with --kill" in said
    assert (process.returncode, written) == (1, "")
    assert "RunFinishedError: Run job is finished (cancelled)" in errors
    assert topics("job")[-1] == "cancelled"


def test_a_run_that_was_cancelled_is_cancelled_again_to_kill_what_lives(
    job: Callable[[str], Job], capsys: Capture
) -> None:
    process = job(STUBBORN)
    cancel(capsys, "--grace", "0")
    events = topics("job")
    found, said = cancel(capsys, "--grace", "0", "--kill")

    assert (found["killed"], found["stillRunning"], said) == ([process.pid], [], "")
    assert process.wait() == -9
    assert topics("job") == events
    assert here(capsys, "run", "cancel", "job", "--reason", "x").returncode == 1


def test_people_are_told_what_was_done(job: Callable[[str], Job], capsys: Capture) -> None:
    process = job(STUBBORN)
    done = here(capsys, "run", "cancel", "job", "--reason", "x", "--grace", "0", "--kill")

    assert done.stdout == ""
    assert done.stderr == (
        f"Cancelled job. Asked process {process.pid} to end. Killed process {process.pid}.\n"
    )


def test_a_script_may_cancel_its_own_run(store_environment: Path, tmp_path: Path) -> None:
    """It is asked by itself, so it knows."""
    script = (
        'eval "$(tacho run start demo --id job --export)"\n'
        "tacho run cancel job --reason done --kill\n"
        "echo still here"
    )
    done = subprocess.run(bash(script, tmp_path), capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "still here\n")
    assert "Not stopped: this command runs below process" in done.stderr
    assert topics("job") == ["created", "attempt-started", "cancelled"]


def test_a_run_that_nobody_owns_is_cancelled_and_said_so(
    store_environment: Path, capsys: Capture
) -> None:
    here(capsys, "run", "start", "demo", "--id", "job", "--unowned")
    found, said = cancel(capsys)

    assert found["notStopped"] == "no process stands for the run"
    assert "Not stopped: no process stands for the run. Its writes" in said
    assert topics("job")[-1] == "cancelled"


def test_a_run_whose_process_is_gone_is_cancelled_without_a_word(
    store_environment: Path, capsys: Capture
) -> None:
    code = "import os, tachograph\nwith tachograph.record('work', run_id='job'): os._exit(9)"
    subprocess.run([sys.executable, "-c", code])
    found, said = cancel(capsys)

    assert (found["asked"], found["notStopped"], said) == ([], None, "")


def test_a_command_that_was_wrapped_is_stopped_with_its_wrapper(
    store_environment: Path, capsys: Capture
) -> None:
    code = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
    wrapped = subprocess.Popen(
        [*TACHO, "run", "exec", "--id", "job", "--", sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with wrapped:
        assert wrapped.stdout is not None
        command = int(wrapped.stdout.readline())
        found, _ = cancel(capsys)

    assert (found["stillRunning"], found["notStopped"]) == ([], None)
    assert process_start(command) is None
    assert topics("job")[-1] == "cancelled"


@pytest.mark.parametrize("command", ["cancel", "expire", "block"])
def test_the_beginning_of_an_id_is_answered_with_the_whole(
    run: str, capsys: Capture, command: str
) -> None:
    done = here(capsys, "run", command, "jo", "--reason", "x")

    assert (done.returncode, done.stdout) == (3, "")
    assert "There is no run 'jo'. job begins so: write the whole id" in done.stderr
    assert topics("job") == ["created", "attempt-started"]


@pytest.mark.parametrize("command", ["cancel", "expire", "block"])
def test_a_beginning_of_several_ids_lists_them(run: str, capsys: Capture, command: str) -> None:
    here(capsys, "run", "start", "demo", "--id", "job-2")
    done = here(capsys, "run", command, "jo", "--reason", "x")

    assert done.returncode == 3
    assert "fits several runs: job-2, job" in done.stderr


@pytest.mark.parametrize("grace", ["-1", "nan", "inf", "1e9"])
def test_a_grace_that_makes_no_sense_stops_nothing(run: str, capsys: Capture, grace: str) -> None:
    done = here(capsys, "run", "cancel", "job", "--reason", "x", "--grace", grace)

    assert done.returncode == 2
    assert "at most a day" in done.stderr or "is no finite number" in done.stderr
    assert topics("job") == ["created", "attempt-started"]


# Expire and block.


def test_a_run_that_was_left_is_expired(store_environment: Path, capsys: Capture) -> None:
    here(capsys, "run", "start", "demo", "--id", "job", "--unowned")
    here(capsys, "run", "fail", "--run", "job", "--epoch", "1", "--reason", "disk")
    done = here(capsys, "run", "expire", "job", "--reason", "30 days old", "--json")
    again = here(capsys, "run", "start", "demo", "--id", "job")

    assert json.loads(done.stdout) == {
        "jobRunId": "job",
        "ended": "expired",
        "reason": "30 days old",
    }
    assert again.stdout == "job~2\n"
    assert topics("job")[-1] == "expired"


def test_a_run_at_work_does_not_expire(run: str, capsys: Capture) -> None:
    done = here(capsys, "run", "expire", "job", "--reason", "old")

    assert done.returncode == 6
    assert "is at work: " in done.stderr
    assert topics("job") == ["created", "attempt-started"]


@pytest.mark.parametrize(
    ("command", "asked"),
    [("expire", "Why is it expired?"), ("block", "What does it wait for?")],
)
def test_a_reason_is_asked_for(run: str, capsys: Capture, command: str, asked: str) -> None:
    done = here(capsys, "run", command, "job")

    assert done.returncode == 2
    assert asked in done.stderr
    assert topics("job") == ["created", "attempt-started"]


def status(capsys: Capture) -> tuple[str, str | None]:
    found = json.loads(here(capsys, "run", "status", "job", "--json").stdout)
    return found["status"], found["blocked"]


def test_another_reason_replaces_the_first_until_work_goes_on(run: str, capsys: Capture) -> None:
    here(capsys, "run", "block", "job", "--reason", "the disk")
    done = here(capsys, "run", "block", "job", "--reason", "the mail", "--json")
    blocked = status(capsys)
    here(capsys, "run", "phase", "start", "p")

    assert json.loads(done.stdout) == {"jobRunId": "job", "blocked": "the mail"}
    assert blocked == ("blocked", "the mail")
    assert status(capsys) == ("running", None)


def test_a_superseded_attempt_may_not_block_its_run(
    run: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TACHO_EPOCH is 1; a person in another shell may, and so may one for another run."""
    here(capsys, "run", "start", "demo", "--id", "job", "--takeover", "--reason", "x")
    here(capsys, "run", "start", "demo", "--id", "other")
    refused = here(capsys, "run", "block", "job", "--reason", "x")
    by_number = here(capsys, "run", "block", "job", "--reason", "x", "--epoch", "1")
    other = here(capsys, "run", "block", "other", "--reason", "x", "--quiet")
    monkeypatch.setenv("TACHO_RUN_ID", "other")
    person = here(capsys, "run", "block", "job", "--reason", "x")
    monkeypatch.setenv("TACHO_EPOCH", "odd")
    odd = here(capsys, "run", "block", "other", "--reason", "x")

    assert (refused.returncode, by_number.returncode) == (6, 6)
    assert (other.returncode, person.returncode, odd.returncode) == (0, 0, 0)
    assert (other.stderr, person.stderr) == ("", "Blocked job.\n")


@pytest.mark.parametrize("command", ["block", "cancel"])
def test_where_nothing_is_stopped_nothing_heavy_is_imported(run: str, command: str) -> None:
    script = (
        "import sys; from tachograph.cli.main import execute; code = execute(sys.argv[1:]);"
        "print(*{'psutil', 'pydantic', 'rich', 'click'} & set(sys.modules)); sys.exit(code)"
    )
    arguments = ("run", command, "job", "--reason", "x")
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True)

    assert (done.returncode, done.stdout) == (0, b"\n")
