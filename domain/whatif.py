"""What would have changed a verdict: other facts, one at a time, put to the same policy."""

from __future__ import annotations

from math import ceil, floor

from tachograph.domain.facts import COUNT, DERIVED, MEANINGS, NUMBER
from tachograph.domain.gate import Judgement
from tachograph.domain.outcome import traits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.domain.facts import Facts
    from tachograph.domain.policy import Condition, Policy

DECLARED = "nothing new"
STOPPED = "budget"
_SAID = {"declared": DECLARED, "stopped": STOPPED}
"""What could be said where nothing was."""
NEAR = 32
"""Every count this near is tried; further off, only those at which a condition may turn."""
FAR = 10**9
"""Further than any count that matters."""
_WITHIN = (
    ("answered", "asked"),
    ("accepted", "parsed"),
    ("filtered", "extracted"),
    ("files_present", "files_expected"),
)
"""Counts that cannot be larger than another one."""
_AGAINST = ("outputs", "accepted", "parsed")
"""Facts that say what came out; the first that is said counts (`done`)."""


class Change:
    """One fact that is otherwise, and what the policy then concludes."""

    __slots__ = ("fact", "judgement", "to", "was")

    def __init__(self, fact: str, was: Any, to: Any, judgement: Judgement) -> None:
        self.fact = fact
        self.was = was
        self.to = to
        self.judgement = judgement

    def to_fields(self) -> dict[str, Any]:
        """Return the change as plain values."""
        return {"fact": self.fact, "was": self.was, "to": self.to, **self.judgement.to_fields()}


def changes(facts: Facts, policy: Policy) -> list[Change]:
    """Return the smallest change of each fact that leads to each other outcome.

    Only facts that are said can be otherwise, and where somebody should look at the run the two
    reasons that a job can give. A fact that decides nothing here leads to no change, and what
    cannot be is left out: more that was answered than was asked.
    """
    now = policy.decide(facts)
    alerts = traits(now.outcome, now.reason_code).alerts
    found: list[Change] = []
    for fact in MEANINGS:
        seen = {now.outcome}
        if fact in _SAID and getattr(facts, fact) is None and not alerts:
            continue
        for value in _otherwise(facts, policy, fact):
            changed = facts.with_(**{fact: value})
            if not _possible(changed, fact):
                continue
            rule = policy.decide(changed)
            if rule.outcome not in seen:
                seen.add(rule.outcome)
                found.append(Change(fact, getattr(facts, fact), value, Judgement(rule, changed)))
    return found


def _possible(facts: Facts, changed: str) -> bool:
    """Say whether a fact that was changed can be so, besides the others."""
    for fact, bound in _WITHIN:
        if changed in (fact, bound):
            value, most = getattr(facts, fact), getattr(facts, bound)
            if value is not None and most is not None and value > most:
                return False
    return True


def _otherwise(facts: Facts, policy: Policy, fact: str) -> Iterator[Any]:
    """Yield other values of a fact, the nearest first."""
    value = getattr(facts, fact)
    kind = MEANINGS[fact][0]
    if kind in (COUNT, NUMBER):
        if value is not None or fact == _counts_output(facts):
            yield from _numbers(facts, policy, fact, value)
    elif value is not None:
        yield None
    else:
        yield _SAID[fact]


def _counts_output(facts: Facts) -> str:
    """Return the fact by which the output is counted; `outputs` when nothing counts it."""
    said = [fact for fact in _AGAINST if getattr(facts, fact) is not None]
    return said[0] if said else "outputs"


def _numbers(facts: Facts, policy: Policy, fact: str, said: float | None) -> Iterator[float]:
    """Yield the numbers at which a condition of the policy may turn, the nearest first."""
    value = said or 0
    candidates: set[float] = {0, 1}
    for name in (*MEANINGS, *DERIVED):
        number = facts.number(name)
        if number is not None:
            candidates.update((number - 1, number, number + 1))
    for rule in policy.rules:
        for condition in rule.conditions:
            candidates.update(condition.numbers)
            candidates.update(number + 1 for number in condition.numbers)
            candidates.update(_turns(condition, facts, fact, value))
    if MEANINGS[fact][0] == COUNT:
        candidates.update(range(int(value) - NEAR, int(value) + NEAR + 1))
        candidates = {int(number) for number in candidates if number >= 0 and number == int(number)}
    if fact == "minimum_fraction":
        candidates = {number for number in (*candidates, *_fractions(facts)) if 0 <= number <= 1}
    yield from sorted(candidates - {said}, key=lambda number: (abs(number - value), number))


def _turns(condition: Condition, facts: Facts, fact: str, value: float) -> Iterator[float]:
    """Yield about where a condition on numbers turns when one fact moves and the rest stays.

    Both sides are made of straight pieces: they are followed from here, from 0 and from far off.
    """
    for start, step in ((0, 1), (value, 1), (FAR, FAR)):
        gap, next_gap = (_gap(condition, facts, fact, at) for at in (start, start + step))
        if gap is None or next_gap is None or gap == next_gap:
            continue
        turn = start - gap * step / (next_gap - gap)
        yield from (floor(turn) - 1, floor(turn), ceil(turn), ceil(turn) + 1)


def _gap(condition: Condition, facts: Facts, fact: str, value: float) -> float | None:
    left, right = condition.sides(facts.with_(**{fact: value}))
    return None if left is None or right is None else left - right


def _fractions(facts: Facts) -> Iterator[float]:
    """Yield the fraction that was just reached, and the next hundredth, which was not."""
    work, accounted = facts.number("work"), facts.number("accounted")
    if work and accounted is not None:
        yield accounted / work
        yield floor(accounted / work * 100 + 1) / 100
