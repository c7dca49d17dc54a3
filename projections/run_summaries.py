"""What became of each run: one summary a run, folded from its events alone. No clock, no host.

A summary is a dict of plain values: times are microseconds since 1970 in UTC, and what can grow
without end is bounded or left to the log. Whether a run is alive is not here: that is judged
when it is read (G7).
"""

from __future__ import annotations

from tachograph.domain.audit_state import FORK
from tachograph.domain.bodies import erasure
from tachograph.domain.outcome import is_terminal
from tachograph.domain.recovery_state import WORK, ending_key
from tachograph.projections.folding import ERASED, LOST, clip, keep_newest, small, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    Fields = dict[str, Any]
    Summary = dict[str, Any]

    class RunSummariesView(Protocol):
        """Where summaries are kept."""

        def summary(self, run_id: str) -> Summary | None:
            """Return the summary of a run, or None. The caller may change what it gets."""
            ...

        def put_summary(self, summary: Summary) -> None:
            """Keep a summary, and the card cut from it."""
            ...

        def latest_us(self) -> int:
            """Return the latest time of any event folded so far."""
            ...

        def put_latest_us(self, time_us: int) -> None:
            """Keep the latest time of any event folded so far."""
            ...


NAME = "run_summaries"
VERSION = 5
"""Raised whenever the content changes for the same log: stored views are then rebuilt."""

MOST_PHASES = 500
MOST_ATTEMPTS = 20
MOST_ARTIFACTS = 100
MOST_STEPS = 200
"""Steps of an orchestrator run."""
MOST_OPEN = 100
"""Effects, approvals and reasons for attention that are open at the same time."""


_NEW: Summary = {
    "id": "",
    "command": "",
    "title": None,
    "parent": None,
    "fingerprint": "",
    "inputs": None,
    "inputs_digest": "",
    "model_policy": None,
    "created_us": 0,
    "created_position": 0,
    "created_latest_us": 0,
    "updated_us": 0,
    "updated_position": 0,
    "latest_us": 0,
    "version": 0,
    "epoch": 0,
    "owner": None,
    "worker": None,
    "active_us": 0,
    "worked_us": 0,
    "attempt_open": False,
    "attempts": [],
    "phases": {},
    "phases_omitted": 0,
    "checkpoint": None,
    "saved": None,
    "offset": None,
    "progress": None,
    "verdict": None,
    "revision": None,
    "outcome": None,
    "reason_code": None,
    "reason": None,
    "ended": None,
    "finished_us": None,
    "blocked": None,
    "attention": {},
    "approvals": {},
    "effects": {},
    "recovery": None,
    "depends_on": [],
    "stall": None,
    "noted": None,
    "resume": None,
    "returned_us": None,
    "futile": 0,
    "artifacts": {},
    "archived": None,
    "expectations": None,
    "origin": None,
    "maintenance": None,
    "maintenance_steps": {},
    "validation": None,
    "bodies": None,
    "counters": {},
}
FIELDS = tuple(_NEW)
"""Every field of a summary, in order: part of its stored form."""
_OF_ERASED = (
    "created_us",
    "created_position",
    "created_latest_us",
    "updated_us",
    "updated_position",
    "latest_us",
    "version",
)
"""What an event without its body still says of its run."""
_CONTAINERS = tuple(name for name, value in _NEW.items() if isinstance(value, list | dict))


class RunSummaries:
    """Folds events into run summaries."""

    __slots__ = ("_latest_us", "_runs", "_view")

    def __init__(self, view: RunSummariesView) -> None:
        self._view = view
        self._runs: dict[str, Summary] = {}
        self._latest_us = view.latest_us()

    def fold(self, topic: str, fields: Fields, position: int, stream: str) -> None:
        """Apply one event. Raises UnknownEventTypeError for an unknown `run.` topic."""
        run = self._runs.get(stream)
        if run is None:
            run = self._runs[stream] = self._view.summary(stream) or new_summary(stream)
        latest_us = self._latest_us
        if fields["time_us"] > latest_us:
            latest_us = self._latest_us = fields["time_us"]
        if not run["created_position"]:
            run["created_latest_us"] = latest_us
        apply(run, topic, fields, position)
        run["latest_us"] = latest_us

    def flush(self) -> None:
        """Write every run that changed to the view."""
        for run in self._runs.values():
            self._view.put_summary(run)
        self._view.put_latest_us(self._latest_us)


