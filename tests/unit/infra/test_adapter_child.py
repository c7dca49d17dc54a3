"""An adapter runs only once it is recorded, and ends with all that came from it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tachograph.infra.adapter_child import AdapterEnd, find_program, read_head, run_adapter

PYTHON = sys.executable


class Place:
    """Where an adapter writes, and what became of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stdout = folder / "stdout"
        self.stderr = folder / "stderr"
        self.pids: list[int] = []

    def run(self, *argv: str, **options: Any) -> AdapterEnd:
        """Run an adapter in this process."""
        given = {"timeout_seconds": None, "on_started": self.pids.append, "folder": None}
        return run_adapter(
            argv,
            os.environ,
            stdout_path=str(self.stdout),
            stderr_path=str(self.stderr),
            **{**given, **options},
        )

    def python(self, code: str, **options: Any) -> AdapterEnd:
        """Run Python code as an adapter."""
        return self.run(PYTHON, "-c", code, **options)

    def watched(self) -> int:
        """Make stdout a pipe whose end shows when every process that holds it is gone."""
        os.mkfifo(self.stdout)
        return os.open(self.stdout, os.O_RDONLY | os.O_NONBLOCK)

    def dispatcher(self, adapter: str, on_started: str = "pass") -> subprocess.Popen[str]:
        """Run an adapter of shell code in another process, which tells the end as JSON."""
        code = f"""
import json, os, signal, sys
from tachograph.infra.adapter_child import run_adapter
def on_started(pid): {on_started}
end = run_adapter(["sh", "-c", {adapter!r}], os.environ, folder={str(self.folder)!r},
    stdout_path={str(self.stdout)!r}, stderr_path={str(self.stderr)!r}, timeout_seconds=None,
    on_started=on_started)
print(json.dumps([end.exit_code, end.signal, end.asked]))
"""
        return subprocess.Popen([PYTHON, "-c", code], stdout=subprocess.PIPE, text=True)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def rest(reader: int) -> bytes:
    """Return what is written until the last process that could write is gone."""
    os.set_blocking(reader, True)
    with os.fdopen(reader, "rb") as file:
        return file.read()


def test_its_output_goes_to_files_and_its_end_is_told(place: Place) -> None:
    end = place.run("sh", "-c", "echo out; echo err >&2; exit 3")

    assert (end.exit_code, end.signal, end.timed_out, end.too_large) == (3, None, False, None)
    assert (end.left_running, end.asked) == ((), ())
    assert (place.stdout.read_text(), place.stderr.read_text()) == ("out\n", "err\n")


def test_a_signal_that_ends_it_is_no_exit_code(place: Place) -> None:
    end = place.run("sh", "-c", "kill -KILL $$")

    assert (end.exit_code, end.signal) == (None, signal.SIGKILL)


def test_it_leads_a_session_of_its_own_under_the_pid_that_was_told(place: Place) -> None:
    place.python("import os; print(os.getpid(), os.getpgid(0), os.getsid(0))")

    assert place.stdout.read_text().split() == [str(place.pids[0])] * 3


