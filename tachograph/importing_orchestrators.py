"""Take the summaries of orchestrator runs into the log: their steps, and the runs below them.

Job runs are imported first, so that a step can name the run that its job run became.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph.domain import ids, outcome
from tachograph.domain.errors import RefusalError, SecretLeftError, UnstorableValueError
from tachograph.domain.roll_up import roll_up
from tachograph.domain.run import Run
from tachograph.import_desk import IMPORTED, KIND, KNOWN, LEFT_ALONE, UNREADABLE, Row, status
from tachograph.job_run_records import head_fault, outcome_of
from tachograph.record_files import Problem, is_count, moment_us, text_or_none
from tachograph.record_times import end_of
from tachograph.retelling import CONTRADICTORY
from tachograph.telling import NOBODY

if TYPE_CHECKING:
    from tachograph.import_desk import Desk
    from tachograph.telling import Voice

    Fields = dict[str, Any]

SECOND_US = 1_000_000
"""Times of a summary are rounded, and durations on their own."""
_OUTCOMES = {0: outcome.SUCCESS, 1: outcome.FAILED, 2: outcome.PARTIAL}
"""By exit code, where it is not what the steps come to: all is well, a step failed, one is left."""


def summary_fault(value: Any) -> str | None:
    """Say why JSON is no summary of an orchestrator run; None when it is one."""
    fault = head_fault(value, "runId", "tierLabel")
    if fault is not None:
        return fault
    for name in ("startedAt", "finishedAt"):
        if moment_us(value.get(name)) is None:
            return f"its {name} is {value.get(name)!r}, no time"
    if value.get("exitCode") not in _OUTCOMES or isinstance(value["exitCode"], bool):
        return f"its exitCode is {value.get('exitCode')!r}, none of 0, 1, 2"
    steps = value.get("steps")
    if not isinstance(steps, list):
        return "its steps are no list"
    return next((fault for fault in map(_step_fault, steps) if fault is not None), None)


def take_orchestrator(desk: Desk, path: str, digest: str, summary: Fields) -> Row:
    """Record an orchestrator run, unless the log has it. Durable on return, with `apply`."""
    row = Row("orchestrator", path, IMPORTED)
    run = desk.repository.get(summary["runId"])
    row.runs.append(summary["runId"])
    if run is not None:
        row.status = status(run)
        row.state = KNOWN
        if _differs(run, digest):
            row.state = LEFT_ALONE
            row.problems.append(Problem(path, f"it differs from the one that {run.id} is from"))
        return row
    try:
        run = _told(desk, path, digest, summary, row)
        desk.save(run)
    except (RefusalError, UnstorableValueError, SecretLeftError) as error:
        row.state = UNREADABLE
        row.problems.append(Problem(path, str(error)))
        return row
    row.status = status(run)
    row.attempts = 1
    return row


def _differs(run: Run, digest: str) -> bool:
    """Say whether a run was imported from another file than this."""
    origin = run.origin if isinstance(run.origin, dict) else {}
    return origin.get("kind") == KIND and origin.get("sha256") != digest


def _told(desk: Desk, path: str, digest: str, summary: Fields, row: Row) -> Run:
    """Return a run that has been told everything its summary says."""
    started_us = moment_us(summary["startedAt"]) or 0
    finished_us, doubts = _end_of(summary, started_us, desk.latest_us)
    first = desk.voice(Run()).at(started_us)
    tier, job = summary["tierLabel"], summary.get("job")
    run = Run.create(
        first,
        summary["runId"],
        command=f"maintenance-{tier}",
        fingerprint=ids.fingerprint({"tier": tier}),
        inputs={},
        inputs_digest=desk.digest({}, "inputs"),
        title=text_or_none(job),
    )
    voice = desk.voice(run)
    run.start_attempt(voice.at(started_us), NOBODY, live_owner=None)
    names = [step["name"] for step in summary["steps"]]
    said = None if text_or_none(job) is None else {"job": job}
    run.plan_maintenance(voice.at(), tier, list(dict.fromkeys(names)), options=said)
    at_us = started_us
    for step in summary["steps"]:
        at_us += _duration_us(step)
        _tell_step(desk, voice, step, min(at_us, finished_us), row)
    code, line = summary["exitCode"], text_or_none(summary.get("summaryLine"))
    come_to = roll_up(run.maintenance_steps)
    found, reason_code = come_to.outcome, come_to.reason_code
    if come_to.exit_code != code:
        voice.note(f"Its exit code is {code}; its steps come to {come_to.exit_code}.")
        found, reason_code = max(_OUTCOMES[code], found, key=outcome.severity), CONTRADICTORY
    if doubts:
        row.problems.append(Problem(path, f"it contradicts itself: {'; '.join(doubts)}"))
        voice.note(f"Its record contradicts itself: {'; '.join(doubts)}.")
        found = max(outcome.SUCCESS_WITH_REVIEW, found, key=outcome.severity)
        reason_code = CONTRADICTORY
    run.finish(voice.at(finished_us), found, reason=line, reason_code=reason_code)
    origin = {"kind": KIND, "path": path, "sha256": digest}
    if "validation" in summary:
        origin["validation"] = summary["validation"]
    run.record_origin(voice.at(), origin)
    return run


def _end_of(summary: Fields, started_us: int, latest_us: int) -> tuple[int, list[str]]:
    """Return when a run ended, and what of its times cannot be."""
    finished_us, fault = end_of(summary, started_us, latest_us)
    ended_us = started_us if finished_us is None else finished_us
    if fault is not None:
        return ended_us, [f"its {fault}"]
    took_us = ended_us - started_us + SECOND_US
    return ended_us, [
        f"its step {step['name']} took longer than all of it"
        for step in summary["steps"]
        if _duration_us(step) > took_us
    ]


def _tell_step(desk: Desk, voice: Voice, step: Fields, time_us: int, row: Row) -> None:
    nested, result = step.get("jobRunId"), None
    if step.get("semanticOutcome") is not None:
        result, unknown = outcome_of(step["semanticOutcome"])
        if unknown is not None:
            row.problems.append(Problem(row.path, f"step {step['name']}: {unknown}"))
    status_of, said = step["status"], step.get("summary")
    meant = outcome.from_step_status(status_of, result)
    voice.run.end_maintenance_step(
        voice.at(time_us),
        step["name"],
        status_of,
        text_or_none(said) or status_of,
        duration_us=_duration_us(step),
        runs=[_run_of(desk, nested, voice.run.id)] if isinstance(nested, str) else [],
        result=result,
        guard=status_of == "ok" and not outcome.traits(meant).withholds_guard,
    )


def _run_of(desk: Desk, job_run_id: str, parent: str) -> str:
    """Return the run that a job run of this orchestrator run became."""
    number = 1
    while (run := desk.repository.get(ids.execution_id(job_run_id, number))) is not None:
        sources = run.origin.get("sources", ()) if isinstance(run.origin, dict) else ()
        if run.parent == parent or any(
            source.get("orchestratorRunId") == parent for source in sources
        ):
            return run.id
        number += 1
    return job_run_id


def _step_fault(step: Any) -> str | None:
    if not isinstance(step, dict) or not isinstance(step.get("name"), str) or not step["name"]:
        return "one of its steps has no name"
    if step.get("status") not in outcome.STEP_STATUSES:
        return f"its step {step['name']} has the unknown status {step.get('status')!r}"
    return None


def _duration_us(step: Fields) -> int:
    said: Any = step.get("durationMs")
    return said * 1000 if is_count(said) and said < 2**48 else 0
