"""What a validator found in the traces of a cron job, with the JSON fields of the original's."""

from __future__ import annotations

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.domain.exit_ledger import LedgerRow

WELL = "success"
INCOMPLETE = "partial"
BROKEN = "failed"
PASSED_OVER = "skipped"
LABELS = {WELL: "SUCCESS", INCOMPLETE: "PARTIAL", BROKEN: "FAILED", PASSED_OVER: "SKIPPED"}
"""Maintenance statuses, and how the last lines of a log name them."""

MECHANICAL = "mechanical_failure"
SEMANTIC = "semantic_failure"
STORAGE = "concurrency_storage_failure"

RANK = {"unknown": 0, "ok": 1, "degraded": 2, "semantic_fail": 3}
"""Of semantic statuses: the worst of several counts."""

BLOCKING_CLASSES = ("hidden_llm_failure", "cursor_not_advanced")
BLOCKING_STEPS = frozenset((
    "active-tasks-maintain", "analyze-maintenance-logs", "audit-health", "auto-classify",
    "build-languages", "closed-loop-analysis", "consolidate", "continuous-verification",
    "cross-agent-learning", "crystallization-proposals", "crystallization-rescan", "cursor",
    "digest-autopilot", "distill", "enrich-entities", "enrich-entities-deep", "extract-daily",
    "extract-directives", "extract-implicit", "extract-procedures", "extract-reinforcement",
    "generate-auto-skills", "generate-proposals", "implicit-feedback-collapse", "lifecycle-sync",
    "maintenance", "passive-observer", "persona-proposals", "prune", "record-storage-sample",
    "reembed-vectorless", "reflect", "reflect-identity", "reflect-meta", "reflect-rules",
    "repair-vectors", "resolve-contradictions", "scope-promote", "self-correction-run",
    "sensor-sweep", "tool-effectiveness",
))  # fmt: skip
"""Steps of the original of which a semantic failure withholds the guard."""

FINGERPRINT = "hybrid-memory-maintenance"
"""Begins every fingerprint, so that those of the original's files and ours are alike."""


class Issue(_Fields):
    """One thing that is wrong, to be reported once for a job, a step and a class."""

    __slots__ = ("category", "failure_class", "job", "semantic_status", "step")

    def __init__(
        self, job: str, step: str, category: str, failure_class: str, semantic_status: str
    ) -> None:
        self.job = job
        self.step = step
        self.category = category
        self.failure_class = failure_class
        self.semantic_status = semantic_status

    @property
    def fingerprint(self) -> str:
        """The same for the same failure in every run."""
        return f"{FINGERPRINT}:{self.job}:{self.step}:{self.failure_class}"

    @property
    def blocks_guard(self) -> bool:
        """Whether it withholds the guard by itself."""
        return self.category == SEMANTIC and (
            self.failure_class in BLOCKING_CLASSES or self.step in BLOCKING_STEPS
        )

    def to_json(self) -> dict[str, Any]:
        """Return the issue as reports hold it."""
        return {
            "fingerprint": self.fingerprint,
            "jobName": self.job,
            "stepName": self.step,
            "failureCategory": self.category,
            "failureClass": self.failure_class,
            "semanticStatus": self.semantic_status,
        }


class Unexplained(_Fields):
    """Something in the traces that no rule knows: told, never ignored.

    `what` is `file`, `ledger_line`, `log_line`, `summary` or `step`; `line` counts from 1.
    """

    __slots__ = ("line", "path", "text", "what")

    def __init__(self, what: str, path: str, text: str, line: int | None = None) -> None:
        self.what = what
        self.path = path
        self.text = text
        self.line = line

    def to_json(self) -> dict[str, Any]:
        """Return it as reports hold it."""
        return {"what": self.what, "path": self.path, "line": self.line, "text": self.text}


