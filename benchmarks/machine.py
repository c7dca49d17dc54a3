"""What a reader must know of the machine to judge numbers. Tells nothing of whose machine it is."""

from __future__ import annotations

import os
import platform
import statistics
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any

from harness import timed

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = (
    "tachograph",
    "lmdb",
    "msgpack",
    "eventsourcing",
    "dbos",
    "huey",
    "persist-queue",
    "litequeue",
    "SQLAlchemy",
)


def facts(folder: Path) -> dict[str, Any]:
    """Return facts about this machine and the file system that holds a folder."""
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: _version(name) for name in PACKAGES},
        "file_system": file_system(folder),
        "sync_ms": round(sync_milliseconds(folder), 3),
        "load": _load(),
    }


def file_system(folder: Path) -> str:
    """Return the type of the file system that holds a folder, `unknown` where nothing says so."""
    if not sys.platform.startswith("linux"):
        return "unknown"
    with open("/proc/mounts", encoding="utf-8") as mounts:  # noqa: PTH123
        points = [line.split()[1:3] for line in mounts]
    here = f"{folder.resolve()}/"
    above = [point for point in points if here.startswith(point[0].rstrip("/") + "/")]
    # The last of equal ones hides the others.
    return max(enumerate(above), key=lambda each: (len(each[1][0]), each[0]))[1][1]


def sync_milliseconds(folder: Path, count: int = 100) -> float:
    """Return how long the disk takes to keep one page: the median of some `fsync` calls."""
    path = folder / "sync"
    with path.open("wb", buffering=0) as file:

        def write() -> None:
            file.seek(0)
            file.write(bytes(4096))
            os.fsync(file.fileno())

        seconds = statistics.median(timed(write) for _ in range(count))
    path.unlink()
    return 1000 * seconds


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _load() -> float | None:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
