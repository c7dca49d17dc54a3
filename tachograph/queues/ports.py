"""What queues need from the outside. Storage, clocks and processes implement it in infra.

These ports are an inner seam of Tachograph and may change in any release.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import Protocol, TypeVar

    from tachograph.domain.queued_job import QueuedJob

    T = TypeVar("T")
else:

    class Protocol:
        """Stand in for typing.Protocol, whose import a short command cannot afford."""


class QueueIndex(Protocol):
    """All live jobs (pending, leased) as of the end of the log, within one commit.

    It is derived from the log, and kept with it: what is decided by it cannot be outdated.
    """

    def job(self, job_id: str) -> QueuedJob | None:
        """Return a live job; None for one that has ended or never was."""
        ...

    def eligible(
        self, queue: str, types: Collection[str] | None, now_us: int, per_key: int
    ) -> Iterator[QueuedJob]:
        """Yield pending jobs whose time has come: higher priority first, then the oldest.

        `types` None: of every type. Jobs whose concurrency key has `per_key` jobs at work are
        left out, those taken from this iterator counted too (each job taken counts as leased).
        """
        ...

    def leased(self, queue: str | None = None) -> Iterator[QueuedJob]:
        """Yield the leased jobs, in the order in which they were enqueued, by queue."""
        ...

    def leased_count(self, queue: str) -> int:
        """Return how many jobs of a queue are leased."""
        ...

    def tried(self, queue: str) -> Iterator[QueuedJob]:
        """Yield the pending jobs that were leased before, due or not, oldest first."""
        ...

    def count(self) -> int:
        """Return how many live jobs there are, at the cost of looking at each."""
        ...

    def holder(self, queue: str, key: str, now_us: int) -> str | None:
        """Return the id of the job that a unique key belongs to, or still belongs to."""
        ...

    def metered_us(self, queue: str, number: int) -> int | None:
        """Return the time of the `number`-th last metered lease of a queue (1: the last one)."""
        ...

    def next_us(self, queue: str) -> int | None:
        """Return when the next job that waits for its time is due; None when none does.

        A time that is over means that there is one to take.
        """
        ...

    def save(self, *jobs: QueuedJob) -> None:
        """Record what these jobs recorded, in this commit; a job is saved once in it."""
        ...


class QueueStore(Protocol):
    """The queues of a store."""

    def decide(self, work: Callable[[QueueIndex], T]) -> T:
        """Run `work` on the queues as they are, record all it has saved, or nothing if it raises.

        It may run several times before it counts, and must have no other effect. Threads share
        a commit; other processes wait for it. Durable on return (G1).
        """
        ...

    def look(self, work: Callable[[QueueIndex], T]) -> T:
        """Run `work` on the queues as they are, to read only."""
        ...

    def last_transaction(self) -> int:
        """Return a number that changes with every write to the log, by any process."""
        ...
