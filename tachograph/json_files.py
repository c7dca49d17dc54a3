"""Values as the original writes its JSON files, and back. Writes none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tachograph.domain.jsonable import jsonable

if TYPE_CHECKING:
    from typing import Any


def parsed(data: bytes | None) -> Any:
    """Return the value of JSON, None for what is none."""
    if data is None:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def to_text(value: Any) -> bytes:
    """Return a value as the original writes JSON files: two spaces, and a newline at the end."""
    text = json.dumps(jsonable(value), ensure_ascii=False, indent=2, allow_nan=False)
    return (text + "\n").encode("utf-8", "backslashreplace")


def to_line(value: Any) -> bytes:
    """Return a value as a line of `events.jsonl`."""
    text = json.dumps(jsonable(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return (text + "\n").encode("utf-8", "backslashreplace")
