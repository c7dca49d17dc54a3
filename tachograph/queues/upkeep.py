"""What workers do besides jobs: jobs of lost holders, jobs without attempts left, old jobs."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from tachograph.domain.errors import TachographError
from tachograph.queues.told import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tachograph.queues.queueing import Queueing

LOOK_SECONDS, IDLE_LOOK_SECONDS = 5.0, 1.0
"""Between looks for lost holders: while at work, and without work."""
SWEEP_SECONDS, SWEEP_AGAIN_SECONDS = 60.0, 600.0
"""Between questions whether a sweep is due, and after one that failed."""


class Upkeep:
    """Keeps queues in order. Threads share it; `wake` is called when there is work again."""

    def __init__(
        self,
        queueing: Queueing,
        *,
        now: Callable[[], float],
        sweep: Callable[[], None],
        tell: Callable[[Told], None],
        wake: Callable[[], None],
    ) -> None:
        self._queueing = queueing
        self._now = now
        self._sweep = sweep
        self._tell = tell
        self._wake = wake
        self._looking = Lock()
        self._looked = -LOOK_SECONDS
        self._sweep_at = 0.0

    def end_exhausted(self, queues: Sequence[str]) -> None:
        """End the jobs whose attempts are used up, as after the bound was lowered."""
        for name in queues:
            for job_id in self._queueing.die_of_attempts(name):
                self._tell(Told("dead", job=job_id, queue=name, error="its attempts are used up"))

    def look_for_lost(self, *, idle: bool = False) -> None:
        """Release the jobs of lost holders, unless that was done a moment ago."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            now = self._now()
            if now - self._looked < (IDLE_LOOK_SECONDS if idle else LOOK_SECONDS):
                return
            self._looked = now
            released = self._queueing.release_stale()
        finally:
            self._looking.release()
        for job_id in released.pending:
            self._tell(Told("recovered", job=job_id, error="its holder was lost"))
        for job_id in released.dead:
            words = "its last holder was lost before it completed it: dead-lettered"
            self._tell(Told("dead", job=job_id, error=words))
        if released.pending:
            self._wake()

    def sweep(self) -> None:
        """Let what is kept too long be swept, where that is due.

        A sweep that fails is told, and tried again after ten minutes.
        """
        if self._now() < self._sweep_at:
            return
        try:
            self._sweep()
        except (TachographError, OSError) as error:
            self._sweep_at = self._now() + SWEEP_AGAIN_SECONDS
            self._tell(Told("error", error=f"the retention sweep: {type(error).__name__}: {error}"))
