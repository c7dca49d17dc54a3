"""Which files and modules the project has. Reads only."""

from __future__ import annotations

import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINKED = ("domain", "projections", "infra", "cli")


@cache
def configuration() -> dict[str, Any]:
    """Return the content of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@cache
def modules() -> dict[str, Path]:
    """Return every module of the package by its import name, with its real file."""
    found: dict[str, Path] = {}
    for package, folder in configuration()["tool"]["setuptools"]["package-dir"].items():
        for path in (ROOT / folder).rglob("*.py"):
            if not _through_a_link(path):
                parts = path.relative_to(ROOT / folder).with_suffix("").parts
                found[".".join((package, *parts)).removesuffix(".__init__")] = path
    return dict(sorted(found.items()))


def _through_a_link(path: Path) -> bool:
    return any(parent.is_symlink() for parent in path.parents if parent != ROOT)


@cache
def shared_files() -> tuple[Path, ...]:
    """Return every file that a clone would get: known to git, or new and not ignored."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (ROOT / name for name in listed.split("\0") if name)
    return tuple(path for path in paths if path.is_symlink() or path.is_file())
