"""Read a tree of artifact files by the rules of the original's loaders. Knows none of our code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Fields = dict[str, Any]

RECORD_FIELDS = (
    "schemaVersion", "jobRunId", "command", "orchestratorRunId", "inputFingerprint",
    "modelPolicy", "startedAt", "finishedAt", "phases", "semanticOutcome", "semanticReason",
    "progress", "diagnostics", "artifactPaths", "resumeCommand",
)  # fmt: skip
REQUIRED = (
    "schemaVersion", "jobRunId", "command", "inputFingerprint", "startedAt", "phases",
    "semanticOutcome", "artifactPaths",
)  # fmt: skip
OUTCOMES = (
    "success", "success_with_review", "partial", "failed", "skipped", "empty",
    "failed_semantic_empty",
)  # fmt: skip
PHASE_STATUSES = ("pending", "running", "completed", "failed", "skipped")
LINE_FIELDS = {
    "phase_start": ("phase", "ts"),
    "phase_end": ("phase", "status", "ts", "summary"),
    "batch_complete": ("index", "ts", "parsed"),
    "retry": ("kind", "attempt", "ts", "model"),
    "fallback": ("from", "to", "ts"),
    "semantic_gate": ("outcome", "reason", "ts"),
}


def load(path: Path) -> Fields | None:
    """Return the record in a summary.json; None when it is missing, torn, or of another schema."""
    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or record.get("schemaVersion") != 1:
        return None
    paths = record["artifactPaths"]
    paths.setdefault("checkpoint", str(path.parent / "checkpoint.json"))
    return record


def events(path: Path) -> list[Fields]:
    """Return the events of a file; blank and unparsable lines are skipped."""
    found = []
    for line in path.read_text("utf-8").split("\n") if path.exists() else ():
        if line.strip():
            try:
                found.append(json.loads(line.strip()))
            except ValueError:
                continue
    return found


def catalogue(root: Path) -> list[tuple[str, str]]:
    """Return (kind, id) of each run that the original's `maintenance run list` would find."""
    found = []
    for path in sorted(root.rglob("*.json")):
        value: Any = None if path.name.startswith(".") else json.loads(path.read_text("utf-8"))
        if path.name == "summary.json" and path.parent.parent.name in (
            "job-runs",
            "job-runs-standalone",
        ):
            if value["schemaVersion"] == 1 and value["jobRunId"]:
                found.append(("job", value["jobRunId"]))
        elif path.name.endswith(".summary.json"):
            found.append(("orchestrator", value["runId"]))
    return found


def check_record(record: Fields) -> None:
    """Hold a record to the types and the order of the original's fields."""
    ours = [name for name in record if name in RECORD_FIELDS]
    assert ours == [name for name in RECORD_FIELDS if name in record]
    assert list(record)[: len(ours)] == ours  # what is ours alone comes after
    assert set(REQUIRED) <= set(record)
    assert None not in record.values()
    assert record["semanticOutcome"] in OUTCOMES
    assert isinstance(record["artifactPaths"]["summary"], str)
    assert isinstance(record["artifactPaths"]["events"], str)
    for phase in record["phases"]:
        assert phase["status"] in PHASE_STATUSES
        assert set(phase) <= {"name", "status", "summary", "startedAt", "finishedAt"}
    for count in record.get("diagnostics", {}).values():
        assert isinstance(count, int)
    progress = record.get("progress")
    if progress is not None:
        assert list(progress) == ["completedUnits", "totalUnits", "unitLabel"]
        assert isinstance(progress["totalUnits"], int)


def check_line(line: Fields) -> None:
    """Hold an event to the fields of the original, in their order; `version` is ours."""
    allowed = ("type", *LINE_FIELDS[line["type"]], "version")
    assert list(line) == [name for name in allowed if name in line]
    assert set(line) >= {name for name in allowed if name not in ("summary", "parsed", "model")}
