"""Fixtures of the tests of the drop-in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from workspaces import Bench, plain_python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tachograph.dropin.tasks import Tasks


@pytest.fixture
def empty(tmp_path: Path) -> Bench:
    """A workspace without scripts."""
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "AGENTS.md").touch()
    return Bench(root)


@pytest.fixture
def bench(empty: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A workspace with the scripts; `python3` has nothing but the standard library."""
    folder = plain_python(tmp_path / "bin")
    monkeypatch.setenv("PATH", os.pathsep.join((str(folder), os.environ["PATH"])))
    empty.install()
    return empty


@pytest.fixture
def tasks(empty: Bench) -> Iterator[Tasks]:
    """The tasks of a workspace, in this process."""
    tasks = empty.tasks()
    yield tasks
    tasks.services.close()
