"""What happened in a run, in order: spans and points that a person wants to see. No clock, no host.

What comes in thousands is merged: batches into their phase, checkpoints and steps into one entry
per attempt. An entry is a dict; times are microseconds since 1970 in UTC.
"""

from __future__ import annotations

from tachograph.projections.folding import ERASED, clip, keep_newest, small, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    Fields = dict[str, Any]
    Entry = dict[str, Any]

    class TimelineView(Protocol):
        """Where the entries of each run are kept, by the version of their first event.

        A run's entries are kept together, by the position of its first event.
        """

        def timeline_state(self, run_id: str) -> dict[str, Any] | None:
            """Return what the projection keeps of a run between two events, or None."""
            ...

        def timeline_entry(self, created_position: int, version: int) -> Entry:
            """Return one entry. The caller may change what it gets."""
            ...

        def put_timeline(
            self, run_id: str, state: dict[str, Any], entries: Mapping[int, Entry]
        ) -> None:
            """Keep the state of a run's timeline, and the entries (by version) that changed."""
            ...

        def drop_entries(self, created_position: int) -> None:
            """Drop the entries of the run created at a position."""
            ...


NAME = "timeline"
VERSION = 3
"""Raised whenever the content changes for the same log: stored views are then rebuilt."""

MOST_RUNS = 100
"""Runs that an entry names."""
MOST_OPEN = 500
"""Spans of one run that can be open at the same time; older ones are then left without an end."""
_OF_ATTEMPT = ("phase:", "checkpoints:", "steps")
"""Spans that end with their attempt."""


class Timelines:
    """Folds events into the timelines of their runs."""

    __slots__ = ("_runs", "_view")

    def __init__(self, view: TimelineView) -> None:
        self._view = view
        self._runs: dict[str, _Timeline] = {}

    def fold(self, topic: str, fields: Fields, position: int, stream: str) -> None:
        """Apply one event. Raises UnknownEventTypeError for an unknown `run.` topic."""
        run = self._runs.get(stream)
        if run is None:
            run = self._runs[stream] = _Timeline(stream, self._view, position)
        try:
            handler = _HANDLERS[topic]
        except KeyError:
            raise unknown(topic, position) from None
        if ERASED in fields:
            return
        run.position = position
        handler(run, fields)
        if fields["by"][3] == run.epoch:
            run.active_us = fields["time_us"]

    def flush(self) -> None:
        """Write every timeline that changed to the view."""
        for run in self._runs.values():
            run.write()


class _Timeline:
    """The timeline of one run while events are folded: its open spans and what changed."""

    __slots__ = (
        "active_us",
        "changed",
        "created",
        "epoch",
        "forgotten",
        "open",
        "position",
        "run_id",
        "view",
    )

    def __init__(self, run_id: str, view: TimelineView, position: int) -> None:
        self.run_id = run_id
        self.view = view
        state = view.timeline_state(run_id) or {}
        self.created: int = state.get("created_position", position)
        self.epoch: int = state.get("epoch", 0)
        self.active_us: int = state.get("active_us", 0)
        self.open: dict[str, int] = state.get("open", {})
        """Version of the entry of each open span."""
        self.changed: dict[int, Entry] = {}
        """Entries by version."""
        self.forgotten = False
        """Whether what was written before is dropped."""
        self.position = 0
        """Of the event that is folded now."""

    def forget(self) -> None:
        """Drop all entries, and what the projection keeps of the run."""
        self.epoch = self.active_us = 0
        self.open, self.changed = {}, {}
        self.forgotten = True

    def write(self) -> None:
        """Write what changed to the view."""
        if self.forgotten:
            self.view.drop_entries(self.created)
        state = {
            "created_position": self.created,
            "epoch": self.epoch,
            "active_us": self.active_us,
            "open": self.open,
        }
        self.view.put_timeline(self.run_id, state, self.changed)

    def add(self, kind: str, fields: Fields, entry: Entry) -> Entry:
        """Add a point, whose details are in `entry`."""
        version = entry["version"] = fields["originator_version"]
        entry["kind"] = kind
        entry["position"] = self.position
        entry["epoch"] = self.epoch
        entry["time_us"] = fields["time_us"]
        self.changed[version] = entry
        return entry

    def begin(self, kind: str, slot: str, fields: Fields, entry: Entry) -> Entry:
        """Add a span that has no end yet; `slot` is how its end will find it."""
        self.open.pop(slot, None)  # so that the newest are at the end
        self.open[slot] = fields["originator_version"]
        if len(self.open) > MOST_OPEN:
            keep_newest(self.open, MOST_OPEN)
        entry["end_us"] = None
        return self.add(kind, fields, entry)

    def find(self, slot: str) -> Entry | None:
        """Return the open span of a slot, to be changed; None when there is none."""
        version = self.open.get(slot)
        if version is None:
            return None
        entry = self.changed.get(version)
        if entry is None:
            entry = self.changed[version] = self.view.timeline_entry(self.created, version)
        return entry

    def end(self, slot: str, end_us: int, **details: Any) -> None:
        """End the open span of a slot, if there is one."""
        entry = self.find(slot)
        if entry is not None:
            entry["end_us"] = end_us
            entry.update(details)
            del self.open[slot]

    def merge(self, kind: str, slot: str, fields: Fields, entry: Entry) -> None:
        """Count an event into the open span of a slot, which begins with `entry`."""
        span = self.find(slot)
        if span is None:
            span = self.begin(kind, slot, fields, entry)
            span["count"] = 0
        span["count"] += 1
        span["end_us"] = fields["time_us"]

    def end_attempt(self, end_us: int, outcome: str, reason_code: str | None = None) -> None:
        """End the attempt, and the spans that cannot outlive it."""
        self.end("attempt", end_us, outcome=outcome, reason_code=reason_code)
        for slot in [slot for slot in self.open if slot.startswith(_OF_ATTEMPT)]:
            if slot.startswith("phase:"):
                self.end(slot, end_us, status="interrupted")
            else:
                del self.open[slot]


