"""The run of a maintenance cycle: its phases, what is kept of the report, and how it ends."""

from __future__ import annotations

from tachograph.domain.outcome import EMPTY, SKIPPED, SUCCESS, SUCCESS_WITH_REVIEW
from tachograph.domain.repair_errors import BUDGET, COOLDOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from tachograph.health.caring import CareReport
    from tachograph.recording import Recording

    T = TypeVar("T")

_LATER = (COOLDOWN, BUDGET)
"""Rules by which a repair is only put off: nobody has to look at that."""
COMMAND = "maintenance-care"
"""Command of the runs of maintenance cycles."""


class RunDiary:
    """Keeps a cycle in a run that has been started."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    @property
    def id(self) -> str:
        """The run's id."""
        return self._recording.id

    def phase(self, name: str, work: Callable[[], T]) -> T:
        """Do the work of a phase of the run."""
        with self._recording.phase(name):
            return work()

    def keep(self, name: str, value: Any) -> None:
        """Keep a part of the report as the result of a step."""
        self._recording.session.complete_step(name, value)

    def finish(self, report: CareReport) -> None:
        """End the run: empty, success, or success with review where a repair did not succeed."""
        outcome, code, reason = end_of(report)
        self._recording.session.finish(outcome, reason=reason, reason_code=code)


def end_of(report: CareReport) -> tuple[str, str, str]:
    """Return outcome, reason code and reason of a cycle."""
    if not report.recommendations:
        return EMPTY, "nothing_to_repair", "no domain asks for a repair"
    wanted = ", ".join(each.action for each in report.recommendations)
    if not report.executed:
        return SUCCESS, "repairs_observed", f"recommended, not done (mode observe): {wanted}"
    bad = [each for each in report.executed if not each.success and each.denied not in _LATER]
    if bad:
        words = "; ".join(f"{each.action}: {each.message}" for each in bad)
        return SUCCESS_WITH_REVIEW, "repairs_not_done", words
    if all(each.repair is None for each in report.executed):
        words = "; ".join(f"{each.action}: {each.message}" for each in report.executed)
        return SKIPPED, "repairs_put_off", words
    return SUCCESS, "repairs_done", f"health {report.delta:+.4f}: {wanted}"
