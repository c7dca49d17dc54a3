"""The JSON of the commands for cron jobs, as models; see `shapes`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Outcome, Shape

Semantic = Literal["ok", "degraded", "semantic_fail", "unknown"]


class StepExit(Shape):
    """A step of the ledger or summary."""

    name: str
    exit: int


class FailedStep(StepExit):
    """A required step that failed."""

    reason: str | None
    strict_failure_reason: str | None
    error: str | None


class ReportableIssue(Shape):
    """Something that is wrong; its fingerprint is the same in every run of the job."""

    fingerprint: str
    job_name: str
    step_name: str
    failure_category: Literal[
        "mechanical_failure",
        "semantic_failure",
        "concurrency_storage_failure",
        "diagnostic_failure",
    ]
    failure_class: str
    semantic_status: Semantic


class UnexplainedTrace(Shape):
    """Something in the traces that no rule knows."""

    what: Literal["file", "ledger_line", "log_line", "summary", "step"]
    path: str
    line: int | None = Field(description="From 1; null for a file as a whole.")
    text: str


class ExitValidation(Shape):
    """`cron validate`, and validation.json."""

    maintenance_status: Literal["success", "skipped", "partial", "failed"]
    semantic_status: Semantic
    recommended_exit_code: Literal[0, 1, 2]
    required_steps: list[StepExit] = Field(description="All steps that were found.")
    missing_steps: list[str]
    failed_steps: list[FailedStep]
    guard_updated: bool = Field(description="Whether the guard file may be written.")
    log_path: str | None
    exit_path: str
    error: str | None
    reportable_issues: list[ReportableIssue]
    failure_class: str | None = Field(description="`wrapper_aborted_before_steps`, or null.")
    wrapper_exit_code: int | None
    read_first: Literal["summary", "ledger"]
    unexplained: list[UnexplainedTrace] = Field(description="It decides nothing.")


class CronExecuted(Shape):
    """`cron exec`; on stderr, since stdout belongs to the command."""

    job_run_id: str
    job: str
    outcome: Outcome | Literal["cancelled", "expired", ""] | None
    reason_code: str | None
    reason: str | None
    exit_code: int
    guard: str = Field(description="`written`, `write_failed` or `skipped_` and why.")
    log_path: str | None = Field(description="Null when no folder could be written.")
    exit_path: str | None
    summary_path: str | None
    validation_path: str | None
    validation: ExitValidation | None


class StepEnded(Shape):
    """`cron step`; on stderr, since stdout belongs to the command."""

    step: str
    exit_code: int
    status: Literal["ok", "failed", "skipped"]
    reason: str | None
    duration_ms: int


CRON: dict[str, TypeAdapter[Any]] = {
    "cron-exec": TypeAdapter(CronExecuted),
    "cron-step": TypeAdapter(StepEnded),
    "cron-validate": TypeAdapter(ExitValidation),
}
"""By the words of the command."""
