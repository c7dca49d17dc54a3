"""Import a tree as a user does, and look at what came of it. Holds no test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from command_line import here

from tachograph.bootstrap import open_store
from tachograph.cli.import_shapes import IMPORTS
from tachograph.domain.run import Run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    Fields = dict[str, Any]
    Capture = pytest.CaptureFixture[str]


def importing(
    capsys: Capture, tree: Path, *options: str, code: int = 0, apply: bool = True
) -> list[Fields]:
    """Import a tree and return what came of each entry."""
    asked = ["--apply"] if apply else []
    done = here(capsys, "run", "import", tree, "--json", *asked, *options)
    assert done.returncode == code, done.stdout + done.stderr
    IMPORTS["run-import"].validate_json(done.stdout)
    entries: list[Fields] = json.loads(done.stdout)["entries"]
    return entries


def status(capsys: Capture, run_id: str) -> Fields:
    done = here(capsys, "run", "status", run_id, "--json")
    found: Fields = json.loads(done.stdout)
    return found


def run_of(run_id: str) -> Run:
    services = open_store(read_only=True)
    try:
        run = services.repository.get(run_id)
    finally:
        services.close()
    assert run is not None
    return run


def everything() -> list[tuple[str, int]]:
    services = open_store(read_only=True)
    try:
        return [(str(each.stream), each.version) for each in services.log.read()]
    finally:
        services.close()


def texts(entry: Fields) -> str:
    return "\n".join(problem["text"] for problem in entry["problems"])
