"""A child runs as it would without us: its bytes, its signals, its end."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tachograph.infra.child import CHUNK, Tail, run_child

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = sys.executable


def test_output_passes_through_and_its_tail_is_kept(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    ended = run_child(
        ["sh", "-c", r"printf 'one\377\0'; printf two >&2"], os.environ, tail_bytes=100
    )
    written = capfdbinary.readouterr()

    assert (written.out, written.err) == (b"one\xff\0", b"two")
    assert sorted(ended.output) == sorted(b"one\xff\0two")
    assert (ended.exit_code, ended.signal, ended.output_bytes) == (0, None, 8)


def test_stderr_is_left_alone_where_only_stdout_counts(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    ended = run_child(
        ["sh", "-c", "echo out; echo err >&2"], os.environ, tail_bytes=9, capture_stderr=False
    )

    assert ended.output == b"out\n"
    assert capfdbinary.readouterr().err == b"err\n"


def test_a_long_output_arrives_whole(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    size = 40 * CHUNK + 7
    ended = run_child(["sh", "-c", f"head -c {size} /dev/zero"], os.environ, tail_bytes=10)

    assert capfdbinary.readouterr().out == bytes(size)
    assert (ended.output, ended.output_bytes) == (bytes(10), size)


@pytest.mark.parametrize(("limit", "kept"), [(0, b""), (3, b"hij"), (100, b"abcdefghij")])
def test_a_tail_is_the_end_of_what_was_added(limit: int, kept: bytes) -> None:
    tail = Tail(limit)
    for letter in b"abcdefghij":
        tail.add(bytes([letter]))

    assert (bytes(tail), tail.total) == (kept, 10)


@pytest.mark.parametrize(
    ("script", "exit_code", "killed_by", "shell_code"),
    [("exit 3", 3, None, 3), ("kill -KILL $$", None, signal.SIGKILL, 137)],
)
def test_the_end_of_the_child_is_told(
    script: str, exit_code: int | None, killed_by: int | None, shell_code: int
) -> None:
    ended = run_child(["sh", "-c", script], os.environ, tail_bytes=0)

    assert (ended.exit_code, ended.signal, ended.shell_code) == (exit_code, killed_by, shell_code)


def test_what_cannot_be_run_raises(no_open_files_left: None) -> None:
    with pytest.raises(FileNotFoundError):
        run_child(["no-such-program-here"], os.environ, tail_bytes=0)


def test_the_caller_is_told_which_process_it_is(tmp_path: Path) -> None:
    told: list[int] = []
    path = tmp_path / "pid"
    run_child(["sh", "-c", f"echo $$ >{path}"], os.environ, tail_bytes=0, on_started=told.append)

    assert told == [int(path.read_text())]


def test_nothing_is_left_open_or_handled(no_open_files_left: None) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGCHLD)]
    run_child(["true"], os.environ, tail_bytes=0)

    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGCHLD)] == before


def test_a_descendant_that_stays_is_not_waited_for(tmp_path: Path) -> None:
    """It keeps the pipes open until it is released, which is after the command has ended."""
    release = tmp_path / "release"
    os.mkfifo(release)
    ended = run_child(["sh", "-c", f"cat {release} & echo done"], os.environ, tail_bytes=10)
    release.open("w").close()

    assert ended.output == b"done\n"


def test_the_time_limit_stops_the_child_and_its_children(tmp_path: Path) -> None:
    """The grandchild would hold the fifo open, and the read below would not end."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    ended = run_child(
        ["sh", "-c", f"sleep 600 >{fifo} & wait"], os.environ, tail_bytes=0, timeout_seconds=0.2
    )
    os.set_blocking(reader, True)

    assert os.read(reader, 1) == b""
    os.close(reader)
    assert (ended.timed_out, ended.signal) == (True, signal.SIGTERM)


WRAPPER = """
import os, sys
from tachograph.infra.child import run_child
ended = run_child(sys.argv[1:], os.environ, tail_bytes=100)
print("ended", ended.exit_code, ended.signal, ",".join(ended.asked), flush=True)
"""

# Blocked signals wait for sigwait; handlers and pause() would lose one that comes in between.
LISTENER = """
import signal, sys
names = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
wanted = [getattr(signal, name) for name in names]
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
seen = []
print("ready", flush=True)
while True:
    seen.append(signal.Signals(signal.sigwait(wanted)).name)
    print("got", seen[-1], flush=True)
    if seen[-1] == sys.argv[1]:
        sys.exit(len(seen))
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2", "SIGWINCH"])
def test_signals_are_forwarded_once(name: str) -> None:
    """Without a terminal the child has a group of its own, and only we can reach it."""
    with subprocess.Popen(
        [PYTHON, "-c", WRAPPER, PYTHON, "-c", LISTENER, name],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(getattr(signal, name))
        rest = process.stdout.read()

    assert rest == f"got {name}\nended 1 None {name}\n"


def test_ctrl_c_at_a_terminal_reaches_the_child_once() -> None:
    """The terminal signals the whole foreground group: forwarding would be a second time."""
    terminal, other = pty.openpty()
    # The first terminal that the leader of a session opens controls the session.
    leader = ["sh", "-c", 'exec <>"$0" >&0 2>&0; exec "$@"', os.ttyname(other)]
    command = [PYTHON, "-c", WRAPPER, PYTHON, "-c", LISTENER, "SIGINT"]
    with subprocess.Popen([*leader, *command], start_new_session=True):
        shown = read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        shown += read_until(terminal, b"ended")
    os.close(other)
    os.close(terminal)

    assert shown.count(b"got SIGINT") == 1
    assert b"ended 1 None" in shown


def read_until(descriptor: int, mark: bytes) -> bytes:
    """Return what a terminal shows, up to the line with the mark, or to its end."""
    shown = b""
    while mark not in shown or not shown.endswith(b"\n"):
        select.select([descriptor], [], [])
        try:
            shown += os.read(descriptor, 1024)
        except OSError:  # the other side is closed
            break
    return shown


def test_a_broken_pipe_reaches_the_child() -> None:
    """As with `yes | head -n 1`: the writer ends, it does not go on for ever."""
    with subprocess.Popen(
        [PYTHON, "-c", WRAPPER, "yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "y\n"
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()

    assert "BrokenPipeError" in errors  # of the wrapper's own line: the child has ended


def test_nothing_is_run_when_the_caller_refuses_after_the_start(
    tmp_path: Path, no_open_files_left: None
) -> None:
    def refuse(_pid: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_child(["touch", str(tmp_path / "made")], os.environ, tail_bytes=0, on_started=refuse)

    assert list(tmp_path.iterdir()) == []


def test_what_the_caller_does_at_the_start_is_done_before_the_command(tmp_path: Path) -> None:
    """Not one instruction of it runs before."""
    seen: list[bool] = []
    made = tmp_path / "made"
    run_child(
        ["touch", str(made)],
        os.environ,
        tail_bytes=0,
        on_started=lambda _pid: seen.append(made.exists()),
    )

    assert (seen, made.exists()) == ([False], True)


def test_a_signal_before_the_command_runs_ends_it(tmp_path: Path) -> None:
    ended = run_child(
        ["touch", str(tmp_path / "made")],
        os.environ,
        tail_bytes=0,
        on_started=lambda _pid: os.kill(os.getpid(), signal.SIGTERM),
    )

    assert (ended.signal, ended.asked) == (signal.SIGTERM, ("SIGTERM",))
    assert list(tmp_path.iterdir()) == []
