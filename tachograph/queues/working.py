"""Work on queues: take a job, do it, end it and take the next one. Starts no thread, never sleeps.

The end of a job and the lease of the next one are one commit. Clock, sleep, load of the machine
and the doing itself come in by ports.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tachograph.domain.errors import TachographError
from tachograph.domain.queue_errors import JobNotFoundError, LeaseLostError
from tachograph.queues.endings import Completion, Failure
from tachograph.queues.holds import Hold
from tachograph.queues.job_ends import end_lost
from tachograph.queues.taking import Taking
from tachograph.queues.told import Tally, Told
from tachograph.queues.upkeep import Upkeep

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Protocol

    from tachograph.domain.owner import Owner
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.queues.endings import Ending
    from tachograph.queues.queueing import Leased, Queueing

    class Sleeper(Protocol):
        """Waits for threads that have nothing to do."""

        def mark(self) -> object:
            """Return what `wait` compares with: the state before a look for work."""
            ...

        def wait(self, seconds: float, mark: object) -> None:
            """Return after this time, or once somebody woke it or wrote to the log since."""
            ...

        def wake(self) -> None:
            """End every wait."""
            ...


MAX_LOAD = 0.8
"""Load of each processor above which nothing is leased."""
RETRY_SECONDS = 1.0
"""After the store could not record what happened, until the next try."""
BEATS_PER_LEASE = 10
LONGEST_BEAT_SECONDS = 15.0


class Worker:
    """Works on queues, in as many slots as threads call `work`.

    `stop` and `nudge` may be called from any thread. `perform` does a job and returns how its lease
    ends, None when it is not ours any more. `takes(queue)` are the types that can be done here,
    None for all. `now` gives seconds of a clock that is never set, `load` the load of each
    processor; with `max_load` 0 it does not matter.
    """

    def __init__(
        self,
        queueing: Queueing,
        queues: Sequence[str],
        owner: Owner,
        perform: Callable[[Hold], Ending | None],
        *,
        takes: Callable[[str], Collection[str] | None],
        sleeper: Sleeper,
        now: Callable[[], float],
        random: Callable[[], float],
        load: Callable[[], float] = lambda: 0.0,
        max_load: float = MAX_LOAD,
        poll_seconds: float | None = None,
        sweep: Callable[[], None] = lambda: None,
        tell: Callable[[Told], None] = lambda _told: None,
    ) -> None:
        self.queueing = queueing
        self.queues = list(queues)
        self.tally = Tally()
        self._owner = owner
        self._perform = perform
        self._sleeper = sleeper
        self._now = now
        self._taking = Taking(
            queueing,
            queues,
            takes,
            now=now,
            random=random,
            load=load,
            max_load=max_load,
            poll_seconds=poll_seconds,
            tell=tell,
        )
        shortest = min(queueing.settings(name).lease_seconds for name in self.queues)
        self.beat_seconds = min(shortest / BEATS_PER_LEASE, LONGEST_BEAT_SECONDS)
        """How often `beat` is to be called."""
        self.upkeep = Upkeep(queueing, now=now, sweep=sweep, tell=tell, wake=sleeper.wake)
        self._tell = tell
        self._holds: dict[int, Hold] = {}
        self._turning: set[int] = set()
        """Slots that are taking a job just now."""
        self._ended = False
        self.stopping = False
        """Whether nothing more is leased."""

    # What others ask of it.

    @property
    def holds(self) -> list[Hold]:
        """The jobs at work, by slot."""
        return [hold for _, hold in sorted(self._holds.items())]

    def begin(self) -> None:
        """Look after jobs without attempts left, and those of lost holders, before the first."""
        self.upkeep.end_exhausted(self.queues)
        self.upkeep.look_for_lost()

    def nudge(self) -> None:
        """Look for work at once, whatever has failed before."""
        self._taking.forget()
        self._sleeper.wake()

    def stop(self) -> None:
        """Lease nothing more; `work` returns once the jobs at work have ended."""
        self.stopping = True
        self._sleeper.wake()

    def stop_jobs(self, *, at_once: bool = False) -> bool:
        """Stop what can be stopped, processes, whose jobs are released; False if none can be."""
        asked = [hold.stop(at_once=at_once) for hold in self.holds]  # all, not only the first
        return any(asked)

    def age(self, hold: Hold) -> float:
        """Return for how many seconds a job has been at work."""
        return self._now() - hold.since

    # A slot.

    def work(self, slot: int = 0, *, once: bool = False, drain: bool = False) -> None:
        """Do jobs one after the other until `stop`.

        `once` ends after one job, or when there is none; `drain` when nothing is due that could be
        done here, or waits for another attempt. Raises KeyboardInterrupt of a handler.
        """
        ending: Ending | None = None
        hold: Hold | None = None
        while True:
            mark = self._sleeper.mark()
            self._turning.add(slot)
            try:
                hold = self._turn(slot, hold, ending, take=not (once and self.tally.begun))
            finally:
                self._turning.discard(slot)
            if hold is not None:
                ending = self._do(hold)
            elif self.stopping or self._ended or once:
                return
            else:
                self._idle(slot, mark, drain=drain)

    def _idle(self, slot: int, mark: object, *, drain: bool) -> None:
        try:
            others = self._turning - {slot}  # they may have taken a job that nobody sees yet
            if drain and not (self._holds or others) and self._taking.is_drained():
                self._ended = True
                self._sleeper.wake()
            else:
                self._rest(mark)
        except (TachographError, OSError) as error:
            self._could_not(error)

    def _do(self, hold: Hold) -> Ending | None:
        try:
            return self._perform(hold)
        except KeyboardInterrupt:
            self._holds.pop(hold.slot, None)
            self.stop()
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, only this job has failed
            job = hold.job
            words = f"{type(error).__name__}: {error}"
            return self.queueing.failure(job.id, job.epoch, words, code="not_done")

    def _turn(
        self, slot: int, hold: Hold | None, ending: Ending | None, *, take: bool
    ) -> Hold | None:
        """End a job and take the next one, in one commit; both are tried until they succeed."""
        if hold is not None and ending is not None:
            self._learn(hold.job, ending)
        while True:
            take = take and not (self.stopping or self._ended) and self._taking.is_allowed()
            ended = self._ended_by(hold, ending)
            if not ended and not take:
                self._forget(hold)
                return None
            asked = self._now()
            try:
                types = self._taking.types() if take else {}
                found = self.queueing.turn(
                    ended, self._taking.rotated(), self._owner, types=types.get, limit=int(take)
                )
            except (LeaseLostError, JobNotFoundError) as error:
                self._was_lost(hold, str(error))
                ending = None
            except (TachographError, OSError) as error:
                self._could_not(error)
            else:
                self._has_ended(hold, ending)
                if take and not found:
                    self._taking.pauses.reset_idle(self.queues)
                return self._begin(found[0], slot, asked) if found else None

    def _ended_by(self, hold: Hold | None, ending: Ending | None) -> list[Ending]:
        if hold is None:
            return []
        hold.ending = True
        if ending is None or hold.lost:
            self._was_lost(hold, "its lease is another one's by now")
            return []
        return [ending]

    def _could_not(self, error: Exception) -> None:
        self.complain(error)
        self._sleeper.wait(RETRY_SECONDS, self._sleeper.mark())
        if self.stopping:
            raise error

    def _begin(self, leased: Leased, slot: int, now: float) -> Hold:
        job = leased.job
        hold = self._holds[slot] = Hold(leased, slot, now)
        self._taking.saw(job.queue, job.type)
        self.tally.begin()
        self._tell(Told("begun", job=job))
        return hold

    def _forget(self, hold: Hold | None) -> None:
        if hold is not None:
            self._holds.pop(hold.slot, None)

    # What became of a job.

    def _learn(self, job: QueuedJob, ending: Ending) -> None:
        """Leave a type alone that fails. Before the next lease, which may be of the same type."""
        if isinstance(ending, Failure) and not self._kills(job, ending):
            self._taking.pauses.failed(job.queue, job.type, job.id)
        elif isinstance(ending, Completion | Failure):
            self._taking.pauses.reset(job.queue, job.type)

    def _kills(self, job: QueuedJob, ending: Failure) -> bool:
        bound = self.queueing.settings(job.queue).max_attempts
        return ending.terminal or job.exhausted(bound)

    def _was_lost(self, hold: Hold | None, words: str) -> None:
        if hold is None or hold.slot not in self._holds:
            return
        self._forget(hold)
        end_lost(hold.session)
        self.tally.lost += 1
        self._tell(Told("lost", job=hold.job, seconds=self.age(hold), error=words))

    def _has_ended(self, hold: Hold | None, ending: Ending | None) -> None:
        if hold is None or ending is None or hold.slot not in self._holds:
            return
        self._forget(hold)
        job, seconds = hold.job, self.age(hold)
        if isinstance(ending, Completion):
            self.tally.complete(job.id)
            said = Told("completed", job=job, seconds=seconds, outcome=ending.outcome)
        elif isinstance(ending, Failure):
            said = self._has_failed(hold, ending, seconds)
        else:
            self.tally.released += 1
            reason = str(getattr(ending, "reason", ""))
            said = Told("released", job=job, seconds=seconds, error=reason)
        self._tell(said)

    def _has_failed(self, hold: Hold, ending: Failure, seconds: float) -> Told:
        job, dead = hold.job, self._kills(hold.job, ending)
        self.tally.fail(job.id, dead=dead)
        what = "dead" if dead else "failed"
        return Told(what, job=job, seconds=seconds, error=ending.error, code=ending.code)

    # Without work.

    def _rest(self, mark: object) -> None:
        """Wait until there may be work."""
        with suppress(TachographError, OSError):
            self.upkeep.look_for_lost(idle=True)
        until = self._now() + self._taking.patience()
        while (left := until - self._now()) > 0 and not self.stopping:
            self._sleeper.wait(left, mark)
            mark = self._sleeper.mark()
            if self._ended or self._taking.has_any():
                return
            until = min(until, self._now() + self._taking.patience())

    # Beside the work.

    def beat(self) -> None:
        """Show that the jobs at work are at work, and stop those that are another one's by now."""
        for hold in self.holds:
            if hold.lost:
                continue
            try:
                if hold.session is not None:
                    hold.session.beat()
                held = self.queueing.beat(hold.job)
            except (TachographError, OSError) as error:
                self._tell(Told("error", job=hold.job, error=f"{type(error).__name__}: {error}"))
                continue
            if not held and not hold.ending:
                hold.lose()
                end_lost(hold.session)

    def complain(self, error: Exception) -> None:
        """Tell of an error that ends nothing."""
        self._tell(Told("error", error=f"{type(error).__name__}: {error}"))
