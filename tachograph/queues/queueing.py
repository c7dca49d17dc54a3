"""Enqueue jobs, lease them, end them: each step is one decision in one commit.

Whatever concerns several jobs (unique keys, concurrency keys, rates, room in a queue) is looked at
within the commit that records what follows from it, so no other process can come between.
"""

from __future__ import annotations

from tachograph.domain.errors import StoreError, TachographError, VersionConflictError
from tachograph.domain.queue_errors import JobNotFoundError, KeyTakenError, LeaseLostError
from tachograph.domain.queued_job import LEASED, QueuedJob
from tachograph.domain.records import _Fields
from tachograph.queues.endings import Completion, Failure, Release
from tachograph.queues.enqueueing import Enqueueing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import Any

    from tachograph.domain.event import Cause
    from tachograph.domain.owner import Owner
    from tachograph.domain.queue_settings import QueueSettings, Rate
    from tachograph.queues.endings import Ending
    from tachograph.queues.ports import QueueIndex

    Command = Callable[[QueuedJob, Cause], None]
    Types = Collection[str] | None

MOST_CHANGED = 1_000
"""Jobs that one commit changes."""
LONGEST_ERROR = 2_000
"""Characters of an error that are kept."""
_TRIES = 20


class Leased:
    """A job that its holder may do now, and what it is to be done with."""

    __slots__ = ("_load", "job")

    def __init__(self, job: QueuedJob, load: Callable[[], Any]) -> None:
        self.job = job
        self._load = load

    @property
    def payload(self) -> Any:
        """What the job was enqueued with, read when it is asked for. Raises BlobMissingError."""
        return self._load()


class Released(_Fields):
    """Ids of the jobs that were taken from lost holders: those that wait, and those that died."""

    __slots__ = ("dead", "pending")

    def __init__(self, pending: Sequence[str], dead: Sequence[str]) -> None:
        self.pending = list(pending)
        self.dead = list(dead)


class Changed(_Fields):
    """Jobs that were changed, and why others were not."""

    __slots__ = ("done", "refused")

    def __init__(self, done: Sequence[QueuedJob], refused: dict[str, TachographError]) -> None:
        self.done = list(done)
        self.refused = refused


