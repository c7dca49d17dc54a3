"""The health of the queues: how much waits, for how long, what died, which holders are lost."""

from __future__ import annotations

from tachograph.domain.health import WEIGHTS, Graded, Penalty, Rule
from tachograph.health.diagnosing import Domain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.domain.queue_thresholds import HealthThresholds, QueueThresholds

    Facts = dict[str, Any]

MOST_WAITING = 50
"""Jobs that wait in all queues together."""
DEAD_RATE = 0.01
"""Dead jobs of those that ended in the last hour."""
RULES = (
    Rule("queue.depth", "depth", MOST_WAITING, 0.3, "{value} jobs wait, more than {threshold}"),
    Rule(
        "queue.dead-rate",
        "deadRate",
        DEAD_RATE,
        0.3,
        "of the jobs that ended in the last hour {value} are dead, more than {threshold}",
    ),
    Rule("queue.stale-leases", "leaseAnomalies", 0, 0.2, "{value} jobs have a lost holder"),
)
WAITED_POINTS = 0.2
"""Lost once when a job has waited too long in any queue, as its own thresholds say."""


def queue_domain(collect: Callable[[], Facts], thresholds: HealthThresholds) -> Domain:
    """Return the domain of the queues.

    `collect` gives `depth`, `deadRate`, `leaseAnomalies`, and by queue under `queues` its `dead`,
    `oldestAgeSec` (of what waits or is at work), `oldestWaitingSec` and `oldestDeadAgeSec`.
    """

    def judge(facts: Facts) -> list[Penalty]:
        queues: Facts = facts["queues"]
        return [*_waited(queues, thresholds), *_each(queues, thresholds)]

    return Domain("queue", WEIGHTS["queue"], collect, rules=RULES, judge=judge)


def _waited(queues: Facts, thresholds: HealthThresholds) -> list[Penalty]:
    """Return the one penalty of all queues for the job that has waited longest beyond measure."""
    late = [
        (_waits(counts), name)
        for name, counts in queues.items()
        if _waits(counts) > thresholds.of(name).oldest_pending_warn_seconds
    ]
    if not late:
        return []
    age, name = max(late)
    most = thresholds.of(name).oldest_pending_warn_seconds
    text = f"a job of {name} has waited for {age:g} s, more than {most:g} s"
    return [Penalty("queue.oldest-pending", age, most, WAITED_POINTS, text)]


def _waits(counts: Facts) -> int:
    """Return how long the oldest pending job of a queue has waited, in seconds."""
    name = "oldestWaitingSec" if "oldestWaitingSec" in counts else "oldestAgeSec"
    return int(counts[name])


def _each(queues: Facts, thresholds: HealthThresholds) -> list[Penalty]:
    found = []
    for name, counts in queues.items():
        for rule, fact in graded(thresholds.of(name)):
            penalty = rule.judge(counts[fact], name)
            if penalty is not None:
                found.append(penalty)
    return found


def graded(thresholds: QueueThresholds) -> list[tuple[Graded, str]]:
    """Return the rules of one queue, each with the name of the fact that it judges."""
    dead = Graded(
        "queue.dead",
        thresholds.dead_warn,
        thresholds.dead_fail,
        0.2,
        0.4,
        0.6,
        "{value} dead jobs in {scope}, the threshold is {threshold}",
    )
    waiting = Graded(
        "queue.oldest",
        thresholds.oldest_pending_warn_seconds,
        thresholds.oldest_pending_fail_seconds,
        0.1,
        0.3,
        0.4,
        "the oldest job of {scope} is {value} s old, the threshold is {threshold} s",
    )
    died = Graded(
        "queue.oldest-dead",
        thresholds.oldest_dead_warn_seconds,
        None,
        0.1,
        0.0,
        0.1,
        "the oldest dead job of {scope} died {value} s ago, the threshold is {threshold} s",
    )
    return [(dead, "dead"), (waiting, "oldestAgeSec"), (died, "oldestDeadAgeSec")]
