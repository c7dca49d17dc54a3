"""One maintenance cycle: diagnose, recommend, repair within limits, diagnose again.

Each cycle is a run. No failing action, domain or provider ends it, and no action is passed over
in silence: what was denied or halted is in its report.
"""

from __future__ import annotations

from tachograph.domain.errors import TachographError
from tachograph.domain.records import _Fields
from tachograph.domain.repair_errors import RepairDeniedError
from tachograph.domain.repair_policy import ACTIONS, DAEMON, EXECUTE
from tachograph.health.diagnosing import diagnose
from tachograph.health.recommending import recommend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Protocol, TypeVar

    from tachograph.domain.event import Cause
    from tachograph.domain.health import Health
    from tachograph.domain.repairs import Repairs
    from tachograph.health.diagnosing import Diagnosis
    from tachograph.health.judging import Judged, Judging
    from tachograph.health.recommending import Recommendation
    from tachograph.queues.gatekeeping import Gatekeeper, Permit

    T = TypeVar("T")
    Fields = dict[str, Any]
    Action = Callable[[Permit], None]
    """Does a repair, and says with `Permit.done` what came of it."""

    class Diary(Protocol):
        """The run of a cycle."""

        @property
        def id(self) -> str:
            """The run's id."""
            ...

        def phase(self, name: str, work: Callable[[], T]) -> T:
            """Do the work of a phase of the run."""
            ...

        def keep(self, name: str, value: Any) -> None:
            """Keep a part of the report in the run."""
            ...

        def finish(self, report: CareReport) -> None:
            """End the run, as the report says."""
            ...


class Executed(_Fields):
    """What became of one recommended repair.

    `denied` is the rule by which the gate denied it, `failed` says that it was begun and did not
    succeed.
    """

    __slots__ = ("action", "affected", "denied", "message", "repair", "success")

    def __init__(
        self,
        action: str,
        message: str,
        *,
        success: bool,
        affected: int = 0,
        denied: str | None = None,
        repair: str | None = None,
    ) -> None:
        self.action = action
        self.success = success
        self.affected = affected
        self.message = message
        self.denied = denied
        self.repair = repair

    @property
    def failed(self) -> bool:
        """Whether it was begun, and did not succeed."""
        return not self.success and self.denied is None

    def to_fields(self) -> Fields:
        """Return it as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


class CareReport(_Fields):
    """What a cycle saw and did."""

    __slots__ = (
        "after",
        "before",
        "executed",
        "judged",
        "mode",
        "recommendations",
        "reset",
        "run",
    )

    def __init__(
        self,
        run: str,
        mode: str,
        before: Health,
        recommendations: Sequence[Recommendation],
        *,
        judged: Sequence[Judged] = (),
    ) -> None:
        self.run = run
        self.mode = mode
        self.before = before
        self.recommendations = list(recommendations)
        self.judged = list(judged)
        """Repairs of earlier cycles, or of this one, whose effect was seen."""
        self.executed: list[Executed] = []
        self.after: Health | None = None
        """The health after the repairs; None where none was done."""
        self.reset: list[str] = []
        """Actions whose strikes, or halt, this clean cycle has ended."""

    @property
    def delta(self) -> float:
        """By how much the composite score has risen."""
        return 0.0 if self.after is None else round(self.after.score - self.before.score, 4)

    def to_fields(self) -> Fields:
        """Return it as plain values."""
        return {
            "run": self.run,
            "mode": self.mode,
            "report": self.before.to_fields(),
            "recommendations": [each.to_fields() for each in self.recommendations],
            "executed": [each.to_fields() for each in self.executed],
            "judged": [each.to_fields() for each in self.judged],
            "reset": list(self.reset),
            "after": None if self.after is None else self.after.to_fields(),
            "delta": self.delta,
        }


class Carer:
    """Does maintenance cycles."""

    def __init__(
        self,
        domains: Callable[[], Iterable[Diagnosis]],
        gatekeeper: Gatekeeper,
        actions: Mapping[str, Action],
        judging: Judging,
        now_us: Callable[[], int],
    ) -> None:
        self._domains = domains
        self._gatekeeper = gatekeeper
        self._actions = actions
        self._judging = judging
        self._now_us = now_us

    def diagnose(self) -> Health:
        """Return the health as it is now."""
        return diagnose(self._domains(), self._now_us())

    def cycle(self, diary: Diary, mode: str) -> CareReport:
        """Do one cycle; in mode `observe` nothing is repaired."""
        report = diary.phase("diagnose", lambda: self._look(diary.id, mode))
        diary.keep("before", report.to_fields())
        if not report.recommendations:
            report.reset = self._clean(report)
        elif mode == EXECUTE:
            report.executed = diary.phase("repair", lambda: self._repair(report))
            diary.keep("executed", [each.to_fields() for each in report.executed])
        if any(each.repair is not None for each in report.executed):
            diary.phase("diagnose-again", lambda: self._look_again(report))
            diary.keep("after", report.to_fields())
        diary.finish(report)
        return report

    def _look(self, run: str, mode: str) -> CareReport:
        judged = self._judging.judge_all() if mode == EXECUTE else []  # observing holds nothing
        health = self.diagnose()
        return CareReport(run, mode, health, recommend(health), judged=judged)

    def _clean(self, report: CareReport) -> list[str]:
        """Forget what is held against actions: there is nothing left for them to do.

        Not where a domain could not be looked at: it may be anything but clean.
        """
        if any(domain.error is not None for domain in report.before.domains):
            return []

        def forget(repairs: Repairs, cause: Cause) -> bool:
            return repairs.reset(cause, report.run)

        return [action for action in ACTIONS if self._gatekeeper.decide(action, forget)]

    def _repair(self, report: CareReport) -> list[Executed]:
        return [self._execute(each, report.run) for each in report.recommendations]

    def _execute(self, wanted: Recommendation, run: str) -> Executed:
        action = wanted.action
        do = self._actions.get(action)
        if do is None:
            return Executed(action, "nothing here can do it", success=False)
        baseline = {"expected": wanted.expected, "trigger": wanted.trigger}
        try:
            permit = self._gatekeeper.gate(
                action, DAEMON, wanted.trigger, run=run, baseline=baseline
            )
        except RepairDeniedError as denial:
            return Executed(action, str(denial), success=False, denied=denial.rule)
        except TachographError as error:
            return Executed(action, f"the gate could not be asked: {error}", success=False)
        try:
            with permit:
                do(permit)
        except Exception as error:  # noqa: BLE001  # of one action: the others are done all the same
            permit.success = False
            permit.message = str(error) or type(error).__name__
        return Executed(
            action,
            permit.message,
            success=permit.success,
            affected=permit.affected,
            repair=permit.repair,
        )

    def _look_again(self, report: CareReport) -> None:
        report.after = self.diagnose()
        wanted = {each.action for each in recommend(report.after)}
        for each in report.executed:
            if each.repair is not None:
                still = each.action in wanted
                report.judged += self._judging.judge(each.action, wanted=still)
