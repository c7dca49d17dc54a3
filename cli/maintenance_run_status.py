"""`tacho maintenance run status`: the record of a run, with the fields of the original."""

from __future__ import annotations

from tachograph.cli.maintenance_runs import opened, record_now
from tachograph.cli.options import Argument, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Show the record of a run.",
    Argument("run", "The run; a prefix of its id will do.", complete="run"),
    details="The record is what summary.json holds, of a run of any age; `status` says what is so "
    "now. `tacho run status` shows more.",
)


def run(params: Params, out: Output) -> None:
    """Print the record."""
    services, found = opened(params, out)
    record = record_now(services, found, out)
    if out.json:
        out.document(record)
        return
    for line in _of_job(record) if "jobRunId" in record else _of_orchestrator(record):
        out.line(line)


def _of_orchestrator(record: dict[str, Any]) -> Iterator[str]:
    yield f"Orchestrator run {record['runId']}"
    code, took = record.get("exitCode", "-"), record.get("durationMs", "-")
    yield f"  tier={record['tierLabel']} exit={code} durationMs={took} status={record['status']}"
    if "summaryLine" in record:
        yield record["summaryLine"]


def _of_job(record: dict[str, Any]) -> Iterator[str]:
    yield f"JobRun {record['jobRunId']} command={record['command']}"
    yield (
        f"  semantic={record['semanticOutcome']} started={record['startedAt']} "
        f"finished={record.get('finishedAt', '-')} status={record['status']}"
    )
    if "semanticReason" in record:
        yield f"  reason={record['semanticReason']}"
    progress = record.get("progress")
    if progress is not None:
        done, total = progress["completedUnits"], progress["totalUnits"]
        yield f"  progress={done}/{total} {progress['unitLabel']}"
