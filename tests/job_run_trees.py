"""Invented folders of job runs, as other tools leave them. Holds no test."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    Fields = dict[str, Any]

START = datetime(2026, 3, 1, 2, 30, tzinfo=UTC)
ORCHESTRATOR = "20260301T023000Z-4711"
COMMAND = "tidy-index"
FINGERPRINT = "0dc845e1"
JOB = f"job-{COMMAND}-{FINGERPRINT}"


def at(seconds: float = 0, days: int = 0) -> str:
    """Return a moment so long after START, as the files write it."""
    moment = START + timedelta(days=days, seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def at_us(seconds: float = 0, days: int = 0) -> int:
    """Return the same moment in microseconds since 1970."""
    moment = START + timedelta(days=days, seconds=seconds)
    return round(moment.timestamp() * 1000) * 1000


def phase(name: str, status: str, begin: str, end: str | None = None, **more: Any) -> Fields:
    """Return a phase of a summary."""
    said = {"name": name, "status": status, "startedAt": begin, **more}
    return said if end is None else {**said, "finishedAt": end}


def summary(**changes: Any) -> Fields:
    """Return the summary of a run that went well; None as a value removes a field."""
    said = {
        "schemaVersion": 1,
        "jobRunId": JOB,
        "command": COMMAND,
        "orchestratorRunId": ORCHESTRATOR,
        "inputFingerprint": FINGERPRINT,
        "modelPolicy": {"model": "large", "fallbacks": ["small"]},
        "startedAt": at(5),
        "finishedAt": at(60),
        "phases": [
            phase("extract", "completed", at(6), at(7), summary="incidents=7"),
            phase("analyze", "completed", at(8), at(59)),
        ],
        "semanticOutcome": "success",
        "progress": {"completedUnits": 3, "totalUnits": 3, "unitLabel": "batches"},
        "diagnostics": {"retryCount": 2},
        "artifactPaths": {"summary": "/gone/summary.json", "events": "/gone/events.jsonl"},
        "resumeCommand": "openclaw hybrid-mem tidy-index",
        **changes,
    }
    return {name: value for name, value in said.items() if value is not None}


def cut_off(**changes: Any) -> Fields:
    """Return the summary of a run that was killed: success from the start, and no end."""
    phases = [
        phase("extract", "completed", at(6), at(7)),
        phase("analyze", "running", at(8)),
    ]
    return summary(finishedAt=None, phases=phases, **changes)


def event(event_type: str, ts: str, **fields: Any) -> Fields:
    """Return an event."""
    return {"type": event_type, "ts": ts, **fields}


def opening(seconds: float = 0, days: int = 0) -> list[Fields]:
    """Return the events of an attempt up to its phase `analyze`."""
    return [
        event("phase_start", at(6 + seconds, days), phase="extract"),
        event("phase_end", at(7 + seconds, days), phase="extract", status="completed"),
        event("phase_start", at(8 + seconds, days), phase="analyze"),
    ]


def ending(outcome: str, seconds: float = 0, days: int = 0, status: str = "completed") -> Any:
    """Return the events with which an attempt ends."""
    return [
        event("semantic_gate", at(58 + seconds, days), outcome=outcome, reason=f"so {outcome}"),
        event("phase_end", at(59 + seconds, days), phase="analyze", status=status),
    ]


def batches(done: list[int], *, size: int = 3, total: int = 3, **changes: Any) -> Fields:
    """Return a batch checkpoint in which each item names its global index."""
    items = [
        {"incidentIndex": index * size + place, "remediationType": "NO_ACTION"}
        for index in done
        for place in range(1 if index == total - 1 else size)
    ]
    return {
        "version": 1,
        "incidentsHash": FINGERPRINT,
        "batchSize": size,
        "totalBatches": total,
        "completedBatchIndexes": done,
        "analysed": items,
        "diagnostics": {"retryCount": 2},
        "updatedAt": at(40),
        **changes,
    }


def put(
    root: Path,
    said: Fields | str | None,
    events: list[Fields] | str | None = None,
    checkpoint: Any = None,
    *,
    day: str = "20260301",
    segment: str = "job-runs",
    name: str = JOB,
) -> Path:
    """Write the folder of a job run; a text is written as it is."""
    folder = root / day / segment / name
    folder.mkdir(parents=True, exist_ok=True)
    if said is not None:
        _write(folder / "summary.json", said)
    if events is not None:
        lines = "".join(json.dumps(each) + "\n" for each in events)
        _write(folder / "events.jsonl", events if isinstance(events, str) else lines)
    if checkpoint is not None:
        _write(folder / "checkpoint.json", checkpoint)
    return folder


def _write(path: Path, value: Any) -> None:
    text = value if isinstance(value, str) else json.dumps(value, indent=2) + "\n"
    path.write_text(text, encoding="utf-8")


def orchestrator(root: Path, day: str = "20260301", **changes: Any) -> Path:
    """Write the summary of an orchestrator run."""
    said = {
        "schemaVersion": 1,
        "runId": ORCHESTRATOR,
        "job": "maintenance-nightly",
        "tierLabel": "nightly",
        "startedAt": at(0),
        "finishedAt": at(120),
        "durationMs": 120_000,
        "exitCode": 0,
        "summaryLine": "Maintenance nightly: 2 steps",
        "steps": [
            {"name": "prune", "status": "ok", "summary": "removed=3", "durationMs": 2000},
            {
                "name": COMMAND,
                "status": "ok",
                "summary": f"jobRunId={JOB} semantic=success",
                "durationMs": 60_000,
                "jobRunId": JOB,
                "semanticOutcome": "success",
            },
            {"name": "reflect", "status": "skipped_guard", "summary": "", "durationMs": 0},
        ],
        **changes,
    }
    path = root / day / f"maintenance-nightly-{said['runId']}.summary.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, said)
    return path
