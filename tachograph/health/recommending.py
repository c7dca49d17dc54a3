"""What a diagnosis asks to be repaired, and by which numbers. Decides by facts alone."""

from __future__ import annotations

from tachograph.domain.records import _Fields
from tachograph.domain.repair_policy import (
    CANCEL,
    CHECK_VIEWS,
    CLEAR_READERS,
    PRUNE,
    RELEASE,
    REQUEUE,
    SWEEP,
)
from tachograph.health.queue_domain import DEAD_RATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.domain.health import DomainHealth, Health

    Facts = dict[str, Any]


class Recommendation(_Fields):
    """A repair that a diagnosis asks for.

    `trigger` says why, with the numbers; `expected` is how much there is for it to do.
    """

    __slots__ = ("action", "domain", "expected", "trigger")

    def __init__(self, domain: str, action: str, trigger: str, expected: int) -> None:
        self.domain = domain
        self.action = action
        self.trigger = trigger
        self.expected = expected

    def to_fields(self) -> Facts:
        """Return it as plain values."""
        return {"domain": self.domain, "action": self.action, "trigger": self.trigger}


def recommend(health: Health) -> list[Recommendation]:
    """Return what is to be repaired, in the order in which it is done."""
    return [each for each in (rule(health) for rule in _RULES) if each is not None]


def _requeue(health: Health) -> Recommendation | None:
    domain = health.domain("queue")
    queues: Facts = health.fact("queue", "queues", {})
    dead = sum(counts["dead"] for counts in queues.values())
    if domain is None or not dead:
        return None
    why = [*_dead_rate(domain.facts), *_backlogs(domain)]
    return Recommendation("queue", REQUEUE, "; ".join(why), dead) if why else None


def _dead_rate(facts: Facts) -> Iterator[str]:
    rate = facts["deadRate"]
    if rate > DEAD_RATE:
        yield f"dead rate {rate:.1%} > {DEAD_RATE:.0%}"


def _backlogs(domain: DomainHealth) -> Iterator[str]:
    """Yield what each queue's own thresholds say of its dead jobs, however long ago they died."""
    for penalty in domain.penalties:
        if penalty.rule == "queue.dead":
            yield f"{penalty.scope}: {penalty.value} dead jobs, threshold {penalty.threshold}"
        elif penalty.rule == "queue.oldest-dead":
            died = f"{penalty.value / 3600:.1f} h ago, threshold {penalty.threshold / 3600:g} h"
            yield f"{penalty.scope}: oldest dead job died {died}"


def _release(health: Health) -> Recommendation | None:
    stale = health.fact("queue", "leaseAnomalies")
    return Recommendation("queue", RELEASE, f"{stale} stale lease(s)", stale) if stale else None


def _check_views(health: Health) -> Recommendation | None:
    stopped = health.fact("views", "stoppedViews")
    differences = health.fact("views", "differences")
    why = [f"{stopped} view(s) stopped"] if stopped else []
    if differences:
        why.append(f"{differences} row(s) differ from the log")
    return Recommendation("views", CHECK_VIEWS, "; ".join(why), 1) if why else None


def _sweep(health: Health) -> Recommendation | None:
    return _old_jobs(health, SWEEP, "expired", "past the retention of their queues")


def _cancel(health: Health) -> Recommendation | None:
    return _old_jobs(health, CANCEL, "obsolete", "dead for more than 30 days")


def _prune(health: Health) -> Recommendation | None:
    return _old_jobs(health, PRUNE, "prunable", "cancelled for more than 90 days")


def _old_jobs(health: Health, action: str, fact: str, words: str) -> Recommendation | None:
    number = health.fact("queue", fact)
    if not number:
        return None
    return Recommendation("queue", action, f"{number} job(s) {words}", number)


def _clear_readers(health: Health) -> Recommendation | None:
    stale = health.fact("storage", "staleReaders")
    if not stale:
        return None
    return Recommendation("storage", CLEAR_READERS, f"{stale} slot(s) of killed readers", stale)


_RULES = (_requeue, _release, _check_views, _sweep, _cancel, _prune, _clear_readers)
