"""What others did to a task, as entries of its card's history: resumes, stalls, its end.

The commands of the drop-in leave entries of their own in the ledger; these are read from the
events of everybody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph import cards
from tachograph.domain import attention

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tachograph.bootstrap import Services
    from tachograph.domain.run_state import RunState

    Fields = dict[str, Any]

SAID_BY_TASK = frozenset({attention.ADAPTER_ASKS, attention.STATUS_UNKNOWN})
"""Reasons that a command of the task gave, which has an entry of its own."""
MOST_EVENTS = 400
"""The newest events of a run that are looked through."""


def entries_of_others(services: Services, run: RunState) -> list[Fields]:
    """Return the history entries of resumes, stalls and what they led to, oldest first."""
    records = services.log.read_stream(run.id, up_to=run.version, limit=MOST_EVENTS, reverse=True)
    found: list[Fields] = []
    for record in reversed(records):
        entry_of = _ENTRIES.get(record.topic)
        if entry_of is not None and not record.absent:
            fields = services.repository.fields(record)
            if fields.get("reason") in SAID_BY_TASK:
                continue
            name, message, extra = entry_of(fields)
            entry: Fields = {"at": cards.iso(record.time_us), "event": name}
            if message:
                entry["message"] = message
            if extra:
                entry["extra"] = extra
            found.append(entry)
    return found


def _stalled(fields: Fields) -> tuple[str, str, Fields]:
    evidence = _plain(fields["evidence"])
    return "watchdog-stale-alerted", f"found {evidence.get('kind', 'stale')}", {}


def _dispatched(fields: Fields) -> tuple[str, str, Fields]:
    adapter = str(fields["adapter"])
    return "resume-dispatched", adapter, {"adapter": adapter}


def _returned(fields: Fields) -> tuple[str, str, Fields]:
    if fields["progressed"]:
        return "auto-resume-progressed", "", {}
    error = _plain(fields["result"]).get("error")
    return "auto-resume-failed", str(error or "the resume changed nothing"), {}


def _attention(fields: Fields) -> tuple[str, str, Fields]:
    detail = fields["detail"]
    said = attention.text(fields["reason"])
    return "watchdog-needs-attention", f"{said}: {detail}" if detail else said, {}


def _ended(event: str) -> Callable[[Fields], tuple[str, str, Fields]]:
    return lambda fields: (event, str(fields["reason"] or ""), {})


def _plain(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


_ENTRIES: dict[str, Callable[[Fields], tuple[str, str, Fields]]] = {
    "run.stall-detected": _stalled,
    "run.resume-dispatched": _dispatched,
    "run.resume-returned": _returned,
    "run.attention-raised": _attention,
    "run.cancelled": _ended("cancelled"),
    "run.expired": _ended("expired"),
}
