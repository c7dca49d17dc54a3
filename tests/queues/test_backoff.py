"""How long what failed is left alone: the job, and its type by the worker that it failed for."""

from __future__ import annotations

from typing import Any

import pytest
from queued import SECOND_US, Bench

from tachograph.domain.queue_errors import RateLimitExceededError
from tachograph.domain.queue_settings import Backoff, QueueSettings
from tachograph.queues.handlers import JobContext
from tachograph.queues.pausing import Pauses


def fails(_job: JobContext) -> Any:
    raise ConnectionError("refused")


class Moving:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Moving:
    return Moving()


@pytest.fixture
def pauses(clock: Moving) -> Pauses:
    return Pauses(lambda _queue: Backoff(), clock, lambda: 0.0)


class TestTheFirstFailure:
    """The original waited 2,000 to 2,500 ms, though it promised to begin with 1,000."""

    @pytest.mark.parametrize(("random", "milliseconds"), [(0.0, 1_000), (0.999_999, 1_499)])
    def test_of_a_job_waits_1000_to_1500_ms(self, random: float, milliseconds: int) -> None:
        bench = Bench(seed=random)
        bench.handle("work", fails)
        job_id = bench.enqueue()
        bench.worker().work(once=True)
        job = bench.job(job_id)

        assert job.available_us is not None
        assert job.failed_us is not None
        assert (job.available_us - job.failed_us) // 1_000 == milliseconds

    @pytest.mark.parametrize(("random", "seconds"), [(0.0, 1.0), (0.5, 1.25)])
    def test_of_another_job_in_a_row_pauses_the_type_for_1000_to_1500_ms(
        self, clock: Moving, random: float, seconds: float
    ) -> None:
        pauses = Pauses(lambda _queue: Backoff(), clock, lambda: random)
        waits = [pauses.failed("memory", "work", job_id) for job_id in ("1", "2")]

        assert waits == [0.0, seconds]


class TestCase6:
    """Backoff grows, then resets on success; a nudge resets it too."""

    def test_it_doubles_up_to_30_seconds(self, pauses: Pauses) -> None:
        waits = [pauses.failed("memory", "work", str(number)) for number in range(8)]

        assert waits == [0, 1, 2, 4, 8, 16, 30, 30]

    def test_it_does_not_grow_while_one_job_fails(self, pauses: Pauses) -> None:
        waits = [pauses.failed("memory", "work", "1") for _ in range(3)]

        assert waits == [0, 0, 0]

    def test_a_success_resets_it(self, pauses: Pauses) -> None:
        pauses.failed("memory", "work", "1")
        pauses.failed("memory", "work", "2")
        paused = pauses.of("memory")
        pauses.reset("memory", "work")

        assert paused == {"work"}
        assert pauses.of("memory") == frozenset()
        assert pauses.failed("memory", "work", "3") == 0

    def test_a_nudge_resets_it_and_wakes(self) -> None:
        bench = Bench()
        bench.handle("work", fails)
        for _ in range(3):
            bench.enqueue()
        worker = bench.worker()
        bench.clock.on_wait = worker.stop
        worker.work()
        bench.clock.seconds = 0.0
        bench.clock.woken = 0
        before = worker._taking.pauses.of("memory")
        worker.nudge()

        assert before == {"work"}
        assert worker._taking.pauses.of("memory") == frozenset()
        assert bench.clock.woken == 1

    def test_an_empty_queue_resets_it_once_the_pause_is_over(
        self, pauses: Pauses, clock: Moving
    ) -> None:
        pauses.failed("memory", "work", "1")
        pauses.failed("memory", "work", "2")
        pauses.reset_idle(["memory"])  # it was not asked for: it is paused
        still = pauses.failed("memory", "work", "3")
        clock.seconds = 4.0
        pauses.reset_idle(["memory"])

        assert (still, pauses.failed("memory", "work", "4")) == (2, 0)

    def test_a_dead_job_resets_it(self) -> None:
        bench = Bench()

        def limited(_job: JobContext) -> None:
            raise RateLimitExceededError("too many requests")

        bench.handle("work", limited)
        bench.enqueue()
        worker = bench.worker()
        worker.work(drain=True)

        assert bench.events() == ["begun", "dead"]
        assert worker._taking.pauses.next() is None

    def test_a_worker_waits_longer_and_longer_for_a_job_that_fails(self) -> None:
        bench = Bench()
        bench.handle("work", fails)
        bench.enqueue(max_attempts=3)
        bench.worker().work(drain=True)

        assert bench.clock.waits == [1.0, 2.0]

    def test_jobs_that_all_fail_are_not_run_through_at_once(self) -> None:
        """A common reason, such as a provider that is down, would kill a whole queue."""
        bench = Bench(QueueSettings("memory", max_attempts=100))
        begun = []

        def down(_job: JobContext) -> None:
            begun.append(bench.clock.seconds)
            raise ConnectionError("down")

        bench.handle("work", down)
        for _ in range(4):
            bench.enqueue()
        worker = bench.worker()
        bench.clock.on_wait = lambda: worker.stop() if len(begun) >= 5 else None
        worker.work()

        assert begun[:3] == [0.0, 0.0, 1.0]
        assert begun[4] >= 2.0


class TestStarvation:
    """Report 303: a document that always fails was first in every tick, and stopped all others."""

    def test_one_failing_job_does_not_hold_up_another_type(self) -> None:
        bench = Bench()
        bench.handle("document", fails)
        bench.handle("summary", lambda job: "done")
        bench.enqueue(kind="document", priority=9)
        done = [bench.enqueue(kind="summary") for _ in range(3)]
        worker = bench.worker()
        worker.work(drain=True)
        first = bench.events()[:8]

        assert first == ["begun", "failed", *["begun", "completed"] * 3]
        assert {bench.job(each).status for each in done} == {"completed"}

    def test_one_failing_job_does_not_hold_up_its_own_type(self) -> None:
        """It waits by itself, so that the others have their turn before it has its second one."""
        bench = Bench()
        order = []

        def document(job: JobContext) -> None:
            order.append(job.payload)
            if job.payload == "bad":
                raise ValueError("no")

        bench.handle("document", document)
        for name in ("bad", "one", "two", "three"):
            bench.enqueue(kind="document", payload=name)
        bench.worker().work(drain=True)

        assert order == ["bad", "one", "two", "three", "bad", "bad"]

    def test_a_worker_for_all_types_leaves_only_the_failing_one_alone(self) -> None:
        bench = Bench()
        order = []

        def work(job: JobContext) -> None:
            order.append(job.type)
            if job.type == "bad":
                raise ValueError("no")

        for kind in ("bad", "good", "other"):
            bench.handle(kind, work)
        for kind in ("bad", "bad", "bad", "good", "other"):
            bench.enqueue(kind=kind)
        worker = bench.worker(takes=lambda _queue: None)
        bench.clock.on_wait = worker.stop
        worker.work()

        assert order == ["bad", "bad", "good", "other"]


def test_the_delay_of_a_job_is_that_of_its_queue() -> None:
    backoff = Backoff(10 * SECOND_US, 15 * SECOND_US, 0)
    bench = Bench(QueueSettings("memory", backoff=backoff, poll_seconds=60.0))
    bench.handle("work", fails)
    bench.enqueue()
    bench.worker().work(drain=True)

    assert bench.clock.waits == [10.0, 15.0]
