"""Judge what a cron job has left behind: read its files, apply the rules. Writes nothing.

How files are read comes in from outside, the rules are those of `domain.exit_validation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain import outcome
from tachograph.domain.cron_log import is_ours
from tachograph.domain.exit_report import BROKEN, INCOMPLETE, PASSED_OVER, WELL, job_of
from tachograph.domain.exit_validation import Evidence, validate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from tachograph.domain.exit_ledger import LedgerRow
    from tachograph.domain.exit_report import ExitReport, Unexplained

    class Files(Protocol):
        """Reads files, and notes what is odd about them in `left`."""

        left: list[Unexplained]

        def text(self, path: str, *, may_be_missing: bool = False) -> str | None:
            """Return a file's text, None when there is none that can be read."""
            ...

        def beginning(self, path: str) -> str:
            """Return how a file begins, nothing when it cannot be read."""
            ...

        def ends(self, path: str) -> str | None:
            """Return the beginning and the end of a file, None when it cannot be read."""
            ...

        def json(self, path: str) -> Any:
            """Return what a JSON file holds, None when it is none."""
            ...

        def note_others(self, exit_path: str, named: Sequence[str | None]) -> None:
            """Note the files of the run that no rule knows."""
            ...


WITHHELD = "skipped_{}"
WRITTEN = "written"
WRITE_FAILED = "write_failed"
"""What becomes of a guard file."""
SKIPPED_CONCURRENCY = "skipped_concurrency"
"""Reason code of a run whose job was at work already."""


def validate_exit(
    files: Files,
    exit_path: str,
    required: Sequence[str],
    *,
    stem: str,
    log_path: str | None = None,
    summary_path: str | None = None,
    allow_skip: bool = False,
    ours: bool = False,
) -> ExitReport:
    """Return the report on the traces of one run.

    `stem` is the name that the run's files have in common. A summary is read first; without a
    usable one the ledger alone decides. `ours` says that our harness wrote the log, which its head
    says as well: then its text decides nothing, and its ends are all that is read.
    """
    ledger = files.text(exit_path, may_be_missing=True)
    log = None
    if log_path is not None:
        ours = ours or is_ours(files.beginning(log_path))
        log = files.ends(log_path) if ours else files.text(log_path)
    summary = None if summary_path is None else files.json(summary_path)
    files.note_others(exit_path, (exit_path, log_path, summary_path))
    return validate(
        Evidence(
            job_of(stem) or "unknown-job",
            required,
            exit_path=exit_path,
            ledger=ledger,
            log_path=log_path,
            log=log,
            ours=ours,
            summary_path=summary_path,
            summary=summary,
            allow_skip=allow_skip,
            left=files.left,
        )
    )


def outcome_of(report: ExitReport) -> tuple[str, str, str] | None:
    """Return outcome, reason and code of a run whose traces are not good; None for good ones.

    What the steps themselves say in their ledger rows is the finest there is; the worst counts.
    A word makes a step that failed worse, never better.
    """
    if report.status == WELL and report.semantic_status != "semantic_fail":
        return None
    reason = report.error or f"semantic status {report.semantic_status}"
    if report.status == PASSED_OVER:
        codes = [row.reason for row in report.steps if row.skipped and row.reason]
        return outcome.SKIPPED, reason, codes[0] if len(set(codes)) == 1 else "steps_skipped"
    if report.failed:
        said = [_came_to(row) for row in report.failed]
        said += [outcome.FAILED] if report.missing else []
        return max(said, key=outcome.severity), reason, "steps_failed"
    if report.status == INCOMPLETE:
        return outcome.PARTIAL, reason, "steps_missing"
    code = report.failure_class or ("steps_missing" if report.missing else "exit_validation")
    return outcome.FAILED, reason, code


def _came_to(row: LedgerRow) -> str:
    """Return the outcome of a step that failed, by what it says where that is no good word."""
    said = outcome.from_command_status(row.reason)  # `failed` for every unknown one
    return said if outcome.traits(said).fails_step else outcome.FAILED


def guard_refusal(
    report: ExitReport,
    *,
    ended_with: int,
    result: str,
    reason_code: str | None,
    second_look: Callable[[], bool],
    interrupted: bool = False,
    allow_skip: bool = False,
) -> str | None:
    """Return why the guard of a job may not be written; None when it was earned.

    `interrupted` says that the run was sent a signal to end. The outcome of the run decides, by
    the table of outcomes; then the report, and at last a second look at the ledger by somebody
    who does not know the validator. A step that passed its work over has earned nothing, unless
    it was allowed to and others did theirs.
    """
    if reason_code == SKIPPED_CONCURRENCY:
        return "concurrency"
    if interrupted:
        return "interrupted"
    if ended_with:
        return "wrapped_step_exit_nonzero"
    if not outcome.is_outcome(result) or outcome.traits(result, reason_code).withholds_guard:
        return f"outcome_{result or 'unknown'}"
    if report.exit_code:
        return "validate_exit_nonzero"
    if report.status != WELL:
        return "maintenance_status_not_success"
    if not report.guard_updated:
        return "validator_guard_not_updated"
    if report.skipped and not allow_skip:
        return "steps_skipped"
    return None if second_look() else "missing_or_failed_required_step"


def placeholder(reason: str) -> dict[str, Any]:
    """Return what stands in validation.json when there was no report: it is never empty."""
    return {"maintenanceStatus": "unknown", "recommendedExitCode": 1, "error": reason}


def ledger_ending(report: ExitReport) -> tuple[str, str]:
    """Return status and reason of the ledger's last row, about the validation itself."""
    status = {WELL: "ok", PASSED_OVER: "skipped", INCOMPLETE: "failed", BROKEN: "failed"}
    return status[report.status], f"maintenance_{report.status}"