def new_summary(run_id: str) -> Summary:
    """Return the summary of a run of which nothing is known yet."""
    run = _NEW.copy()
    run["id"] = run_id
    for name in _CONTAINERS:
        run[name] = _NEW[name].copy()
    return run


def apply(run: Summary, topic: str, fields: Fields, position: int) -> None:
    """Change a summary as one event says.

    `latest_us` and `created_latest_us` are left to the projection, which sees all runs.
    Raises UnknownEventTypeError for an unknown `run.` topic.
    """
    try:
        handler = _HANDLERS[topic]
    except KeyError:
        raise unknown(topic, position) from None
    time_us = fields["time_us"]
    if not run["created_position"]:
        run["created_position"] = position
        run["created_us"] = time_us
    if ERASED in fields:
        _count(run, LOST if LOST in fields else ERASED)
    else:
        handler(run, fields)
        if topic in WORK:
            run["worked_us"] = time_us
            run["blocked"] = run["noted"] = None
        if fields["by"][3] == run["epoch"] and run["attempts"]:
            run["active_us"] = time_us
            run["attempts"][-1]["events"] += 1
    run["version"] = fields["originator_version"]
    run["updated_us"] = time_us
    run["updated_position"] = position


def progress(run: Summary) -> dict[str, Any] | None:
    """Return how far a run is, or None when it does not say.

    What the run reported counts first, then the batches of its latest running (else latest)
    phase, then its last offset checkpoint.
    """
    if run["progress"] is not None:
        return dict(run["progress"])
    latest = None
    for phase in run["phases"].values():
        if (phase["total"] or phase["batches"]) and (
            phase["status"] == "running" or latest is None or latest["status"] != "running"
        ):
            latest = phase
    if latest is not None:
        return {"completed": latest["batches"], "total": latest["total"], "unit": "batches"}
    return dict(run["offset"]) if run["offset"] is not None else None


# One handler for each topic.


def _created(run: Summary, fields: Fields) -> None:
    run["command"] = fields["command"]
    run["title"] = clip(fields["title"])
    run["parent"] = fields["parent"]
    run["fingerprint"] = fields["fingerprint"]
    run["inputs"] = small(fields["inputs"])
    run["inputs_digest"] = fields["inputs_digest"]
    run["model_policy"] = small(fields["model_policy"])


def _attempt_started(run: Summary, fields: Fields) -> None:
    if run["attempt_open"]:
        _end_attempt(run, "interrupted", None, run["active_us"])
    for name in (
        "outcome",
        "reason_code",
        "reason",
        "verdict",
        "revision",
        "finished_us",
        "worker",
    ):
        run[name] = None
    if run["resume"] is not None and run["resume"]["returned_us"] is None:
        run["resume"]["returned_us"] = fields["time_us"]  # nobody waits for it any more
    run["epoch"] = fields["epoch"]
    owner = run["owner"] = small(fields["owner"])
    run["active_us"] = fields["time_us"]
    run["attempt_open"] = True
    attempts = run["attempts"]
    attempts.append(
        {
            "epoch": fields["epoch"],
            "owner": owner,
            "reason": clip(fields["reason"]),
            "started_us": fields["time_us"],
            "ended_us": None,
            "outcome": None,
            "reason_code": None,
            "events": 0,
        }
    )
    del attempts[:-MOST_ATTEMPTS]


def _end_attempt(run: Summary, outcome: str, reason_code: str | None, ended_us: int) -> None:
    if run["attempt_open"] and run["attempts"]:
        attempt = run["attempts"][-1]
        attempt["ended_us"] = ended_us
        attempt["outcome"] = outcome
        attempt["reason_code"] = reason_code
    run["attempt_open"] = False


def _phase(run: Summary, name: str) -> dict[str, Any]:
    """Return a phase, a new one when it is not known (or was dropped, being one too many)."""
    phases = run["phases"]
    phase: dict[str, Any] | None = phases.get(name)
    if phase is None:
        phase = phases[name] = {
            "status": "running",
            "summary": None,
            "epoch": run["epoch"],
            "started_us": None,
            "finished_us": None,
            "total": None,
            "batches": 0,
            "inputs": 0,
            "parsed": 0,
        }
        run["phases_omitted"] += max(0, len(phases) - MOST_PHASES)
        keep_newest(phases, MOST_PHASES)
    return phase


