"""A keeper works on when the process that was called is killed, and is heard when it is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from tachograph.infra import keeper

if TYPE_CHECKING:
    from pathlib import Path

PREAMBLE = """
import atexit, os, signal, sys
from tachograph.infra.keeper import keep
FORWARDED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"]
numbers = [getattr(signal, name) for name in FORWARDED]
def say(*words): print(*words, flush=True)
def hear_signal():
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    say("ready", os.getpid())
    say("got", signal.Signals(signal.sigwait(numbers)).name)
    return 3
"""


def start(code: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", PREAMBLE + code]
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )


def run(code: str) -> tuple[str, str]:
    with start(code) as process:
        return process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("shared", [True, False])
def test_the_exit_code_is_that_of_the_work(shared: bool) -> None:
    out, errors = run(f"""
me = os.getpid()
say(keep(lambda: say(os.getpid() != me) or 7, shared={shared}))
""")

    assert (out, errors) == ("True\n7\n", "")


def test_a_keeper_that_is_killed_is_told_by_its_signal() -> None:
    out, _ = run("say(keep(lambda: os.kill(os.getpid(), signal.SIGKILL) or 0, shared=False))")

    assert out == f"-{int(signal.SIGKILL)}\n"


def test_work_that_raises_ends_there() -> None:
    """Nothing of the keeper gets into the code behind `keep`, not even by an exception."""
    out, errors = run("""
atexit.register(say, "at exit")
say(keep(lambda: 1 // 0, shared=False))
""")

    assert out == "1\nat exit\n"
    assert errors.count("ZeroDivisionError") == 1


def test_an_exit_code_that_is_known_stands_when_the_output_cannot_be_written() -> None:
    out, _ = run("""
def work():
    sys.stdout = open("/dev/full", "w") if os.path.exists("/dev/full") else sys.stdout
    print("x")
    return 5
say(keep(work, shared=False))
""")

    assert out == "5\n"


def test_what_was_printed_before_is_printed_once() -> None:
    out, _ = run("""
print("before")
keep(lambda: print("inside") or 0, shared=False)
print("after")
""")

    assert out == "before\ninside\nafter\n"


@pytest.mark.parametrize(("shared", "same"), [(True, True), (False, False)])
def test_it_leaves_the_group_unless_a_terminal_signals_that(shared: bool, same: bool) -> None:
    out, _ = run(f"""
group = os.getpgrp()
keep(lambda: say(os.getpgrp() == group) or 0, shared={shared})
""")

    assert out == f"{same}\n"


def test_it_goes_on_when_the_process_that_was_called_is_killed() -> None:
    code = """
def work():
    say("up")
    say("heard", sys.stdin.readline().strip())
    return 0
keep(work, shared=False)
"""
    with start(code) as process:
        assert line(process) == "up"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdin is not None
        process.stdin.write("more\n")
        process.stdin.flush()

        assert line(process) == "heard more"


@pytest.mark.parametrize(
    "name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"]
)
def test_a_signal_is_passed_on_and_the_end_awaited(name: str) -> None:
    with start("say(keep(hear_signal, shared=False))") as process:
        assert line(process).startswith("ready")
        process.send_signal(getattr(signal, name))

        assert [line(process), line(process)] == [f"got {name}", "3"]


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP", "SIGQUIT", "SIGWINCH"])
def test_what_the_terminal_sends_to_all_is_not_passed_on(name: str) -> None:
    """When the second of the signals behind it has arrived, it would have arrived as well."""
    code = """
def work():
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    say("ready")
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        say("got", signal.Signals(signal.sigwait([number])).name)
    return len(signal.sigpending())
say(keep(work, shared=True))
"""
    with start(code) as process:
        heard = [line(process)]
        process.send_signal(getattr(signal, name))
        for later in (signal.SIGUSR1, signal.SIGUSR2):
            process.send_signal(later)
            heard.append(line(process))
        heard.append(line(process))

    assert heard == ["ready", "got SIGUSR1", "got SIGUSR2", "0"]


def test_what_was_ignored_stays_ignored() -> None:
    code = """
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def work():
    say("ready", signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)
    sys.stdin.readline()
    return 4
say(keep(work, shared=False))
"""
    with start(code) as process:
        assert line(process) == "ready True"
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate("\n")

    assert out == "4\n"


def test_the_handlers_of_the_caller_are_his_again() -> None:
    out, _ = run("""
before = [signal.getsignal(number) for number in numbers]
mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
keep(lambda: say([signal.getsignal(number) for number in numbers] == before) or 0, shared=False)
say([signal.getsignal(number) for number in numbers] == before)
say(signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask)
""")

    assert out == "True\nTrue\nTrue\n"


def test_a_caller_that_ignores_the_end_of_children_hears_of_it_nevertheless() -> None:
    out, _ = run("""
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
say(keep(lambda: 7, shared=False))
""")

    assert out == "7\n"


def test_its_end_is_heard_where_there_is_no_waitid(monkeypatch: pytest.MonkeyPatch) -> None:
    out, _ = run("""
del os.waitid
say(keep(lambda: 7, shared=False))
""")

    assert out == "7\n"


def test_there_is_none_where_threads_run_or_no_fork_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alone = subprocess.run(
        [sys.executable, "-c", "from tachograph.infra import keeper; print(keeper.possible())"],
        capture_output=True,
        text=True,
    )
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    beside = keeper.possible()
    end.set()
    thread.join()
    monkeypatch.delattr(os, "fork")

    assert (alone.stdout, beside, keeper.possible()) == ("True\n", False, False)
