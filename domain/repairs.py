"""All repairs of one action: who may begin one now, which helped, and whether it is halted.

No I/O, no clock. Cooldown, budget and halt are projections of the log: they bind every process
and survive restarts. To check and to record is one append at a version of the stream, so that of
two processes which both found the cooldown over, one loses and has to decide again.

Time here is the *time of the stream*: what its clock showed to have passed from event to event.
When the clock is set back, nothing passes from the event before to the one after, so that a
budget never lets more through; each denial that meets such a clock is recorded, and time goes on
from there.
"""

from __future__ import annotations

from tachograph.domain import checks
from tachograph.domain import repair_events as events
from tachograph.domain.errors import InvalidValueError
from tachograph.domain.records import _Fields
from tachograph.domain.repair_errors import BUDGET, COOLDOWN, DISABLED, FROZEN, HALTED, RULES
from tachograph.domain.repair_policy import ACTIONS, ACTOR_KINDS, AGENT, HOUR_US, OPERATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tachograph.domain.event import Cause
    from tachograph.domain.repair_events import RepairEvent
    from tachograph.domain.repair_policy import RepairPolicy

    Fields = dict[str, Any]

__all__ = ["RULES"]

BY_HAND = "by_hand"
CLEAN_CYCLE = "clean_cycle"
HELPED = "helped"
LIFTS = (BY_HAND, CLEAN_CYCLE, HELPED)
"""A person lifted it, a maintenance cycle had nothing to recommend, a forced run of it helped."""

OVERRULABLE = (HALTED, COOLDOWN, BUDGET)
"""What a person may overrule with a reason. Not that repairs are frozen."""

MOST_UNJUDGED = 20
"""Repairs whose effect is waited for; the oldest beyond are no longer judged."""
MOST_WATCHED = 200
"""Jobs by which the effect of one repair is seen; of more, some evenly from all."""
MOST_COUNTED = 2_000
"""Runs of the last hour that are kept: more than any budget, with what persons forced."""

SNAPSHOT = 1
"""Version of a snapshot's shape: one of another version is not read, events say the same."""
FIELDS = (
    "version",
    "count",
    "log_us",
    "clock_us",
    "runs",
    "last",
    "open",
    "unjudged",
    "strikes",
    "useless",
    "halted",
    "halted_us",
    "denial",
    "told",
)


def stream_of(action: str) -> str:
    """Return the stream of an action's repairs: a text that cannot be a run's id.

    >>> stream_of("requeueDeadJobs")
    'repair:requeueDeadJobs'
    """
    return f"repair:{action}"


class Denial(_Fields):
    """Why a repair may not begin now."""

    __slots__ = ("remaining_us", "rule")

    def __init__(self, rule: str, remaining_us: int | None = None) -> None:
        self.rule = rule
        self.remaining_us = remaining_us


