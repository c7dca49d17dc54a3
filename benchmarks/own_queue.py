"""The queues of Tachograph behind the same few methods as those of the peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph.bootstrap import open_store
from tachograph.domain.queued_job import STOPPED
from tachograph.queuekeeping import queues_of
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tachograph.queues.queueing import Leased

QUEUE = "summary"
KIND = "report"


class OwnQueue:
    """A queue in a store of its own, with its declared defaults."""

    NAME = "tachograph"

    def __init__(self, folder: Path) -> None:
        self.services = open_store(str(folder / "store"), create=True)
        self.queues = queues_of(self.services)
        self._owner = self.services.owner()

    def put(self, payload: dict[str, Any]) -> None:
        """Enqueue a job."""
        self.queues.enqueue(Enqueue(QUEUE, KIND, payload))

    def put_many(self, payloads: Iterable[dict[str, Any]]) -> None:
        """Enqueue several jobs in one commit."""
        self.queues.enqueue_many([Enqueue(QUEUE, KIND, each) for each in payloads])

    def take(self) -> Leased | None:
        """Return the next job, None when there is none."""
        leased = self.lease()
        return leased[0] if leased else None

    def lease(self) -> list[Leased]:
        """Take the next job in a list."""
        return self.queues.lease([QUEUE], self._owner)

    def release(self, taken: list[Leased]) -> None:
        """Put jobs back, uncounted."""
        for each in taken:
            self.queues.release(each.job.id, each.job.epoch, STOPPED, "only measured")

    def number(self, taken: Leased) -> int:
        """Return which job was taken."""
        return int(taken.payload["number"])

    def end(self, taken: Leased) -> None:
        """Complete the job."""
        self.queues.complete(taken.job.id, taken.job.epoch)

    def take_back(self) -> None:
        """Free the jobs of dead workers."""
        self.queues.release_stale()

    def drain(self, at_once: int = 1) -> Iterator[int]:
        """Do every job, `at_once` of them between two commits; yield those that are recorded."""
        ended: list[Leased] = []
        while True:
            ends = [self.queues.completion(each.job.id, each.job.epoch) for each in ended]
            taken = self.queues.turn(ends, [QUEUE], self._owner, limit=at_once)
            yield from (self.number(each) for each in ended)
            if not taken:
                return
            ended = taken

    def close(self) -> None:
        """Close the store."""
        self.services.close()