def _phase_started(run: Summary, fields: Fields) -> None:
    phase = _phase(run, fields["phase"])
    phase["status"] = "running"
    phase["epoch"] = run["epoch"]
    phase["started_us"] = phase["started_us"] or fields["time_us"]
    phase["finished_us"] = None


def _phase_ended(run: Summary, fields: Fields) -> None:
    phase = _phase(run, fields["phase"])
    phase["status"] = fields["status"]
    phase["summary"] = clip(fields["summary"])
    phase["finished_us"] = fields["time_us"]
    if fields["status"] != "failed":
        run["futile"] = 0


def _batches_planned(run: Summary, fields: Fields) -> None:
    _phase(run, fields["phase"])["total"] = fields["total"]


def _batch_completed(run: Summary, fields: Fields) -> None:
    phase = run["phases"].get(fields["phase"]) or _phase(run, fields["phase"])
    phase["batches"] += 1
    phase["inputs"] += fields["inputs"] or 0
    phase["parsed"] += fields["parsed"] or 0
    _count(run, "batches")
    run["futile"] = 0


def _checkpoint_saved(run: Summary, fields: Fields) -> None:
    _count(run, "checkpoints")
    state = fields["state"]
    _note_saved(run, [fields["phase"], fields["kind"], state])
    run["checkpoint"] = {
        "version": fields["originator_version"],
        "phase": fields["phase"],
        "kind": fields["kind"],
        "time_us": fields["time_us"],
    }
    if fields["kind"] == "offset":
        run["offset"] = {"completed": state["offset"], "total": state["total"], "unit": "items"}


def _note_saved(run: Summary, said: list[Any]) -> None:
    """Saving the same once more is no progress; a large state always counts as another one."""
    saved = small(said)
    if saved is None or saved != run["saved"]:
        run["futile"] = 0
    run["saved"] = saved


def _step_completed(run: Summary, fields: Fields) -> None:
    _count(run, "steps")
    if fields["key"] != ending_key(run["epoch"]):
        run["futile"] = 0


def _progress_reported(run: Summary, fields: Fields) -> None:
    run["progress"] = {name: fields[name] for name in ("completed", "total", "unit")}


def _retry_scheduled(run: Summary, _fields: Fields) -> None:
    _count(run, "retries")


def _fallback_taken(run: Summary, _fields: Fields) -> None:
    _count(run, "fallbacks")


def _judged(run: Summary, fields: Fields) -> None:
    names = ("gate", "outcome", "rule", "reason_code")
    run["verdict"] = {
        **{name: fields[name] for name in names},
        **_policy(fields),
        "reason": clip(fields["reason"]),
        "version": fields["originator_version"],
    }


def _artifact_recorded(run: Summary, fields: Fields) -> None:
    _count(run, "artifacts")
    artifacts = run["artifacts"]
    artifacts.pop(fields["name"], None)  # so that the newest are at the end
    artifacts[fields["name"]] = {
        "path": fields["path"],
        "size": fields["size"],
        "sha256": fields["sha256"],
        "time_us": fields["time_us"],
    }
    keep_newest(artifacts, MOST_ARTIFACTS)


def _effect_intended(run: Summary, fields: Fields) -> None:
    _count(run, "effects")
    run["effects"][fields["key"]] = {
        "description": clip(fields["description"]),
        "idempotent": fields["idempotent"],
        "epoch": run["epoch"],
        "time_us": fields["time_us"],
    }
    keep_newest(run["effects"], MOST_OPEN)


def _effect_done(run: Summary, fields: Fields) -> None:
    run["effects"].pop(fields["key"], None)
    if fields["reason"] is None:
        run["futile"] = 0


def _effect_retry_allowed(run: Summary, fields: Fields) -> None:
    """Keep no doubt: a person has decided."""
    run["effects"].pop(fields["key"], None)


def _approval_requested(run: Summary, fields: Fields) -> None:
    run["approvals"][fields["approval"]] = fields["time_us"]
    keep_newest(run["approvals"], MOST_OPEN)
    run["futile"] = 0


def _approval_granted(run: Summary, fields: Fields) -> None:
    run["approvals"].pop(fields["approval"], None)
    run["futile"] = 0


def _approval_rejected(run: Summary, fields: Fields) -> None:
    run["approvals"].pop(fields["approval"], None)


