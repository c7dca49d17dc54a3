"""What an orchestrator is told, what it needs around it, and what comes back of a step it runs.

Decides nothing but which status a step gets for what its work came to.
"""

from __future__ import annotations

from tachograph.domain import outcome
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    from tachograph.domain.maintenance_plan import MaintenanceStep
    from tachograph.projections.maintenance_guards import Standing

    class Surroundings(Protocol):
        """The machine that an orchestrator works on."""

        def now_us(self) -> int:
            """Return the wall time."""
            ...

        def monotonic(self) -> float:
            """Return seconds of a clock that nobody sets."""
            ...

        def sleep(self, seconds: float) -> None:
            """Wait, and show signs of life; a signal that asks to stop ends it early."""
            ...

        def interrupted(self) -> str | None:
            """Return the name of the signal that asks to stop, None while there is none."""
            ...

        def gate_open(self, step: MaintenanceStep) -> bool:
            """Say whether a step is switched on."""
            ...

        def standing(self, step: str, *, once: bool) -> Standing:
            """Return when a step did its work, by the log as it is now."""
            ...

        def holder(self, step: str, started: int | None) -> str | None:
            """Describe another live orchestrator run that is at this step.

            With the version of our own start of it, only one that started it before counts.
            """
            ...

        def work(self, step: MaintenanceStep, bounds: Bounds) -> Worked:
            """Run a step to its end.

            Raises RunOwnedError when what a killed attempt or orchestrator had started is still
            at work. Whatever else it raises, the step has failed.
            """
            ...

        def say(self, step: str, words: str) -> None:
            """Tell a person what a step is doing."""
            ...


class Orders(_Fields):
    """What was asked for. `named` are the steps that were asked for by name.

    `said` is what the environment said of the run besides: `job`, the cron job that it is of, and
    `refused_id`, an id for it that can be none.
    """

    __slots__ = (
        "allow_skip",
        "dry_run",
        "exclude",
        "force",
        "max_runtime_seconds",
        "named",
        "said",
    )

    def __init__(
        self,
        *,
        force: bool = False,
        dry_run: bool = False,
        named: Sequence[str] = (),
        exclude: Sequence[str] = (),
        allow_skip: bool = False,
        max_runtime_seconds: float | None = None,
        said: Mapping[str, str] | None = None,
    ) -> None:
        self.force = force
        self.dry_run = dry_run
        self.named = list(named)
        self.exclude = list(exclude)
        self.allow_skip = allow_skip
        self.max_runtime_seconds = max_runtime_seconds
        self.said = dict(said or {})

    def options(self) -> dict[str, Any]:
        """Return what the plan of the run records."""
        return {
            **self.said,
            "force": self.force,
            "include": self.named,
            "exclude": self.exclude,
            "allow_skip": self.allow_skip,
        }


class Bounds(_Fields):
    """How long a step may take, and why: `seconds` is None without a limit.

    `by_deadline` says that the run's deadline sets it, and `deadline_us` is what a step is told.
    """

    __slots__ = ("by_deadline", "deadline_us", "seconds")

    def __init__(
        self, seconds: float | None, deadline_us: int | None, *, by_deadline: bool
    ) -> None:
        self.seconds = seconds
        self.deadline_us = deadline_us
        self.by_deadline = by_deadline


class Worked(_Fields):
    """What came of a step that was run.

    `runs` are the runs it started, the most telling first; `asked` names the signals that asked
    to stop while it was at work.
    """

    __slots__ = ("asked", "outcome", "reason_code", "runs", "summary")

    def __init__(
        self,
        result: str,
        reason_code: str | None,
        summary: str,
        *,
        runs: Sequence[str] = (),
        asked: Sequence[str] = (),
    ) -> None:
        self.outcome = result
        self.reason_code = reason_code
        self.summary = summary
        self.runs = list(runs)
        self.asked = list(asked)


def status_of(result: str, reason_code: str | None) -> str:
    """Return the status of a step that was run, by what its work came to.

    >>> status_of("partial", "stopped_by_budget"), status_of("partial", "rate_limited")
    ('deferred', 'rate_limited')
    """
    meant = outcome.traits(result, reason_code)
    if meant.withholds_guard and reason_code == outcome.RATE_LIMITED:
        return "rate_limited"
    if meant.fails_step:
        return "failed"
    return "deferred" if meant.withholds_guard else "ok"
