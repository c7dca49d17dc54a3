"""Whether a maintenance step is run now, and if not why: the first rule that holds decides. Pure.

Whoever asks has looked at the clock, the guards and the locks before; nothing is looked up here.
"""

from __future__ import annotations

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tachograph.domain.maintenance_plan import MaintenanceStep

RUN = None
"""Status of a step that no rule keeps from being run."""


class StepFacts(_Fields):
    """What the rules see of a step and its run.

    `guard_age_us` is how long ago the step did its work the last time, None when it never did;
    below 0 by a clock that was set back. `unmet` names the dependencies that were done neither in
    this run nor ever. `breaker_open` says that a rate limit has stopped the providers' steps.
    """

    __slots__ = (
        "breaker_open",
        "deadline_reached",
        "dry_run",
        "force",
        "gate_open",
        "guard_age_us",
        "once_done",
        "unmet",
    )

    def __init__(
        self,
        *,
        deadline_reached: bool = False,
        gate_open: bool = True,
        once_done: bool = False,
        unmet: Sequence[str] = (),
        guard_age_us: int | None = None,
        force: bool = False,
        breaker_open: bool = False,
        dry_run: bool = False,
    ) -> None:
        self.deadline_reached = deadline_reached
        self.gate_open = gate_open
        self.once_done = once_done
        self.unmet = list(unmet)
        self.guard_age_us = guard_age_us
        self.force = force
        self.breaker_open = breaker_open
        self.dry_run = dry_run


class Decision(_Fields):
    """What is to become of a step: `status` is None when it is to be run.

    `rule` is the id of the rule that decided, `code` the reason for machines, `words` for people.
    """

    __slots__ = ("code", "rule", "status", "words")

    def __init__(self, status: str | None, rule: str, code: str, words: str) -> None:
        self.status = status
        self.rule = rule
        self.code = code
        self.words = words

    @property
    def runs(self) -> bool:
        """Whether the step is to be run."""
        return self.status is RUN


class StepRule:
    """A rule: when it holds, the step gets this status instead of being run."""

    __slots__ = ("code", "holds", "id", "status", "words")

    def __init__(
        self,
        rule_id: str,
        status: str,
        code: str,
        holds: Callable[[MaintenanceStep, StepFacts], bool],
        words: Callable[[StepFacts], str],
    ) -> None:
        self.id = rule_id
        self.status = status
        self.code = code
        self.holds = holds
        self.words = words


def guard_holds(guard_us: int, age_us: int | None) -> bool:
    """Say whether a step that did its work so long ago is not due yet.

    A guard from the future is one from a clock that was wrong. It holds when it is nearer than
    its interval, so for less than twice that: no step is kept back for ever.

    >>> guard_holds(100, 99), guard_holds(100, 100), guard_holds(0, 1), guard_holds(100, None)
    (True, False, False, False)
    """
    return age_us is not None and guard_us > 0 and abs(age_us) < guard_us


def _says(text: str) -> Callable[[StepFacts], str]:
    return lambda _facts: text


def _unmet(facts: StepFacts) -> str:
    names = ", ".join(facts.unmet)
    return f"depends on {names}, which has not been done"


def ago(age_us: int) -> str:
    """Return how long ago something was, as guards say it: in hours, or minutes below one.

    >>> ago(3 * 3_600_000_000), ago(90_000_000), ago(-5)
    ('3h', '1m', '0m')
    """
    minutes = max(0, age_us) // 60_000_000
    return f"{minutes // 60}h" if minutes >= 60 else f"{minutes}m"


RULES = (
    StepRule(
        "deadline",
        "deferred",
        "deadline_reached",
        lambda _step, facts: facts.deadline_reached,
        _says("time budget exceeded"),
    ),
    StepRule(
        "gate",
        "skipped_gate",
        "feature_disabled",
        lambda _step, facts: not facts.gate_open,
        _says("feature disabled"),
    ),
    StepRule(
        "once",
        "skipped_guard",
        "done_for_good",
        lambda step, facts: step.once and facts.once_done,
        _says("one-time marker exists"),
    ),
    StepRule(
        "dependencies",
        "skipped_dep",
        "dependency_unmet",
        lambda _step, facts: bool(facts.unmet),
        _unmet,
    ),
    StepRule(
        "guard",
        "skipped_guard",
        "guard_holds",
        lambda step, facts: not facts.force and guard_holds(step.guard_us, facts.guard_age_us),
        lambda facts: f"guard (ran {ago(facts.guard_age_us or 0)} ago)",
    ),
    StepRule(
        "runner",
        "skipped_missing_runner",
        "no_runner",
        lambda step, _facts: not step.has_runner,
        _says("no command and no job is declared for it"),
    ),
    StepRule(
        "breaker",
        "deferred",
        "breaker_open",
        lambda step, facts: facts.breaker_open and step.uses_provider,
        _says("rate-limit circuit breaker"),
    ),
    StepRule(
        "dry-run",
        "ok",
        "dry_run",
        lambda _step, facts: facts.dry_run,
        _says("dry-run (would execute)"),
    ),
)
"""In order. What comes after them (cooldown, lock) takes time, and is the orchestrator's."""


def evaluate(step: MaintenanceStep, facts: StepFacts) -> Decision:
    """Return what is to become of a step, by the first rule that holds."""
    for rule in RULES:
        if rule.holds(step, facts):
            return Decision(rule.status, rule.id, rule.code, rule.words(facts))
    return Decision(RUN, "run", "run", "")


def cools_down(before: MaintenanceStep | None, step: MaintenanceStep) -> bool:
    """Say whether a pause belongs between two steps: both ask a provider."""
    return before is not None and before.uses_provider and step.uses_provider
