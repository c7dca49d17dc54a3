"""Who may repair what, how often, and when a repair that does not help is halted. No I/O."""

from __future__ import annotations

from tachograph.domain import checks
from tachograph.domain.errors import InvalidValueError
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
"""The time that an hourly budget counts back."""

REQUEUE = "requeueDeadJobs"
RELEASE = "releaseStaleLeases"
SWEEP = "triggerRetentionSweep"
CANCEL = "cancelObsoleteJobs"
PRUNE = "pruneTerminalJobs"
CHECK_VIEWS = "checkViewConsistency"
CLEAR_READERS = "clearStaleReaders"
ACTIONS = (REQUEUE, RELEASE, CHECK_VIEWS, SWEEP, CANCEL, PRUNE, CLEAR_READERS)
"""Every repair action, in the order in which a maintenance cycle does them."""

OPERATOR = "operator"
AGENT = "agent"
DAEMON = "daemon"
ACTOR_KINDS = (OPERATOR, AGENT, DAEMON)
"""A person, a program that acts for one on its own, and the maintenance worker."""

EXECUTE = "execute"
OBSERVE = "observe"
MODES = (EXECUTE, OBSERVE)
"""A cycle does what it recommends, or only records it."""

SHORTEST_INTERVAL_US = MINUTE_US
LONGEST_INTERVAL_US = 24 * HOUR_US
HALT_AFTER = 3
"""Runs of an action without improvement, one after another, after which it is halted."""
MOST_PER_HOUR = 1_000


class ActionLimits(_Fields):
    """How often an action may run.

    Not within `cooldown_us` of its last run, nor more than `hourly_budget` times in any hour.
    """

    __slots__ = ("cooldown_us", "hourly_budget")

    def __init__(self, cooldown_us: int = MINUTE_US, hourly_budget: int = 50) -> None:
        checks.whole("cooldown", cooldown_us, 0)
        checks.whole("hourly budget", hourly_budget, 1)
        if hourly_budget > MOST_PER_HOUR:
            raise InvalidValueError("hourly budget", hourly_budget, f"at most {MOST_PER_HOUR}")
        self.cooldown_us = cooldown_us
        self.hourly_budget = hourly_budget


DEFAULT_LIMITS: dict[str, ActionLimits] = {
    action: ActionLimits(5 * MINUTE_US, 5) if action == CHECK_VIEWS else ActionLimits()
    for action in ACTIONS
}
"""60 seconds and 50 an hour; looking through all views is dear: 5 minutes and 5 an hour."""


class RepairPolicy(_Fields):
    """What is set for repairs. Raises InvalidValueError for what makes no sense."""

    __slots__ = ("enabled", "frozen", "halt_after", "interval_us", "limits", "mode")

    def __init__(
        self,
        *,
        enabled: bool = True,
        frozen: bool = False,
        mode: str = EXECUTE,
        interval_us: int = 30 * MINUTE_US,
        limits: Mapping[str, ActionLimits] | None = None,
        halt_after: int = HALT_AFTER,
    ) -> None:
        checks.one_of("mode", mode, MODES)
        checks.whole("halt after", halt_after, 1)
        check_interval(interval_us)
        for action in limits or ():
            checks.one_of("action", action, ACTIONS)
        self.enabled = enabled
        """False: agents may not repair, and no maintenance worker goes on by itself."""
        self.frozen = frozen
        """True: nobody may repair."""
        self.mode = mode
        self.interval_us = interval_us
        """From the start of a maintenance cycle to that of the next one."""
        self.limits = {**DEFAULT_LIMITS, **(limits or {})}
        self.halt_after = halt_after

    def of(self, action: str) -> ActionLimits:
        """Return the limits of an action. Raises InvalidValueError for an unknown one."""
        checks.one_of("action", action, ACTIONS)
        return self.limits[action]


def check_interval(interval_us: int) -> None:
    """Require an interval from a minute to a day."""
    checks.whole("interval", interval_us, 0)
    if not SHORTEST_INTERVAL_US <= interval_us <= LONGEST_INTERVAL_US:
        seconds = f"{interval_us / SECOND_US:g} s"
        raise InvalidValueError("interval", seconds, "it must be from one minute to one day")
