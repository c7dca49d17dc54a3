"""Read values out of the JSON that another tool has written: what cannot be is named. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tachograph.domain.checkpoint_shapes import MOST_UNITS
from tachograph.domain.records import _Fields

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, TypeGuard

    class FileRead(Protocol):
        """A file as it was read; `data` is None, and `problem` says why, where that failed."""

        path: str
        data: bytes | None
        problem: str | None
        sha256: str


class Problem(_Fields):
    """What is wrong with a file."""

    __slots__ = ("path", "text")

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text


class Unusable(Exception):  # noqa: N818  # never leaves an import
    """A file cannot be used; the text says why."""


def usable(file: FileRead, fault: Callable[[Any], str | None] = lambda _value: None) -> Any:
    """Return the value of a JSON file. Raises Unusable, saying what is wrong with it."""
    if file.data is None:
        raise Unusable(f"it cannot be read: {file.problem}")
    value = parse_json(file.data)
    found = fault(value)
    if found is not None:
        raise Unusable(found)
    return value


def parse_json(data: bytes) -> Any:
    """Return the value of a JSON file. Raises Unusable, saying what is wrong with it."""
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Unusable(f"it is not UTF-8 ({error.reason})") from error
    except ValueError as error:
        said = "it is empty" if not data.strip() else f"it is torn, or no JSON ({error})"
        raise Unusable(said) from error
    except RecursionError as error:
        raise Unusable("it is nested too deeply") from error


def moment_us(text: object) -> int | None:
    """Return the time of an ISO 8601 text, microseconds since 1970; None for anything else.

    >>> moment_us("2024-05-08T02:15:30.250Z"), moment_us("soon"), moment_us(None)
    (1715134530250000, None, None)
    """
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        time_us = round(aware.timestamp() * 1_000_000)
    except (ValueError, OverflowError, OSError):
        return None
    return time_us if time_us >= 0 else None


def is_count(value: Any) -> TypeGuard[int]:
    """Say whether a value is a whole number of 0 or more, and no greater than JSON's are exact."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_UNITS


def text_or_none(value: Any) -> str | None:
    """Return a text that says something, None for anything else."""
    return value if isinstance(value, str) and value.strip() else None
