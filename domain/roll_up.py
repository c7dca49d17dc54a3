"""What an orchestrator run comes to, by what became of its steps. Pure."""

from __future__ import annotations

from tachograph.domain import outcome
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

OK = 0
STEP_FAILED = 1
LEFT_OVER = 2
NAMED_DID_NOT_RUN = 3
"""Exit codes: all is well; a step failed; a step is still to be done; a step that was forced by
name did not run."""

NO_RUN = ("skipped_gate", "skipped_guard", "skipped_dep", "skipped_missing_runner", "deferred")
"""Statuses of a step that was not run."""


class RollUp(_Fields):
    """What an orchestrator run comes to: outcome, reason code, reason, and exit code 0, 1 or 2."""

    __slots__ = ("exit_code", "outcome", "reason", "reason_code")

    def __init__(self, result: str, reason_code: str, reason: str, exit_code: int) -> None:
        self.outcome = result
        self.reason_code = reason_code
        self.reason = reason
        self.exit_code = exit_code


def roll_up(steps: Mapping[str, Mapping[str, Any]]) -> RollUp:
    """Return what a run comes to; each step has status, outcome and reason_code.

    >>> prune = {"status": "ok", "outcome": "success", "reason_code": None}
    >>> roll_up({"prune": prune}).outcome, roll_up({"x": {**prune, "status": "failed"}}).exit_code
    ('success', 1)
    """
    failed = [name for name, step in steps.items() if _failed(step)]
    limited = _with(steps, "rate_limited")
    left = [*_with(steps, "deferred"), *limited]
    done = [step for name, step in steps.items() if _done(step) and name not in failed]
    if failed:
        how = outcome.PARTIAL if done else outcome.FAILED
        return RollUp(how, "steps_failed", f"failed: {', '.join(failed)}", STEP_FAILED)
    if left:
        reason = f"still to be done: {', '.join(left)}"
        return RollUp(outcome.PARTIAL, _why_left(steps, limited, done), reason, LEFT_OVER)
    if not done:
        return RollUp(outcome.SKIPPED, "nothing_due", "no step was due", OK)
    how, _ = max((_outcome(step) for step in done), key=lambda pair: outcome.severity(*pair))
    return RollUp(how, "steps_done", f"{len(done)} of {len(steps)} steps were run", OK)


def did_not_run(steps: Mapping[str, Mapping[str, Any]], named: Collection[str]) -> list[str]:
    """Return which of the steps that were asked for by name were not run."""
    return [name for name in named if name not in steps or steps[name]["status"] in NO_RUN]


def _with(steps: Mapping[str, Mapping[str, Any]], status: str) -> list[str]:
    return [name for name, step in steps.items() if step["status"] == status]


def _done(step: Mapping[str, Any]) -> bool:
    return bool(step["status"] == "ok")


def _outcome(step: Mapping[str, Any]) -> tuple[str, str | None]:
    return outcome.from_step_status(step["status"], step["outcome"]), step["reason_code"]


def _failed(step: Mapping[str, Any]) -> bool:
    """Say whether a step failed, or did well and did not do its work."""
    return step["status"] == "failed" or (
        _done(step) and outcome.traits(*_outcome(step)).withholds_guard
    )


def _why_left(
    steps: Mapping[str, Mapping[str, Any]], limited: list[str], done: list[Mapping[str, Any]]
) -> str:
    codes = {step["reason_code"] for step in steps.values()}
    if limited or "breaker_open" in codes:
        return outcome.RATE_LIMITED
    if outcome.STILL_AT_WORK in codes:
        return outcome.STILL_AT_WORK
    return outcome.STOPPED_BY_BUDGET if done else outcome.STOPPED_BEFORE_OUTPUT
