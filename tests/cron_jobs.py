"""Cron lines in processes of their own, and what they leave behind. Holds no test."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from command_line import TACHO

if TYPE_CHECKING:
    from collections.abc import Mapping

PYTHON, FLAG, CODE = TACHO
FUNCTION = f"tacho() {{ {PYTHON} {FLAG} '{CODE}' \"$@\"; }}\n"
"""Makes `tacho` this checkout's in a shell script."""


def line(
    *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None, job: str = "job"
) -> subprocess.CompletedProcess[str]:
    """Run a cron line to its end."""
    return subprocess.run(
        [*TACHO, "cron", "exec", "--job", job, *arguments],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def shell(script: str) -> tuple[str, ...]:
    """Return the words that run a script in which `tacho` is this checkout's."""
    return "--", "sh", "-c", FUNCTION + script


class Traces:
    """What the only run of a job in a folder has left."""

    def __init__(self, root: Path, job: str = "job") -> None:
        (self.exit_path,) = root.glob(f"{job}-*.exit.txt")
        self.stem = self.exit_path.name.removesuffix(".exit.txt")
        self.run_id = self.stem.removeprefix(f"{job}-")
        self.day = root / self.run_id[:8]
        self.guard = root / "guard" / f"{job}.ms"
        self.log_path = root / f"{self.stem}.log"

    @property
    def rows(self) -> list[str]:
        """The ledger without its times."""
        lines = self.exit_path.read_text().splitlines()
        return [each.partition(" ")[2] for each in lines]

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def json(self, kind: str) -> dict[str, Any]:
        """Return `summary` or `validation`."""
        found: dict[str, Any] = json.loads((self.day / f"{self.stem}.{kind}.json").read_text())
        return found

    @property
    def validations(self) -> int:
        """How often the run was validated, by every trace that says so."""
        in_ledger = sum(row.startswith("validate-cron-exit ") for row in self.rows)
        in_log = self.log.count("--- validate-cron-exit ---\n")
        assert in_ledger == in_log
        return in_ledger