# One handler for each topic.


def _created(run: _Timeline, fields: Fields) -> None:
    run.add("created", fields, {"command": fields["command"], "title": clip(fields["title"])})


def _attempt_started(run: _Timeline, fields: Fields) -> None:
    run.end_attempt(run.active_us, "interrupted")
    run.epoch = fields["epoch"]
    run.active_us = fields["time_us"]
    entry = {
        "owner": small(fields["owner"]),
        "reason": clip(fields["reason"]),
        "outcome": None,
        "reason_code": None,
    }
    run.begin("attempt", "attempt", fields, entry)


def _phase_started(run: _Timeline, fields: Fields) -> None:
    _begin_phase(run, fields)


def _begin_phase(run: _Timeline, fields: Fields) -> Entry:
    phase = fields["phase"]
    entry = {
        "phase": phase,
        "status": "running",
        "summary": None,
        "batches": 0,
        "total": None,
        "inputs": 0,
        "parsed": 0,
    }
    return run.begin("phase", f"phase:{phase}", fields, entry)


def _phase_ended(run: _Timeline, fields: Fields) -> None:
    slot = f"phase:{fields['phase']}"
    run.end(slot, fields["time_us"], status=fields["status"], summary=clip(fields["summary"]))


def _batches_planned(run: _Timeline, fields: Fields) -> None:
    phase = run.find(f"phase:{fields['phase']}") or _begin_phase(run, fields)
    phase["total"] = fields["total"]


def _batch_completed(run: _Timeline, fields: Fields) -> None:
    phase = run.find(f"phase:{fields['phase']}") or _begin_phase(run, fields)
    phase["batches"] += 1
    phase["inputs"] += fields["inputs"] or 0
    phase["parsed"] += fields["parsed"] or 0


def _checkpoint_saved(run: _Timeline, fields: Fields) -> None:
    phase = fields["phase"]
    run.merge("checkpoints", f"checkpoints:{phase}", fields, {"phase": phase})


def _step_completed(run: _Timeline, fields: Fields) -> None:
    run.merge("steps", "steps", fields, {})


def _retry_scheduled(run: _Timeline, fields: Fields) -> None:
    names = ("attempt", "delay_seconds", "model")
    entry = {name: fields[name] for name in names}
    entry["retried"] = fields["kind"]
    entry["error"] = clip(fields["error"])
    run.add("retry", fields, entry)


def _fallback_taken(run: _Timeline, fields: Fields) -> None:
    names = ("source", "target", "reason")
    run.add("fallback", fields, {name: clip(fields[name]) for name in names})


def _judged(run: _Timeline, fields: Fields) -> None:
    names = ("gate", "outcome", "rule", "reason_code")
    entry = {name: fields[name] for name in names}
    entry["policy_version"] = fields["policy"]["version"]
    _add_reasoned(run, "gate", fields, entry)


