"""Talk to the process that takes DBOS steps. Imports no DBOS."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

SCRIPT = Path(__file__).with_name("dbos_steps.py")


class StepProcess:
    """A DBOS workflow in a child process, for a `with` block."""

    def __init__(self, database: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(database)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._offsets = itertools.count()

    def __enter__(self) -> Self:
        """Wait until the workflow runs. Raises RuntimeError with what the child said."""
        if self._line() != "ready":
            _, errors = self._process.communicate()
            raise RuntimeError(errors.strip().splitlines()[-1] if errors else "DBOS gave up")
        return self

    def step(self) -> float:
        """Take one step and return the seconds that it took inside the workflow."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{next(self._offsets)}\n")
        self._process.stdin.flush()
        return float(self._line())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the workflow by ending its input."""
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()
