"""Write the golden files of event schemas that have none yet. Never changes a file that exists.

    python tests/golden/make_golden.py

For each topic and version, `<topic>/v<N>.json` holds the body of one event as version N stored it
(`body`, hex), what it says (`fields`), and what the samples of all earlier versions have become
once they are upcast to N (`upcast`). Read the new file before you commit it: from then on it is
what that version of Tachograph has written.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tachograph.domain import event_types
from tachograph.infra.codec import Codec

FOLDER = Path(__file__).resolve().parent

COMMON = {"time_us": 1_700_000_000_123_456, "by": ["tacho", "ada", 17, 1]}

# One event of each topic, in the order in which they could happen to one run, job or action.
SAMPLES: dict[str, dict[str, Any]] = {
    "run.created": {
        "command": "code-report",
        "fingerprint": "0dc845e1",
        "inputs": {"root": "/src", "files": ["a.py", "ä.py"], "limit": None},
        "inputs_digest": "8e2f5a31c0d94b7e8e2f5a31c0d94b7e",
        "title": "Weekly report",
        "parent": "orch-20240508T021530Z-7",
        "model_policy": {"model": "large", "fallbacks": ["small"]},
    },
    "run.attempt-started": {
        "epoch": 1,
        "owner": {
            "kind": "process",
            "host": "ada",
            "boot_id": "5c1e8d0a-3c55-4a5a-9f3e-0f5b1f0c9a11",
            "pid": 17,
            "started": 123456,
            "pid_namespace": "4026531836",
        },
        "reason": "the first one hangs",
        "orchestrator": "orch-20240508T021530Z-7",
    },
    "run.worker-started": {
        "worker": {"kind": "process", "host": "ada", "pid": 18, "started": 123460},
        "joined": False,
    },
    "run.recovery-declared": {
        "recovery": {"adapter": "jobs.report:resume", "auto_resume": True, "max_retries": 5},
        "reason": "it fails on Mondays",
    },
    "run.dependencies-declared": {"runs": ["job-collect-1f0e3dad", "job-index-2"]},
    "run.phase-started": {"phase": "parse", "safe_to_retry": True},
    "run.batches-planned": {
        "phase": "parse",
        "total": 3,
        "size": 50,
        "items_digest": "00112233445566778899aabbccddeeff",
    },
    "run.batch-completed": {
        "phase": "parse",
        "index": 0,
        "inputs": 50,
        "parsed": 49,
        "output": [{"file": "a.py", "lines": 120, "score": 0.5, "flags": [True, None]}],
    },
    "run.checkpoint-saved": {
        "phase": "parse",
        "kind": "offset",
        "state": {"offset": 200, "total": 500, "migrated": 198, "skipped": 2},
    },
    "run.step-completed": {"key": "load(8e2f5a31)", "result": {"rows": 7}},
    "run.progress-reported": {"completed": 50, "total": 150, "unit": "files"},
    "run.retry-scheduled": {
        "kind": "parse",
        "attempt": 2,
        "delay_seconds": 1.5,
        "error": "answer is not JSON",
        "model": "large",
    },
    "run.fallback-taken": {"source": "large", "target": "small", "reason": "rate limit"},
    "run.semantic-gate-judged": {
        "gate": "default",
        "outcome": "success_with_review",
        "rule": "fewer-outputs",
        "reason_code": "fewer_outputs",
        "reason": "49 of 50 items came out",
        "rule_version": 2,
        "facts": {"asked": 50, "answered": 50, "inputs": 50, "outputs": 49, "parser_faults": 1},
        "evidence": {"inputs": [5, 5, 1], "outputs": [5, 5, 1], "parser_faults": [9, 9, 1]},
        "policy": {
            "id": "weekly",
            "version": 3,
            "digest": "00112233445566778899aabbccddeeff",
            "rules": None,
        },
    },
    "run.artifact-recorded": {
        "name": "report",
        "path": "out/report.html",
        "size": 4096,
        "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    },
    "run.effect-intended": {"key": "mail", "description": "weekly mail", "idempotent": False},
    "run.effect-retry-allowed": {"key": "mail", "reason": "the outbox is empty"},
    "run.effect-done": {"key": "mail", "result": {"message": 7}, "reason": "it is in the outbox"},
    "run.approval-requested": {
        "approval": "deploy",
        "subject": {"version": "1.2"},
        "subject_digest": "ffeeddccbbaa99887766554433221100",
    },
    "run.approval-granted": {
        "approval": "deploy",
        "subject_digest": "ffeeddccbbaa99887766554433221100",
        "reason": "looks right",
    },
    "run.approval-rejected": {
        "approval": "deploy",
        "subject_digest": "ffeeddccbbaa99887766554433221100",
        "reason": "not on a Friday",
    },
    "run.stall-detected": {"evidence": {"minutes": 31, "last_version": 9}},
    "run.resume-dispatched": {
        "adapter": "jobs.report:resume",
        "from_version": 6,
        "plan": {"reused": ["parse:0"], "in_doubt": []},
    },
    "run.resume-returned": {"result": {"exit_code": 0}, "progressed": True},
    "run.attention-raised": {"reason": "max_retries_reached", "detail": "3 of 3"},
    "run.attention-cleared": {"reason": "max_retries_reached"},
    "run.blocked": {"reason": "waits for the disk"},
    "run.phase-ended": {"phase": "parse", "status": "completed", "summary": "150 files"},
    "run.finished": {
        "outcome": "partial",
        "reason_code": "stopped_by_budget",
        "reason": "stopped early (deadline) with 50 of 150 items done",
    },
    "run.cancelled": {"reason": "wrong folder"},
    "run.expired": {"reason": "30 days old"},
    "run.note-added": {"level": "warning", "text": "slow answer", "source": "http.client"},
    "run.card-edited": {
        "changes": {"notes": "ask before the weekend", "meta": {"priority": "high"}},
        "entries": [{"at": "2024-05-08T02:15:30+00:00", "event": "update", "phase": "parse"}],
    },
    "run.verdict-revised": {
        "outcome": "failed_semantic_empty",
        "rule": "no-item-parsed",
        "reason_code": "no_item_parsed",
        "rule_version": 2,
        "reason": "50 items went in, none came out",
        "facts": {"inputs": 50, "outputs": 0},
        "evidence": {"inputs": [5, 9, 4], "outputs": [5, 9, 4]},
        "policy": {
            "id": "default",
            "version": 2,
            "digest": "ffeeddccbbaa99887766554433221100",
            "rules": None,
        },
        "revises": 12,
        "why": "the old policy let blank answers pass",
    },
    "run.expectations-declared": {
        "expectations": {
            "inputs": 50,
            "extracted": 60,
            "minimum_fraction": 0.95,
            "files": ["out/report.html"],
            "deadline_us": 1_700_003_600_000_000,
        },
        "reason": "the folder has grown",
    },
    "run.answer-received": {
        "phase": "parse",
        "batch": 2,
        "source": "large",
        "asked": 50,
        "answered": 50,
        "parsed": 0,
        "accepted": None,
        "filtered": None,
        "declared": None,
        "fault": "parser",
        "error": "not a JSON array",
        "text": "I could not find any problems in these files.",
    },
    "run.origin-recorded": {
        "origin": {"kind": "fork", "run": "job-code-report-0dc845e1", "version": 12},
    },
    "run.maintenance-planned": {
        "tier": "nightly",
        "steps": ["prune", "reflect"],
        "options": {"force": False, "dry_run": False},
        "deadline_us": 1_700_003_600_000_000,
    },
    "run.maintenance-step-started": {"step": "reflect"},
    "run.maintenance-step-ended": {
        "step": "reflect",
        "status": "failed",
        "summary": "reflect ended as failed_semantic_empty",
        "duration_us": 61_000_000,
        "runs": ["job-reflect-0dc845e1"],
        "outcome": "failed_semantic_empty",
        "reason_code": "no_item_parsed",
        "guard": False,
        "once": False,
    },
    "run.exit-validated": {
        "report": {"maintenanceStatus": "success", "semanticStatus": "ok", "missingSteps": []},
        "guard": "written",
    },
    "run.files-removed": {
        "what": "checkpoint",
        "paths": ["20240508/job-runs/job-code-report-0dc845e1/checkpoint.json"],
        "size": 812,
        "rule": "success-drops-checkpoint",
        "reason": None,
    },
    "run.bodies-archived": {
        "archive": "000000000107.zst",
        "sha256": "cd" * 32,
        "up_to": 42,
        "records": 42,
        "reason": "the log is large",
    },
    "run.bodies-erased": {
        "reason": "the customer asked for it",
        "up_to": 43,
        "records": 43,
        "blobs": ["ef" * 32],
        "outcome": "success",
        "ended": None,
    },
    "run.archived": {"location": "archive/2024-05.tar", "sha256": "ab" * 32},
    "queue.job-enqueued": {
        "queue": "memory",
        "type": "ingest",
        "payload": {"document": "ä.pdf", "pages": [1, 2], "scale": 0.5},
        "priority": 5,
        "available_us": 1_700_000_060_000_000,
        "max_attempts": 3,
        "key": "document-7",
        "key_window_us": 3_600_000_000,
        "concurrency_key": "disk",
    },
    "queue.job-leased": {
        "epoch": 1,
        "attempt": 1,
        "owner": {"kind": "process", "host": "ada", "pid": 18, "started": 123460},
        "lease_seconds": 300.0,
        "boottime_us": 4_711_000_000,
        "metered": True,
    },
    "queue.job-failed": {
        "epoch": 1,
        "attempt": 1,
        "error": "the service does not answer",
        "code": "timeout",
        "terminal": False,
        "retry_us": 1_700_000_061_250_000,
        "run": "queue-memory-01890a5d-ac96-774b-bcce-b302099a8057",
    },
    "queue.job-released": {
        "epoch": 1,
        "code": "owner_gone",
        "reason": "process 18 on ada has ended",
        "counted": True,
        "retry_us": None,
    },
    "queue.job-died": {"code": "attempts_exhausted", "error": "the service does not answer"},
    "queue.job-requeued": {
        "status_before": "dead",
        "reason": "the service is back",
        "repair": "requeueDeadJobs~3",
    },
    "queue.job-completed": {
        "epoch": 1,
        "result": {"rows": 7},
        "outcome": "success",
        "run": "queue-memory-01890a5d-ac96-774b-bcce-b302099a8057",
    },
    "queue.job-cancelled": {
        "status_before": "pending",
        "reason": "the document is gone",
        "repair": "cancelObsoleteJobs~1",
    },
    "queue.job-pruned": {
        "status_before": "cancelled",
        "reason": "30 days old",
        "repair": "pruneTerminalJobs~2",
        "archive": "000000000007.jsonl.zst",
    },
    "queue.job-restored": {"status": "cancelled", "reason": "pruned by mistake", "repair": None},
    "repair.allowed": {
        "action": "requeueDeadJobs",
        "repair": "requeueDeadJobs~3",
        "actor_kind": "operator",
        "reason": "1,600 dead jobs this morning",
        "forced": "cooldown",
        "selection": {"queues": ["memory"], "most": 50},
        "run": "maintenance-20240508T021530Z-7",
        "baseline": {"dead": 1600},
    },
    "repair.step-done": {
        "action": "requeueDeadJobs",
        "repair": "requeueDeadJobs~3",
        "number": 1,
        "affected": 50,
        "detail": {"memory": 50},
    },
    "repair.ended": {
        "action": "requeueDeadJobs",
        "repair": "requeueDeadJobs~3",
        "success": True,
        "affected": 50,
        "message": "50 jobs wait again",
        "watched": ["01890a5d-ac96-774b-bcce-b302099a8057"],
    },
    "repair.denied": {
        "action": "requeueDeadJobs",
        "actor_kind": "agent",
        "reason": "dead jobs",
        "rule": "cooldown",
        "remaining_us": 59_000_000,
        "run": None,
    },
    "repair.judged": {
        "action": "requeueDeadJobs",
        "repair": "requeueDeadJobs~3",
        "improved": False,
        "evidence": {"text": "50 of 50 died again", "died": 50},
    },
    "repair.halted": {
        "action": "requeueDeadJobs",
        "strikes": 3,
        "repairs": ["requeueDeadJobs~1", "requeueDeadJobs~2", "requeueDeadJobs~3"],
    },
    "repair.halt-lifted": {
        "action": "requeueDeadJobs",
        "code": "by_hand",
        "reason": "the handler is mended",
        "strikes": 3,
        "run": None,
    },
}

# Samples of schemas that were current once.
EARLIER: dict[tuple[str, int], dict[str, Any]] = {
    ("run.attempt-started", 1): {"epoch": 1, "host": "ada", "pid": 17},
    ("run.attempt-started", 2): {
        "epoch": 1,
        "owner": {
            "kind": "process",
            "host": "ada",
            "boot_id": "5c1e8d0a-3c55-4a5a-9f3e-0f5b1f0c9a11",
            "pid": 17,
            "started": 123456,
            "pid_namespace": "4026531836",
        },
        "reason": "the first one hangs",
    },
    ("run.semantic-gate-judged", 1): {
        "gate": "default",
        "outcome": "success_with_review",
        "rule": "fewer-outputs",
        "reason_code": "fewer_outputs",
        "reason": "49 of 50 items came out",
        "facts": {"declared": None, "faults": 0, "inputs": 50, "outputs": 49, "stopped": None},
        "evidence": [5],
        "policy_version": 1,
    },
    ("run.verdict-revised", 1): {
        "outcome": "failed_semantic_empty",
        "rule": "no-item-parsed",
        "reason_code": "no_item_parsed",
        "reason": "50 items went in, none came out",
        "policy_version": 2,
    },
}


def sample(topic: str, version: int) -> dict[str, Any]:
    """Return the fields of a sample event as a version stores them, without its place."""
    fields = EARLIER.get((topic, version), SAMPLES[topic])
    return {**COMMON, **fields} | ({"class_version": version} if version > 1 else {})


def upcast_step(topic: str, version: int, fields: dict[str, Any]) -> dict[str, Any]:
    """Return stored fields of a version as the next version has them."""
    copied: dict[str, Any] = json.loads(json.dumps(fields))
    getattr(event_types.find(topic), f"upcast_v{version}_v{version + 1}")(copied)
    copied["class_version"] = version + 1
    return copied


def golden(topic: str, version: int) -> dict[str, Any]:
    """Return the content of a golden file."""
    upcast: dict[str, dict[str, Any]] = {}
    for earlier in range(1, version):
        fields = sample(topic, earlier)
        for step in range(earlier, version):
            fields = upcast_step(topic, step, fields)
        upcast[str(earlier)] = fields
    fields = sample(topic, version)
    body = Codec().pack(fields).hex()
    return {"topic": topic, "version": version, "body": body, "fields": fields, "upcast": upcast}


def main() -> None:
    """Write what is missing, and say so."""
    for topic, kind in event_types.all_types().items():
        for version in range(1, kind.class_version + 1):
            path = FOLDER / topic / f"v{version}.json"
            path.parent.mkdir(exist_ok=True)
            if not path.exists():
                text = json.dumps(golden(topic, version), indent=2, ensure_ascii=False)
                path.write_text(text + "\n", encoding="utf-8")
                print("wrote", path.relative_to(FOLDER))


if __name__ == "__main__":
    main()
