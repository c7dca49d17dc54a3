"""What is fed is told from what is not, by what a process finds at its stdin."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = sys.executable
FED = "import sys; from tachograph.infra.feeding import is_fed; sys.exit(is_fed(0))"


def fed(script: str, folder: Path) -> bool:
    """Say what a process tells that a shell started with some stdin."""
    command = f"tell() {{ {PYTHON} -c '{FED}'; }}; {script}"
    return bool(subprocess.run(["sh", "-c", command], cwd=folder).returncode)


@pytest.mark.parametrize("script", ["printf x | tell", "tell <data"])
def test_data_from_a_pipe_or_a_file_is_fed(script: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")

    assert fed(script, tmp_path)


def test_a_pipe_that_may_still_bring_something_is_fed() -> None:
    ours, its = os.pipe()
    done = subprocess.run([PYTHON, "-c", FED], stdin=ours)
    os.close(ours)
    os.close(its)

    assert done.returncode == 1


def test_a_socket_is_fed() -> None:
    ours, other = socket.socketpair()
    with ours, other:
        done = subprocess.run([PYTHON, "-c", FED], stdin=ours.fileno())

    assert done.returncode == 1


@pytest.mark.parametrize(
    "script", ["tell </dev/null", "tell <&-", "tell <empty", "(cat >/dev/null; tell) <data"]
)
def test_nothing_that_is_there_to_be_read_is_not_fed(script: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "data").write_text("x")

    assert not fed(script, tmp_path)


def test_a_pipe_whose_writer_has_closed_it_empty_is_not_fed() -> None:
    """As cron leaves it."""
    ours, its = os.pipe()
    os.close(its)
    done = subprocess.run([PYTHON, "-c", FED], stdin=ours)
    os.close(ours)

    assert done.returncode == 0


def test_a_terminal_is_not_fed() -> None:
    terminal, other = pty.openpty()
    done = subprocess.run([PYTHON, "-c", FED], stdin=other)
    os.close(terminal)
    os.close(other)

    assert done.returncode == 0
