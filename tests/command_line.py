"""Run `tacho` as a user does, and read back what it recorded. Holds no test."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tachograph.bootstrap import open_store
from tachograph.cli.main import execute

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

TACHO = (sys.executable, "-c", "from tachograph.cli.main import main; main()")
"""The command in a process of its own; works where no script is installed."""

Done = subprocess.CompletedProcess[str]


def tacho(
    *arguments: str | Path,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
) -> Done:
    """Run `tacho` in a process of its own."""
    return subprocess.run(
        [*TACHO, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        input=stdin,
        capture_output=True,
        text=True,
    )


def here(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Done:
    """Run `tacho` in this process, which is fast."""
    capsys.readouterr()
    code = execute([str(argument) for argument in arguments])
    written = capsys.readouterr()
    return Done(arguments, code, written.out, written.err)


def bash(script: str, cwd: Path, *arguments: str) -> list[str]:
    """Return the command that runs a bash script in which `tacho` is this checkout's."""
    python, flag, code = TACHO
    function = f"tacho() {{ {python} {flag} '{code}' \"$@\"; }}\n"
    path = cwd / "job.sh"
    path.write_text(function + script, encoding="utf-8")
    return ["bash", str(path), *arguments]


def history(run_id: str, store: Path | str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Return the topic and the fields of each event of a run, without times and causes."""
    services = open_store(None if store is None else str(store), read_only=True)
    try:
        records = services.log.read_stream(run_id)
        events = [(record.topic, services.repository.fields(record)) for record in records]
    finally:
        services.close()
    left_out = ("time_us", "by", "originator_id", "originator_version")
    return [
        (topic, {name: value for name, value in fields.items() if name not in left_out})
        for topic, fields in events
    ]


def topics(run_id: str, store: Path | str | None = None) -> list[str]:
    """Return the topics of a run's events without their common beginning."""
    return [topic.removeprefix("run.") for topic, _ in history(run_id, store)]
