"""What of two runs can be compared: what they did and how they were judged, never who and when.

Pure: it takes states and events, and reads nothing.
"""

from __future__ import annotations

from tachograph.domain.event import COMMON
from tachograph.domain.forking import SHARED
from tachograph.domain.recovery_state import ending_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.domain.run_state import Phase, RunState

    Fields = dict[str, Any]

COMPARED = SHARED | {
    "run.retry-scheduled",
    "run.fallback-taken",
    "run.approval-requested",
    "run.approval-granted",
    "run.approval-rejected",
    "run.blocked",
    "run.maintenance-planned",
    "run.maintenance-step-started",
    "run.maintenance-step-ended",
    "run.semantic-gate-judged",
    "run.finished",
    "run.cancelled",
    "run.expired",
}
"""Events in which histories can diverge. What a run was created with is compared by itself; who
worked on it, what was noted, and where its files and bodies went makes no other history."""

_OF_TIME_AND_PLACE: dict[str, dict[str, frozenset[str]]] = {
    "run.expectations-declared": {"expectations": frozenset({"deadline_us", "traces"})},
    "run.semantic-gate-judged": {"facts": frozenset({"deadline_left_seconds"})},
}
"""Parts of fields that hold a time or a place, by topic and field."""
_LEFT_OUT: dict[str, frozenset[str]] = {
    "run.semantic-gate-judged": frozenset({"evidence"}),
    "run.maintenance-planned": frozenset({"deadline_us"}),
    "run.maintenance-step-ended": frozenset({"duration_us", "runs"}),
}
"""Fields that hold nothing but versions, times or ids of other runs."""


def essence(topic: str, fields: Fields, epoch: int) -> Fields | None:
    """Return what counts of an event when histories are compared; None when it does not count.

    `epoch` is the attempt that the run was in.
    """
    if topic not in COMPARED:
        return None
    if topic == "run.step-completed" and fields["key"] == ending_key(epoch):
        return _ending(fields["result"])
    left_out = COMMON | _LEFT_OUT.get(topic, frozenset())
    own = {name: value for name, value in fields.items() if name not in left_out}
    for name, parts in _OF_TIME_AND_PLACE.get(topic, {}).items():
        if isinstance(own[name], dict):
            own[name] = {part: value for part, value in own[name].items() if part not in parts}
    return own


def _ending(result: Any) -> Fields:
    """Return what counts of the step that says how a wrapped command ended; it has no key."""
    known = result if isinstance(result, dict) else {}
    return {"key": None, "result": {name: known.get(name) for name in ("exit_code", "signal")}}


def portrait(run: RunState) -> Fields:
    """Return what a run has come to, as plain values that can be compared part by part."""
    endings = {ending_key(epoch) for epoch in range(1, run.epoch + 1)}
    return {
        "command": run.command,
        "model_policy": run.model_policy,
        "expectations": _without_times(run.expectations),
        "phases": {name: _phase(phase) for name, phase in run.phases.items()},
        "answers": {
            name or "no-phase": {
                **each.counts,
                **{f"{kind}_faults": count for kind, count in each.unmended().items()},
                "quiet": each.quiet,
                "recovered": each.recovered,
            }
            for name, each in run.answers.items()
        },
        "steps": {key: "done" for key in run.steps if key not in endings},
        "effects": {key: effect["status"] for key, effect in run.effects.items()},
        "artifacts": {name: dict(each) for name, each in run.artifacts.items()},
        "maintenance_steps": {
            name: {"status": each["status"], "outcome": each.get("outcome")}
            for name, each in run.maintenance_steps.items()
        },
        "attempts": run.epoch,
        "outcome": {
            "outcome": run.outcome,
            "reason_code": run.reason_code,
            "reason": run.reason,
            "ended": run.ended,
        },
    }


def _phase(phase: Phase) -> Fields:
    names = ("status", "summary", "total", "size", "inputs", "parsed", "blank")
    return {**{name: getattr(phase, name) for name in names}, "batches": len(phase.done)}


def _without_times(expectations: Any) -> Fields:
    times = _OF_TIME_AND_PLACE["run.expectations-declared"]["expectations"]
    return {name: value for name, value in (expectations or {}).items() if name not in times}
