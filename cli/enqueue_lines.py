"""Jobs as they are written: on a command line, or one JSON object a line. Records nothing."""

from __future__ import annotations

from tachograph.cli.options import UsageError
from tachograph.domain.errors import InvalidTimeError, InvalidValueError, TachographError
from tachograph.queues.enqueueing import Enqueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Check = Callable[[Enqueue], None]

NAMES = {
    "type": "kind",
    "payload": "payload",
    "key": "key",
    "keyWindow": "key_window_us",
    "priority": "priority",
    "at": "available_us",
    "in": "available_us",
    "maxAttempts": "max_attempts",
    "concurrencyKey": "concurrency_key",
}
"""What a line may say, and which parameter of `Enqueue` it is."""


def wanted(queue: str, said: dict[str, Any], now_us: int) -> Enqueue:
    """Return the job that names of NAMES describe. Raises UsageError, and errors of values."""
    for name in said:
        if name not in NAMES:
            raise UsageError(_unknown(name))
    if said.get("at") is not None and said.get("in") is not None:
        raise UsageError("at and in exclude each other: give a time, or how long from now.")
    values = {NAMES[name]: value for name, value in said.items() if value is not None}
    kind = values.pop("kind", None)
    if kind is None:
        raise UsageError("Which type of job? It has none.")
    if said.get("at") is not None:
        values["available_us"] = time_us(said["at"], now_us)
    elif said.get("in") is not None:
        values["available_us"] = now_us + span_us("in", said["in"])
    if "key_window_us" in values:
        values["key_window_us"] = span_us("key window", values["key_window_us"])
    return Enqueue(queue, kind, **values)


def time_us(text: object, now_us: int) -> int:
    """Return the time that a person wrote; a length of time is refused: it would be one ago."""
    from tachograph.infra.clock import parse_time

    if not isinstance(text, str):
        raise InvalidValueError("at", text, "write a time such as 2026-03-01T09:00")
    found = parse_time(text, now_us)
    if not any(mark in text.upper() for mark in ("-", "T", "@", "NOW")) and not text.isdecimal():
        raise InvalidTimeError(text, "that is a length of time; for a time from now on, write in")
    return found


def span_us(what: str, value: object) -> int:
    """Return a length of time, written as a text such as `10m`, or as seconds."""
    if isinstance(value, str):
        from tachograph.infra.clock import parse_span

        return parse_span(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**33:
        raise InvalidValueError(what, value, 'write a length of time such as "10m", or seconds')
    return round(value * 1_000_000)


def of_lines(
    queue: str,
    lines: Iterable[str],
    source: str,
    kind: str | None,
    now_us: int,
    check: Check,
) -> Iterator[Enqueue]:
    """Yield the jobs of JSON lines, each checked; `kind` is the type of lines that name none.

    Empty lines count for nothing. Raises UsageError, which names the line.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            want = wanted(queue, {"type": kind, **_object(line)}, now_us)
            check(want)
        except TachographError as error:
            raise UsageError(f"Line {number} of {source}: {error} Nothing was enqueued.") from error
        yield want


def _object(line: str) -> dict[str, Any]:
    import json

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON number")

    try:
        found = json.loads(line, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"it is not JSON: {error}. Given: {line.strip()[:60]!r}.") from error
    if not isinstance(found, dict):
        raise UsageError('it is no JSON object. Write {"type": "t", "payload": …}.')
    return found


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, NAMES, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"there is no {name!r}.{hint} A job has {', '.join(NAMES)}."
