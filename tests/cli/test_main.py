"""How a command ends when something goes wrong around it."""

from __future__ import annotations

import json
import os
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
