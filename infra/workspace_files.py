"""Files of a workspace that are not ours alone: replaced whole, with their mode, through links."""

from __future__ import annotations

import contextlib
import stat
from typing import TYPE_CHECKING

from tachograph.infra.writing import replace_file

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = 0o644
PROGRAM = 0o755


def read(path: Path) -> bytes | None:
    """Return what is in a file, None when there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def replace(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace a file, or make it with its folders; durable on return, never half there.

    A link stays one, and the file that it leads to is replaced. Without a `mode`, the file keeps
    the one it has.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(str(path), data, mode=_mode_of(path) if mode is None else mode)


def remove(path: Path) -> None:
    """Remove a file, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def remove_empty(folder: Path) -> None:
    """Remove a folder when nothing is in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def _mode_of(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return PLAIN