def test_it_reads_nothing_and_runs_in_the_folder_with_the_variables(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOUR", "deep red")
    (place.folder / "there").mkdir()
    place.run(
        "sh",
        "-c",
        'cat; pwd; echo "$COLOUR"; echo "$1"',
        "sh",
        "a b",
        folder=str(place.folder / "there"),
    )

    assert place.stdout.read_text() == f"{place.folder / 'there'}\ndeep red\na b\n"


def test_it_does_not_run_before_it_is_recorded(place: Place) -> None:
    seen: list[bool] = []
    made = place.folder / "made"
    place.run("touch", str(made), on_started=lambda _pid: seen.append(made.exists()))

    assert (seen, made.exists()) == ([False], True)


@pytest.mark.parametrize("error", [ValueError, BrokenPipeError, KeyboardInterrupt])
def test_it_never_runs_when_it_cannot_be_recorded(error: type[BaseException], place: Place) -> None:
    made = place.folder / "made"
    pids: list[int] = []

    def refuse(pid: int) -> None:
        pids.append(pid)
        raise error("the disk is full")

    with pytest.raises(error, match="the disk is full"):
        place.run("touch", str(made), on_started=refuse)

    assert not made.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_it_never_runs_when_its_dispatcher_dies_before_it_is_recorded(place: Place) -> None:
    reader = place.watched()
    with place.dispatcher("touch made", "os.kill(os.getpid(), signal.SIGKILL)") as dispatcher:
        dispatcher.wait()

    assert rest(reader) == b""
    assert not (place.folder / "made").exists()


def test_it_outlives_a_killed_dispatcher_and_can_go_on_writing(place: Place) -> None:
    gate = place.folder / "gate"
    os.mkfifo(gate)
    reader = place.watched()
    with place.dispatcher("echo >gate; read -r word <gate; echo late") as dispatcher:
        gate.read_text()
        dispatcher.kill()
    gate.write_text("go\n")

    assert rest(reader) == b"late\n"


@pytest.mark.parametrize("name", ["no-such-program-here", "./none", "/none/at/all"])
def test_a_program_that_is_not_there_is_told_before_anything_starts(
    name: str, place: Place
) -> None:
    with pytest.raises(FileNotFoundError):
        place.run(name, folder=str(place.folder))

    assert (place.pids, place.stdout.exists()) == ([], False)


def test_a_program_that_may_not_be_run_is_told_before_anything_starts(place: Place) -> None:
    (place.folder / "data").write_text("")
    with pytest.raises(PermissionError):
        place.run("./data", folder=str(place.folder))

    assert place.pids == []


@pytest.mark.parametrize(
    ("name", "error"), [("file", NotADirectoryError), ("none", FileNotFoundError)]
)
def test_a_folder_that_is_none_is_told(name: str, error: type[OSError], place: Place) -> None:
    (place.folder / "file").write_text("")
    with pytest.raises(error):
        place.run("true", folder=str(place.folder / name))


def test_an_output_that_cannot_be_written_starts_nothing(place: Place) -> None:
    place.stderr.mkdir()
    with pytest.raises(IsADirectoryError):
        place.run("true")

    assert place.pids == []


def test_a_program_is_found_on_the_path_it_would_have(place: Place) -> None:
    tool = place.folder / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)

    assert find_program("tool", {"PATH": str(place.folder)}, None) == str(tool)
    assert find_program("./tool", {}, str(place.folder)).endswith("/./tool")


def test_when_its_time_is_up_all_of_it_ends(place: Place) -> None:
    reader = place.watched()
    end = place.run("sh", "-c", "sleep 600 & sleep 600", timeout_seconds=0.1)

    assert (end.timed_out, end.exit_code, end.signal) == (True, None, signal.SIGTERM)
    assert rest(reader) == b""
    assert not end.left_running


FLOOD = "os.write(2, bytes(200))"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_an_output_beyond_its_bound_stops_it(stream: str, place: Place) -> None:
    number = {"stdout": 1, "stderr": 2}[stream]
    end = place.python(
        f"import os, signal; os.write({number}, bytes(200)); signal.pause()",
        **{f"{stream}_bytes": 199},
    )

    assert (end.too_large, end.signal, end.timed_out) == (stream, signal.SIGTERM, False)


def test_an_output_beyond_its_bound_is_told_of_one_that_has_ended(place: Place) -> None:
    end = place.python("print('x' * 200)", stdout_bytes=200)

    assert (end.exit_code, end.too_large) == (0, "stdout")
    assert len(read_head(str(place.stdout), 200)) == 200


def test_an_output_that_is_removed_has_no_size(place: Place) -> None:
    end = place.run("rm", str(place.stdout), stdout_bytes=0)

    assert (end.exit_code, end.too_large) == (0, None)


def test_it_is_stopped_politely(place: Place) -> None:
    code = f"""
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(4)))
{FLOOD}
signal.pause()
"""
    end = place.python(code, stderr_bytes=100, grace_seconds=3600)

    assert (end.exit_code, place.stdout.read_text()) == (4, "saved\n")


def test_one_that_is_frozen_can_be_polite_as_well(place: Place) -> None:
    code = f"""
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
{FLOOD}
os.kill(os.getpid(), signal.SIGSTOP)
signal.pause()
"""
    end = place.python(code, stderr_bytes=100, grace_seconds=3600)

    assert end.exit_code == 4


def test_who_does_not_listen_is_killed(place: Place) -> None:
    code = f"""
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
{FLOOD}
signal.pause()
"""
    end = place.python(code, stderr_bytes=100, grace_seconds=0)

    assert (end.exit_code, end.signal) == (None, signal.SIGKILL)


def test_who_goes_on_flooding_the_disk_is_given_no_grace(place: Place) -> None:
    code = f"""
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os.write(2, bytes(200)))
{FLOOD}
while True: signal.pause()
"""
    end = place.python(code, stderr_bytes=100, grace_seconds=3600)

    assert end.signal == signal.SIGKILL


DAEMON = "subprocess.Popen(['sh', '-c', '{}'], env={}, start_new_session=True)"


