"""A command in a thread: input in, output kept, nothing of it left when its time is over."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from workers import is_gone

from tachograph.domain.ended import Ended
from tachograph.infra.job_child import STDOUT_BYTES, TAIL_BYTES, JobChild

pytestmark = pytest.mark.usefixtures("no_open_files_left")


def shell(script: str, **more: object) -> JobChild:
    return JobChild(["sh", "-c", script], dict(os.environ), **more)  # type: ignore[arg-type]


def run(child: JobChild) -> Ended:
    return child.run(lambda _pid: None)


def test_input_reaches_it_byte_by_byte() -> None:
    data = bytes(range(256)) * 1_000
    child = JobChild(["wc", "-c"], dict(os.environ), stdin=data)
    ended = run(child)

    assert (ended.exit_code, ended.output.split()) == (0, [b"256000"])


def test_a_command_that_reads_nothing_is_no_failure() -> None:
    ended = run(shell("exit 0", stdin=b"x" * 1_000_000))

    assert ended.exit_code == 0


def test_the_tail_of_its_output_is_kept() -> None:
    child = shell("head -c 300000 /dev/zero; echo out; echo err >&2")
    ended = run(child)

    assert ended.output_bytes == 300_008
    assert len(ended.output) == TAIL_BYTES
    assert len(child.stdout) == STDOUT_BYTES
    assert child.stdout.endswith(b"out\n")


@pytest.mark.parametrize(
    ("script", "code", "number"), [("exit 3", 3, None), ("kill -9 $$", None, 9)]
)
def test_how_it_ended(script: str, code: int | None, number: int | None) -> None:
    ended = run(shell(script))

    assert (ended.exit_code, ended.signal, ended.timed_out) == (code, number, False)


def test_it_never_runs_when_that_it_starts_cannot_be_recorded(tmp_path: Path) -> None:
    path = tmp_path / "made"

    def refuse(_pid: int) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        shell(f"echo >{path}").run(refuse)

    assert not path.exists()


def test_one_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        run(JobChild(["./no-such-command"], dict(os.environ)))


def test_a_time_limit_ends_all_it_has_started(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    ended = run(shell(f"sleep 1000 & echo $! $$ >{path}; wait", timeout_seconds=1.0))

    assert ended.timed_out
    assert ended.signal == 15
    assert [is_gone(int(pid)) for pid in path.read_text().split()] == [True, True]


def test_what_ignores_the_polite_signal_is_killed(tmp_path: Path) -> None:
    script = "trap '' TERM; while :; do sleep 0.05; done"
    ended = run(shell(script, timeout_seconds=0.2, grace_seconds=0.2))

    assert (ended.timed_out, ended.signal) == (True, 9)


def test_what_a_failed_one_leaves_is_ended_too(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    ended = run(shell(f"sleep 1000 & echo $! >{path}; exit 1"))

    assert ended.exit_code == 1
    assert is_gone(int(path.read_text()))


@pytest.mark.parametrize(("at_once", "number"), [(False, 15), (True, 9)])
def test_another_thread_can_stop_it(tmp_path: Path, at_once: bool, number: int) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = shell(f"echo >{pipe}; sleep 1000")
    ends: list[Ended] = []
    thread = threading.Thread(target=lambda: ends.append(run(child)))
    thread.start()
    pipe.read_bytes()
    child.stop(at_once=at_once)
    thread.join()

    assert ends[0].signal == number
    assert ends[0].asked == ("SIGKILL" if at_once else "SIGTERM",)
    assert not ends[0].timed_out


def test_one_that_was_stopped_before_it_began_is_ended() -> None:
    child = shell("sleep 1000")
    child.stop(at_once=True)

    assert run(child).signal == 9
