"""How a command ends when something goes wrong around it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from command_line import TACHO, here, tacho

from tachograph.cli import main

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


def test_alone_it_prints_help(capsys: Capture) -> None:
    done = here(capsys)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: tacho")


@pytest.mark.parametrize("group", ["run", "run phase"])
def test_a_group_alone_prints_its_help(group: str, capsys: Capture) -> None:
    done = here(capsys, *group.split())

    assert done.returncode == 0
    assert f"Usage: tacho {group}" in done.stdout


@pytest.mark.parametrize(
    ("words", "hint"), [("rum list", "'run'"), ("run strat", "'start'"), ("run exce", "'exec'")]
)
def test_an_unknown_command_names_the_near_ones(words: str, hint: str, capsys: Capture) -> None:
    done = here(capsys, *words.split())

    assert (done.returncode, done.stdout) == (2, "")
    assert hint in done.stderr


def test_the_version_is_printed(capsys: Capture) -> None:
    assert here(capsys, "--version").stdout.startswith("tachograph ")


@pytest.mark.parametrize(
    "line",
    ["--store {other} run list", "run --store {other} list", "run list --store {other}"],
)
def test_an_option_for_all_may_stand_anywhere(
    line: str, store_environment: Path, capsys: Capture, tmp_path: Path
) -> None:
    done = here(capsys, *line.format(other=tmp_path / "other").split(), "--json")

    assert json.loads(done.stderr)["error"] == "StoreNotFoundError"
    assert str(tmp_path / "other") in done.stderr


def test_the_last_of_two_stores_counts(capsys: Capture, tmp_path: Path) -> None:
    done = here(capsys, "--store", "first", "run", "list", "--store", str(tmp_path / "last"))

    assert "last" in done.stderr
    assert "first" not in done.stderr


def test_a_surprise_is_one_line_and_says_how_to_see_more(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise(*_arguments: object) -> int:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(main, "invoke", surprise)
    done = here(capsys, "run", "list")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "tacho: ZeroDivisionError: division by zero (unexpected; set TACHO_DEBUG=1 to see where)\n"
    )


def test_the_traceback_is_shown_where_it_is_asked_for(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, store_environment: Path
) -> None:
    monkeypatch.setenv("TACHO_DEBUG", "1")
    done = here(capsys, "run", "note", "x", "--run", "y")

    assert done.stderr.startswith("Traceback")
    assert done.returncode == 3


def test_ctrl_c_ends_a_command_with_one_line(run: str) -> None:
    """By the signal itself, which a shell shows as 130: so a loop around it ends as well."""
    with subprocess.Popen(
        [*TACHO, "run", "checkpoint", "--state", "@-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_until_it_reads(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    assert (process.returncode, out, err) == (-signal.SIGINT, "", "Interrupted.\n")


def wait_until_it_reads(process: subprocess.Popen[str]) -> None:
    """Write until the pipe is full and a bit more: then the reader has begun to read."""
    assert process.stdin is not None
    descriptor = process.stdin.fileno()
    os.set_blocking(descriptor, False)
    try:
        while os.write(descriptor, b" " * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(descriptor, True)
    os.write(descriptor, b" " * 4096)


def test_a_reader_that_goes_away_is_no_error(run: str, tmp_path: Path) -> None:
    """As with `tacho … | head -n 1`; the output is larger than a pipe takes."""
    path = tmp_path / "large.json"
    path.write_text(json.dumps(["x" * 100] * 5_000), encoding="utf-8")
    tacho("run", "checkpoint", "--state", f"@{path}")
    # Unbuffered, Python takes the part that was written for the whole.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [*TACHO, "run", "checkpoint", "--show"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(10) == '["xxxxxxxx'
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()

    assert (process.returncode, errors) == (128 + signal.SIGPIPE, "")


def test_what_is_registered_for_the_end_of_the_process_is_done() -> None:
    """`main` leaves without taking the interpreter apart."""
    code = (
        "import atexit; atexit.register(print, 'at exit');"
        "from tachograph.cli.main import main; main()"
    )
    done = subprocess.run([*TACHO[:2], code, "--version"], capture_output=True, text=True)

    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "at exit"


STORE_COMMANDS = [
    ("run", "list"),
    ("run", "start", "other", "--id", "other", "--unowned"),
    ("run", "exec", "--id", "exec", "--", "echo", "hello"),
    ("watchdog", "run", "--once"),
]
CLOSED = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("words", STORE_COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_a_closed_stream_is_no_error_and_no_file_of_the_store_takes_its_place(
    words: tuple[str, ...], closed: str, run: str
) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join([*TACHO, *words])} {closed}"], capture_output=True, text=True
    )

    assert (done.returncode, "Traceback" in done.stderr, "tacho: E" in done.stderr) == (
        0,
        False,
        False,
    )
    assert tacho("store", "verify").returncode == 0


def test_programs_that_are_started_get_a_stream_for_each_that_was_closed(run: str) -> None:
    """So that the first file that they open does not become their stdin."""
    command = [*TACHO, "run", "exec", "--", "sh", "-c", "cat; echo x >&2; ls /dev/null; exec 9<&0"]
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(command)} <&- 2>&-"], capture_output=True, text=True
    )

    assert (done.returncode, done.stdout) == (0, "/dev/null\n")


def test_an_error_is_an_exit_code_when_nobody_can_be_told(run: str) -> None:
    command = shlex.join([*TACHO, "run", "status", "none"])
    done = subprocess.run(["sh", "-c", f"{command} 2>&-"], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (3, "")


def in_a_deleted_folder(
    tmp_path: Path, *words: str, store: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `tacho` from a folder that is not there any more."""
    (tmp_path / "gone").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "TACHO_STORE"}
    python, *rest = TACHO
    command = [python, "-P", *rest, *words]  # as the installed script: no folder on the path
    return subprocess.run(
        ["sh", "-c", f'rmdir "$PWD" && {shlex.join(command)}'],
        cwd=tmp_path / "gone",
        env=environment if store is None else {**environment, "TACHO_STORE": store},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("words", STORE_COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_from_a_deleted_folder_an_absolute_store_is_found(
    words: tuple[str, ...], run: str, store_environment: Path, tmp_path: Path
) -> None:
    done = in_a_deleted_folder(tmp_path, *words, store=str(store_environment))

    assert (done.returncode, "deleted" in done.stderr) == (0, False)


def test_from_a_deleted_folder_the_store_of_the_option_is_found(
    run: str, store_environment: Path, tmp_path: Path
) -> None:
    done = in_a_deleted_folder(tmp_path, "run", "list", "--store", str(store_environment))

    assert (done.returncode, done.stdout.split("\n")[1][:3]) == (0, "job")


@pytest.mark.parametrize(
    "words", [*STORE_COMMANDS, ("run", "list", "--store", "relative")], ids=" ".join
)
def test_from_a_deleted_folder_it_says_what_to_do(words: tuple[str, ...], tmp_path: Path) -> None:
    done = in_a_deleted_folder(tmp_path, *words)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "tacho: The current folder was deleted, and this counts from it. Change to another one "
        "(cd); what only needs a store works with an absolute --store or TACHO_STORE.\n"
    )


def test_what_is_to_be_resumed_from_a_deleted_folder_is_refused(
    run: str, store_environment: Path, tmp_path: Path
) -> None:
    """Nothing could be started there."""
    words = ("run", "exec", "--auto-resume", "--", "touch", str(tmp_path / "made"))
    done = in_a_deleted_folder(tmp_path, *words, store=str(store_environment))

    assert (done.returncode, (tmp_path / "made").exists()) == (1, False)
    assert "The current folder was deleted" in done.stderr
