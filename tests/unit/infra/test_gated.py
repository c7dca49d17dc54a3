"""A gated program runs none of its instructions before the word, and then as if run directly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tachograph.infra.gated import Gated, find_program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PYTHON = sys.executable


def gated(*argv: str, environment: Mapping[str, str] = os.environ, **streams: int) -> Gated:
    return Gated(argv, environment, streams={streams["out"]: 1} if streams else {}, own_group=True)


def code_of(child: Gated) -> int:
    """Wait for the end, and return the exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])


def printed(*argv: str, environment: Mapping[str, str] = os.environ) -> bytes:
    """Return what a program prints."""
    ours, its = os.pipe()
    child = gated(*argv, environment=environment, out=its)
    os.close(its)
    child.let_go()
    with os.fdopen(ours, "rb") as file:
        text = file.read()
    assert code_of(child) == 0
    return text


def test_it_waits_for_the_word(tmp_path: Path, no_open_files_left: None) -> None:
    made = tmp_path / "made"
    child = gated("touch", str(made))
    before = made.exists()
    child.let_go()
    code = code_of(child)

    assert (before, code, made.exists()) == (False, 0, True)


def test_it_never_runs_when_it_is_given_up(tmp_path: Path, no_open_files_left: None) -> None:
    child = gated("touch", str(tmp_path / "made"))
    child.give_up()

    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ChildProcessError):  # it has been reaped
        os.waitpid(child.pid, 0)


def test_it_never_runs_when_whoever_would_say_the_word_is_killed(tmp_path: Path) -> None:
    """The output ends when the child, which holds it too, has ended."""
    code = f"""
import os, signal
from tachograph.infra.gated import Gated
Gated(["touch", {str(tmp_path / "made")!r}], os.environ, streams={{}}, own_group=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGKILL, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_it_before_the_word(number: int, tmp_path: Path) -> None:
    """By default, whatever functions this process calls for a signal."""
    called: list[int] = []
    former = [
        (each, signal.signal(each, lambda got, _frame: called.append(got)))
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    ]
    ours, its = os.pipe()
    child = gated("touch", str(tmp_path / "made"), out=its)
    os.close(its)
    os.killpg(child.pid, number)
    rest = os.read(ours, 1)  # it ends when the child does
    os.close(ours)
    child.let_go()
    code = code_of(child)
    for each, handler in former:
        signal.signal(each, handler)

    assert (rest, code, called, list(tmp_path.iterdir())) == (b"", -number, [], [])


def test_its_environment_is_what_it_is_given() -> None:
    """A shell would drop the second name, and add names of its own."""
    given = {"A": "1", "BASH_FUNC_f%%": "() { :; }", "odd-name.x": "\udcff", "PATH": os.defpath}

    assert sorted(printed("env", "-0", environment=given).split(b"\0")) == sorted(
        [b"", *(os.fsencode(f"{name}={value}") for name, value in given.items())]
    )


def test_its_arguments_are_what_they_are() -> None:
    words = ["", " ", "$HOME", "`x`", "-n", "a\nb", "*", "\udcff"]
    show = "import json, sys; print(json.dumps(sys.argv[1:]))"

    assert json.loads(printed(PYTHON, "-c", show, *words)) == words


def test_it_keeps_the_name_it_was_called_by() -> None:
    assert printed("sh", "-c", "echo $0") == b"sh\n"


SIGNALS = """
import signal
print([number for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN])
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
"""


def test_its_signals_are_those_of_a_program_run_directly() -> None:
    directly = subprocess.run([PYTHON, "-c", SIGNALS], capture_output=True)

    assert printed(PYTHON, "-c", SIGNALS) == directly.stdout


def test_what_is_ignored_is_ignored_by_it_too() -> None:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    told = printed("sh", "-c", "kill -HUP $$; echo lives")
    signal.signal(signal.SIGHUP, former)

    assert told == b"lives\n"


@pytest.mark.parametrize("own", [True, False])
def test_it_leads_a_group_of_its_own_or_stays_in_ours(own: bool) -> None:
    child = Gated(["true"], os.environ, streams={}, own_group=own)
    group = os.getpgid(child.pid)
    child.give_up()

    assert group == (child.pid if own else os.getpgrp())


def _missing(folder: Path) -> str:
    return str(folder / "none")


def _plain(folder: Path) -> str:
    (folder / "plain").touch()
    return str(folder / "plain")


def _folder(folder: Path) -> str:
    return str(folder)


def _below_a_file(folder: Path) -> str:
    return f"{_plain(folder)}/x"


@pytest.mark.parametrize("make", [_missing, _plain, _folder, _below_a_file])
def test_a_program_that_cannot_be_run_is_told_as_by_a_direct_start(
    make: Callable[[Path], str], tmp_path: Path, no_open_files_left: None
) -> None:
    name = make(tmp_path)
    with pytest.raises(OSError) as directly:
        os.posix_spawnp(name, [name], os.environ)
    with pytest.raises(OSError) as told:
        gated(name)

    assert (type(told.value), told.value.errno) == (type(directly.value), directly.value.errno)
    assert told.value.filename == name


@pytest.mark.parametrize(
    ("text", "kind"), [("echo x", OSError), ("#!/no/such/interpreter", FileNotFoundError)]
)
def test_a_file_that_is_no_program_is_told_when_it_is_let_go(
    text: str, kind: type[OSError], tmp_path: Path, no_open_files_left: None
) -> None:
    script = tmp_path / "script"
    script.write_text(text)
    script.chmod(0o755)
    child = gated(str(script))

    with pytest.raises(kind) as told:
        child.let_go()
    assert told.value.filename == str(script)
    with pytest.raises(ChildProcessError):
        os.waitpid(child.pid, 0)


class TestFindProgram:
    def test_the_first_in_the_path_that_may_be_run_counts(self, tmp_path: Path) -> None:
        folders = [tmp_path / name for name in ("none", "plain", "first", "second")]
        for folder in folders[1:]:
            folder.mkdir()
            (folder / "tool").touch(0o755 if folder.name != "plain" else 0o644)
        path = os.pathsep.join(map(str, folders))

        assert find_program("tool", {"PATH": path}) == str(tmp_path / "first" / "tool")

    def test_one_that_may_not_be_run_is_told_when_there_is_no_other(self, tmp_path: Path) -> None:
        (tmp_path / "tool").touch()

        with pytest.raises(PermissionError):
            find_program("tool", {"PATH": f"{tmp_path}{os.pathsep}/no/such"})

    @pytest.mark.parametrize("name", ["", "no-such-program-here"])
    def test_one_that_is_nowhere_is_told(self, name: str) -> None:
        with pytest.raises(FileNotFoundError):
            find_program(name, os.environ)

    def test_without_a_path_the_usual_folders_count(self) -> None:
        assert find_program("sh", {}) in ("/bin/sh", "/usr/bin/sh")
