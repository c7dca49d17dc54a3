"""What queues are to do, as plainly as it can be said: lists and dicts, and no log.

The tests compare the real queues with it. It shares no code with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

SECOND_US = 1_000_000
EXPIRED = "lease expired before completion"
LIVE = ("pending", "leased")


class Bounds:
    """What is declared of a queue."""

    def __init__(
        self,
        *,
        max_attempts: int = 3,
        per_key: int = 1,
        concurrency: int | None = None,
        rate: tuple[int, int] | None = None,
        lease_us: int = 300 * SECOND_US,
    ) -> None:
        self.max_attempts = max_attempts
        self.per_key = per_key
        self.concurrency = concurrency
        self.rate = rate
        self.lease_us = lease_us


class Job:
    """A job."""

    def __init__(self, job_id: str, order: int, queue: str, kind: str, since_us: int) -> None:
        self.id = job_id
        self.order = order
        self.queue = queue
        self.kind = kind
        self.priority = 0
        self.status = "pending"
        self.since_us = since_us
        """When it began to wait."""
        self.due_us: int | None = None
        self.ready: set[int] = set()
        """Indexes by which it was seen to be due: there it stays so when the clock goes back."""
        self.attempts = 0
        self.max_attempts = 3
        self.epoch = 0
        self.key: str | None = None
        self.window_us: int | None = None
        self.together: str | None = None
        self.pid = 0
        self.error: str | None = None
        self.leased_us = 0
        self.ended_us: int | None = None
        self.before: list[tuple[str, int | None, int | None]] = []
        """What it was before each cancellation and pruning that was not undone."""

    @property
    def live(self) -> bool:
        """Whether it waits or is leased."""
        return self.status in LIVE


class Model:
    """The queues of a store."""

    def __init__(self, bounds: dict[str, Bounds], now_us: int) -> None:
        self.bounds = bounds
        self.now_us = now_us
        self.jobs: dict[str, Job] = {}
        self.keys: dict[tuple[str, str], tuple[str, int | None]] = {}
        """Job that has a key, and until when once it has ended."""
        self.metered: dict[str, list[int]] = {}
        self.beats: dict[str, int] = {}
        self.gone: set[int] = set()
        self.place = 0
        """The index that is asked."""

    # Questions.

    def of(self, queue: str, *statuses: str) -> list[Job]:
        """Jobs of a queue in some statuses, the first enqueued first."""
        return [job for job in self.jobs.values() if job.queue == queue and job.status in statuses]

    def holder(self, queue: str, key: str) -> str | None:
        """The job that has a key."""
        job_id, until_us = self.keys.get((queue, key), (None, None))
        return job_id if until_us is None or until_us > self.now_us else None

    def counts(self, queue: str) -> dict[str, int]:
        """How many jobs are in which state."""
        found: dict[str, int] = dict.fromkeys(
            ("pending", "scheduled", "failed", "leased", "completed", "dead", "cancelled"), 0
        )
        for job in self.jobs.values():
            if job.queue == queue and job.status != "pruned":
                found[self._state(job)] += 1
        return found

    def _state(self, job: Job) -> str:
        if job.status != "pending":
            return job.status
        if job.error is not None:
            return "failed"
        waits = job.due_us is not None and job.since_us <= job.due_us and job.due_us > self.now_us
        return "scheduled" if waits else "pending"

    def exhausted(self, job: Job) -> bool:
        """Whether no attempt is left."""
        return job.attempts >= min(job.max_attempts, self.bounds[job.queue].max_attempts)

    # Enqueueing.

    def enqueue(self, job_id: str, queue: str, kind: str, **said: Any) -> str:
        """Put a job in a queue; returns the one that has its key, where one has."""
        key = said.get("key")
        held = self.holder(queue, key) if key is not None else None
        if held is not None:
            return held
        job = Job(job_id, len(self.jobs), queue, kind, self.now_us)
        job.priority = said["priority"]
        job.due_us = said["available_us"]
        job.max_attempts = said["max_attempts"] or self.bounds[queue].max_attempts
        job.key = key
        job.window_us = said.get("key_window_us")
        job.together = said["concurrency_key"]
        self.jobs[job_id] = job
        self._keep_key(job)
        return job_id

    # Leasing.

    def lease(
        self,
        queues: Sequence[str],
        types: Collection[str] | None,
        limit: int,
        pid: int,
        ended: Job | None = None,
    ) -> list[Job]:
        """Take jobs; what `ended` in the same commit makes room only where nothing else was had."""
        found = self._take(queues, types, limit, pid, ended)
        return found or (self._take(queues, types, limit, pid, None) if ended else [])

    def _take(
        self,
        queues: Sequence[str],
        types: Collection[str] | None,
        limit: int,
        pid: int,
        ended: Job | None,
    ) -> list[Job]:
        taken: list[Job] = []
        for queue in queues:
            room = self._room(queue, limit - len(taken), ended)
            if room < 1:
                continue
            for job in self._eligible(queue, types, ended):
                if self.exhausted(job):
                    self._die(job, job.error or EXPIRED)
                    continue
                self._lease(job, pid)
                taken.append(job)
                room -= 1
                if room < 1:
                    break
        return taken

    def _eligible(
        self, queue: str, types: Collection[str] | None, ended: Job | None
    ) -> Iterator[Job]:
        waiting = [job for job in self.of(queue, "pending") if job is not ended]
        for job in waiting:
            if job.due_us is None or job.due_us <= self.now_us:
                job.ready.add(self.place)
        waiting.sort(key=lambda job: (-job.priority, job.order))
        at_work = [job.together for job in self.of(queue, "leased")]
        if ended is not None and ended.queue == queue:
            at_work.append(ended.together)
        for job in waiting:
            if self.place not in job.ready or (types is not None and job.kind not in types):
                continue
            if job.together is not None:
                if at_work.count(job.together) >= self.bounds[queue].per_key:
                    continue
                at_work.append(job.together)
            yield job

    def eligible(self, queue: str, types: Collection[str] | None) -> list[str]:
        """The jobs that could be taken if there were room for all, in their order."""
        return [job.id for job in self._eligible(queue, types, None)]

    def _room(self, queue: str, most: int, ended: Job | None) -> int:
        bounds = self.bounds[queue]
        if bounds.concurrency is not None:
            at_work = len(self.of(queue, "leased")) + (ended is not None and ended.queue == queue)
            most = min(most, bounds.concurrency - at_work)
        if bounds.rate is not None:
            count, period_us = bounds.rate
            newest = self.metered.get(queue, [])[-count:]
            free = count - len(newest)
            for time_us in newest:
                if abs(self.now_us - time_us) < period_us:
                    break
                free += 1
            most = min(most, free)
        return most

    def _lease(self, job: Job, pid: int) -> None:
        job.status = "leased"
        job.epoch += 1
        job.attempts += 1
        job.pid = pid
        job.leased_us = self.beats[job.id] = self.now_us
        job.due_us = None
        if self.bounds[job.queue].rate is not None:
            self.metered.setdefault(job.queue, []).append(self.now_us)

    # Ending.

    def holds(self, job_id: str, epoch: int) -> bool:
        """Whether a lease is still its holder's."""
        job = self.jobs[job_id]
        return job.status == "leased" and job.epoch == epoch

    def complete(self, job_id: str) -> None:
        """The work is done."""
        job = self.jobs[job_id]
        job.error = None
        self._end(job, "completed")

    def fail(self, job_id: str) -> None:
        """The attempt failed by "boom"; it is tried again after a while, if it may."""
        job = self.jobs[job_id]
        job.error = "boom"
        if self.exhausted(job):
            self._end(job, "dead")
        else:
            delay = min(2 ** (job.attempts - 1), 30) * SECOND_US
            self._wait(job, self.now_us + delay)

    def die(self, job_id: str) -> None:
        """The attempt failed by "bang", for good."""
        self._die(self.jobs[job_id], "bang")

    def give_back(self, job_id: str) -> None:
        """The holder stops in good order."""
        job = self.jobs[job_id]
        job.attempts -= 1
        self._wait(job, None)

    def release_stale(self) -> tuple[list[str], list[str]]:
        """Take jobs from lost holders; ids of those that wait and of those that died."""
        pending, dead = [], []
        for queue in sorted(self.bounds):
            for job in self.of(queue, "leased"):
                silent_us = self.now_us - self.beats[job.id]
                if job.pid not in self.gone and silent_us <= self.bounds[queue].lease_us:
                    continue
                if self.exhausted(job):
                    self._die(job, job.error or EXPIRED)
                    dead.append(job.id)
                else:
                    self._wait(job, None)
                    pending.append(job.id)
        return pending, dead

    def sweep(self) -> list[str]:
        """Let waiting jobs die whose attempts are used up."""
        found = [
            job
            for queue in self.bounds
            for job in self.of(queue, "pending")
            if job.attempts and self.exhausted(job)
        ]
        for job in found:
            self._die(job, job.error or EXPIRED)
        return [job.id for job in found]

    def _die(self, job: Job, error: str) -> None:
        job.error = error
        self._end(job, "dead")

    # Commands.

    def change(self, job_ids: Sequence[str], command: str) -> list[str]:
        """Requeue, cancel, prune or restore jobs; returns those that it was done to."""
        may = {
            "requeue": ("dead", "cancelled"),
            "cancel": ("pending", "leased", "completed", "dead"),
            "prune": ("completed", "dead", "cancelled"),
            "restore": ("cancelled", "pruned"),
        }[command]
        done, wanted = [], set()
        for job_id in dict.fromkeys(job_ids):
            job = self.jobs[job_id]
            if job.status not in may:
                continue
            if job.key is not None and not job.live and self._will_live(job, command):
                place = job.queue, job.key
                if place in wanted or self.holder(*place) not in (None, job_id):
                    continue
                wanted.add(place)
            done.append(job)
        for job in done:
            getattr(self, f"_{command}")(job)
        return [job.id for job in done]

    def _will_live(self, job: Job, command: str) -> bool:
        if command == "restore":
            return job.before[-1][0] in LIVE
        return command == "requeue"

    def _requeue(self, job: Job) -> None:
        job.attempts = 0
        job.error = None
        job.before = []
        self._wait(job, None)

    def _cancel(self, job: Job) -> None:
        job.before.append((job.status, job.ended_us, job.due_us))
        self._end(job, "cancelled")

    def _prune(self, job: Job) -> None:
        job.before.append((job.status, job.ended_us, None))
        job.status = "pruned"
        self._keep_key(job)

    def _restore(self, job: Job) -> None:
        status, ended_us, due_us = job.before.pop()
        if status in LIVE:
            self._wait(job, due_us)
        else:
            job.status, job.ended_us = status, ended_us
            self._keep_key(job)

    # What all of these come down to.

    def _wait(self, job: Job, due_us: int | None) -> None:
        job.status = "pending"
        job.since_us, job.due_us, job.ready = self.now_us, due_us, set()
        job.ended_us = None
        self._keep_key(job)

    def _end(self, job: Job, status: str) -> None:
        job.status = status
        job.ended_us = self.now_us
        job.due_us = None
        self._keep_key(job)

    def _keep_key(self, job: Job) -> None:
        """A job has its key while it lives, and after success for its window."""
        if job.key is None:
            return
        place = job.queue, job.key
        owner = self.keys.get(place, (None, None))[0]
        if job.live:
            self.keys[place] = job.id, None
        elif owner not in (None, job.id):
            return
        elif job.status == "completed" and job.window_us and job.ended_us is not None:
            self.keys[place] = job.id, job.ended_us + job.window_us
            over = [
                place
                for place, (_, until_us) in self.keys.items()
                if until_us is not None and until_us < job.ended_us
            ]
            for each in over:
                del self.keys[each]
        else:
            self.keys.pop(place, None)
