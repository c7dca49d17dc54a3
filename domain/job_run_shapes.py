"""The record of a job run as the original's readers know it, shaped from a run. Writes no file.

Everything here follows from the log alone: nobody is asked whether a process is alive, since a
file goes on saying what it said when that has changed.
"""

from __future__ import annotations

from tachograph.domain.iso_time import iso_stamp
from tachograph.domain.outcome import FAILED, PARTIAL
from tachograph.domain.owner import Owner
from tachograph.domain.recovery import Recovery
from tachograph.domain.recovery_state import GONE, ending_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tachograph.domain.run_state import Phase, RunState

    Fields = dict[str, Any]

SCHEMA_VERSION = 1

UNFINISHED = "unfinished"
INTERRUPTED = "interrupted"
BLOCKED = "blocked"
NOT_STARTED = "not_started"
"""What a record says of a run that has no outcome; the original has no word for these."""
COMMAND_PHASE = "exec"
"""The phase that a wrapped command is; `tachograph.executing` begins it."""


def record_json(run: RunState, paths: Mapping[str, str], *, digest: str) -> Fields:
    """Return the record of a job run: the fields of the original in their order, then ours.

    `paths` are the absolute paths of the files that belong to it now, by kind; `digest` is that
    of the run's first event in the chain, which tells it from a run of another store.
    """
    outcome, reason = outcome_of(run)
    optional: dict[str, Any] = {
        "orchestratorRunId": run.parent,
        "modelPolicy": _model_policy(run.model_policy),
        "finishedAt": _finished_at(run),
        "semanticReason": reason,
        "progress": _progress(run),
        "diagnostics": diagnostics(run) or None,
        "resumeCommand": resume_command(run),
    }
    record: Fields = {
        "schemaVersion": SCHEMA_VERSION,
        "jobRunId": run.id,
        "command": run.command,
        "orchestratorRunId": None,
        "inputFingerprint": run.fingerprint,
        "modelPolicy": None,
        "startedAt": iso_stamp(run.created_us),
        "finishedAt": None,
        "phases": [_phase(run, phase) for phase in run.phases.values()],
        "semanticOutcome": outcome,
        "semanticReason": None,
        "progress": None,
        "diagnostics": None,
        "artifactPaths": dict(paths),
        "resumeCommand": None,
        **_ours(run, digest),
    }
    record.update(optional)
    return {name: value for name, value in record.items() if value is not None}


def _ours(run: RunState, digest: str) -> Fields:
    """Return what the original has no field for; what is not so is left out."""
    revision = run.revision or {}
    return {
        "status": status_of(run),
        "attempt": run.epoch,
        "reasonCode": run.reason_code,
        "rule": None if run.verdict is None else run.verdict["rule"],
        "revisedOutcome": revision.get("outcome"),
        "effectsInDoubt": run.effects_in_doubt or None,
        "needsAttention": sorted(run.attention) or None,
        "runDigest": digest,
    }


def status_of(run: RunState) -> str:
    """Return what the log says of a run: its outcome, how it was ended, or what it lacks.

    Never `running`: whether its process lives is judged when somebody looks, not when a file is
    written (G7).
    """
    if run.ended is not None:
        return run.ended
    if run.outcome is not None:
        return run.outcome
    if run.blocked is not None:
        return BLOCKED
    if not run.epoch:
        return NOT_STARTED
    if not run.attempt_open or run.noted == GONE:
        return INTERRUPTED
    return UNFINISHED


def outcome_of(run: RunState) -> tuple[str, str | None]:
    """Return the outcome for a reader of the original's files, and the reason.

    What is not finished is `partial`, never `success`: some units are done, it can go on, and no
    `finishedAt` stands beside it. What a person ended for good is `failed`.
    """
    status = status_of(run)
    if run.ended is not None:
        return FAILED, f"{run.ended}: {run.reason}"
    if run.outcome is not None:
        return run.outcome, run.reason
    return PARTIAL, f"{status.replace('_', ' ')}: {unfinished_reason(run)}"