class Repairs:
    """The repairs of one action as their events have left them; its methods are the commands."""

    def __init__(self, action: str) -> None:
        self.action = action
        self.version = 0
        self.count = 0
        """Repairs that were allowed, ever."""
        self.log_us = 0
        """Time of the stream: what its clock showed to have passed."""
        self.clock_us = 0
        """What the clock showed at the newest event."""
        self.runs: list[int] = []
        """When, in time of the stream, each repair of the last hour was allowed."""
        self.last: Fields | None = None
        """The newest repair: its fields, and those of its end."""
        self.open: dict[str, Fields | None] = {}
        """Repairs that nothing says to have ended, with their baselines; the newest of them."""
        self.unjudged: dict[str, Fields] = {}
        """Repairs whose effect is still to be seen, oldest first."""
        self.strikes = 0
        """Runs without improvement since the last one that helped."""
        self.useless: list[str] = []
        """Those runs."""
        self.halted = False
        self.halted_us: int | None = None
        self.denial: Fields | None = None
        """The newest denial that was recorded."""
        self.told: dict[str, int] = {}
        """When, in time of the stream, a denial by a rule was last told to a kind of actor."""
        self._pending: list[RepairEvent] = []

    # Snapshots.

    def to_snapshot(self) -> list[Any]:
        """Return plain values, from which `restore` makes the same state."""
        return [SNAPSHOT, *(getattr(self, name) for name in FIELDS)]

    def restore(self, values: Sequence[Any]) -> bool:
        """Take the state of a snapshot; False for one of another version."""
        if values[0] != SNAPSHOT or len(values) != len(FIELDS) + 1:
            return False
        for name, value in zip(FIELDS, values[1:], strict=True):
            setattr(self, name, value)
        return True

    def collect_events(self) -> list[RepairEvent]:
        """Return the pending events and forget them."""
        collected, self._pending = self._pending, []
        return collected

    # Questions.

    def now_us(self, clock_us: int) -> int:
        """Return the time of the stream at what the clock shows."""
        return self.log_us + max(0, clock_us - self.clock_us)

    def denies(self, policy: RepairPolicy, actor_kind: str, clock_us: int) -> Denial | None:
        """Return by which rule a repair may not begin now; None when it may."""
        if policy.frozen:
            return Denial(FROZEN)
        if actor_kind == AGENT and not policy.enabled:
            return Denial(DISABLED)
        if self.halted:
            return Denial(HALTED)
        return self._limited(policy, self.now_us(clock_us))

    def _limited(self, policy: RepairPolicy, now_us: int) -> Denial | None:
        if not self.runs:
            return None
        limits = policy.of(self.action)
        passed = now_us - self.runs[-1]
        if passed < limits.cooldown_us:
            return Denial(COOLDOWN, limits.cooldown_us - passed)
        within = [at for at in self.runs if now_us - at < HOUR_US]
        if len(within) >= limits.hourly_budget:
            # The budget frees a place when the oldest run beyond it is an hour ago.
            return Denial(BUDGET, within[-limits.hourly_budget] + HOUR_US - now_us)
        return None

    def begun(self, repair: str) -> bool:
        """Say whether a repair was allowed and has not ended."""
        return repair in self.open

    # Commands.

    def begin(
        self,
        cause: Cause,
        policy: RepairPolicy,
        actor_kind: str,
        reason: str,
        *,
        force: bool = False,
        selection: Any = None,
        run: str | None = None,
        baseline: Fields | None = None,
    ) -> Denial | None:
        """Begin a repair, or return why it may not: that is recorded, unless it was just told.

        Raises InvalidValueError for a missing reason, an unknown kind of actor, and for `force`
        by anybody who is no person.
        """
        check_who(actor_kind, reason, force=force)
        denial = self.denies(policy, actor_kind, cause.time_us)
        forced = None
        if denial is not None:
            if not force or denial.rule not in OVERRULABLE:
                self._deny(cause, denial, actor_kind, reason, run)
                return denial
            forced = denial.rule
        self._record(
            events.RepairAllowed,
            cause,
            repair=f"{self.action}~{self.count + 1}",
            actor_kind=actor_kind,
            reason=reason,
            forced=forced,
            selection=selection,
            run=run,
            baseline=baseline,
        )
        return None

    def _deny(
        self, cause: Cause, denial: Denial, actor_kind: str, reason: str, run: str | None
    ) -> None:
        told_us = self.told.get(f"{denial.rule} {actor_kind}")
        set_back = cause.time_us < self.clock_us
        if told_us is not None and self.now_us(cause.time_us) - told_us < HOUR_US and not set_back:
            return  # an agent that asks again and again must not fill the log
        self._record(
            events.RepairDenied,
            cause,
            actor_kind=actor_kind,
            reason=reason,
            rule=denial.rule,
            remaining_us=denial.remaining_us,
            run=run,
        )

    def do_step(
        self, cause: Cause, repair: str, number: int, affected: int, detail: Any = None
    ) -> None:
        """Record that a part of a repair is done."""
        self._record(
            events.RepairStepDone,
            cause,
            repair=repair,
            number=number,
            affected=affected,
            detail=detail,
        )

    def end(
        self,
        cause: Cause,
        repair: str,
        affected: int,
        message: str,
        *,
        success: bool = True,
        watched: Sequence[str] = (),
    ) -> None:
        """Record the end of a repair; one that has ended stays as it ended.

        With `watched` its effect is judged when those jobs show it; without, by what it affected.
        """
        if repair not in self.open:
            return
        checks.whole("affected", affected, 0)
        self._record(
            events.RepairEnded,
            cause,
            repair=repair,
            success=success,
            affected=affected,
            message=message,
            watched=some_of(watched),
        )

    def judge(
        self,
        cause: Cause,
        policy: RepairPolicy,
        repair: str,
        evidence: Fields,
        *,
        improved: bool | None,
    ) -> None:
        """Record whether a repair helped; the last useless one of several halts the action."""
        if repair not in self.unjudged:
            return
        self._record(
            events.RepairJudged, cause, repair=repair, improved=improved, evidence=evidence
        )
        if improved and self.halted:
            self._lift(cause, HELPED, f"{repair} helped", None)
        if improved is False and self.strikes >= policy.halt_after and not self.halted:
            self._record(
                events.RepairHalted, cause, strikes=self.strikes, repairs=list(self.useless)
            )

    def lift(self, cause: Cause, reason: str) -> bool:
        """Let a halted action go on, by a person's word; False when it is not halted."""
        checks.text("reason", reason)
        if not self.halted:
            return False
        self._lift(cause, BY_HAND, reason, None)
        return True

    def reset(self, cause: Cause, run: str | None) -> bool:
        """Forget strikes and halt after a clean cycle; False when there is nothing to forget.

        Not while the effect of a repair is still to be seen: else jobs that wait after a requeue,
        and will die again, would look like health.
        """
        if self.unjudged or not (self.halted or self.strikes):
            return False
        self._lift(cause, CLEAN_CYCLE, "a maintenance cycle had nothing to recommend", run)
        return True

    def _lift(self, cause: Cause, code: str, reason: str, run: str | None) -> None:
        self._record(
            events.RepairHaltLifted, cause, code=code, reason=reason, strikes=self.strikes, run=run
        )

    def _record(self, kind: type[RepairEvent], cause: Cause, **fields: Any) -> None:
        event = kind(
            originator_id=stream_of(self.action),
            originator_version=self.version + 1,
            time_us=cause.time_us,
            by=cause.by(),
            action=self.action,
            **fields,
        )
        self.evolve(kind.TOPIC, event.__dict__)
        self._pending.append(event)

    # What each event makes of it.

    def evolve(self, topic: str, fields: Fields) -> None:
        """Apply the fields of an event. Raises KeyError for an unknown topic."""
        handler = _HANDLERS[topic]
        self.version = fields["originator_version"]
        self.log_us = self.now_us(fields["time_us"])
        self.clock_us = fields["time_us"]
        handler(self, fields)

    def _allowed(self, fields: Fields) -> None:
        self.count += 1
        kept = [at for at in self.runs if self.log_us - at < HOUR_US]
        self.runs = [*kept, self.log_us][-MOST_COUNTED:]
        repair = fields["repair"]
        names = ("repair", "actor_kind", "reason", "forced", "run", "time_us", "by", "baseline")
        self.last = {name: fields[name] for name in names}
        self.open = {**self.open, repair: fields["baseline"]}
        _keep_newest(self.open)
        self.told = {}

    def _stepped(self, fields: Fields) -> None:
        if self.last is not None and self.last["repair"] == fields["repair"]:
            self.last = {**self.last, "steps": fields["number"]}

    def _ended(self, fields: Fields) -> None:
        repair = fields["repair"]
        baseline = self.open.get(repair)
        self.open = {name: said for name, said in self.open.items() if name != repair}
        said = {name: fields[name] for name in ("success", "affected", "message")}
        said["ended_us"] = fields["time_us"]
        if self.last is not None and self.last["repair"] == repair:
            self.last = {**self.last, **said}
        effect = {**said, "watched": fields["watched"], "baseline": baseline}
        self.unjudged = {**self.unjudged, repair: effect}
        _keep_newest(self.unjudged)

    def _denied(self, fields: Fields) -> None:
        names = ("actor_kind", "reason", "rule", "remaining_us", "time_us", "by", "run")
        self.denial = {name: fields[name] for name in names}
        self.told = {**self.told, f"{fields['rule']} {fields['actor_kind']}": self.log_us}

    def _judged(self, fields: Fields) -> None:
        repair, improved = fields["repair"], fields["improved"]
        self.unjudged = {name: said for name, said in self.unjudged.items() if name != repair}
        if improved:
            self.strikes, self.useless = 0, []
        elif improved is False:
            self.strikes += 1
            self.useless = [*self.useless, repair][-MOST_UNJUDGED:]

    def _halted(self, fields: Fields) -> None:
        self.halted, self.halted_us = True, fields["time_us"]

    def _lifted(self, _fields: Fields) -> None:
        self.halted, self.halted_us = False, None
        self.strikes, self.useless = 0, []


