"""Collect the facts of each domain and score them, always anew. Changes nothing.

Nothing is kept from one diagnosis to the next: one that follows a repair sees its effect.
"""

from __future__ import annotations

from tachograph.domain.health import DomainHealth, Health, unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Protocol

    from tachograph.domain.health import Penalty, Rule

    Facts = dict[str, Any]

    class Diagnosis(Protocol):
        """One domain of health. Packages can offer more by the entry points `tachograph.health`."""

        name: str
        weight: float
        """What it counts beside the others, whose weights come to 1."""

        def collect(self) -> Facts:
            """Return the facts: plain values by name. May raise: that is told, and costs points."""
            ...

        def judge(self, facts: Facts) -> Sequence[Penalty]:
            """Return what the facts cost."""
            ...


class Domain:
    """A domain by a function that collects its facts, and what judges them."""

    def __init__(
        self,
        name: str,
        weight: float,
        collect: Callable[[], Facts],
        *,
        rules: Sequence[Rule] = (),
        judge: Callable[[Facts], Sequence[Penalty]] | None = None,
    ) -> None:
        self.name = name
        self.weight = weight
        self._collect = collect
        self._rules = tuple(rules)
        self._judge = judge

    def collect(self) -> Facts:
        """Return the facts."""
        return self._collect()

    def judge(self, facts: Facts) -> list[Penalty]:
        """Return what the facts cost."""
        found = [rule.judge(facts) for rule in self._rules]
        more = () if self._judge is None else self._judge(facts)
        return [*(penalty for penalty in found if penalty is not None), *more]


def diagnose(domains: Iterable[Diagnosis], now_us: int) -> Health:
    """Return the health of all domains; one that cannot be looked at stops no other."""
    return Health(now_us, [look_at(domain) for domain in domains])


def look_at(domain: Diagnosis) -> DomainHealth:
    """Return the health of one domain."""
    try:
        facts = domain.collect()
        return DomainHealth(domain.name, domain.weight, facts, domain.judge(facts))
    except Exception as error:  # noqa: BLE001  # of whatever package: it is told, not raised
        said = str(error) or type(error).__name__
        return unreadable(domain.name, domain.weight, said)
