"""How the health of a store is scored: bands, rules with their penalties, weights. No I/O.

A score begins at 1 and loses the points of each rule that is broken; each loss is told with its
rule, what was found and the threshold, so that every score can be recounted by hand.
"""

from __future__ import annotations

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    Facts = dict[str, Any]

HEALTHY = "healthy"
DEGRADED = "degraded"
UNHEALTHY = "unhealthy"
BANDS = (HEALTHY, DEGRADED, UNHEALTHY)
"""From best to worst."""
HEALTHY_FROM = 0.8
DEGRADED_FROM = 0.5

WEIGHTS = {"queue": 0.23, "storage": 0.10, "views": 0.15, "runs": 0.32, "providers": 0.20}
"""What each domain counts in the composite score: 1.00 together. A domain that is registered
besides brings its own weight, and the sum is then divided by all weights together."""

UNREADABLE_POINTS = 0.5
"""Lost by a domain whose facts could not be collected: nobody knows whether it is well."""


class Rule(_Fields):
    """A threshold for one fact: beyond it, the score loses `points`.

    `below` True: it is broken by what is less than the threshold. `text` says what is amiss, with
    {value} and {threshold} in it.
    """

    __slots__ = ("below", "fact", "id", "points", "text", "threshold")

    def __init__(
        self,
        id: str,  # noqa: A002  # the word for it in reports
        fact: str,
        threshold: float,
        points: float,
        text: str,
        *,
        below: bool = False,
    ) -> None:
        self.id = id
        self.fact = fact
        self.threshold = threshold
        self.points = points
        self.text = text
        self.below = below

    def judge(self, facts: Facts) -> Penalty | None:
        """Return the penalty where a fact breaks the rule; a fact that is None breaks none."""
        value = facts.get(self.fact)
        if value is None:
            return None
        broken = value < self.threshold if self.below else value > self.threshold
        if not broken:
            return None
        text = self.text.format(value=shown(value), threshold=shown(self.threshold))
        return Penalty(self.id, value, self.threshold, self.points, text)


class Graded(_Fields):
    """A rule of two thresholds: up to `warn` a value costs nothing, from `fail` on `most`.

    Between them it costs more and more: from `least`, just above `warn`, to `least + span`.

    >>> rule = Graded("dead", 50, 500, 0.2, 0.4, 0.6, "{value} dead")
    >>> [round(rule.points(n), 3) for n in (50, 51, 275, 500, 9999)]
    [0.0, 0.201, 0.4, 0.6, 0.6]
    """

    __slots__ = ("fail", "id", "least", "most", "span", "text", "warn")

    def __init__(
        self,
        id: str,  # noqa: A002
        warn: float,
        fail: float | None,
        least: float,
        span: float,
        most: float,
        text: str,
    ) -> None:
        self.id = id
        self.warn = warn
        self.fail = fail
        """None: beyond `warn` it costs `least`, however far beyond."""
        self.least = least
        self.span = span
        self.most = most
        self.text = text

    def points(self, value: float) -> float:
        """Return what a value costs."""
        if value <= self.warn:
            return 0.0
        if self.fail is None:
            return self.least
        if value >= self.fail:
            return self.most
        return self.least + self.span * (value - self.warn) / max(1, self.fail - self.warn)

    def judge(self, value: float, scope: str = "") -> Penalty | None:
        """Return the penalty of a value, None where it costs nothing.

        Beyond `warn` its scope is degraded at least, from `fail` it is unhealthy: whatever else
        the points come to.
        """
        points = self.points(value)
        if not points:
            return None
        failed = self.fail is not None and value >= self.fail
        threshold = self.fail if failed and self.fail is not None else self.warn
        text = self.text.format(value=shown(value), threshold=shown(threshold), scope=scope)
        made = UNHEALTHY if failed else DEGRADED
        return Penalty(self.id, value, threshold, points, text, scope=scope, at_least=made)


