"""Another Python process that a test talks to by lines. Ends with its `with` block."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

PREAMBLE = """
import os, signal, sys, threading
from tachograph.domain.errors import *
from tachograph.domain.records import Head, NewRecord, SnapshotRecord
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog

def say(*words): print(*words, flush=True)
def hear(): return sys.stdin.readline().strip()
def new(stream, version, body=b"", topic="run.created"):
    return NewRecord(stream, version, topic, 0, body)

folder = sys.argv[1]
"""


class OtherProcess:
    """Runs a script that may use `say`, `hear`, `new` and the first argument as `folder`."""

    def __init__(self, script: str, folder: Path) -> None:
        command = [sys.executable, "-c", PREAMBLE + script, str(folder)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        return self._process.pid

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        """Return the next line; what the process wrote about its end if there is none."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return line.rstrip("\n") if line else self.errors()

    def ask(self, line: str) -> str:
        self.say(line)
        return self.hear()

    def kill(self) -> None:
        """End the process as `kill -9` does, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def rest(self) -> list[str]:
        """Return the whole lines that are left in the output of an ended process."""
        assert self._process.stdout is not None
        return [line for line in self._process.stdout.read().split("\n")[:-1] if line]

    def end(self) -> tuple[int, str]:
        """Close its input and return its exit status and the rest of its output."""
        out, _ = self._process.communicate()
        return self._process.returncode, out

    def errors(self) -> str:
        self._process.wait()
        assert self._process.stderr is not None
        return f"exit status {self._process.returncode}: {self._process.stderr.read()}"


def run(script: str, folder: Path) -> str:
    """Run a script to its end and return what it said, or how it failed."""
    command = [sys.executable, "-c", PREAMBLE + script, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return f"exit status {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout.rstrip("\n")