def _artifact_recorded(run: _Timeline, fields: Fields) -> None:
    names = ("name", "path", "size", "sha256")
    run.add("artifact", fields, {name: fields[name] for name in names})


def _effect_intended(run: _Timeline, fields: Fields) -> None:
    key = fields["key"]
    entry = {
        "key": key,
        "description": clip(fields["description"]),
        "idempotent": fields["idempotent"],
        "status": "intended",
        "reason": None,
    }
    run.begin("effect", f"effect:{key}", fields, entry)


def _effect_done(run: _Timeline, fields: Fields) -> None:
    _decide(run, f"effect:{fields['key']}", fields, "done")


def _effect_retry_allowed(run: _Timeline, fields: Fields) -> None:
    _decide(run, f"effect:{fields['key']}", fields, "retry_allowed")


def _approval_requested(run: _Timeline, fields: Fields) -> None:
    approval = fields["approval"]
    entry = {
        "approval": approval,
        "subject": small(fields["subject"]),
        "status": "requested",
        "reason": None,
    }
    run.begin("approval", f"approval:{approval}", fields, entry)


def _approval_granted(run: _Timeline, fields: Fields) -> None:
    _decide(run, f"approval:{fields['approval']}", fields, "granted")


def _approval_rejected(run: _Timeline, fields: Fields) -> None:
    _decide(run, f"approval:{fields['approval']}", fields, "rejected")


def _stall_detected(run: _Timeline, fields: Fields) -> None:
    run.add("stall", fields, {"evidence": small(fields["evidence"])})


def _resume_dispatched(run: _Timeline, fields: Fields) -> None:
    entry = {name: fields[name] for name in ("adapter", "from_version")}
    entry["progressed"] = None
    run.begin("resume", "resume", fields, entry)


def _resume_returned(run: _Timeline, fields: Fields) -> None:
    run.end("resume", fields["time_us"], progressed=fields["progressed"])
    result = fields["result"] if isinstance(fields["result"], dict) else {}
    if not result.get("left_running"):
        run.end_attempt(fields["time_us"], "interrupted")


def _attention_raised(run: _Timeline, fields: Fields) -> None:
    slot = f"attention:{fields['reason']}"
    if slot not in run.open:
        entry = {name: clip(fields[name]) for name in ("reason", "detail")}
        run.begin("attention", slot, fields, entry)


def _attention_cleared(run: _Timeline, fields: Fields) -> None:
    run.end(f"attention:{fields['reason']}", fields["time_us"])


def _blocked(run: _Timeline, fields: Fields) -> None:
    _add_reasoned(run, "blocked", fields, {})


def _finished(run: _Timeline, fields: Fields) -> None:
    _end(run, fields, fields["outcome"], fields["reason_code"])


def _cancelled(run: _Timeline, fields: Fields) -> None:
    _end(run, fields, "cancelled", None)


def _expired(run: _Timeline, fields: Fields) -> None:
    _end(run, fields, "expired", None)


def _end(run: _Timeline, fields: Fields, outcome: str, reason_code: str | None) -> None:
    run.end_attempt(fields["time_us"], outcome, reason_code)
    _add_reasoned(run, "end", fields, {"outcome": outcome, "reason_code": reason_code})


def _noted(run: _Timeline, fields: Fields) -> None:
    entry = {name: fields[name] for name in ("level", "source")}
    entry["text"] = clip(fields["text"])
    run.add("note", fields, entry)


def _verdict_revised(run: _Timeline, fields: Fields) -> None:
    names = ("outcome", "rule", "reason_code")
    entry = {name: fields[name] for name in names}
    entry["policy_version"] = fields["policy"]["version"]
    _add_reasoned(run, "revision", fields, entry)


def _archived(run: _Timeline, fields: Fields) -> None:
    run.add("archived", fields, {"location": fields["location"]})


def _answer_received(run: _Timeline, fields: Fields) -> None:
    """Show what went wrong, and what was declared: the rest are the batches."""
    if fields["fault"] is None and fields["declared"] is None:
        return
    names = ("phase", "batch", "source", "fault", "error", "declared")
    run.add("answer", fields, {name: clip(fields[name]) for name in names})


def _origin_recorded(run: _Timeline, fields: Fields) -> None:
    run.add("origin", fields, {"origin": small(fields["origin"])})