_HANDLERS: dict[str, Callable[[Repairs, Fields], None]] = {
    events.RepairAllowed.TOPIC: Repairs._allowed,
    events.RepairStepDone.TOPIC: Repairs._stepped,
    events.RepairEnded.TOPIC: Repairs._ended,
    events.RepairDenied.TOPIC: Repairs._denied,
    events.RepairJudged.TOPIC: Repairs._judged,
    events.RepairHalted.TOPIC: Repairs._halted,
    events.RepairHaltLifted.TOPIC: Repairs._lifted,
}


def _keep_newest(repairs: dict[str, Any]) -> None:
    while len(repairs) > MOST_UNJUDGED:
        del repairs[next(iter(repairs))]


def check_who(actor_kind: str, reason: str, *, force: bool) -> None:
    """Require a known kind of actor and a reason; only a person may force."""
    checks.one_of("actor kind", actor_kind, ACTOR_KINDS)
    checks.text("reason", reason)
    if force and actor_kind != OPERATOR:
        raise InvalidValueError("force", actor_kind, "only a person may overrule the limits")


def check_action(action: str) -> str:
    """Return the action when there is one of this name, else raise InvalidValueError."""
    checks.one_of("action", action, ACTIONS)
    return action


def some_of(ids: Sequence[str], most: int = MOST_WATCHED) -> list[str]:
    """Return at most so many of some ids, evenly from all.

    >>> some_of(["a", "b", "c", "d", "e"], 2)
    ['a', 'c']
    """
    if len(ids) <= most:
        return list(ids)
    return [ids[number * len(ids) // most] for number in range(most)]
