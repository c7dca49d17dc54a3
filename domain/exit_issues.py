"""Name what is wrong in the traces of a cron job: one issue for a failure, of one category. No I/O.

Numbers in comments are those of the rules of the original's exit validation.
"""

from __future__ import annotations

from tachograph.domain import cron_log, log_markers, outcome
from tachograph.domain import exit_report as found_as
from tachograph.domain.cron_log import found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tachograph.domain.cron_log import Log
    from tachograph.domain.exit_ledger import LedgerRow
    from tachograph.domain.exit_report import Issue
    from tachograph.domain.exit_validation import Evidence

_UNSPECIFIC = ("nonzero_exit", "reported_failure")
"""Classes that say no more than that a step failed: what its log shows says it better."""


def missing_issues(evidence: Evidence, missing: Sequence[str]) -> list[Issue]:
    """Return an issue for each required step that is missing."""
    return [
        evidence.issue(name, found_as.MECHANICAL, "missing_required_step", "unknown")
        for name in missing
    ]


def failed_issues(
    evidence: Evidence, failed: Sequence[LedgerRow], *, known: Sequence[Issue]
) -> Iterator[Issue]:
    """Yield an issue for each failed step that none of the `known` ones is about."""
    have = {issue.step for issue in known}
    for row in failed:
        if row.step in have:
            continue
        part = None if evidence.log.ours else evidence.log.of_step(row.step)
        category, failure_class = _why_failed(row, evidence.log, part)
        semantic = _said_by(row)
        marker = None
        if failure_class in _UNSPECIFIC and part is not None:
            marker = cron_log.first_marker(row.step, part, evidence.log, alone=False)
        if marker is not None:
            category, failure_class = found_as.SEMANTIC, marker.failure_class
            semantic = found_as.worst(semantic, marker.semantic_status)
        yield evidence.issue(row.step, category, failure_class, semantic)


def _said_by(row: LedgerRow) -> str:
    """Return what the reason of a failed step says about its work; a good word says nothing."""
    if not outcome.is_command_status(row.reason):
        return "unknown"
    meant = outcome.traits(outcome.from_command_status(row.reason))
    return meant.validator_status if meant.fails_step else "unknown"


def _why_failed(row: LedgerRow, log: Log, part: range | None) -> tuple[str, str]:
    """Return category and class of a failed step, by its exit code, its reason and its log."""
    reason = row.reason or ""
    for name, pattern in log_markers.STORAGE_CLASSES:
        if found(pattern, reason) or (part is not None and log.has(pattern, part)):
            return found_as.STORAGE, name
    for name, codes, pattern in log_markers.MECHANICAL_CLASSES:
        if row.exit_code in codes or found(pattern, reason):
            return found_as.MECHANICAL, name
    if row.exit_code:
        return found_as.MECHANICAL, "nonzero_exit"
    return found_as.SEMANTIC, "reported_failure"


def log_issues(
    evidence: Evidence, steps: Sequence[LedgerRow], failed: Sequence[LedgerRow]
) -> Iterator[Issue]:
    """Yield what a log of the original's shows, by the table of its markers (5).

    What it shows of steps that failed is in their own issues.
    """
    scope = list(dict.fromkeys([*evidence.required, *(row.step for row in steps)]))
    log = evidence.log
    alone = len(scope) == 1
    has_failed = {row.step for row in failed}
    parts: list[range] = []
    for step in scope:
        part = log.of_step(step)
        marker = None
        if step not in has_failed:
            marker = cron_log.first_marker(step, part, log, alone=alone)
        if marker is not None:
            yield evidence.issue(
                step, found_as.SEMANTIC, marker.failure_class, marker.semantic_status
            )
        if part is not None and step in found_as.BLOCKING_STEPS:
            parts.append(part)
        for of_step, name, category, failure_class, pattern in log_markers.EMPTY_ARTIFACTS:
            if of_step == step and log.has(pattern, part):
                yield evidence.issue(name, category, failure_class, "unknown")
    yield from _of_the_whole(evidence, parts or [None], failed=bool(failed))


def _of_the_whole(
    evidence: Evidence, parts: Sequence[range | None], *, failed: bool
) -> Iterator[Issue]:
    """Yield what the parts of all steps show, or the log where there are none."""

    def has(pattern: str) -> bool:
        return any(evidence.log.has(pattern, part) for part in parts)

    failure_class, pattern = log_markers.HIDDEN_LLM_FAILURE
    if not failed and has(pattern):
        name = "persona-proposals" if has("persona-proposals") else "maintenance"
        yield evidence.issue(name, found_as.SEMANTIC, failure_class, "semantic_fail")
    failure_class, pattern = log_markers.CURSOR_NOT_ADVANCED
    if has(pattern):
        yield evidence.issue("cursor", found_as.SEMANTIC, failure_class, "semantic_fail")


def issues_once(issues: Sequence[Issue]) -> list[Issue]:
    """Return the issues, each fingerprint once."""
    unique: dict[str, Issue] = {}
    for issue in issues:
        unique.setdefault(issue.fingerprint, issue)
    return list(unique.values())