def _maintenance_step_started(run: _Timeline, fields: Fields) -> None:
    entry = {"step": fields["step"], "status": None, "summary": None, "runs": []}
    run.begin("step", f"step:{fields['step']}", fields, entry)


def _maintenance_step_ended(run: _Timeline, fields: Fields) -> None:
    slot = f"step:{fields['step']}"
    said = {"status": fields["status"], "summary": clip(fields["summary"])}
    runs = list(fields["runs"][:MOST_RUNS])
    if slot in run.open:
        run.end(slot, fields["time_us"], **said, runs=runs)
    else:
        run.add("step", fields, {"step": fields["step"], **said, "runs": runs})


def _exit_validated(run: _Timeline, fields: Fields) -> None:
    report = fields["report"] if isinstance(fields["report"], dict) else {}
    status = clip(report.get("maintenanceStatus"))
    run.add("validation", fields, {"status": status, "guard": fields["guard"]})


def _files_removed(run: _Timeline, fields: Fields) -> None:
    entry = {name: fields[name] for name in ("what", "size", "rule")}
    run.add("removal", fields, {**entry, "files": len(fields["paths"])})


def _bodies_archived(run: _Timeline, fields: Fields) -> None:
    reason = clip(fields["reason"])
    entry = {"state": "archived", "archive": fields["archive"], "reason": reason}
    run.add("bodies", fields, {**entry, "records": fields["records"]})


def _bodies_erased(run: _Timeline, fields: Fields) -> None:
    """Forget everything: the timeline is the one that the events without bodies fold to."""
    run.forget()
    entry = {"state": "erased", "archive": None, "reason": clip(fields["reason"])}
    run.add("bodies", fields, {**entry, "records": fields["records"]})


def _add_reasoned(run: _Timeline, kind: str, fields: Fields, entry: Entry) -> None:
    entry["reason"] = clip(fields["reason"])
    run.add(kind, fields, entry)


def _decide(run: _Timeline, slot: str, fields: Fields, status: str) -> None:
    run.end(slot, fields["time_us"], status=status, reason=clip(fields["reason"]))


def _nothing(_run: _Timeline, _fields: Fields) -> None:
    """Show nothing: there may be many of them, and the summary has the last one."""


_HANDLERS: dict[str, Callable[[_Timeline, Fields], None]] = {
    "run.created": _created,
    "run.attempt-started": _attempt_started,
    "run.worker-started": _nothing,
    "run.recovery-declared": _nothing,
    "run.dependencies-declared": _nothing,
    "run.card-edited": _nothing,
    "run.phase-started": _phase_started,
    "run.phase-ended": _phase_ended,
    "run.batches-planned": _batches_planned,
    "run.batch-completed": _batch_completed,
    "run.checkpoint-saved": _checkpoint_saved,
    "run.step-completed": _step_completed,
    "run.progress-reported": _nothing,
    "run.retry-scheduled": _retry_scheduled,
    "run.fallback-taken": _fallback_taken,
    "run.semantic-gate-judged": _judged,
    "run.artifact-recorded": _artifact_recorded,
    "run.effect-intended": _effect_intended,
    "run.effect-done": _effect_done,
    "run.effect-retry-allowed": _effect_retry_allowed,
    "run.approval-requested": _approval_requested,
    "run.approval-granted": _approval_granted,
    "run.approval-rejected": _approval_rejected,
    "run.stall-detected": _stall_detected,
    "run.resume-dispatched": _resume_dispatched,
    "run.resume-returned": _resume_returned,
    "run.attention-raised": _attention_raised,
    "run.attention-cleared": _attention_cleared,
    "run.blocked": _blocked,
    "run.finished": _finished,
    "run.cancelled": _cancelled,
    "run.expired": _expired,
    "run.note-added": _noted,
    "run.verdict-revised": _verdict_revised,
    "run.archived": _archived,
    "run.expectations-declared": _nothing,
    "run.answer-received": _answer_received,
    "run.origin-recorded": _origin_recorded,
    "run.maintenance-planned": _nothing,
    "run.maintenance-step-started": _maintenance_step_started,
    "run.maintenance-step-ended": _maintenance_step_ended,
    "run.exit-validated": _exit_validated,
    "run.files-removed": _files_removed,
    "run.bodies-archived": _bodies_archived,
    "run.bodies-erased": _bodies_erased,
}
TOPICS = frozenset(_HANDLERS)
"""What this projection wants to see."""