@pytest.mark.parametrize("variables", ["os.environ", "{}"])
def test_a_descendant_that_left_the_group_ends_too(variables: str, place: Place) -> None:
    """Known by its mark in the environment, or by its parent."""
    reader = place.watched()
    daemon = DAEMON.format("trap true TERM; while :; do sleep 600; done", variables)
    code = f"import os, signal, subprocess; {daemon}; {FLOOD}; signal.pause()"
    end = place.python(code, stderr_bytes=100, grace_seconds=0)

    assert rest(reader) == b""
    assert not end.left_running


@pytest.mark.parametrize("session", [True, False])
def test_a_descendant_that_outlives_it_is_told_and_left_alone(session: bool, place: Place) -> None:
    gate = place.folder / "gate"
    os.mkfifo(gate)
    code = f"""
import subprocess, sys
child = subprocess.Popen(
    ["sh", "-c", "read -r word <{gate}; echo late"], start_new_session={session}
)
print(child.pid, file=sys.stderr)
"""
    reader = place.watched()
    end = place.python(code)
    gate.write_text("go\n")

    assert end.exit_code == 0
    assert list(end.left_running) == [int(place.stderr.read_text())]
    assert rest(reader) == b"late\n"


FAILS = {
    "exit code": "sys.exit(3)",
    "signal": "os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("how", FAILS)
@pytest.mark.parametrize("session", [True, False])
@pytest.mark.parametrize("listens", [True, False])
def test_what_a_failed_one_leaves_is_ended(
    listens: bool, session: bool, how: str, place: Place
) -> None:
    """The next try must not work beside it."""
    reader = place.watched()
    trap = "" if listens else "trap true TERM; "
    code = f"""
import os, signal, subprocess, sys
subprocess.Popen(
    ["sh", "-c", "{trap}echo up; while :; do sleep 600; done"], start_new_session={session}
)
os.read(os.open({str(place.folder / "up")!r}, os.O_RDONLY), 1)
{FAILS[how]}
"""
    os.mkfifo(place.folder / "up")
    thread = threading.Thread(target=until_it_is_up, args=(reader, place.folder / "up"))
    thread.start()
    end = place.python(code, grace_seconds=3600 if listens else 0)
    thread.join()

    assert rest(reader) == b""
    assert (end.left_running, end.timed_out, end.too_large) == ((), False, None)
    expected = (3, None) if how == "exit code" else (None, signal.SIGKILL)
    assert (end.exit_code, end.signal) == expected


def until_it_is_up(reader: int, go: Path) -> None:
    """Let an adapter go on once its daemon has set its traps, and said so."""
    select.select([reader], [], [])
    assert os.read(reader, 3) == b"up\n"
    go.write_text("!")


def test_one_that_failed_and_left_nothing_is_not_waited_for(place: Place) -> None:
    end = place.run("sh", "-c", "exit 3", grace_seconds=3600)

    assert (end.exit_code, end.left_running) == (3, ())


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_to_the_dispatcher_is_passed_on_and_the_end_awaited(
    name: str, place: Place
) -> None:
    gate = place.folder / "gate"
    os.mkfifo(gate)
    adapter = f"trap 'kill $!; exit 5' {name[3:]}; echo >gate; while :; do sleep 600 & wait; done"
    with place.dispatcher(adapter) as dispatcher:
        gate.read_text()
        dispatcher.send_signal(getattr(signal, name))
        told, _ = dispatcher.communicate()

    assert json.loads(told) == [5, None, [name]]


def test_a_signal_that_comes_before_it_runs_ends_it_unrun(place: Place) -> None:
    with place.dispatcher("touch made", "os.kill(os.getpid(), signal.SIGTERM)") as dispatcher:
        told, _ = dispatcher.communicate()

    assert json.loads(told) == [None, signal.SIGTERM, ["SIGTERM"]]
    assert not (place.folder / "made").exists()


def test_the_handlers_of_the_caller_are_his_again(place: Place) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    place.run("true")

    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_caller_that_ignores_the_end_of_children_is_told_it_nevertheless(place: Place) -> None:
    former = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        end = place.run("sh", "-c", "exit 3")
    finally:
        signal.signal(signal.SIGCHLD, former)

    assert end.exit_code == 3


def test_it_can_be_run_from_any_thread(place: Place) -> None:
    ends: list[AdapterEnd] = []
    thread = threading.Thread(target=lambda: ends.append(place.run("sh", "-c", "exit 3")))
    thread.start()
    thread.join()

    assert [end.exit_code for end in ends] == [3]


def test_its_end_is_seen_where_the_kernel_has_no_pidfd(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.delattr(os, "waitid", raising=False)

    assert place.run("sh", "-c", "exit 3").exit_code == 3


def test_nothing_stays_open(place: Place, no_open_files_left: None) -> None:
    assert place.run("true").exit_code == 0
