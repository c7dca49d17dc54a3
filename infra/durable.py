"""Bring files and folders to the disk itself. Never writes, renames or removes any."""

from __future__ import annotations

import os

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)
"""How macOS syncs in earnest: its fsync() leaves data in the cache of the disk."""


def sync_file(descriptor: int) -> None:
    """Sync an open file. After this returns its content survives a power cut."""
    if fcntl is not None and _FULL_SYNC is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
        except OSError:  # not every file system has it
            pass
    os.fsync(descriptor)


def sync_path(path: str) -> None:
    """Sync a file that nobody here has open."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: str) -> None:
    """Sync a folder: what was made, renamed or removed in it is so after a power cut.

    Does nothing on Windows, which has no handle for a folder and orders such changes itself,
    and for a folder that may only be searched.
    """
    if os.name == "nt":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)
