"""Acceptance cases 1 to 8: what a worker and its leases do, from the outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from command_line import here
from queued import Bench

from tachograph.domain.queue_settings import QueuePlan, QueueSettings
from tachograph.domain.queued_job import LEASE_EXPIRED
from tachograph.health import acting
from tachograph.queuekeeping import queues_of
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from queue_bench import Clock, QueueBench

    from tachograph.healthkeeping import HealthKeeping

MINUTE = 60


class Told:
    """A permit that keeps what was said of a repair."""

    def done(self, affected: int, message: str, **_more: Any) -> None:
        self.affected, self.message = affected, message


def test_case_1_a_key_is_free_after_each_end_but_not_before(bench: QueueBench) -> None:
    """Case 1: while it waits, while it waits again after a failure, while it is leased."""
    want = Enqueue("memory", "ingest", None, key="doc-1")
    first = bench.queueing.enqueue(want).job_id
    again = [bench.queueing.enqueue(want)]
    (leased,) = bench.queueing.lease(["memory"], bench.owner)
    again.append(bench.queueing.enqueue(want))
    bench.queueing.fail(first, leased.job.epoch, "boom")
    again.append(bench.queueing.enqueue(want))
    bench.clock.pass_by(seconds=2)
    (leased,) = bench.queueing.lease(["memory"], bench.owner)
    bench.queueing.complete(first, leased.job.epoch)
    second = bench.queueing.enqueue(want)

    assert [(each.job_id, each.created) for each in again] == [(first, False)] * 3
    assert second.created
    assert second.job_id != first


def test_case_3_jobs_without_an_attempt_left_do_not_wait(bench: QueueBench) -> None:
    """Case 3: after the bound was lowered they are dead at startup, and pending in no counter."""
    failed = bench.queueing.enqueue(Enqueue("memory", "ingest")).job_id
    released = bench.queueing.enqueue(Enqueue("memory", "ingest")).job_id
    fresh = bench.queueing.enqueue(Enqueue("memory", "ingest")).job_id
    for each in bench.queueing.lease(["memory"], bench.owner, limit=2):
        if each.job.id == failed:
            bench.queueing.fail(failed, each.job.epoch, "boom")
        else:
            bench.queueing.release(released, each.job.epoch, "by_hand", "not now")
    lowered = queues_of(
        bench.services, QueuePlan({"memory": QueueSettings("memory", max_attempts=1)})
    )

    assert sorted(lowered.die_of_attempts("memory")) == sorted([failed, released])
    counts = bench.view(lambda view: view.counts("memory", bench.clock.now_us))
    assert (counts.pending, counts.failed, counts.dead) == (1, 0, 2)
    assert [each.job.id for each in lowered.lease(["memory"], bench.owner, limit=9)] == [fresh]
    assert {bench.job(each).error for each in (failed, released)} == {
        "boom",
        "lease expired before completion",
    }


@pytest.mark.parametrize("queue", ["memory", "summary"])
def test_case_4_a_silent_lease_is_released_after_its_timeout(
    bench: QueueBench, clock: Clock, queue: str
) -> None:
    """Case 4, in either queue: 10 minutes of silence, the timeout being 5.

    The holder's process lives, so that only its silence can tell.
    """
    more = Enqueue(queue, "ingest")
    last = Enqueue(queue, "ingest", max_attempts=1)
    first, exhausted = (bench.queueing.enqueue(each).job_id for each in (more, last))
    bench.queueing.lease([queue], bench.owner, limit=2)
    clock.pass_by(seconds=10 * MINUTE)
    fresh = bench.queueing.enqueue(more).job_id
    bench.queueing.lease([queue], bench.owner)
    said = Told()
    acting.release_stale(bench.queueing, said)  # type: ignore[arg-type]  # what it needs of one

    released, dead = bench.job(first), bench.job(exhausted)
    assert (released.status, released.attempts, released.leased_us) == ("pending", 1, None)
    assert (dead.status, dead.code, dead.leased_us) == ("dead", LEASE_EXPIRED, None)
    assert dead.error == "lease expired before completion"
    assert dead.ended_us == clock.now_us
    assert bench.job(fresh).status == "leased"
    assert (said.affected, said.message) == (
        2,
        "released 1 stale lease(s) back to pending and dead-lettered 1 exhausted job(s)",
    )


def test_case_4_a_lease_that_is_as_old_as_its_timeout_is_not_stale(
    bench: QueueBench, clock: Clock
) -> None:
    """Case 4: `leased_at < cutoff`, so that exactly at the timeout nothing is released."""
    (job_id,) = bench.make("leased")
    clock.pass_by(seconds=300)
    at_it = bench.queueing.release_stale()
    clock.pass_by(seconds=1)
    beyond = bench.queueing.release_stale()

    assert (at_it.pending, beyond.pending) == ([], [job_id])


def test_case_5_a_handler_that_finds_nothing_skips_its_job() -> None:
    """Case 5: what the job was about is gone; the worker goes on with the next one."""
    bench = Bench()
    known = {2: "text"}

    def work(job: Any) -> Any:
        if job.payload not in known:
            job.run.finish("skipped", reason="it is gone")
            return None
        return known[job.payload]

    bench.handle("work", work)
    gone, there = bench.enqueue(payload=1), bench.enqueue(payload=2)
    bench.worker().work(drain=True)

    assert [bench.job(each).status for each in (gone, there)] == ["completed", "completed"]
    assert bench.topics(gone)[-1] == "completed"


def test_case_8_the_words_of_a_rate_limit_are_no_terminal_error() -> None:
    """Case 8: with attempts left a text waits for another attempt, whatever it says."""
    bench = Bench()

    def work(job: Any) -> None:
        raise RuntimeError("RateLimitExceededError: Rate limit exceeded: 200/hr for claude")

    bench.handle("work", work)
    job_id = bench.enqueue()
    bench.worker().work(once=True)

    assert (bench.job(job_id).status, bench.job(job_id).attempts) == ("pending", 1)


def test_the_status_shows_the_job_that_case_4_killed(
    bench: QueueBench, clock: Clock, keeping: HealthKeeping, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cases 3 and 4: the error of such a death is never empty, so that people can see it."""
    bench.make("leased", max_attempts=1)
    clock.pass_by(seconds=301)
    bench.queueing.release_stale()
    lines = here(capsys, "queue", "status", "memory").stdout.splitlines()

    assert lines[1].startswith("  memory  p=0 l=0 c=0 f=0 d=1 ")
    assert lines[2].strip() == "last error: lease expired before completion"
    assert keeping.queue_facts()["queues"]["memory"]["lastError"] == (
        "lease expired before completion"
    )