class ExitReport:
    """A validator's report on one run of a cron job.

    `by` says what was read first: `summary` or `ledger`. `guard_updated` says that the guard of
    the job may be written; the validator itself writes none. `skipped` names the steps that
    passed their work over, whether that was allowed or not.
    """

    def __init__(
        self,
        *,
        status: str,
        semantic_status: str,
        steps: Sequence[LedgerRow] = (),
        missing: Sequence[str] = (),
        failed: Sequence[LedgerRow] = (),
        skipped: Sequence[str] = (),
        guard_updated: bool = False,
        exit_path: str = "",
        log_path: str | None = None,
        error: str | None = None,
        issues: Sequence[Issue] = (),
        failure_class: str | None = None,
        wrapper_exit_code: int | None = None,
        unexplained: Sequence[Unexplained] = (),
        by: str = "ledger",
    ) -> None:
        self.status = status
        self.semantic_status = semantic_status
        self.steps = list(steps)
        self.missing = list(missing)
        self.failed = list(failed)
        self.skipped = list(skipped)
        self.guard_updated = guard_updated
        self.exit_path = exit_path
        self.log_path = log_path
        self.error = error
        self.issues = list(issues)
        self.failure_class = failure_class
        self.wrapper_exit_code = wrapper_exit_code
        self.unexplained = list(unexplained)
        self.by = by

    @property
    def exit_code(self) -> int:
        """0: good, or skipped. 2: only the meaning of the work is wrong. 1: everything else."""
        if self.status == PASSED_OVER or (self.status == WELL and self.guard_updated):
            return 0
        broken = bool(self.missing or self.failed) or self.status == INCOMPLETE
        meaning = self.semantic_status == "semantic_fail" or any(
            issue.blocks_guard for issue in self.issues
        )
        return 2 if meaning and not broken else 1

    def to_json(self) -> dict[str, Any]:
        """Return the report with the field names of the original's `validation.json`.

        Ours are `failureClass`, `wrapperExitCode`, `readFirst` and `unexplained`.
        """
        return {
            "maintenanceStatus": self.status,
            "semanticStatus": self.semantic_status,
            "recommendedExitCode": self.exit_code,
            "requiredSteps": [{"name": row.step, "exit": row.exit_code} for row in self.steps],
            "missingSteps": self.missing,
            "failedSteps": [_failed(row) for row in self.failed],
            "guardUpdated": self.guard_updated,
            "logPath": self.log_path,
            "exitPath": self.exit_path,
            "error": self.error,
            "reportableIssues": [issue.to_json() for issue in self.issues],
            "failureClass": self.failure_class,
            "wrapperExitCode": self.wrapper_exit_code,
            "readFirst": self.by,
            "unexplained": [each.to_json() for each in self.unexplained],
        }


def _failed(row: LedgerRow) -> dict[str, Any]:
    error = None
    if row.exit_code:
        error = f"Non-zero exit code ({row.reason})" if row.reason else "Non-zero exit code"
    strict = row.reason if row.reason is not None and row.reason.startswith("strict_") else None
    return {
        "name": row.step,
        "exit": row.exit_code,
        "reason": row.reason,
        "strictFailureReason": strict,
        "error": error,
    }


def worst(*statuses: str) -> str:
    """Return the worst of semantic statuses.

    >>> worst("ok", "semantic_fail", "degraded")
    'semantic_fail'
    """
    return max(statuses, key=RANK.__getitem__)


def job_of(stem: str) -> str:
    """Return the job of a file's name without its endings: what is left without the run.

    >>> job_of("nightly-20240508T021530Z-17"), job_of("nightly-2024-05-08T02-15-30-000Z")
    ('nightly', 'nightly')
    """
    import re

    for pattern in RUN_SUFFIXES:
        stem = re.sub(pattern, "", stem)
    return stem


RUN_SUFFIXES = (
    r"-\d{8}T\d{6}Z-\d+$",
    r"-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-\d{3}Z$",
    r"-\d{8}\.cron$",
)