class Penalty(_Fields):
    """What a broken rule cost.

    `scope` is what it costs points: the whole domain (""), or a part of it such as one queue,
    which has a score of its own. `at_least` is a status that it makes, whatever the score.
    """

    __slots__ = ("at_least", "points", "rule", "scope", "text", "threshold", "value")

    def __init__(
        self,
        rule: str,
        value: float,
        threshold: float,
        points: float,
        text: str,
        *,
        scope: str = "",
        at_least: str = HEALTHY,
    ) -> None:
        self.rule = rule
        self.value = value
        self.threshold = threshold
        self.points = points
        self.text = text
        self.scope = scope
        self.at_least = at_least

    def to_fields(self) -> Facts:
        """Return it as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


class DomainHealth(_Fields):
    """One domain: its facts, and what they cost.

    Its score is that of its worst scope: 1 less the points lost in it. `error` says why its
    facts could not be collected.
    """

    __slots__ = ("error", "facts", "name", "penalties", "score", "status", "weight")

    def __init__(
        self,
        name: str,
        weight: float,
        facts: Facts,
        penalties: Sequence[Penalty] = (),
        *,
        error: str | None = None,
    ) -> None:
        self.name = name
        self.weight = weight
        self.facts = facts
        self.penalties = list(penalties)
        scopes = {penalty.scope for penalty in penalties}
        self.score = min((self.score_in(scope) for scope in scopes), default=1.0)
        self.status = worst(self.status_in(scope) for scope in scopes)
        self.error = error

    def score_in(self, scope: str) -> float:
        """Return the score of a part of the domain."""
        return score_of(penalty for penalty in self.penalties if penalty.scope == scope)

    def status_in(self, scope: str) -> str:
        """Return the status of a part: that of its score, or a worse one that a penalty makes."""
        made = [penalty.at_least for penalty in self.penalties if penalty.scope == scope]
        return worst([band(self.score_in(scope)), *made])

    def to_fields(self) -> Facts:
        """Return it as plain values."""
        fields: Facts = {name: getattr(self, name) for name in self.__slots__}
        fields["penalties"] = [penalty.to_fields() for penalty in self.penalties]
        return fields


class Health(_Fields):
    """All domains at one moment, and what they come to together."""

    __slots__ = ("domains", "score", "status", "time_us")

    def __init__(self, time_us: int, domains: Sequence[DomainHealth]) -> None:
        self.time_us = time_us
        self.domains = list(domains)
        self.score = composite_score(domains)
        """The domains' scores by their weights."""
        self.status = worst(domain.status for domain in domains)
        """That of the worst domain: a good score never hides one that is unhealthy."""

    def domain(self, name: str) -> DomainHealth | None:
        """Return a domain by its name."""
        return next((each for each in self.domains if each.name == name), None)

    def fact(self, domain: str, name: str, default: Any = 0) -> Any:
        """Return a fact of a domain; `default` where it is not known."""
        found = self.domain(domain)
        value = None if found is None else found.facts.get(name)
        return default if value is None else value

    def to_fields(self) -> Facts:
        """Return it as plain values."""
        return {
            "time_us": self.time_us,
            "composite": {"score": self.score, "status": self.status},
            "domains": [domain.to_fields() for domain in self.domains],
        }


def band(score: float) -> str:
    """Return the status of a score.

    >>> band(1.0), band(0.8), band(0.79), band(0.5), band(0.49)
    ('healthy', 'healthy', 'degraded', 'degraded', 'unhealthy')
    """
    if score >= HEALTHY_FROM:
        return HEALTHY
    return DEGRADED if score >= DEGRADED_FROM else UNHEALTHY


def worst(statuses: Iterable[str]) -> str:
    """Return the worst of some statuses, healthy where there are none.

    >>> worst(["healthy", "unhealthy", "degraded"]), worst([])
    ('unhealthy', 'healthy')
    """
    return BANDS[max((BANDS.index(status) for status in statuses), default=0)]


def clamped(score: float) -> float:
    """Return a score within 0 and 1, to four places: sums of hundredths come out exact.

    >>> clamped(1 - 0.3 - 0.2), clamped(-0.2)
    (0.5, 0.0)
    """
    return round(min(1.0, max(0.0, score)), 4)


def score_of(penalties: Iterable[Penalty]) -> float:
    """Return 1 less all points lost, never below 0."""
    return clamped(1 - sum(penalty.points for penalty in penalties))


def composite_score(domains: Sequence[DomainHealth]) -> float:
    """Return the scores of some domains by their weights, 1 where there are none.

    >>> lost = Penalty("a.rule", 9, 1, 0.5, "too much")
    >>> composite_score([DomainHealth("a", 0.3, {}, [lost]), DomainHealth("b", 0.7, {})])
    0.85
    """
    weight = sum(domain.weight for domain in domains)
    if not weight:
        return 1.0
    return clamped(sum(domain.weight * domain.score for domain in domains) / weight)


def unreadable(name: str, weight: float, error: str) -> DomainHealth:
    """Return the health of a domain whose facts could not be collected."""
    text = f"its facts could not be collected: {error}"
    penalty = Penalty(f"{name}.unreadable", 1, 0, UNREADABLE_POINTS, text)
    return DomainHealth(name, weight, {}, [penalty], error=error)


def shown(value: object) -> str:
    """Return a number as people write it.

    >>> shown(0.0123), shown(3), shown(2.0)
    ('0.0123', '3', '2')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)
