"""The rules by which the traces of a cron job are judged: ledger, log, summary. No I/O.

Numbers in comments are those of the rules of the original's exit validation.
"""

from __future__ import annotations

from tachograph.domain import cron_log
from tachograph.domain import exit_report as found_as
from tachograph.domain.cron_log import Log
from tachograph.domain.exit_issues import failed_issues, issues_once, log_issues, missing_issues
from tachograph.domain.exit_ledger import SKIP_SUFFIX, Ledger, LedgerRow
from tachograph.domain.exit_leftovers import is_usable, unexplained
from tachograph.domain.exit_report import ExitReport, Issue, Unexplained, worst

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

WRAPPER_ABORTED = "wrapper_aborted_before_steps"


class Evidence:
    """What a run of a cron job has left, and what is asked of it.

    `ledger` is the text of the exit file, None when there is none; `log` that of the log, None
    when none was named or it is not there, and `ours` that our harness is known to have written
    it. `summary` is what was read of the summary, None when there is none that can be used.
    `left` was found by the reader and has no rule.
    """

    def __init__(
        self,
        job: str,
        required: Sequence[str],
        *,
        exit_path: str = "",
        ledger: str | None = None,
        log_path: str | None = None,
        log: str | None = None,
        ours: bool = False,
        summary_path: str | None = None,
        summary: Any = None,
        allow_skip: bool = False,
        left: Sequence[Unexplained] = (),
    ) -> None:
        self.job = job
        self.required = list(dict.fromkeys(required))
        self.exit_path = exit_path
        self.ledger_is_there = ledger is not None
        self.ledger = Ledger(ledger or "")
        self.log_path = log_path
        self.log_is_there = log is not None
        self.log = Log(log or "", ours=ours)
        self.summary_path = summary_path
        self.summary = summary
        self.allow_skip = allow_skip
        self.left = list(left)

    def look_for_steps(self, steps: Iterable[str]) -> None:
        """Find the parts of steps in the log; of one that is ours none is needed."""
        if not self.log.ours:
            self.log.look_for([*self.required, *self.ledger.last, *steps])

    def issue(self, step: str, category: str, failure_class: str, semantic: str) -> Issue:
        """Return an issue of this job."""
        return Issue(self.job, step, category, failure_class, semantic)

    def report(self, **fields: Any) -> ExitReport:
        """Return a report on this evidence."""
        return ExitReport(
            exit_path=self.exit_path,
            log_path=self.log_path,
            unexplained=[*self.left, *unexplained(self)],
            **fields,
        )


def validate(evidence: Evidence) -> ExitReport:
    """Judge what a cron job has left: by its summary where there is one, else by its ledger."""
    unknown = [] if evidence.log.ours else cron_log.unknown_commands(evidence.log)
    if unknown and (evidence.ledger_is_there or is_usable(evidence.summary)):
        return _unknown_commands(evidence, unknown)
    if is_usable(evidence.summary):
        from tachograph.domain.exit_summary import validate_summary

        report = validate_summary(evidence)
        if report is not None:
            return report
    return _validate_ledger(evidence)


def _validate_ledger(evidence: Evidence) -> ExitReport:
    if not evidence.ledger_is_there:  # 1
        return _no_ledger(evidence)
    missing, failed, skipped = judge_steps(evidence)
    nothing = not evidence.ledger.rows
    by_log = nothing and evidence.required and not evidence.log.ours
    if by_log and cron_log.feature_is_off(evidence.log):
        return evidence.report(  # 4, its exception
            status=found_as.PASSED_OVER,
            semantic_status="ok",
            missing=missing,
            issues=missing_issues(evidence, missing),
            error="The log says that the feature is switched off, and the ledger is empty.",
        )
    reached = evidence.ledger.reached_steps or evidence.log.reached_steps
    if nothing and evidence.log_is_there and not reached:
        return _aborted(evidence)  # 7
    return conclude(
        evidence,
        status_of(len(evidence.required), missing, failed, skipped),  # 4
        evidence.ledger.rows,
        missing,
        failed,
        skipped=skipped,
    )


def judge_steps(evidence: Evidence) -> tuple[list[str], list[LedgerRow], list[LedgerRow]]:
    """Return which required steps are missing, failed and skipped, by the ledger (3)."""
    last = evidence.ledger.last
    missing: list[str] = []
    failed: list[LedgerRow] = []
    skipped: list[LedgerRow] = []
    for name in evidence.required:
        row = last.get(name)
        if row is None:
            variant = last.get(name + SKIP_SUFFIX)
            if variant is not None and variant.exit_code == 0 and evidence.allow_skip:
                skipped.append(variant)
            else:
                missing.append(name)
        elif row.failed:
            failed.append(row)
        elif evidence.allow_skip and row.skipped:
            skipped.append(row)
    return missing, failed, skipped


def status_of(
    required: int,
    missing: Sequence[str],
    failed: Sequence[LedgerRow],
    skipped: Sequence[LedgerRow],
) -> str:
    """Return the maintenance status (4); with nothing required, what was done is a success."""
    if failed or (required and len(missing) == required):
        return found_as.BROKEN
    if missing:
        return found_as.INCOMPLETE
    return found_as.PASSED_OVER if required and len(skipped) == required else found_as.WELL