class Queueing(Enqueueing):
    """The queues of a store: whatever is done with their jobs. May be shared by threads.

    Every method returns once what it recorded is durable (G1), or raises and has recorded nothing
    (G2).
    """

    # Leasing.

    def lease(
        self,
        queues: Sequence[str],
        owner: Owner,
        *,
        types: Callable[[str], Types] | Types = None,
        limit: int = 1,
    ) -> list[Leased]:
        """Take the next jobs, from the first of these queues that has any; [] when none is due.

        `types` are those that the caller can do, None for all; or says so for each queue. A job
        whose attempts are used up (the bound was lowered) dies instead of being taken.
        """
        return self.turn([], queues, owner, types=types, limit=limit)

    def turn(
        self,
        ended: Sequence[Ending],
        queues: Sequence[str],
        owner: Owner,
        *,
        types: Callable[[str], Types] | Types = None,
        limit: int = 1,
    ) -> list[Leased]:
        """End jobs and take the next ones in one commit.

        Raises LeaseLostError for an end whose lease is not the caller's any more; nothing is
        recorded then, and nothing taken.
        """
        now_us = self.now_us()
        fields = owner.to_fields()

        def decide(index: QueueIndex) -> list[QueuedJob]:
            for ending in ended:
                self._end(index, ending)
            return list(self._take(index, queues, fields, types, limit, now_us))

        jobs = self.store.decide(decide)
        if ended and not jobs and limit:
            # What has just ended may have made room, which its own commit could not see yet.
            try:
                jobs = self.store.decide(
                    lambda index: list(self._take(index, queues, fields, types, limit, now_us))
                )
            except StoreError:
                jobs = []  # the ends stand; what is wrong is told by the next call
        return [self._leased(job) for job in jobs]

    def _leased(self, job: QueuedJob) -> Leased:
        return Leased(job, lambda: self.payloads.load(self.repository.payload(job)))

    def _take(
        self,
        index: QueueIndex,
        queues: Sequence[str],
        owner: dict[str, object],
        types: Callable[[str], Types] | Types,
        limit: int,
        now_us: int,
    ) -> Iterator[QueuedJob]:
        left = limit
        for name in dict.fromkeys(queues):
            settings = self.settings(name)
            room = self._room(index, settings, left, now_us)
            if room < 1:
                continue
            wanted = types(name) if callable(types) else types
            for job in index.eligible(name, wanted, now_us, settings.per_key):
                cause = self.actor.cause()
                if not job.die_of_attempts(cause, settings.max_attempts):
                    job.lease(
                        cause,
                        owner,
                        settings.lease_seconds,
                        boottime_us=self._boottime_us(),
                        metered=settings.rate is not None,
                    )
                    left -= 1
                    room -= 1
                index.save(job)
                if job.status == LEASED:
                    yield job
                if room < 1:
                    break

    def _room(self, index: QueueIndex, settings: QueueSettings, most: int, now_us: int) -> int:
        room = most
        if room > 0 and settings.concurrency is not None:
            room = min(room, settings.concurrency - index.leased_count(settings.name))
        if room > 0 and settings.rate is not None:
            room = _allowed(index, settings.name, settings.rate, room, now_us)
        return room

    def next_us(self, queues: Sequence[str]) -> int | None:
        """Return when to look again at the latest for what is not due yet; None: nobody knows."""
        now_us = self.now_us()

        def look(index: QueueIndex) -> int | None:
            times = [index.next_us(name) for name in queues]
            times += [self._rate_us(index, self.settings(name), now_us) for name in queues]
            return min((each for each in times if each is not None), default=None)

        return self.store.look(look)

    def _rate_us(self, index: QueueIndex, settings: QueueSettings, now_us: int) -> int | None:
        """Return when a queue whose rate is used up may be asked again."""
        rate = settings.rate
        if rate is None or _allowed(index, settings.name, rate, 1, now_us):
            return None
        oldest = index.metered_us(settings.name, rate.count)
        return None if oldest is None else oldest + rate.period_us

    # Ending.

    def complete(
        self,
        job_id: str,
        epoch: int,
        result: Any = None,
        *,
        outcome: str | None = None,
        run: str | None = None,
    ) -> None:
        """Record that the holder did the work. Raises LeaseLostError."""
        self.end(self.completion(job_id, epoch, result, outcome=outcome, run=run))

    def completion(
        self,
        job_id: str,
        epoch: int,
        result: Any = None,
        *,
        outcome: str | None = None,
        run: str | None = None,
    ) -> Completion:
        """Return the end of a job that was done, for `turn`; a large result goes to the blobs."""
        return Completion(job_id, epoch, self.payloads.store(result, "result"), outcome, run)

    def fail(self, job_id: str, epoch: int, error: str, **said: Any) -> None:
        """Record that the attempt failed; see `failure`. Raises LeaseLostError."""
        self.end(self.failure(job_id, epoch, error, **said))

    def failure(
        self,
        job_id: str,
        epoch: int,
        error: str,
        *,
        code: str = "error",
        terminal: bool = False,
        retry_us: int | None = None,
        run: str | None = None,
    ) -> Failure:
        """Return the end of a failed attempt, for `turn`.

        It is tried again at `retry_us`, or by the backoff of its queue; never when `terminal`.
        """
        text = str(self.payloads.redacted(error)).strip()[:LONGEST_ERROR] or code
        return Failure(job_id, epoch, text, code, terminal, retry_us, run, self._random)

    def release(
        self, job_id: str, epoch: int, code: str, reason: str, *, retry_us: int | None = None
    ) -> None:
        """Give a job back undone. Raises LeaseLostError."""
        self.end(Release(job_id, epoch, code, reason, retry_us))

    def end(self, *ended: Ending) -> None:
        """End jobs, all in one commit. Raises LeaseLostError, and has ended none then."""

        def decide(index: QueueIndex) -> None:
            for each in ended:
                self._end(index, each)

        self.store.decide(decide)

    def _end(self, index: QueueIndex, ending: Ending) -> None:
        job = index.job(ending.job_id)
        if job is None:
            gone = self.repository.get(ending.job_id)
            if gone is None:
                raise JobNotFoundError(ending.job_id, "")
            raise LeaseLostError(ending.job_id, ending.epoch, f"it is {gone.status}")
        ending.apply(job, self.actor.cause(ending.epoch), self.settings(job.queue))
        index.save(job)

    def beat(self, job: QueuedJob) -> bool:
        """Show that the holder is at work; False when it is not the holder any more."""
        self._beat(job.id, job.epoch, job.lease_seconds)
        now = self.store.look(lambda index: index.job(job.id))
        if now is None or now.epoch != job.epoch:
            now = self.repository.get(job.id)  # the index may be on its way to being made anew
        return now is not None and now.status == LEASED and now.epoch == job.epoch

    # Lost holders.

    def stale(self) -> list[tuple[QueuedJob, str, str]]:
        """Return the leased jobs whose holder is lost, with code and reason."""
        leased = self.store.look(lambda index: list(index.leased()))
        judged = ((job, self._lost(job)) for job in leased)
        return [(job, *why) for job, why in judged if why is not None]

    def release_stale(self) -> Released:
        """Take jobs from holders that are gone, or were silent for longer than their lease."""
        stale = self.stale()
        if not stale:
            return Released([], [])

        def decide(index: QueueIndex) -> list[QueuedJob]:
            found = []
            for was, code, reason in stale:
                job = index.job(was.id)
                if job is None or job.status != LEASED or job.epoch != was.epoch:
                    continue  # it was ended, or another one took it, meanwhile
                bound = self.settings(job.queue).max_attempts
                job.release(self.actor.cause(), code, reason, max_attempts=bound)
                index.save(job)
                found.append(job)
            return found

        jobs = self.store.decide(decide)
        return Released(
            [job.id for job in jobs if job.live], [job.id for job in jobs if not job.live]
        )

    def die_of_attempts(self, queue: str | None = None) -> list[str]:
        """End pending jobs whose attempts are used up, as after the bound was lowered."""
        names = list(self.plan.queues) if queue is None else [queue]

        def decide(index: QueueIndex) -> list[str]:
            found = []
            for name in names:
                bound = self.settings(name).max_attempts
                for job in index.tried(name):
                    if job.die_of_attempts(self.actor.cause(), bound):
                        index.save(job)
                        found.append(job.id)
            return found

        return self.store.decide(decide)

    # Commands of people and repairs.

    def get(self, job_id: str) -> QueuedJob:
        """Return a job as it is now. Raises JobNotFoundError."""
        job = self.repository.get(job_id)
        if job is None:
            raise JobNotFoundError(job_id, "")
        return job

    def change(self, job_ids: Sequence[str], command: Command) -> Changed:
        """Give a command to jobs, live or ended, all in one commit: at most 1,000.

        What is refused of a job is said, and does not concern the others; a job that would live
        again while another has its unique key is refused by KeyTakenError.
        """
        if len(job_ids) > MOST_CHANGED:
            raise ValueError(f"{len(job_ids)} jobs are more than one commit changes")
        for remaining in range(_TRIES, -1, -1):
            try:
                return self.store.decide(lambda index: self._change(index, job_ids, command))
            except VersionConflictError:
                if not remaining:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    def _change(self, index: QueueIndex, job_ids: Sequence[str], command: Command) -> Changed:
        changed = Changed([], {})
        keys: dict[tuple[str, str], str] = {}
        for job_id in dict.fromkeys(job_ids):
            try:
                job = index.job(job_id) or self.get(job_id)
                lived = job.live
                command(job, self.actor.cause())
                if job.live and not lived and job.key is not None:
                    place = job.queue, job.key
                    holder = keys.get(place) or index.holder(*place, self.now_us())
                    if holder not in (None, job.id):
                        raise KeyTakenError(job.id, holder, job.key)
                    keys[place] = job.id
            except TachographError as error:
                changed.refused[job_id] = error
                continue
            index.save(job)
            changed.done.append(job)
        return changed


def _allowed(index: QueueIndex, queue: str, rate: Rate, most: int, now_us: int) -> int:
    """Return how many leases, up to `most`, the rate of a queue allows now.

    A lease that the clock, having been set back, shows a whole period in the future does not
    count: else nothing would run until then.
    """
    allowed = 0
    while allowed < min(most, rate.count):
        time_us = index.metered_us(queue, rate.count - allowed)
        if time_us is not None and abs(now_us - time_us) < rate.period_us:
            break
        allowed += 1
    return allowed
