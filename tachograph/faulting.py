"""Lead from an orchestrator run to the step, the run and the rule that are at fault. Pure."""

from __future__ import annotations

from tachograph.domain import outcome
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tachograph.domain.run import Run

    Load = Callable[[str], Run | None]

CUT_OFF = "cut_off"
"""Status of a step that was begun and has no end."""


class Fault(_Fields):
    """A step that keeps an orchestrator run from having gone well.

    `run` is the nested run that weighs most in it, with its `outcome`, `reason_code` and
    `reason`; `rule` is the rule of the gate that judged it, None where none did. All five are
    None for a step that started no run.
    """

    __slots__ = ("outcome", "reason", "reason_code", "rule", "run", "status", "step", "summary")

    def __init__(
        self,
        step: str,
        status: str,
        summary: str,
        *,
        run: str | None = None,
        result: str | None = None,
        reason_code: str | None = None,
        reason: str | None = None,
        rule: str | None = None,
    ) -> None:
        self.step = step
        self.status = status
        self.summary = summary
        self.run = run
        self.outcome = result
        self.reason_code = reason_code
        self.reason = reason
        self.rule = rule


def fault_path(run: Run, load: Load) -> list[Fault]:
    """Return the steps of an orchestrator run that are at fault, the worst first.

    Those are: failed, stopped by a rate limit, cut off, deferred; and those that did their work
    in a way that a person should look at. `load` returns a run by its id.
    """
    found = [
        (_weight(step), _fault(name, step, load))
        for name, step in run.maintenance_steps.items()
        if _is_at_fault(step)
    ]
    found.sort(key=lambda pair: pair[0], reverse=True)  # equal ones stay in their order
    return [fault for _, fault in found]


def _is_at_fault(step: Mapping[str, Any]) -> bool:
    if step["status"] in (None, "failed", "rate_limited", "deferred"):
        return True
    return (
        step["outcome"] is not None and outcome.traits(step["outcome"], step["reason_code"]).alerts
    )


def _weight(step: Mapping[str, Any]) -> tuple[int, ...]:
    if step["status"] is None:
        return outcome.severity(outcome.FAILED)
    meant = step["outcome"] or outcome.from_step_status(step["status"])
    code = step["reason_code"]
    if step["status"] == "deferred" and step["outcome"] is None:
        code = outcome.STOPPED_BY_BUDGET  # it was not begun: that is no failure
    return outcome.severity(meant, code)


def _fault(name: str, step: Mapping[str, Any], load: Load) -> Fault:
    if step["status"] is None:
        return Fault(name, CUT_OFF, "it was begun, and nothing says that it ended")
    status, words = step["status"], step["summary"]
    runs = [each for each in map(load, step["runs"]) if each is not None]
    if not runs:
        return Fault(name, status, words, result=step["outcome"], reason_code=step["reason_code"])
    worst = max(runs, key=_weight_of_run)
    verdict = worst.revision or worst.verdict or {}
    return Fault(
        name,
        status,
        words,
        run=worst.id,
        result=worst.outcome or worst.ended,
        reason_code=worst.reason_code,
        reason=verdict.get("reason") or worst.reason,
        rule=verdict.get("rule"),
    )


def _weight_of_run(run: Run) -> tuple[int, ...]:
    if run.outcome is None:
        return outcome.severity(outcome.FAILED)
    return outcome.severity(run.outcome, run.reason_code)