def unfinished_reason(run: RunState) -> str:
    """Say what the log knows of a run that has no outcome."""
    if run.blocked is not None:
        return run.blocked
    if not run.epoch:
        waited = ", ".join(run.depends_on)
        return f"it waits for {waited}" if waited else "no attempt has started"
    if not run.attempt_open:
        return f"the resume that was attempt {run.epoch} has returned, and it is not finished"
    owner = str(Owner.from_fields(run.worker or run.owner or {}))
    if run.noted == GONE:
        return f"attempt {run.epoch} by {owner} was cut off"
    return (
        f"attempt {run.epoch} by {owner} has not ended (tacho run status {run.id} says whether "
        "it is alive)"
    )


def resume_command(run: RunState) -> str | None:
    """Return the words that resume the run; None when nothing does."""
    if run.finished or not Recovery.from_fields(run.recovery).can_be_dispatched:
        return None
    return f"tacho run resume {run.id}"


def diagnostics(run: RunState) -> dict[str, int]:
    """Return what was counted in a run, by name; what was never seen is left out."""
    phases = list(run.phases.values())
    counts = {
        "batches": sum(len(phase.done) for phase in phases),
        "itemsIn": sum(phase.inputs or 0 for phase in phases),
        "itemsParsed": sum(phase.parsed or 0 for phase in phases),
        "retries": run.retries,
        "fallbacks": run.fallbacks,
        "recoveredFaults": sum(answers.recovered for answers in run.answers.values()),
        "resumes": run.resumes,
    }
    for answers in run.answers.values():
        for kind, count in answers.unmended().items():
            counts[f"{kind}Faults"] = counts.get(f"{kind}Faults", 0) + count
    return {name: count for name, count in counts.items() if count}


def progress_of(run: RunState) -> tuple[int, int | None, str] | None:
    """Return how far a run is: units done, of how many where that is known, and of what.

    What the run reported counts first, then the batches of its latest running (else latest)
    phase, then its last offset checkpoint.
    """
    if run.progress is not None:
        return run.progress["completed"], run.progress["total"], run.progress["unit"]
    latest: Phase | None = None
    for phase in run.phases.values():
        counts = phase.total is not None or len(phase.done)
        if counts and (phase.status == "running" or latest is None or latest.status != "running"):
            latest = phase
    if latest is not None:
        return len(latest.done), latest.total, "batches"
    saved = run.checkpoint
    if saved is not None and saved["kind"] == "offset":
        return saved["state"]["offset"], saved["state"]["total"], "items"
    return None


def _progress(run: RunState) -> Fields | None:
    """Return the progress of a record, which has a whole; without one it has none."""
    found = progress_of(run)
    if found is None or found[1] is None:
        return None
    return dict(zip(("completedUnits", "totalUnits", "unitLabel"), found, strict=True))


def has_ended(run: RunState) -> bool:
    """Say whether the current attempt has ended by its own word, or the run for good."""
    return run.ended is not None or run.outcome is not None


def _finished_at(run: RunState) -> str | None:
    return iso_stamp(run.ended_us) if has_ended(run) and run.ended_us is not None else None


def phase_status(run: RunState, phase: Phase) -> str:
    """Return the status of a phase; one that was running when its attempt ended has failed.

    It is taken up again when the run is resumed.
    """
    if phase.status == "running" and status_of(run) not in (UNFINISHED, BLOCKED):
        return "failed"
    return phase.status


def phase_summary(run: RunState, phase: Phase) -> str | None:
    """Return what a phase says of its end; where it had none, what came of it.

    A wrapped command that ended badly leaves its phase open, so that a resume runs it again.
    """
    if phase.summary or phase_status(run, phase) == phase.status:
        return phase.summary
    if phase.name != COMMAND_PHASE or ending_key(run.epoch) not in run.steps:
        return "cut off before its end"
    said = None if run.ended is not None else run.reason
    return said or "its command ended, and not well"


def _phase(run: RunState, phase: Phase) -> Fields:
    fields = {
        "name": phase.name,
        "status": phase_status(run, phase),
        "summary": phase_summary(run, phase),
        "startedAt": iso_stamp(phase.started_us) if phase.started_us else None,
        "finishedAt": None if phase.ended_us is None else iso_stamp(phase.ended_us),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _model_policy(policy: Any) -> Fields | None:
    if isinstance(policy, str):
        return {"model": policy, "fallbacks": []}
    if not isinstance(policy, dict) or not isinstance(policy.get("model"), str):
        return None
    fallbacks = policy.get("fallbacks")
    listed = fallbacks if isinstance(fallbacks, list | tuple) else ()
    return {"model": policy["model"], "fallbacks": [str(each) for each in listed]}
