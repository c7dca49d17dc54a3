"""Judge a cron job by the summary of its orchestrator run, with its ledger and log beside. No I/O.

The summary is read first; what ledger and log show counts as well, and the worst is believed.
"""

from __future__ import annotations

from tachograph.domain import exit_report as found_as
from tachograph.domain import exit_validation, outcome
from tachograph.domain.exit_ledger import LedgerRow
from tachograph.domain.exit_report import ExitReport, Issue, Unexplained, worst

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tachograph.domain.exit_validation import Evidence

OURS = "cron"
"""Tier of the summaries that our own cron harness writes: their outcomes alone decide."""
_DEFERRED = ("deferred", "rate_limited")
_SKIPPED = "skipped_"


class _Step:
    """A step of a summary, and what its outcome means."""

    def __init__(self, fields: dict[str, Any], time: str, ledger: Mapping[str, LedgerRow]) -> None:
        self.name = str(fields.get("name") or "")
        self.status = str(fields.get("status") or "")
        self.summary = str(fields.get("summary") or "")
        self.token = _token(fields.get("semanticOutcome"), self.summary)
        said = None if self.token is None else outcome.from_command_status(self.token)
        meant = None if said is None else outcome.traits(said)
        self.semantic_status = "ok" if meant is None else meant.validator_status
        self.withholds_guard = meant is not None and meant.withholds_guard
        self.known = self.status in outcome.STEP_STATUSES
        self.deferred = self.status in _DEFERRED
        failed = not self.known or self.status == "failed" or self.withholds_guard
        self.failed = failed
        self.row = LedgerRow(
            time,
            self.name,
            1 if failed else 2 if self.deferred else 0,
            status="failed" if failed else "skipped" if self.skipped else "ok",
            reason=self.token or self.status or None,
        )
        row = ledger.get(self.name)
        self.known_to_ledger = row is not None and row.failed and failed
        """Whether the ledger says that it failed as well: it knows the exit code."""
        if row is not None and self.known_to_ledger:
            self.row = row

    @property
    def skipped(self) -> bool:
        """Whether it was passed over; one without a runner was not, it is missing."""
        return self.status.startswith(_SKIPPED) and self.status != "skipped_missing_runner"


def _token(said: Any, summary: str) -> str | None:
    """Return the semantic outcome of a step, from its field or from the text of its summary."""
    import re

    if isinstance(said, str) and said:
        return said
    tokens = re.findall(r"\bsemantic=([\w-]+)", summary)
    return None if not tokens or tokens[-1] == "-" else str(tokens[-1])


def validate_summary(evidence: Evidence) -> ExitReport | None:
    """Judge by the summary; None when it says nothing about the required steps."""
    summary = evidence.summary
    time = str(summary.get("finishedAt") or "")
    last = evidence.ledger.last
    steps = [_Step(each, time, last) for each in summary["steps"] if isinstance(each, dict)]
    names = {step.name for step in steps}
    consolidated = bool(evidence.required) and not names.intersection(evidence.required)
    if consolidated and not steps:
        return None
    evidence.left.extend(_unknown(evidence, steps))
    required = frozenset(evidence.required)
    counted = [step for step in steps if consolidated or not required or step.name in required]
    missing = [] if consolidated else [name for name in evidence.required if name not in names]
    missing += [step.name for step in counted if step.status == "skipped_missing_runner"]
    failed = [step.row for step in counted if step.failed]
    if consolidated:
        _check_wrapper(evidence, summary, missing, failed)
    else:
        failed += _failed_by_ledger(evidence, failed)
    return _conclude(evidence, summary, steps, counted, missing, failed, consolidated=consolidated)


def _check_wrapper(
    evidence: Evidence, summary: dict[str, Any], missing: list[str], failed: list[LedgerRow]
) -> None:
    """Add required names, of wrappers around all steps, that have no good row in the ledger."""
    last = evidence.ledger.last
    for name in evidence.required:
        row = last.get(name)
        if row is None:
            missing.append(name)
            continue
        waits = row.exit_code == 2 and evidence.allow_skip and summary.get("exitCode") != 0
        if (row.exit_code != 0 and not waits) or row.status == "failed":
            failed.append(row)


def _failed_by_ledger(evidence: Evidence, failed: Sequence[LedgerRow]) -> list[LedgerRow]:
    """Return required steps that the ledger says failed, and the summary does not."""
    known = {row.step for row in failed}
    last = evidence.ledger.last
    rows = [last[name] for name in evidence.required if name in last and name not in known]
    return [row for row in rows if row.failed]


def _conclude(
    evidence: Evidence,
    summary: dict[str, Any],
    steps: Sequence[_Step],
    counted: Sequence[_Step],
    missing: Sequence[str],
    failed: Sequence[LedgerRow],
    *,
    consolidated: bool,
) -> ExitReport:
    code = summary.get("exitCode")
    issues = [
        _failed_issue(evidence, step)
        for step in counted
        if step.failed and not step.known_to_ledger  # how it failed says the ledger better
    ]
    waiting = [_waiting_issue(evidence, step) for step in counted if step.deferred]
    semantic = worst("ok", *(step.semantic_status for step in steps))
    if code == 2 or waiting:
        semantic = worst(semantic, "degraded")
    skipped = [step.row for step in counted if step.skipped]
    wrappers = bool(evidence.required) and set(missing) >= set(evidence.required)
    if failed or code == 1 or wrappers or any(issue.blocks_guard for issue in waiting):
        status = found_as.BROKEN
    elif missing:
        status = found_as.INCOMPLETE
    elif evidence.allow_skip and counted and len(skipped) == len(counted):
        status = found_as.PASSED_OVER
    else:
        status = found_as.WELL
    ours = summary.get("tierLabel") == OURS
    return exit_validation.conclude(
        evidence,
        status,
        [step.row for step in steps],
        missing,
        failed,
        # Of a wrapper some steps may not be due; that is no skip of the wrapper.
        skipped=skipped if not consolidated or len(skipped) == len(counted) else (),
        issues=[*issues, *waiting],
        semantic_status=semantic,
        guard_needs_ok=not ours,
        withheld=any(step.withholds_guard for step in counted) or code not in (0, None),
        by="summary",
        error=None if failed or missing or code != 1 else "The summary says exitCode 1",
    )


def _failed_issue(evidence: Evidence, step: _Step) -> Issue:
    bad = step.semantic_status if step.semantic_status != "ok" else "degraded"
    return evidence.issue(step.name, found_as.SEMANTIC, "orchestrator_step_failed", bad)


def _waiting_issue(evidence: Evidence, step: _Step) -> Issue:
    return evidence.issue(step.name, found_as.SEMANTIC, "orchestrator_step_deferred", "degraded")


def _unknown(evidence: Evidence, steps: Sequence[_Step]) -> list[Unexplained]:
    """Return what the steps say in words that no rule knows."""
    path = evidence.summary_path or ""
    found = [
        Unexplained("step", path, f"{step.name or '(no name)'}: status {step.status!r}")
        for step in steps
        if not step.known
    ]
    return found + [
        Unexplained("step", path, f"{step.name}: semantic outcome {step.token!r}")
        for step in steps
        if step.token is not None and not outcome.is_command_status(step.token)
    ]
