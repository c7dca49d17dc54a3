"""Run the programs that timers are installed with, found on a given PATH. Waits for each."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

from tachograph.domain.errors import TimerCommandError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def find(name: str, environment: Mapping[str, str]) -> str | None:
    """Return the path of a program, None when there is none on the PATH of the variables."""
    return shutil.which(name, path=environment.get("PATH", os.defpath))


def run(
    command: Sequence[str], environment: Mapping[str, str], given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a program of the given PATH, whose messages are not translated."""
    program = find(command[0], environment)
    if program is None:
        raise TimerCommandError(shlex.join(command), 127, f"there is no program {command[0]}")
    return subprocess.run(
        [program, *command[1:]],
        env={**environment, "LC_ALL": "C"},
        input=given,
        capture_output=True,
        check=False,
    )


def must(command: Sequence[str], environment: Mapping[str, str], given: bytes = b"") -> None:
    """Run a program. Raises TimerCommandError unless its exit code is 0."""
    done = run(command, environment, given)
    if done.returncode:
        raise TimerCommandError(shlex.join(command), done.returncode, said(done))


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what an ended program had to say, on one line."""
    text = (done.stderr or done.stdout).decode("utf-8", "replace")
    return " ".join(text.split()) or "no message"
