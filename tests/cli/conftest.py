"""Fixtures of the tests of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from command_line import here

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(
    store_environment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """Start a run, and name its attempt in the environment as an eval would."""
    run_id = here(capsys, "run", "start", "demo", "--id", "job").stdout.strip()
    monkeypatch.setenv("TACHO_RUN_ID", run_id)
    monkeypatch.setenv("TACHO_EPOCH", "1")
    return run_id
