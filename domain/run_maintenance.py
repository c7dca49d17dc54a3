"""The commands of an orchestrator run: its plan, and what became of each step."""

from __future__ import annotations

from tachograph.domain import checks, errors, events, outcome
from tachograph.domain.run_audit import AuditCommands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tachograph.domain.event import Cause


class MaintenanceCommands(AuditCommands):
    """What an orchestrator records."""

    def plan_maintenance(
        self,
        cause: Cause,
        tier: str,
        steps: Sequence[str],
        *,
        options: Mapping[str, Any] | None = None,
        deadline_us: int | None = None,
    ) -> None:
        """Record which steps the run will go through. The same plan again records nothing.

        The option `job` stays what the first plan has said: the run's files are named after it.
        """
        self._owned(cause)
        checks.text("tier", tier)
        for step in steps:
            checks.text("maintenance step", step)
        said, known = dict(options or {}), self.maintenance or {}
        if known:
            said = {**said, "job": known["options"].get("job")}
        plan = {
            "tier": tier,
            "steps": list(steps),
            "options": {name: value for name, value in said.items() if value is not None},
            "deadline_us": deadline_us,
        }
        if any(known.get(name) != value for name, value in plan.items()):
            self._record(events.MaintenancePlanned, cause, **plan)

    def start_maintenance_step(self, cause: Cause, step: str) -> None:
        """Record that a step is about to be run."""
        self._owned(cause)
        self._planned(step)
        self._record(events.MaintenanceStepStarted, cause, step=step)

    def end_maintenance_step(
        self,
        cause: Cause,
        step: str,
        status: str,
        summary: str,
        *,
        duration_us: int = 0,
        runs: Sequence[str] = (),
        result: str | None = None,
        reason_code: str | None = None,
        guard: bool = False,
        once: bool = False,
    ) -> None:
        """Record what became of a step; `result` is the outcome of its work.

        The guard is refused to a step whose outcome withholds it (GuardWithheldError): what did
        not do its work is due again.
        """
        self._owned(cause)
        self._planned(step)
        checks.one_of("step status", status, outcome.STEP_STATUSES)
        checks.text("summary", summary)
        checks.whole("duration", duration_us, 0)
        meant = outcome.from_step_status(status, result)
        if (guard or once) and outcome.traits(meant, reason_code).withholds_guard:
            raise errors.GuardWithheldError(self.id, step, meant)
        self._record(
            events.MaintenanceStepEnded,
            cause,
            step=step,
            status=status,
            summary=summary,
            duration_us=duration_us,
            runs=list(runs),
            outcome=result,
            reason_code=reason_code,
            guard=guard,
            once=once,
        )

    def _planned(self, step: str) -> None:
        checks.text("maintenance step", step)
        if self.maintenance is None or step not in self.maintenance["steps"]:
            raise errors.StepUnplannedError(self.id, step)
