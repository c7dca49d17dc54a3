"""Fixtures of the tests of imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "cron-logs"
    folder.mkdir()
    return folder
