"""Fixtures that every test may use. No test and no helper function lives here."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

# No deadline: the machine may be slow. The blob reproduces a failing example anywhere.
settings.register_profile("tachograph", deadline=None, print_blob=True)
settings.load_profile("tachograph")

CLEARED_PREFIXES = ("TACHO_", "HM_", "XDG_", "OPENCLAW_")
CLEARED = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES")


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that do not exist yet, one for each test that asks."""
    base = tmp_path_factory.mktemp("homes")
    return (base / str(number) for number in itertools.count(1))


@pytest.fixture(autouse=True)
def home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test, and processes it starts, an empty home and none of the caller's settings."""
    for name in list(os.environ):
        if name.startswith(CLEARED_PREFIXES) or name in CLEARED:
            monkeypatch.delenv(name)
    home = next(homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))  # the same on Windows
    return home


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Where a store may be made; nothing is there yet."""
    return tmp_path / "store"


@pytest.fixture
def store_environment(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name the temporary store in TACHO_STORE, for this process and its children."""
    monkeypatch.setenv("TACHO_STORE", str(store_path))
    return store_path


@pytest.fixture
def no_open_files_left() -> Iterator[None]:
    """Fail the test if it leaves a file descriptor open. Does nothing where /dev/fd is missing."""
    before = _open_files()
    yield
    left = _open_files() - before

    assert left == set(), "left open: (descriptor, device, inode)"


def _open_files() -> set[tuple[int, int, int]]:
    """Return each open descriptor with the device and inode it stands for."""
    open_files = set()
    for number in os.listdir("/dev/fd") if Path("/dev/fd").is_dir() else ():  # noqa: PTH208
        try:
            status = os.fstat(int(number))
        except OSError:
            continue  # the descriptor that listed the folder is closed again
        open_files.add((int(number), status.st_dev, status.st_ino))
    return open_files
