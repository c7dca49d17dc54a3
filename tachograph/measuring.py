"""Small measures of what a job makes: files, outputs, exceptions."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from tachograph.domain.blank import is_blank, is_placeholder, says_nothing
from tachograph.domain.errors import InvalidValueError

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from pathlib import Path


def measure(path: Path) -> tuple[int, str]:
    """Return a file's size in bytes and its SHA-256."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.hexdigest()


def count_items(output: Any) -> int:
    """Return how many usable items an output holds; a blank or a placeholder is none.

    >>> count_items([1, " "]), count_items("text"), count_items("(no output)"), count_items(None)
    (1, 1, 0, 0)
    """
    if isinstance(output, dict):
        return 0 if says_nothing(output) else len(output)
    if isinstance(output, list | tuple | set | frozenset):
        return sum(not (item is None or is_placeholder(item)) for item in output)
    return int(not is_blank(output))


def microseconds(what: str, time: datetime | timedelta | float, now_us: int) -> int:
    """Return a time, or a length of time from now, in microseconds since 1970 in UTC.

    Raises InvalidValueError for a datetime without a time zone, and for what is no time.
    """
    from datetime import UTC, datetime, timedelta

    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise InvalidValueError(what, time.isoformat(), "give it a time zone")
        return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if isinstance(time, timedelta):
        return now_us + time // timedelta(microseconds=1)
    is_number = isinstance(time, int | float) and not isinstance(time, bool)
    if not is_number or time - time != 0:  # infinite, or NaN
        raise InvalidValueError(what, time, "give a datetime with a time zone, or seconds from now")
    return now_us + round(time * 1_000_000)


def describe(error: BaseException) -> str:
    """Return an exception as one line of text.

    >>> describe(ValueError("odd"))
    'ValueError: odd'
    """
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
