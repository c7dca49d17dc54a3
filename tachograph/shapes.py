"""The JSON shapes of runs: camelCase names, times as ISO 8601 texts in UTC. Pure functions.

They take what `reading` answers. Free values that a job recorded (inputs, model policy) keep the
names of their parts.
"""

from __future__ import annotations

from tachograph.domain.iso_time import iso
from tachograph.domain.outcome import is_terminal
from tachograph.domain.recovery import Recovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.domain.plan import Plan
    from tachograph.resuming import Resumption

    Fields = dict[str, Any]

SCHEMA_VERSION = 1
"""Of the shape of a run; raised when a field changes its meaning or is removed."""

_TIMES = {"time_us": "at", "end_us": "endedAt"}


def card_shape(run: Fields) -> Fields:
    """Return one row of `run list`."""
    return {
        "jobRunId": run["id"],
        "command": run["command"],
        "title": run["title"],
        "orchestratorRunId": run["parent"],
        "status": run["status"],
        "statusReason": run["status_reason"],
        "liveness": run["liveness"],
        "semanticOutcome": run["outcome"],
        "reasonCode": run["reason_code"],
        "startedAt": iso(run["created_us"]),
        "finishedAt": iso(run["finished_us"]),
        "updatedAt": iso(run["updated_us"]),
        "lastSeenAt": iso(run["seen_us"]),
        "epoch": run["epoch"],
        "owner": _shape(run["owner"]),
        "worker": _shape(run["worker"]),
        "dependsOn": list(run["depends_on"]),
        "progress": progress_shape(run["progress"]),
        "blocked": run["blocked"],
        "needsAttention": bool(run["attention"]),
        "origin": _shape(run["origin"]),
        "revision": _shape(run["revision"]),
    }


def summary_shape(run: Fields) -> Fields:
    """Return a run as `run status` shows it: the record of a job run, and what came to it."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        **card_shape(run),
        "semanticReason": run["reason"],
        "inputFingerprint": run["fingerprint"],
        "inputs": run["inputs"],
        "modelPolicy": run["model_policy"],
        "phases": [{"name": name, **_shape(phase)} for name, phase in run["phases"].items()],
        "phasesOmitted": run["phases_omitted"],
        "verdict": _shape(run["verdict"]),
        "checkpoint": _shape(run["checkpoint"]),
        "diagnostics": dict(run["counters"]),
        "artifacts": [
            {"name": name, **_shape(artifact)} for name, artifact in run["artifacts"].items()
        ],
        "effectsInDoubt": [
            {"key": key, **_shape(effect)} for key, effect in run["effects"].items()
        ],
        "approvals": [
            {"approval": approval, "requestedAt": iso(time_us)}
            for approval, time_us in run["approvals"].items()
        ],
        "attention": [
            {"reason": reason, "detail": detail} for reason, detail in run["attention"].items()
        ],
        "attempts": [
            {**_shape(attempt), "owner": _shape(attempt["owner"])} for attempt in run["attempts"]
        ],
        "recovery": _shape(run["recovery"]),
        "stall": _shape(run["stall"]),
        "resume": _shape(run["resume"]),
        "retryCount": run["futile"],
        "archived": run["archived"],
        "bodies": _shape(run["bodies"]),
        "version": run["version"],
        "lastPosition": run["updated_position"],
        "resumeCommand": _resume_command(run),
    }


def _resume_command(run: Fields) -> str | None:
    """Return what a person can type to resume the run; None when nothing resumes it."""
    if run["ended"] is not None or is_terminal(run["outcome"], run["reason_code"]):
        return None
    if not Recovery.from_fields(run["recovery"]).can_be_dispatched:
        return None
    from shlex import quote

    return f"tacho run resume {quote(run['id'])}"


def plan_shape(plan: Plan) -> Fields:
    """Return a plan of a resume."""
    fields = plan.to_fields()
    return {
        "jobRunId": plan.run_id,
        "version": plan.version,
        "epoch": plan.epoch,
        "unattended": plan.unattended,
        "fromVersion": plan.from_version,
        "checkpoint": plan.checkpoint,
        "phases": [_shape(phase) for phase in plan.phases],
        "steps": plan.steps,
        "effects": plan.effects,
        "artifacts": plan.artifacts,
        "files": plan.traces,
        "approvals": plan.approvals,
        "waitingFor": plan.waiting_for,
        "execute": _shape(plan.execute),
        "retries": _shape(plan.retries),
        "obstacles": fields["obstacles"],
        "canResume": not plan.obstacles,
    }


def resumption_shape(run_id: str, done: Resumption) -> Fields:
    """Return what came of a resume."""
    result = _shape({name: value for name, value in done.result.items() if name != "stderr"})
    return {
        "jobRunId": run_id,
        "epoch": done.epoch,
        "progressed": done.progressed,
        "fenced": done.fenced,
        "outcome": done.outcome,
        "error": done.error,
        "fromVersion": done.from_version,
        "execute": _shape(done.execute),
        "result": result,
    }


def explanation_shape(audit: Fields) -> Fields:
    """Return why a run stands as it does; `audit` is that of `auditing.audit`."""
    names = {"run_id": "jobRunId", "outcome": "semanticOutcome", "reason": "semanticReason"}
    names |= {"judged": "verdict"}
    shaped: Fields = {
        names.get(name) or _camel(name): _deep(value) for name, value in audit.items()
    }
    if audit["resume"] is not None:  # what an adapter said keeps its own names
        shaped["resume"]["result"] = _shape(audit["resume"]["result"])
    shaped["attention"] = [
        {"reason": reason, "detail": detail} for reason, detail in audit["attention"].items()
    ]
    return shaped


def _deep(value: Any) -> Any:
    """Return stored fields with the names and times of JSON, however deep."""
    if isinstance(value, list):
        return [_deep(each) for each in value]
    if type(value) is dict:
        return {name: _deep(each) for name, each in _shape(value).items()}
    return value


def timeline_shape(entries: list[Fields]) -> list[Fields]:
    """Return the entries of a timeline."""
    return [
        {
            "kind": entry["kind"],
            "version": entry["version"],
            **_shape(entry),
            **({"owner": _shape(entry["owner"])} if "owner" in entry else {}),
            "durationSeconds": _duration(entry),
        }
        for entry in entries
    ]


def progress_shape(progress: Fields | None) -> Fields | None:
    """Return how far a run is."""
    if progress is None:
        return None
    return {
        "completedUnits": progress["completed"],
        "totalUnits": progress["total"],
        "unitLabel": progress["unit"],
    }


def _shape(fields: Any) -> Any:
    """Return stored fields with the names and times of JSON; anything else as it is."""
    if type(fields) is not dict:
        return fields
    shaped = {}
    for name, value in fields.items():
        if name.endswith("_us"):
            shaped[_TIMES.get(name) or _camel(name[:-3] + "_at")] = iso(value)
        else:
            shaped[_camel(name)] = value
    return shaped


def _camel(name: str) -> str:
    """Return a name as JSON writes it.

    >>> _camel("reason_code")
    'reasonCode'
    """
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _duration(entry: Fields) -> float | None:
    """Return the length of a span that has ended, in seconds by the clock of that time."""
    if entry.get("end_us") is None:
        return None
    return (entry["end_us"] - entry["time_us"]) / 1_000_000  # type: ignore[no-any-return]
