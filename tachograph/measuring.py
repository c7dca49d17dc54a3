"""Small measures of what a job makes: files, outputs, exceptions."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def measure(path: Path) -> tuple[int, str]:
    """Return a file's size in bytes and its SHA-256."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.hexdigest()


def count_items(output: Any) -> int:
    """Return how many usable items an output holds.

    >>> count_items([1, 2]), count_items("text"), count_items("  "), count_items(None)
    (2, 1, 0, 0)
    """
    if isinstance(output, list | tuple | dict | set | frozenset):
        return len(output)
    if isinstance(output, str):
        return int(bool(output.strip()))
    return int(output is not None)


def describe(error: BaseException) -> str:
    """Return an exception as one line of text.

    >>> describe(ValueError("odd"))
    'ValueError: odd'
    """
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