def _worker_started(run: Summary, fields: Fields) -> None:
    if not fields["joined"]:
        run["worker"] = small(fields["worker"])


def _recovery_declared(run: Summary, fields: Fields) -> None:
    run["recovery"] = fields["recovery"]
    if fields["reason"] is not None:
        run["futile"] = 0


def _dependencies_declared(run: Summary, fields: Fields) -> None:
    run["depends_on"] = list(fields["runs"][:MOST_OPEN])


def _card_edited(_run: Summary, _fields: Fields) -> None:
    """Keep nothing: a card's own fields are read from the run itself."""


def _stall_detected(run: Summary, fields: Fields) -> None:
    _count(run, "stalls")
    evidence = fields["evidence"] if isinstance(fields["evidence"], dict) else {}
    run["stall"] = {
        "kind": evidence.get("kind"),
        "reason": clip(evidence.get("reason")),
        "epoch": run["epoch"],
        "time_us": fields["time_us"],
    }
    run["noted"] = evidence.get("kind")


def _resume_dispatched(run: Summary, fields: Fields) -> None:
    _count(run, "resumes")
    plan = fields["plan"] if isinstance(fields["plan"], dict) else {}
    run["futile"] += bool(plan.get("unattended"))
    run["returned_us"] = None
    execute = plan.get("execute")
    run["resume"] = {
        "adapter": clip(fields["adapter"]),
        "from_version": fields["from_version"],
        "time_us": fields["time_us"],
        "timeout_seconds": execute.get("timeout_seconds") if isinstance(execute, dict) else None,
        "returned_us": None,
        "progressed": None,
        "error": None,
    }


def _resume_returned(run: Summary, fields: Fields) -> None:
    if not fields["progressed"]:
        _count(run, "resumesWithoutProgress")
    result = fields["result"] if isinstance(fields["result"], dict) else {}
    run["returned_us"] = fields["time_us"]
    if result.get("left_running"):
        run["owner"] = run["worker"] or run["owner"]
    else:
        _end_attempt(run, "interrupted", None, fields["time_us"])
    if run["resume"] is not None:
        run["resume"]["returned_us"] = fields["time_us"]
        run["resume"]["progressed"] = fields["progressed"]
        run["resume"]["error"] = clip(result.get("error"))


def _attention_raised(run: Summary, fields: Fields) -> None:
    run["attention"].setdefault(fields["reason"], clip(fields["detail"]))
    keep_newest(run["attention"], MOST_OPEN)


def _attention_cleared(run: Summary, fields: Fields) -> None:
    run["attention"].pop(fields["reason"], None)


def _blocked(run: Summary, fields: Fields) -> None:
    run["blocked"] = clip(fields["reason"])


def _finished(run: Summary, fields: Fields) -> None:
    run["outcome"] = fields["outcome"]
    run["reason_code"] = fields["reason_code"]
    run["reason"] = clip(fields["reason"])
    run["finished_us"] = fields["time_us"]
    _end_attempt(run, fields["outcome"], fields["reason_code"], fields["time_us"])
    if is_terminal(run["outcome"], run["reason_code"]):
        run["futile"] = 0


def _cancelled(run: Summary, fields: Fields) -> None:
    _end(run, "cancelled", fields)


def _expired(run: Summary, fields: Fields) -> None:
    _end(run, "expired", fields)


def _end(run: Summary, ended: str, fields: Fields) -> None:
    run["ended"] = ended
    run["reason"] = clip(fields["reason"])
    run["finished_us"] = fields["time_us"]
    _end_attempt(run, ended, None, fields["time_us"])


def _noted(run: Summary, fields: Fields) -> None:
    _count(run, f"{fields['level']}s")


def _verdict_revised(run: Summary, fields: Fields) -> None:
    names = ("outcome", "rule", "reason_code")
    run["revision"] = {
        **{name: fields[name] for name in names},
        **_policy(fields),
        "reason": clip(fields["reason"]),
        "version": fields["originator_version"],
    }


def _policy(fields: Fields) -> Fields:
    policy = fields["policy"]
    return {"policy": policy["id"], "policy_version": policy["version"]}


def _expectations_declared(run: Summary, fields: Fields) -> None:
    run["expectations"] = small(fields["expectations"])


def _answer_received(run: Summary, fields: Fields) -> None:
    _count(run, "answers")
    if fields["fault"] is not None:
        _count(run, "faults")


