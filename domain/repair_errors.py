"""What the gate of repairs refuses, one class per outcome a caller can act on."""

from __future__ import annotations

from tachograph.domain.errors import TachographError

FROZEN = "frozen"
DISABLED = "disabled"
HALTED = "halted"
COOLDOWN = "cooldown"
BUDGET = "budget"
RULES = (FROZEN, DISABLED, HALTED, COOLDOWN, BUDGET)
"""What the gate asks, in this order; the first rule that is broken denies."""

MEANINGS = {
    FROZEN: "repairs are frozen (`frozen` of [repair] in tachograph.toml)",
    DISABLED: "repairs by agents are switched off (`enabled` of [repair] in tachograph.toml)",
    HALTED: "it was halted, because it did not help several times in a row",
    COOLDOWN: "its last run was not long enough ago",
    BUDGET: "it has used up the runs that it may make within an hour",
}
"""What each rule says."""

NEXT_STEPS = {
    FROZEN: "Nobody can repair until somebody sets it to false.",
    DISABLED: "A person can run it.",
    HALTED: "`tacho maintenance explain-action {0}` shows why, `tacho maintenance lift-halt {0} "
    "--reason …` lets it go on{2}.",
    COOLDOWN: "Try again in {1}{2}.",
    BUDGET: "Try again in {1}{2}.",
}
"""What to do then; {0} is the action, {1} the time that is left, {2} what FORCE says."""

FORCE = "; a person can overrule it with --force --reason …"
FORCED = ("requeueDeadJobs", "cancelObsoleteJobs", "pruneTerminalJobs", "triggerRetentionSweep")
"""Actions that have a command with --force; the others are done by maintenance cycles."""


class RepairError(TachographError):
    """A repair could not be done as asked."""


class RepairDeniedError(RepairError):
    """The gate let a repair not begin; nothing was changed. `rule` says by which rule."""

    template = "{0} was denied: {1}. {2}"

    @property
    def action(self) -> str:
        """What was to be done."""
        return str(self.args[0])

    @property
    def rule(self) -> str:
        """One of RULES."""
        return str(self.args[3])

    @property
    def remaining_us(self) -> int | None:
        """After which time it can be tried again; None where time alone does not help."""
        found: int | None = self.args[4]
        return found

    @property
    def remaining_seconds(self) -> float | None:
        """The same in seconds."""
        return None if self.remaining_us is None else self.remaining_us / 1_000_000


class RepairWaitError(RepairDeniedError):
    """The gate let a repair not begin yet: its cooldown or its hourly budget says so."""


def denied(action: str, rule: str, remaining_us: int | None) -> RepairDeniedError:
    """Return the error for a denial by a rule."""
    kind = RepairWaitError if rule in (COOLDOWN, BUDGET) else RepairDeniedError
    advice = next_step(action, rule, remaining_us)
    return kind(action, MEANINGS[rule], advice, rule, remaining_us)


def next_step(action: str, rule: str, remaining_us: int | None) -> str:
    """Return what can be done after a denial."""
    return NEXT_STEPS[rule].format(
        action, in_words(remaining_us), FORCE if action in FORCED else ""
    )


def in_words(span_us: int | None) -> str:
    """Return a time as people write it, rounded up to what is shown.

    >>> in_words(500_000), in_words(59_000_000), in_words(61_000_000), in_words(3_600_000_000)
    ('1 s', '59 s', '2 min', '60 min')
    """
    seconds = -(-(span_us or 0) // 1_000_000)
    return f"{seconds} s" if seconds <= 60 else f"{-(-seconds // 60)} min"
