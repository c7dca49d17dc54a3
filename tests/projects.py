"""Projects with maintenance steps, for tests that run them as real processes. Holds no test."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from command_line import TACHO

from tachograph.bootstrap import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tachograph.domain.run import Run


class Project:
    """A folder with a tachograph.toml."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "tachograph.toml"
        self.steps: list[str] = []
        self.head = '[maintenance]\ncooldown = "0s"\n'
        self.tail = ""

    def step(self, name: str, script: str | None = "true", **named: Any) -> Project:
        """Declare a step that runs a line of sh; `tacho` is this checkout's there."""
        given: dict[str, Any] = {"name": name, "tier": "nightly", **named}
        if script is not None:
            python, flag, code = TACHO
            function = f"tacho() {{ {python} {flag} '{code}' \"$@\"; }}; "
            given["command"] = ["/bin/sh", "-c", function + script]
        self.steps.append("[[maintenance.steps]]\n" + toml(given))
        return self.write()

    def write(self) -> Project:
        """Write the file."""
        self.path.write_text("\n".join([self.head, *self.steps, self.tail]), encoding="utf-8")
        return self


def toml(values: Mapping[str, Any]) -> str:
    """Return values as lines of TOML."""
    return "".join(f"{name} = {_value(value)}\n" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


def runs(store: Path, command: str | None = None) -> list[Run]:
    """Return the runs of a store, in the order of their creation."""
    services = open_store(str(store), read_only=True)
    try:
        records = services.log.read(topics=["run.created"])
        found = [services.repository.get(str(record.stream)) for record in records]
    finally:
        services.close()
    return [run for run in found if run is not None and command in (None, run.command)]


def orchestrators(store: Path) -> list[Run]:
    """Return the orchestrator runs of a store, in the order of their creation."""
    return [run for run in runs(store) if run.maintenance is not None]


def this_python() -> str:
    """Return the interpreter, quoted for sh."""
    return f"'{sys.executable}'"


def clean_environment(**more: str) -> dict[str, str]:
    """Return the variables of this process without those of a harness."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HM_")}
    return {**kept, **more}
