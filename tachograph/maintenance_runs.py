"""Runs as the original's `maintenance run …` shows them: its fields, from our log. Pure reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.artifact_places import (
    CHECKPOINT,
    EVENTS,
    REPORT,
    SUMMARY,
    VALIDATION,
    cron_files_of,
    job_of,
    named_job,
    place_of,
)
from tachograph.domain.cron_summary import cron_json
from tachograph.domain.event_lines import event_line
from tachograph.domain.iso_time import iso_stamp
from tachograph.domain.job_run_shapes import (
    has_ended,
    outcome_of,
    record_json,
    resume_command,
)
from tachograph.domain.orchestrator_summary import SCHEMA_VERSION
from tachograph.json_files import to_line
from tachograph.reporting_runs import diagnosis, next_step_of
from tachograph.summing_up import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tachograph.domain.run import Run
    from tachograph.payloads import Payloads
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]

JOB, ORCHESTRATOR = "job", "orchestrator"
FAILED_STATUSES = ("failed", "rate_limited")
CHUNK = 200
_OF_THE_END = ("finishedAt", "durationMs", "exitCode", "summaryLine")


def kind_of(run: Run) -> str:
    """Return `orchestrator` for an orchestrator run and a cron line, else `job`."""
    is_line = run.maintenance is not None or run.validation is not None
    return ORCHESTRATOR if is_line else JOB


def names_of(run: Run) -> dict[str, str]:
    """Return the names of the files of a run by kind, as they stand below a root."""
    place = place_of(run)
    return {**place.files, **cron_files_of(run)}


def digest_of(repository: RunRepository, run: Run) -> str:
    """Return the digest of a run's first event: no run of another log has the same."""
    return repository.log.read_stream(run.id, limit=1)[0].digest.hex()


def validation_of(repository: RunRepository, payloads: Payloads, run: Run) -> Any:
    """Return what the validation of a cron job found; None without one."""
    if run.validation is None:
        return None
    version = run.validation["version"]
    (record,) = repository.log.read_stream(run.id, after=version - 1, up_to=version)
    return payloads.load(repository.fields(record).get("report"))


def row(run: Run, path: str, status: str, record: Fields) -> Fields:
    """Return a run as a row of the list; `status` is what it is at this moment."""
    fields: Fields = {
        "kind": kind_of(run),
        "id": run.id,
        "path": path,
        "startedAt": iso_stamp(run.created_us),
    }
    if kind_of(run) == JOB:
        fields["command"] = run.command
        fields["semanticOutcome"] = outcome_of(run)[0]
    elif "exitCode" in record:
        fields["exitCode"] = record["exitCode"]
    return {**fields, "status": status}


def record_of(
    repository: RunRepository, payloads: Payloads, run: Run, paths: Mapping[str, str]
) -> Fields:
    """Return the whole record of a run; of an orchestrator run, its summary so far."""
    digest = digest_of(repository, run)
    if kind_of(run) == JOB:
        return record_json(run, paths, digest=digest)
    found = validation_of(repository, payloads, run)
    if run.maintenance is not None:
        said = summary_json(run, digest, found)
        left_out = () if has_ended(run) else _OF_THE_END
        return {name: said[name] for name in said if name not in left_out}
    return line_json(run, digest, found) or _begun(run, digest)


def orchestrator_json(run: Run, digest: str, validation: Any = None) -> Fields | None:
    """Return the summary of an orchestrator run; None while it has not ended.

    It says by its exit code what the run has come to, and that is not known before.
    """
    return summary_json(run, digest, validation) if has_ended(run) else None


def summary_json(run: Run, digest: str, validation: Any = None) -> Fields:
    """Return the summary of an orchestrator run as it is now, whoever asks for it.

    `digest` is that of the run's first event, as in the record of a job run.
    """
    found = validation if isinstance(validation, dict) else None
    return {**summary(run, job=named_job(run), validation=found), "runDigest": digest}


def line_json(run: Run, digest: str, validation: Any) -> Fields | None:
    """Return the summary of a cron line as far as the log can give it back, or None."""
    said = cron_json(run, validation)
    return None if said is None else {**said, "runDigest": digest}


def _begun(run: Run, digest: str) -> Fields:
    """Return what can be said of a cron line that has not ended."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "runId": run.id,
        "job": job_of(run),
        "tierLabel": "cron",
        "startedAt": iso_stamp(run.created_us),
        "steps": [],
        "runDigest": digest,
    }


def as_of_now(record: Fields, status: str, reason: str | None) -> Fields:
    """Return a record with what is so at this moment, where its outcome leaves that open."""
    if "finishedAt" in record:
        return {**record, "status": record.get("status", status)}
    found = {**record, "status": status}
    if "semanticOutcome" in record:
        found["semanticReason"] = f"{status}: {reason}" if reason else status
    return found


def files(run: Run, path_if_there: Callable[[str], str | None]) -> dict[str, str | None]:
    """Return where the files of a run are, None for one that is not there.

    The log and the ledger of a cron line are beside the folders of the days.
    """
    names = names_of(run)
    if kind_of(run) == JOB:
        kinds = (SUMMARY, EVENTS, CHECKPOINT, REPORT)
        return {kind: path_if_there(names[kind]) for kind in kinds}
    stem = names[SUMMARY].partition("/")[2].removesuffix(".summary.json")
    return {
        "summary": path_if_there(names[SUMMARY]),
        "log": path_if_there(f"{stem}.log"),
        "exit": path_if_there(f"{stem}.exit.txt"),
        "validation": path_if_there(names[VALIDATION]),
    }


def explained(repository: RunRepository, run: Run, record: Fields) -> Fields:
    """Return why a run stands as it does, with the fields of the original."""
    if kind_of(run) == ORCHESTRATOR:
        failed = [step for step in record["steps"] if step["status"] in FAILED_STATUSES]
        return {"diagnosis": _of_orchestrator(run, record, failed), "failedSteps": failed}
    found: Fields = {"diagnosis": diagnosis(run)}
    line = last_line(repository, run)
    if line is not None:
        found["lastEvent"] = line
    if not run.finished:
        command = resume_command(run)
        found["resumeHint"] = next_step_of(run) if command is None else f"Resume with: {command}"
    return found


def _of_orchestrator(run: Run, record: Fields, failed: list[Fields]) -> str:
    said = record.get("summaryLine") or f"Maintenance {record['tierLabel']} has not ended"
    words = [f"{said}.", *(_of_step(step) for step in failed)]
    if run.reason:
        words.append(f"{run.reason.rstrip('.')}.")
    return " ".join(words)


def _of_step(step: Fields) -> str:
    summary = f" ({step['summary']})" if step["summary"] else ""
    nested = f", see run {step['jobRunId']}" if "jobRunId" in step else ""
    return f"Failed step: {step['name']}{summary}{nested}."


def last_line(repository: RunRepository, run: Run) -> str | None:
    """Return the last event of a run that the original knows, as a line of `events.jsonl`."""
    judged = None if run.verdict is None else run.verdict["outcome"]
    up_to: int | None = None
    while records := repository.log.read_stream(run.id, up_to=up_to, limit=CHUNK, reverse=True):
        for record in records:
            line = event_line(record.topic, repository.fields(record), judged)
            if line is not None:
                return to_line(line).decode().rstrip("\n")
        up_to = records[-1].version - 1
    return None
