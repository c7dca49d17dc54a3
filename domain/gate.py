"""The semantic gate: a policy turns the facts of a run into an outcome (G12)."""

from __future__ import annotations

from tachograph.domain.default_policy import default_policy
from tachograph.domain.facts import Facts
from tachograph.domain.policy import said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.domain.policy import Policy, Rule

__all__ = ["Facts", "Judgement", "judge"]


class Judgement:
    """What the gate concluded, and by which rule."""

    __slots__ = ("outcome", "reason", "reason_code", "rule", "rule_version")

    def __init__(self, rule: Rule, facts: Facts) -> None:
        self.outcome = rule.outcome
        self.rule = rule.id
        self.rule_version = rule.version
        self.reason_code = rule.reason_code
        self.reason = said(rule.text, facts)

    def to_fields(self) -> dict[str, str | int]:
        """Return the conclusion as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


def judge(facts: Facts, policy: Policy | None = None) -> Judgement:
    """Return what a policy concludes from the facts; by default the one of Tachograph.

    >>> judge(Facts(inputs=3, outputs=0)).outcome
    'failed_semantic_empty'
    >>> judge(Facts(inputs=3, outputs=0, declared="all up to date")).outcome
    'empty'
    """
    return Judgement((policy or default_policy()).decide(facts), facts)
