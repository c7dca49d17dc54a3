"""What a decision about queues is given: the rows of the index, and a way to record."""

from __future__ import annotations

from tachograph.infra.queue_rows import Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

    from tachograph.domain.queued_job import QueuedJob
    from tachograph.domain.records import NewRecord
    from tachograph.infra.queue_rows import QueueRows


class Index:
    """What `work` is given: the rows, and a way to record. Satisfies the QueueIndex port."""

    def __init__(self, rows: QueueRows, queues: Any) -> None:
        self._rows = rows
        self._queues = queues
        self.saved: list[QueuedJob] = []
        self.records: list[NewRecord] = []
        self.first: list[int] = []
        """Where the records of each saved job begin."""

    def job(self, job_id: str) -> QueuedJob | None:
        """Return a live job; None for one that has ended or never was."""
        return self._rows.job(job_id)

    def eligible(
        self, queue: str, types: Collection[str] | None, now_us: int, per_key: int
    ) -> Iterator[QueuedJob]:
        """Yield pending jobs whose time has come: higher priority first, then the oldest."""
        return self._rows.eligible(queue, types, now_us, per_key)

    def leased(self, queue: str | None = None) -> Iterator[QueuedJob]:
        """Yield the leased jobs."""
        return self._rows.leased(queue)

    def leased_count(self, queue: str) -> int:
        """Return how many jobs of a queue are leased."""
        return self._rows.leased_count(queue)

    def tried(self, queue: str) -> Iterator[QueuedJob]:
        """Yield the pending jobs that were leased before."""
        return self._rows.tried(queue)

    def count(self) -> int:
        """Return how many live jobs there are."""
        return self._rows.count()

    def holder(self, queue: str, key: str, now_us: int) -> str | None:
        """Return the id of the job that a unique key belongs to."""
        return self._rows.holder(queue, key, now_us)

    def metered_us(self, queue: str, number: int) -> int | None:
        """Return the time of the `number`-th last metered lease of a queue."""
        return self._rows.metered_us(queue, number)

    def next_us(self, queue: str) -> int | None:
        """Return when the next job that waits for its time is due."""
        return self._rows.next_us(queue)

    def save(self, *jobs: QueuedJob) -> None:
        """Record what these jobs recorded, in this commit."""
        for job in jobs:
            records = self._queues.records_of(job)
            if records:
                self.saved.append(job)
                self.first.append(len(self.records))
                self.records += records

    def put_saved(self, positions: Sequence[int], era: int) -> None:
        """Bring the rows up to what was recorded at these positions."""
        for job, first in zip(self.saved, self.first, strict=True):
            if self.records[first].version == 1:
                job.position = positions[first]
            self._rows.put(job)
        self._rows.put_mark(Mark(positions[-1], era))
