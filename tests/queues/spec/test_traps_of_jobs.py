"""Traps of spec §1, jobs and leases: each test fails on what the original does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from queued import Bench

from tachograph.domain.owner import Owner
from tachograph.domain.queue_errors import LeaseLostError, RateLimitExceededError
from tachograph.domain.queue_selection import Selection
from tachograph.domain.queue_settings import QueueSettings
from tachograph.domain.queued_job import OWNER_GONE
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from queue_bench import Clock, QueueBench

    from tachograph.queues.handlers import JobContext

DAY = 86_400


def broken(_job: JobContext) -> None:
    """Fail."""
    raise ValueError("boom")


def test_a_bound_of_the_queue_below_that_of_a_job_kills_it() -> None:
    """§1.4: leased by one bound and failed by another, it stayed pending for ever."""
    bench = Bench(QueueSettings("memory", max_attempts=2))
    bench.handle("work", broken)
    job_id = bench.enqueue(max_attempts=3)
    bench.worker().work(drain=True)
    job = bench.job(job_id)

    assert (job.status, job.attempts, job.error) == ("dead", 2, "ValueError: boom")
    assert job.ended_us is not None


@pytest.mark.parametrize("kind", ["document_ingest", "prospective_index", "structural_classify"])
def test_the_oldest_job_that_fails_lets_the_next_one_go_first(kind: str) -> None:
    """§1.3: no type is without a delay of its own jobs (issue 303: starvation)."""
    bench = Bench()
    done: list[Any] = []

    def work(job: JobContext) -> None:
        done.append(job.payload)
        if job.payload == "bad":
            raise ValueError("boom")

    bench.handle(kind, work)
    for payload in ("bad", "good", "better"):
        bench.enqueue(kind=kind, payload=payload)
    bench.worker().work(drain=True)

    assert done == ["bad", "good", "better", "bad", "bad"]


def test_the_first_failure_waits_one_second_and_not_two() -> None:
    """§1.6: the document says 1,000 ms, the code doubled before the first wait."""
    for seed, milliseconds in ((0.0, 1_000), (0.5, 1_250), (0.999, 1_499)):
        bench = Bench(seed=seed)
        bench.handle("work", broken)
        job_id = bench.enqueue()
        bench.worker().work(once=True)
        job = bench.job(job_id)
        assert job.failed_us is not None
        assert job.available_us is not None
        assert (job.available_us - job.failed_us) // 1_000 == milliseconds


def test_jobs_of_one_slot_never_overlap() -> None:
    """§1.6: a tick that did not wait for the one before it did two jobs at once."""
    bench = Bench()
    at_work: list[str] = []
    most: list[int] = []

    def work(job: JobContext) -> None:
        at_work.append(job.id)
        bench.clock.wait(60, None)  # far longer than the time between two looks
        most.append(len(bench.queueing.store.look(lambda index: list(index.leased()))))

    bench.handle("work", work)
    for _ in range(3):
        bench.enqueue()
    bench.worker().work(drain=True)

    assert most == [1, 1, 1]
    assert len(set(at_work)) == 3


@pytest.mark.parametrize("death", ["terminal", "attempts", "lowered", "lost"])
@pytest.mark.parametrize("queue", ["memory", "summary"])
def test_every_death_has_its_time_and_is_purged(
    bench: QueueBench, clock: Clock, queue: str, death: str
) -> None:
    """§1.4, retention: what a startup sweep killed had no `failed_at`, and so stayed for ever.

    In the queue `summary`, which no retention knew, everything did.
    """
    job_id = bench.queueing.enqueue(Enqueue(queue, "ingest", max_attempts=2)).job_id
    kill(bench, job_id, death)
    dead = bench.job(job_id)
    died_us = clock.now_us
    clock.pass_by(days=29.9)
    early = bench.sweeper().sweep().total
    clock.pass_by(days=0.2)
    late = bench.sweeper().sweep().total

    assert (dead.status, dead.ended_us) == ("dead", died_us)
    assert dead.error
    assert (early, late) == (0, 1)


def kill(bench: QueueBench, job_id: str, death: str) -> None:
    """Let a job of at most two attempts die in one of the ways there are."""
    queue = bench.job(job_id).queue
    (leased,) = bench.queueing.lease([queue], bench.owner)
    if death == "terminal":
        bench.queueing.fail(job_id, leased.job.epoch, "boom", terminal=True)
    elif death == "lowered":
        bench.queueing.fail(job_id, leased.job.epoch, "boom")
        bench.queueing.plan.queues[queue] = QueueSettings(queue, max_attempts=1)
        bench.queueing.die_of_attempts(queue)
        bench.queueing.plan.queues[queue] = QueueSettings(queue)
    elif death == "lost":
        for _ in range(2):
            bench.clock.pass_by(seconds=301)
            bench.queueing.release_stale()
            bench.queueing.lease([queue], bench.owner)
    else:
        bench.queueing.fail(job_id, leased.job.epoch, "boom")
        bench.clock.pass_by(seconds=2)
        (leased,) = bench.queueing.lease([queue], bench.owner)
        bench.queueing.fail(job_id, leased.job.epoch, "boom")


def test_a_rate_limit_kills_at_the_first_attempt_and_says_so() -> None:
    """§1.4, case 8: by the type of the error; the event keeps its code."""
    bench = Bench()

    def work(_job: JobContext) -> None:
        raise RateLimitExceededError("429")

    bench.handle("work", work)
    job_id = bench.enqueue()
    bench.worker().work(drain=True)
    told = {record.topic: fields for record, fields in bench.queueing.repository.history(job_id)}

    assert (bench.job(job_id).status, bench.job(job_id).attempts) == ("dead", 1)
    assert told["queue.job-failed"]["code"] == "rate_limit_exceeded"
    assert told["queue.job-died"]["code"] == "terminal_error"


def test_what_was_released_is_held_by_nobody() -> None:
    """§1.5, issue 318: `leased_at` stayed, so that the job looked stale where it waited."""
    bench = Bench()
    job_id = bench.enqueue()
    bench.queueing.lease(["memory"], Owner("here", pid=2))
    bench.lost[job_id] = OWNER_GONE, "process 2 has ended"
    bench.queueing.release_stale()
    job = bench.job(job_id)

    assert (job.status, job.leased_us, job.owner) == ("pending", None, None)
    assert bench.queueing.stale() == []


def test_a_failed_job_is_held_by_nobody_either() -> None:
    """§1.4: a failure left `leased_at`, too."""
    bench = Bench()
    bench.handle("work", broken)
    job_id = bench.enqueue()
    bench.worker().work(once=True)

    assert bench.job(job_id).leased_us is None


@pytest.mark.parametrize("queue", ["memory", "summary"])
def test_a_cancelled_job_is_not_brought_back_by_its_holder(bench: QueueBench, queue: str) -> None:
    """§1.4: guarded in one queue only. Neither by a failure, nor a success, nor a release."""
    (job_id,) = bench.make("leased", queue)
    epoch = bench.job(job_id).epoch
    bench.repairing().cancel(Selection(ids=[job_id]), "retired")

    with pytest.raises(LeaseLostError):
        bench.queueing.fail(job_id, epoch, "boom")
    with pytest.raises(LeaseLostError):
        bench.queueing.complete(job_id, epoch)
    with pytest.raises(LeaseLostError):
        bench.queueing.release(job_id, epoch, "stopped", "no")
    assert bench.job(job_id).status == "cancelled"


@pytest.mark.parametrize("queue", ["memory", "summary"])
def test_a_lost_holder_frees_its_job_in_each_queue_without_a_restart(queue: str) -> None:
    """§1.5: one queue was looked after by a retired worker, the other at a start only."""
    bench = Bench()
    bench.handle("work", lambda _job: None)
    worker = bench.worker([queue])
    worker.begin()
    job_id = bench.enqueue(queue)
    bench.queueing.lease([queue], Owner("here", pid=2))
    bench.lost[job_id] = OWNER_GONE, "process 2 has ended"

    def end_when_done() -> None:
        if bench.job(job_id).status == "completed":
            worker.stop()

    bench.clock.on_wait = end_when_done
    worker.work()

    assert bench.job(job_id).status == "completed"


def test_every_job_is_in_one_counter_whatever_its_state(bench: QueueBench, clock: Clock) -> None:
    """§1.2: jobs at work in one queue, and cancelled ones in both, were in no counter, and no age.

    Seen through each state that there is, in each queue.
    """
    for queue in ("memory", "summary"):
        for status in ("completed", "dead", "leased", "pending", "pending"):
            bench.make(status, queue)
        (unwanted,) = bench.make("pending", queue)
        bench.repairing().cancel(Selection(ids=[unwanted]), "retired")
        bench.queueing.enqueue(Enqueue(queue, "ingest", available_us=clock.now_us + 10**12))
    clock.pass_by(seconds=100)

    for queue in ("memory", "summary"):
        counts = bench.view(lambda view, of=queue: view.counts(of, clock.now_us))
        found = {name: getattr(counts, name) for name in counts.__slots__}
        assert found == {
            "pending": 2,
            "scheduled": 1,
            "failed": 0,
            "leased": 1,
            "completed": 1,
            "dead": 1,
            "cancelled": 1,
        }