def _origin_recorded(run: Summary, fields: Fields) -> None:
    origin = fields["origin"] if isinstance(fields["origin"], dict) else {}
    names = ("kind", "path", "run", "version")
    run["origin"] = {name: clip(origin[name]) for name in names if name in origin}
    if origin.get("kind") == FORK:
        run["worked_us"] = fields["time_us"]


def _maintenance_planned(run: Summary, fields: Fields) -> None:
    names = ("tier", "deadline_us")
    run["maintenance"] = {
        **{name: fields[name] for name in names},
        "options": small(fields["options"]),
        "steps": len(fields["steps"]),
    }


def _maintenance_step_started(run: Summary, fields: Fields) -> None:
    run["maintenance_steps"][fields["step"]] = {
        "status": None,
        "started_us": fields["time_us"],
    }
    keep_newest(run["maintenance_steps"], MOST_STEPS)


def _maintenance_step_ended(run: Summary, fields: Fields) -> None:
    names = ("status", "duration_us", "outcome", "reason_code", "guard", "once")
    begun = run["maintenance_steps"].pop(fields["step"], {})
    run["maintenance_steps"][fields["step"]] = {
        **{name: fields[name] for name in names},
        "summary": clip(fields["summary"]),
        "runs": list(fields["runs"][:MOST_OPEN]),
        "started_us": begun.get("started_us"),
        "ended_us": fields["time_us"],
    }
    keep_newest(run["maintenance_steps"], MOST_STEPS)
    run["futile"] = 0


def _exit_validated(run: Summary, fields: Fields) -> None:
    run["validation"] = {"report": small(fields["report"]), "guard": fields["guard"]}


def _files_removed(run: Summary, _fields: Fields) -> None:
    _count(run, "removals")


def _bodies_archived(run: Summary, fields: Fields) -> None:
    run["bodies"] = {
        "state": "archived",
        "archive": fields["archive"],
        "reason": clip(fields["reason"]),
        "time_us": fields["time_us"],
        "by": fields["by"][0],
    }
    if LOST in run["counters"] or ERASED in run["counters"]:
        run["ended"] = "unreadable"
        run["reason"] = f"its events are in the archive {fields['archive']}, which cannot be read"


def _bodies_erased(run: Summary, fields: Fields) -> None:
    """Forget everything: the summary is the one that the events without bodies fold to."""
    run.update({**new_summary(run["id"]), **{name: run[name] for name in _OF_ERASED}})
    run["counters"] = {ERASED: fields["records"]}
    run["ended"] = "erased"
    run["outcome"] = fields["outcome"]
    run["reason"] = clip(erasure(fields))
    run["finished_us"] = fields["time_us"]
    run["bodies"] = {
        "state": "erased",
        "archive": None,
        "reason": clip(fields["reason"]),
        "time_us": fields["time_us"],
        "by": fields["by"][0],
    }


def _archived(run: Summary, fields: Fields) -> None:
    run["archived"] = fields["location"]


def _count(run: Summary, what: str) -> None:
    counters = run["counters"]
    counters[what] = counters.get(what, 0) + 1


_HANDLERS: dict[str, Callable[[Summary, Fields], None]] = {
    "run.created": _created,
    "run.attempt-started": _attempt_started,
    "run.worker-started": _worker_started,
    "run.recovery-declared": _recovery_declared,
    "run.dependencies-declared": _dependencies_declared,
    "run.card-edited": _card_edited,
    "run.phase-started": _phase_started,
    "run.phase-ended": _phase_ended,
    "run.batches-planned": _batches_planned,
    "run.batch-completed": _batch_completed,
    "run.checkpoint-saved": _checkpoint_saved,
    "run.step-completed": _step_completed,
    "run.progress-reported": _progress_reported,
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
    "run.expectations-declared": _expectations_declared,
    "run.answer-received": _answer_received,
    "run.origin-recorded": _origin_recorded,
    "run.maintenance-planned": _maintenance_planned,
    "run.maintenance-step-started": _maintenance_step_started,
    "run.maintenance-step-ended": _maintenance_step_ended,
    "run.exit-validated": _exit_validated,
    "run.files-removed": _files_removed,
    "run.bodies-archived": _bodies_archived,
    "run.bodies-erased": _bodies_erased,
}
TOPICS = frozenset(_HANDLERS)
"""What this projection wants to see."""
