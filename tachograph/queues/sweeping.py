"""Prune jobs whose time is over, in short steps. Whether a sweep is due, the log says.

So a worker that is started again and again neither passes the sweeps over nor repeats them, and
of several workers one sweeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.queue_errors import JobStatusError
from tachograph.domain.queued_job import CANCELLED, COMPLETED, DEAD
from tachograph.domain.records import _Fields
from tachograph.domain.repair_errors import RepairDeniedError
from tachograph.domain.repair_policy import HOUR_US, MINUTE_US, SWEEP
from tachograph.projections.queue_health import matters_us

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from tachograph.domain.queued_job import QueuedJob
    from tachograph.projections.queue_health import QueuesView
    from tachograph.queues.pruning import Pruner
    from tachograph.queues.queueing import Queueing
    from tachograph.queues.repairing import Gate, Look, Permit

    Fields = dict[str, Any]

STEP = 500
"""Jobs that one commit prunes."""
EVERY_US = 6 * HOUR_US
"""From the beginning of a sweep to that of the next one."""
AGAIN_US = 10 * MINUTE_US
"""The same after a sweep that was killed, or failed."""
SWEPT = (COMPLETED, DEAD, CANCELLED)
"""What has its time, in this order."""


class Swept(_Fields):
    """What a sweep took away, or would take away: numbers of jobs by status and by queue."""

    __slots__ = ("applied", "archives", "by_queue", "refused", "repair", "statuses", "steps")

    def __init__(self, *, applied: bool) -> None:
        self.applied = applied
        self.statuses: dict[str, int] = dict.fromkeys(SWEPT, 0)
        self.by_queue: dict[str, dict[str, int]] = {}
        self.steps = 0
        self.archives: list[str] = []
        self.refused: dict[str, str] = {}
        """Why jobs stayed whose time is over."""
        self.repair: str | None = None

    @property
    def total(self) -> int:
        """How many jobs in all."""
        return sum(self.statuses.values())

    def add(self, queue: str, status: str, number: int) -> None:
        """Count jobs."""
        if number:
            self.statuses[status] += number
            counts = self.by_queue.setdefault(queue, dict.fromkeys(SWEPT, 0))
            counts[status] += number

    def to_fields(self) -> Fields:
        """Return the summary, as documents have it."""
        return {
            "completedJobsPurged": self.statuses[COMPLETED],
            "deadJobsPurged": self.statuses[DEAD],
            "cancelledJobsPurged": self.statuses[CANCELLED],
            "steps": self.steps,
            "archives": self.archives,
        }

    def message(self) -> str:
        """Return the summary as a sentence."""
        numbers = ", ".join(f"{self.statuses[status]} {status}" for status in SWEPT)
        verb = "swept" if self.applied else "would sweep"
        return f"{verb} {self.total} job(s): {numbers}"


class Sweeper:
    """Sweeps the queues of a store. `last()` returns the newest sweep: `Repairs.last` or None."""

    def __init__(
        self,
        queueing: Queueing,
        look: Look,
        gate: Gate,
        pruner: Pruner,
        last: Callable[[], Fields | None],
    ) -> None:
        self._queueing = queueing
        self._look = look
        self._gate = gate
        self._pruner = pruner
        self._last = last

    def due(self) -> bool:
        """Say whether it is time for a sweep: none within 6 hours, or the last one was cut off."""
        last = self._last()
        if last is None:
            return True
        pause_us = EVERY_US if last.get("success") else AGAIN_US
        # A sweep in the future was recorded by a clock that was wrong: it does not count.
        return not 0 <= self._queueing.now_us() - last["time_us"] < pause_us

    def sweep_if_due(self, reason: str = "retention") -> Swept | None:
        """Sweep where it is due; None where it is not, or may not be, or another was first."""
        if not self.due():
            return None
        try:
            return self.sweep(reason)
        except RepairDeniedError:  # a worker goes on without
            return None

    def preview(self) -> Swept:
        """Return what a sweep would take away now. Changes nothing."""
        found = Swept(applied=False)
        now_us = self._queueing.now_us()

        def count(view: QueuesView) -> None:
            for queue in view.names():
                for status in SWEPT:
                    before_us = now_us - self._kept_us(queue, status)
                    jobs = view.jobs(queue, status, older_than_us=before_us)
                    found.add(queue, status, sum(1 for _ in jobs))

        self._look(count)
        found.steps = sum(
            -(-number // STEP) for counts in found.by_queue.values() for number in counts.values()
        )
        return found

    def sweep(self, reason: str = "retention") -> Swept:
        """Prune the jobs whose time is over, 500 in a commit, and return what went.

        Each step is recorded. What a step did stays, should a later one fail. Raises
        RepairDeniedError: nothing was changed then.
        """
        swept = Swept(applied=True)
        now_us = self._queueing.now_us()
        with self._gate(SWEEP, reason, {}) as permit:
            swept.repair = permit.repair or None
            self._pruner.take_up()
            names: list[str] = self._look(lambda view: view.names())
            for queue in names:
                for status in SWEPT:
                    self._sweep_list(swept, permit, queue, status, reason, now_us)
            permit.done(swept.total, swept.message())
        return swept

    def _sweep_list(
        self, swept: Swept, permit: Permit, queue: str, status: str, reason: str, now_us: int
    ) -> None:
        before_us = now_us - self._kept_us(queue, status)

        def check(job: QueuedJob) -> None:
            if job.status != status or matters_us(job) >= before_us:
                raise JobStatusError(job.id, job.status, "pruned", "It has changed meanwhile.")

        for ids in self._portions(queue, status, before_us):
            pruned = self._pruner.prune(ids, reason, swept.repair, check)
            swept.refused |= {job_id: str(error) for job_id, error in pruned.refused.items()}
            if not pruned.done:
                continue
            swept.steps += 1
            swept.add(queue, status, len(pruned.done))
            swept.archives += [] if pruned.archive is None else [pruned.archive]
            detail = {"queue": queue, "status": status, "archive": pruned.archive}
            permit.step(len(pruned.done), detail)

    def _portions(self, queue: str, status: str, before_us: int) -> Iterator[Sequence[str]]:
        """Yield the ids for each step, oldest first; the view is asked anew each time."""
        tried: set[str] = set()

        def next_ids(view: QueuesView) -> list[str]:
            found: list[str] = []
            for job in view.jobs(queue, status, older_than_us=before_us):
                if job.id not in tried:
                    found.append(job.id)
                if len(found) == STEP:
                    break
            return found

        while ids := self._look(next_ids):
            tried.update(ids)
            yield ids

    def _kept_us(self, queue: str, status: str) -> int:
        settings = self._queueing.settings(queue)
        return settings.completed_kept_us if status == COMPLETED else settings.dead_kept_us
