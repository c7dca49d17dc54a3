"""The part of a run's state that an orchestrator run has: its steps, and what became of them.

Facts only, folded from events: it decides nothing and refuses nothing.
"""

from __future__ import annotations

from tachograph.domain.audit_state import AuditState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Fields = dict[str, Any]


class MaintenanceState(AuditState):
    """What an orchestrator run knows besides what every run knows."""

    def __init__(self) -> None:
        super().__init__()
        self.maintenance: Fields | None = None
        """Of an orchestrator run: tier, steps (names, in order), options, deadline_us, version."""
        self.maintenance_steps: dict[str, Fields] = {}
        """By name: status (None while it runs), summary, duration_us, runs, outcome, reason_code,
        guard, once, started_us, version."""


def _planned(run: MaintenanceState, fields: Fields) -> None:
    names = ("tier", "steps", "options", "deadline_us")
    run.maintenance = {name: fields[name] for name in names}
    run.maintenance["version"] = fields["originator_version"]


def _step_started(run: MaintenanceState, fields: Fields) -> None:
    run.maintenance_steps[fields["step"]] = {
        "status": None,
        "started_us": fields["time_us"],
        "version": fields["originator_version"],
    }


def _step_ended(run: MaintenanceState, fields: Fields) -> None:
    names = ("status", "summary", "duration_us", "runs", "outcome", "reason_code", "guard", "once")
    begun = run.maintenance_steps.pop(fields["step"], {})
    run.maintenance_steps[fields["step"]] = {
        **{name: fields[name] for name in names},
        "started_us": begun.get("started_us"),
        "version": fields["originator_version"],
    }
    if fields["status"] == "ok":  # what fails again and again is not resumed for ever
        run.got_further(fields)


HANDLERS: dict[str, Callable[[MaintenanceState, Fields], None]] = {
    "run.maintenance-planned": _planned,
    "run.maintenance-step-started": _step_started,
    "run.maintenance-step-ended": _step_ended,
}
"""What each event that only orchestrator runs have changes."""