def conclude(
    evidence: Evidence,
    status: str,
    steps: Sequence[LedgerRow],
    missing: Sequence[str],
    failed: Sequence[LedgerRow],
    *,
    skipped: Sequence[LedgerRow] = (),
    issues: Sequence[Issue] = (),
    semantic_status: str = "unknown",
    guard_needs_ok: bool = False,
    withheld: bool = False,
    by: str = "ledger",
    error: str | None = None,
) -> ExitReport:
    """Add what the log shows (5), and decide on the guard (6).

    `semantic_status` is what is known besides the issues, which name every failed step that is
    not to be looked into. `withheld` forbids the guard in any
    case, `guard_needs_ok` wherever the meaning of the work is not ok.
    """
    evidence.look_for_steps(row.step for row in [*steps, *failed])
    seen = issues_once([
        *issues,
        *failed_issues(evidence, failed, known=issues),
        *missing_issues(evidence, missing),
        *(() if evidence.log.ours else log_issues(evidence, steps, failed)),
    ])  # fmt: skip
    blocking = [issue for issue in seen if issue.blocks_guard]
    if status == found_as.WELL and blocking:
        status = found_as.BROKEN
    semantic = worst(semantic_status, semantic_of(status, seen))
    good = semantic == "ok" if guard_needs_ok else semantic != "semantic_fail"
    return evidence.report(
        status=status,
        semantic_status=semantic,
        steps=steps,
        missing=missing,
        failed=failed,
        issues=seen,
        skipped=_skipped_names(evidence, skipped),
        guard_updated=status == found_as.WELL and good and not withheld,
        error=error or _error(status, missing, failed, skipped, blocking),
        by=by,
    )


def _skipped_names(evidence: Evidence, skipped: Sequence[LedgerRow]) -> list[str]:
    """Return the steps that passed their work over, whether they were allowed to or not."""
    last = evidence.ledger.last
    named = [row.step for row in skipped]
    for name in evidence.required:
        row = last.get(name) or last.get(name + SKIP_SUFFIX)
        if row is not None and not row.failed and (row.skipped or row.step != name):
            named.append(row.step)
    return list(dict.fromkeys(named))


def semantic_of(status: str, issues: Sequence[Issue]) -> str:
    """Return the semantic status that issues and a maintenance status make."""
    statuses = {issue.semantic_status for issue in issues}
    for bad in ("semantic_fail", "degraded"):
        if bad in statuses:
            return bad
    good = status in (found_as.WELL, found_as.PASSED_OVER)
    return "unknown" if issues and not good else "ok"


def _no_ledger(evidence: Evidence) -> ExitReport:
    issue = evidence.issue(
        "validate-cron-exit", found_as.MECHANICAL, "missing_exit_ledger", "unknown"
    )
    return evidence.report(
        status=found_as.BROKEN,
        semantic_status="unknown",
        missing=evidence.required,
        issues=[issue],
        error=f"Exit ledger not found: {evidence.exit_path}",
    )


def _unknown_commands(evidence: Evidence, unknown: Sequence[str]) -> ExitReport:
    """Report that the wrapper called commands that there are none such (2)."""
    issue = evidence.issue(
        "validate-cron-exit", found_as.MECHANICAL, "unknown_maintenance_command", "unknown"
    )
    return evidence.report(
        status=found_as.BROKEN,
        semantic_status="unknown",
        steps=evidence.ledger.rows,
        missing=evidence.required,
        issues=[issue, *missing_issues(evidence, evidence.required)],
        error=f"Unknown command(s) detected: {', '.join(unknown)}",
    )


def _aborted(evidence: Evidence) -> ExitReport:
    code = cron_log.wrapper_exit_code(evidence.log)
    said = "" if code is None else f" (exit={code})"
    return evidence.report(
        status=found_as.BROKEN,
        semantic_status="unknown",
        issues=[evidence.issue("wrapper", found_as.MECHANICAL, WRAPPER_ABORTED, "unknown")],
        failure_class=WRAPPER_ABORTED,
        wrapper_exit_code=code,
        error=f"Wrapper aborted before steps{said}; no maintenance steps recorded in HM_EXIT",
    )


def _error(
    status: str,
    missing: Sequence[str],
    failed: Sequence[LedgerRow],
    skipped: Sequence[LedgerRow],
    blocking: Sequence[Issue],
) -> str | None:
    parts: list[str] = []
    if status == found_as.PASSED_OVER:
        parts.append("Skipped steps: " + ", ".join(_named(row) for row in skipped))
    if missing:
        parts.append("Missing steps: " + ", ".join(missing))
    if failed:
        parts.append("Failed steps: " + ", ".join(_with_exit(row) for row in failed))
    if blocking:
        named = ", ".join(f"{issue.step} ({issue.failure_class})" for issue in blocking)
        parts.append(f"Semantic failures: {named}")
    return "; ".join(parts) or None


def _named(row: LedgerRow) -> str:
    return f"{row.step} ({row.reason})" if row.reason else row.step


def _with_exit(row: LedgerRow) -> str:
    return f"{row.step} (exit={row.exit_code}{' ' + row.reason if row.reason else ''})"
