"""Look at the files that a run was to make: are they there, written anew, and do they say anything.

Newly written means other than when they were declared; clocks decide nothing.
"""

from __future__ import annotations

from pathlib import Path

from tachograph.domain import checks
from tachograph.domain.blank import is_placeholder
from tachograph.domain.expectations import Expectations
from tachograph.domain.facts import Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Trace = list[int] | None

SMALL_FILE_BYTES = 256
"""Size up to which a file is looked into: a placeholder is short."""


def with_files(known: Mapping[str, Any] | None, paths: Sequence[str]) -> Expectations:
    """Return the expectations of a run with these files among them, as they are now.

    A file that was declared already keeps its first trace: what an earlier attempt has written
    counts. Raises InvalidValueError for an empty path.
    """
    expectations = Expectations.from_fields(known)
    for path in paths:
        checks.text("expected file", path)
        absolute = str(Path(path).absolute())
        if absolute not in expectations.files:
            expectations.files.append(absolute)
            expectations.traces[absolute] = trace(absolute)
    return expectations


def problems(expectations: Expectations) -> dict[str, str]:
    """Return what is wrong with each expected file that is not as expected."""
    found: dict[str, str] = {}
    for path in expectations.files:
        problem = _problem(path, expectations.traces.get(path))
        if problem is not None:
            found[path] = problem
    return found


def facts_of_files(known: Mapping[str, Any] | None) -> Facts:
    """Return how many files a run was to make, and how many are as expected, at this moment."""
    expectations = Expectations.from_fields(known)
    if not expectations.files:
        return Facts()
    expected = len(expectations.files)
    return Facts(files_expected=expected, files_present=expected - len(problems(expectations)))


def trace(path: str) -> Trace:
    """Return what changes when a file is written; None when there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino]


def _problem(path: str, before: Trace) -> str | None:
    now = trace(path)
    if now is None:
        return "was not made"
    if not now[0]:
        return "is empty"
    if _says_nothing(path, now[0]):
        return "holds nothing but blanks, or a placeholder"
    return "was not written anew" if now == before else None


def _says_nothing(path: str, size: int) -> bool:
    if size > SMALL_FILE_BYTES:
        return False
    try:
        return is_placeholder(Path(path).read_bytes())
    except OSError:  # it cannot be read here, which says nothing about what is in it
        return False
