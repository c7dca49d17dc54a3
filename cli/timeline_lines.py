"""Entries of a timeline as lines."""

from __future__ import annotations

from tachograph.cli.event_lines import brief
from tachograph.cli.tables import shown
from tachograph.cli.times import span
from tachograph.domain.owner import Owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.cli.output import Output

    Entry = dict[str, Any]

_COMMON = ("kind", "version", "position", "epoch", "time_us", "end_us")


def line(entry: Entry, out: Output) -> str:
    """Return an entry as one line."""
    when = out.when(entry["time_us"], "iso")
    end_us = entry.get("end_us")
    took = f"  ({span(end_us - entry['time_us'])})" if end_us is not None else ""
    text = _TEXTS.get(entry["kind"], _any)(entry)
    return shown(f"{when}  {entry['kind']:<11} {text}{took}".rstrip())


def _any(entry: Entry) -> str:
    """Return what an entry of a kind without words of its own says.

    >>> _any({"kind": "odd", "version": 3, "reason": "x y", "detail": None})
    'reason="x y"'
    """
    own = {name: value for name, value in entry.items() if name not in _COMMON}
    return " ".join(f"{name}={brief(value)}" for name, value in own.items() if value is not None)


def _created(entry: Entry) -> str:
    title = f": {entry['title']}" if entry["title"] else ""
    return f"{entry['command']}{title}"


def _attempt(entry: Entry) -> str:
    why = f", because {entry['reason']}" if entry["reason"] else ""
    owner = Owner.from_fields(entry["owner"] or {})
    return f"{entry['epoch']} of {owner}{why}: {entry['outcome'] or 'running'}"


def _phase(entry: Entry) -> str:
    batches = ""
    if entry.get("batches") or entry.get("total"):
        total = f" of {entry['total']}" if entry.get("total") is not None else ""
        batches = f", {entry.get('batches', 0)}{total} batches"
    summary = f": {entry['summary']}" if entry["summary"] else ""
    return f"{entry['phase']} {entry['status']}{batches}{summary}"


def _counted(entry: Entry) -> str:
    phase = f" in {entry['phase']}" if entry.get("phase") else ""
    return f"{entry['count']}{phase}"


def _outcome(entry: Entry) -> str:
    code = f" ({entry['reason_code']})" if entry["reason_code"] else ""
    return f"{entry['outcome']}{code}" + (f": {entry['reason']}" if entry["reason"] else "")


def _retry(entry: Entry) -> str:
    error = f": {entry['error']}" if entry["error"] else ""
    delay = f", after {entry['delay_seconds']:g}s" if entry["delay_seconds"] else ""
    return f"{entry['retried']}, try {entry['attempt']}{delay}{error}"


def _fallback(entry: Entry) -> str:
    why = f": {entry['reason']}" if entry["reason"] else ""
    return f"from {entry['source']} to {entry['target']}{why}"


def _artifact(entry: Entry) -> str:
    return f"{entry['name']}: {entry['path']}, {entry['size']} bytes"


def _effect(entry: Entry) -> str:
    what = f": {entry['description']}" if entry["description"] else ""
    return f"{entry['key']} {entry['status']}{what}"


def _note(entry: Entry) -> str:
    level = "" if entry["level"] == "note" else f"{entry['level']}: "
    return f"{level}{entry['text']}"


_TEXTS: dict[str, Callable[[Entry], str]] = {
    "created": _created,
    "attempt": _attempt,
    "phase": _phase,
    "checkpoints": _counted,
    "steps": _counted,
    "retry": _retry,
    "fallback": _fallback,
    "gate": _outcome,
    "end": _outcome,
    "revision": _outcome,
    "artifact": _artifact,
    "effect": _effect,
    "note": _note,
}
