"""The events of a run as lines of `events.jsonl`, for the original's readers. Writes no file."""

from __future__ import annotations

from tachograph.domain.bodies import ERASED
from tachograph.domain.iso_time import iso_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Fields = dict[str, Any]

GATE_LINE = "semantic_gate"


def event_line(topic: str, fields: Fields, judged: str | None = None) -> Fields | None:
    """Return an event as a line of `events.jsonl`; None for one that the original has not.

    `judged` is the outcome of the gate's last line in this attempt: an attempt that ends with
    another outcome, or unjudged, gets a line of its own. `version` is ours: the place of the
    event in the run's stream, where the log has all of it.
    """
    shape = _LINES.get(topic)
    if shape is None or ERASED in fields:
        return None
    if topic == "run.finished" and judged == fields["outcome"]:
        return None
    line = shape(fields, iso_stamp(fields["time_us"]))
    line["version"] = fields["originator_version"]
    return {name: value for name, value in line.items() if value is not None}


def judged_after(topic: str, fields: Fields, judged: str | None) -> str | None:
    """Return the outcome of the gate's last line in the attempt, once this event has happened."""
    if topic == "run.attempt-started":
        return None
    return fields.get("outcome", judged) if topic == "run.semantic-gate-judged" else judged


_LINES: dict[str, Callable[[Fields, str], Fields]] = {
    "run.phase-started": lambda said, ts: {
        "type": "phase_start",
        "phase": said["phase"],
        "ts": ts,
    },
    "run.phase-ended": lambda said, ts: {
        "type": "phase_end",
        "phase": said["phase"],
        "status": said["status"],
        "ts": ts,
        "summary": said["summary"],
    },
    "run.batch-completed": lambda said, ts: {
        "type": "batch_complete",
        "index": said["index"],
        "ts": ts,
        "parsed": said["parsed"],
    },
    "run.retry-scheduled": lambda said, ts: {
        "type": "retry",
        "kind": said["kind"],
        "attempt": said["attempt"],
        "ts": ts,
        "model": said["model"],
    },
    "run.fallback-taken": lambda said, ts: {
        "type": "fallback",
        "from": said["source"],
        "to": said["target"],
        "ts": ts,
    },
    "run.semantic-gate-judged": lambda said, ts: {
        "type": GATE_LINE,
        "outcome": said["outcome"],
        "reason": said["reason"] or said["outcome"],
        "ts": ts,
    },
    "run.finished": lambda said, ts: {
        "type": GATE_LINE,
        "outcome": said["outcome"],
        "reason": said["reason"] or said["outcome"],
        "ts": ts,
    },
}
