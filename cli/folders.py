"""Folders that a person names, and paths that one reads. Makes none."""

from __future__ import annotations

import os

from tachograph.cli.options import UsageError


def existing(text: str) -> str:
    """Return the path of a folder that is there, `~` resolved. Raises UsageError."""
    path = os.path.expanduser(text)  # noqa: PTH111  # pathlib costs 10 ms
    if not os.path.isdir(path):  # noqa: PTH112
        raise UsageError(f"There is no folder {path}. Name one that is there.")
    return path


def short(path: str) -> str:
    """Return a path as a person would type it here: below this folder without it."""
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:  # it was deleted
        return path
    return path[len(here) + 1 :] if path.startswith(here + os.sep) else path
