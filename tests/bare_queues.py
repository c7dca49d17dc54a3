"""Queues for tests of what uses them: real rules, log and index, hand-made clock and liveness."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from workbench import DictBlobs

from tachograph.domain.owner import Owner
from tachograph.domain.queue_settings import QueuePlan, QueueSettings, Rate
from tachograph.domain.queued_job import LEASE_EXPIRED, OWNER_GONE
from tachograph.infra.codec import Codec
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.lmdb_queues import LMDBQueues
from tachograph.infra.memory_log import MemoryLog
from tachograph.infra.memory_queues import MemoryQueues
from tachograph.packing import Packing
from tachograph.payloads import Payloads
from tachograph.queues.enqueueing import Enqueue
from tachograph.queues.queueing import Queueing
from tachograph.queues.repository import QueueRepository
from tachograph.session import Actor

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tachograph.domain.queued_job import QueuedJob

START_US = 1_700_000_000_000_000
SECOND_US = 1_000_000


def owner(pid: int = 1) -> Owner:
    """A process that may hold jobs."""
    return Owner("here", pid=pid)


class BareQueues:
    """The queues of one log, on disk below `folder` or in memory.

    The clock stands still unless it is set. A process is gone once its pid is in `gone`; a holder
    is silent since its last beat.
    """

    def __init__(
        self,
        *settings: QueueSettings,
        folder: Path | None = None,
        log: MemoryLog | None = None,
        readonly: bool = False,
    ) -> None:
        self.folder = folder
        self.now_us = START_US
        self.jitter = 0.0
        self.gone: set[int] = set()
        self.beats: dict[str, tuple[int, int]] = {}
        self.codec = Codec()
        self.blobs = DictBlobs()
        self.plan = QueuePlan({each.name: each for each in settings})
        self._made = 0
        self.environment: Any = None
        self.log: Any = log or MemoryLog()
        self.store: Any = None
        self.open(readonly=readonly)

    def open(self, *, readonly: bool = False) -> None:
        """Open the queues, again after `close`, as another process would."""
        packing = Packing(self.codec)
        if self.folder is not None:
            self.environment = open_environment(self.folder, readonly=readonly)
            self.log = LMDBLog(self.environment)
            self.repository = QueueRepository(self.log, packing)
            self.store = LMDBQueues(
                self.environment, self.log, self.codec, self.repository.records_of
            )
        else:
            self.repository = QueueRepository(self.log, packing)
            self.store = MemoryQueues(self.log, self.codec, self.repository.records_of)
        self.queueing = Queueing(
            self.store,
            self.repository,
            Payloads(packing, lambda: self.blobs),
            Actor("tester", "here", 7, lambda: self.now_us),
            self.plan,
            new_id=self.new_id,
            random=lambda: self.jitter,
            beat=self.beat,
            lost=self.lost,
        )

    def close(self) -> None:
        """Close what is open on disk."""
        if self.environment is not None:
            self.environment.close()

    def reopen(self, *, readonly: bool = False) -> None:
        """Begin as another process would: with nothing but what is stored."""
        self.close()
        self.open(readonly=readonly)

    def new_id(self) -> str:
        """Return the next id."""
        self._made += 1
        return job_id(self._made)

    def beat(self, job: str, epoch: int, lease_seconds: float) -> None:
        """Keep when a holder has shown itself, unless a later one has."""
        assert lease_seconds > 0
        if epoch >= self.beats.get(job, (0, 0))[0]:
            self.beats[job] = epoch, self.now_us

    def lost(self, job: QueuedJob) -> tuple[str, str] | None:
        """Say why a holder is to be taken for lost."""
        assert job.owner is not None
        if job.owner["pid"] in self.gone:
            return OWNER_GONE, f"process {job.owner['pid']} has ended"
        epoch, beaten_us = self.beats.get(job.id, (0, 0))
        since_us = beaten_us if epoch == job.epoch else job.leased_us or 0
        silent_us = self.now_us - since_us
        if silent_us <= job.lease_seconds * SECOND_US:
            return None
        return LEASE_EXPIRED, f"silent for {silent_us // SECOND_US} s"

    # Short words for tests.

    def sleep(self, seconds: float) -> None:
        """Set the clock forth."""
        self.now_us += int(seconds * SECOND_US)

    def add(self, queue: str = "memory", kind: str = "ingest", **said: Any) -> str:
        """Enqueue a job and return its id."""
        return self.queueing.enqueue(Enqueue(queue, kind, **said)).job_id

    def take(self, *queues: str, pid: int = 1, **said: Any) -> list[QueuedJob]:
        """Lease jobs."""
        found = self.queueing.lease(queues or ("memory",), owner(pid), **said)
        return [leased.job for leased in found]

    def taken(self, *queues: str, **said: Any) -> list[str]:
        """Lease jobs and return their ids."""
        return [job.id for job in self.take(*queues, **said)]

    def one(self, *queues: str, **said: Any) -> QueuedJob:
        """Lease the one job that is to be had."""
        (job,) = self.take(*queues, **said)
        return job

    def job(self, job: str) -> QueuedJob:
        """Return a job as the log has it."""
        return self.queueing.get(job)

    def statuses(self, *jobs: str) -> list[str]:
        """Return the status of each job."""
        return [self.job(each).status for each in jobs]

    def topics(self) -> list[str]:
        """Return what is in the log, without `queue.job-`."""
        return [record.topic.removeprefix("queue.job-") for record in self.log.read(limit=None)]

    def answers(self, keys: Iterable[str] = ()) -> dict[str, Any]:
        """Return all that the index says, by asking it as a decision does."""

        def work(index: Any) -> dict[str, Any]:
            found: dict[str, Any] = {"count": index.count()}
            found["leased"] = [job.to_row() for job in index.leased()]
            for name, settings in self.plan.queues.items():
                ready = index.eligible(name, None, self.now_us, settings.per_key)
                found[name] = {
                    "eligible": [job.to_row() for job in ready],
                    "leased": index.leased_count(name),
                    "tried": [job.id for job in index.tried(name)],
                    "metered": [index.metered_us(name, number) for number in range(1, 6)],
                    "next": index.next_us(name),
                    "holders": {key: index.holder(name, key, self.now_us) for key in keys},
                }
            return found

        answered: dict[str, Any] = self.store.decide(work)
        return answered

    def assert_index_follows_from_the_log(self, keys: Iterable[str] = ()) -> None:
        """Compare the index with one that is made anew from the log: rows and answers."""
        content, answers = self.store.content(), self.answers(keys)
        self.store.rebuild()

        assert self.store.content() == content
        assert self.answers(keys) == answers


def job_id(number: int) -> str:
    """Return the id that the so-manieth job is given."""
    return f"01890a5d-ac96-774b-bcce-{number:012x}"


def finish(bench: BareQueues, job: QueuedJob, end: str) -> None:
    """End a lease in one of the ways there are."""
    if end == "complete":
        bench.queueing.complete(job.id, job.epoch)
    elif end == "fail":
        bench.queueing.fail(job.id, job.epoch, "boom")
    elif end == "die":
        bench.queueing.fail(job.id, job.epoch, "boom", terminal=True)
    elif end == "release":
        bench.queueing.release(job.id, job.epoch, "stopped", "stop")
    elif end == "cancel":
        bench.queueing.change([job.id], lambda job, cause: job.cancel(cause, "so"))
    else:
        assert end == "stale"
        bench.gone.add(1)
        bench.queueing.release_stale()
        bench.gone.clear()


def live_through(bench: BareQueues, steps: int, seed: int) -> None:
    """Let jobs live through everything there is, at random but always the same."""
    chance = random.Random(seed)
    ended: list[str] = []
    for _ in range(steps):
        bench.sleep(chance.choice([0, 0.3, 2, 400]))
        roll = chance.random()
        if roll < 0.4:
            bench.add(
                chance.choice(["memory", "summary"]),
                chance.choice(["a", "b"]),
                priority=chance.choice([0, 0, 5]),
                available_us=chance.choice([None, bench.now_us + 10 * SECOND_US]),
                concurrency_key=chance.choice([None, "disk", "net"]),
                **chance.choice(KEYS),
            )
        elif roll < 0.8:
            for job in bench.take("memory", "summary", limit=2, pid=chance.choice([1, 2])):
                end = chance.choice(["complete", "fail", "die", "release", "cancel", "none"])
                ended.append(job.id)
                if end != "none":
                    finish(bench, job, end)
        elif roll < 0.9:
            bench.queueing.release_stale()
        elif ended:
            job_ids = chance.sample(ended, min(3, len(ended)))
            name = chance.choice(["requeue", "restore", "cancel"])
            bench.queueing.change(job_ids, lambda job, cause: getattr(job, name)(cause, "so"))  # noqa: B023


KEYS: list[dict[str, Any]] = [{}, {"key": "k"}, {"key": "w", "key_window_us": 5 * SECOND_US}]
LIVED = (
    QueueSettings("memory", per_key=2),
    QueueSettings("summary", rate=Rate(2, SECOND_US)),
)
