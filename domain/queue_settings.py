"""What is declared of queues: bounds, rates, retries, types, retention. No I/O, no clock."""

from __future__ import annotations

from tachograph.domain.queue_errors import UnknownQueueError
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
DEFAULT_QUEUES = ("memory", "summary")
"""The queues there are where a project declares none."""


class Backoff(_Fields):
    """How long to wait after failures: doubling from `base_us` up to `cap_us`, and some jitter."""

    __slots__ = ("base_us", "cap_us", "jitter_us")

    def __init__(
        self,
        base_us: int = SECOND_US,
        cap_us: int = 30 * SECOND_US,
        jitter_us: int = SECOND_US // 2,
    ) -> None:
        self.base_us = base_us
        self.cap_us = cap_us
        self.jitter_us = jitter_us

    def delay_us(self, failures: int, random: Callable[[], float]) -> int:
        """Return how long to wait after so many failures in a row; `random` gives 0 <= x < 1.

        >>> [Backoff().delay_us(n, lambda: 0.0) // 1_000 for n in (0, 1, 2, 3, 5, 6, 99)]
        [0, 1000, 2000, 4000, 16000, 30000, 30000]
        """
        if failures < 1:
            return 0
        doubled = self.base_us << min(failures - 1, 40)
        return min(doubled, self.cap_us) + int(random() * self.jitter_us)


class Rate(_Fields):
    """At most `count` leases within any `period_us`."""

    __slots__ = ("count", "period_us")

    def __init__(self, count: int, period_us: int) -> None:
        self.count = count
        self.period_us = period_us


class JobType(_Fields):
    """What is declared of one type of job in a queue."""

    __slots__ = ("command", "handler", "max_attempts", "model", "name", "timeout_seconds")

    def __init__(
        self,
        name: str,
        *,
        model: str | None = None,
        handler: str | None = None,
        command: Sequence[str] | None = None,
        timeout_seconds: float | None = None,
        max_attempts: int | None = None,
    ) -> None:
        self.name = name
        self.model = model
        """`module:Class` of the pydantic model of its payloads."""
        self.handler = handler
        """`module:function` that does the work."""
        self.command = None if command is None else list(command)
        """Or the executable that does it."""
        self.timeout_seconds = timeout_seconds
        self.max_attempts = max_attempts


class QueueSettings(_Fields):
    """What is declared of one queue."""

    __slots__ = (
        "backoff",
        "completed_kept_us",
        "concurrency",
        "dead_kept_us",
        "lease_seconds",
        "max_attempts",
        "name",
        "per_key",
        "poll_seconds",
        "rate",
        "types",
    )

    def __init__(
        self,
        name: str,
        *,
        max_attempts: int = 3,
        lease_seconds: float = 300.0,
        poll_seconds: float = 2.0,
        concurrency: int | None = None,
        per_key: int = 1,
        rate: Rate | None = None,
        backoff: Backoff | None = None,
        completed_kept_us: int = 14 * DAY_US,
        dead_kept_us: int = 30 * DAY_US,
        types: Mapping[str, JobType] | None = None,
    ) -> None:
        self.name = name
        self.max_attempts = max_attempts
        """Given to jobs that name none, and a bound for all: lowered, it ends what had more."""
        self.lease_seconds = lease_seconds
        """How long a holder may be silent."""
        self.poll_seconds = poll_seconds
        self.concurrency = concurrency
        """Jobs of the queue at work at once, by all workers together; None: no bound."""
        self.per_key = per_key
        """Jobs of one concurrency key at work at once."""
        self.rate = rate
        self.backoff = Backoff() if backoff is None else backoff
        self.completed_kept_us = completed_kept_us
        self.dead_kept_us = dead_kept_us
        self.types = dict(types or {})

    def job_type(self, name: str) -> JobType:
        """Return what is declared of a type, defaults for one that is not."""
        return self.types.get(name) or JobType(name)


class QueuePlan(_Fields):
    """All declared queues."""

    __slots__ = ("queues",)

    def __init__(self, queues: Mapping[str, QueueSettings] | None = None) -> None:
        self.queues = dict(queues or {name: QueueSettings(name) for name in DEFAULT_QUEUES})

    def get(self, name: str) -> QueueSettings:
        """Return the settings of a queue. Raises UnknownQueueError, with a near name."""
        found = self.queues.get(name)
        if found is None:
            from difflib import get_close_matches

            near = get_close_matches(name, self.queues, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UnknownQueueError(name, hint, ", ".join(self.queues))
        return found
