"""What every queue store promises, on LMDB and in memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from bare_queues import SECOND_US, START_US, BareQueues, finish, job_id, owner

from tachograph.domain.errors import (
    InvalidValueError,
    TachographError,
)
from tachograph.domain.queue_errors import (
    JobNotFoundError,
    JobStatusError,
    KeyTakenError,
    LeaseLostError,
    UnknownQueueError,
)
from tachograph.domain.queue_settings import Backoff, QueueSettings, Rate
from tachograph.infra import queue_rows
from tachograph.queues.endings import Completion
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., BareQueues]


class TestOrder:
    def test_the_oldest_job_is_taken_first(self, bench: BareQueues) -> None:
        jobs = [bench.add() for _ in range(3)]

        assert [bench.taken(), bench.taken(), bench.taken(), bench.taken()] == [
            [jobs[0]],
            [jobs[1]],
            [jobs[2]],
            [],
        ]

    def test_a_higher_priority_goes_before_an_older_job(self, bench: BareQueues) -> None:
        low, usual, high = bench.add(priority=-5), bench.add(), bench.add(priority=1_000_000)
        lowest = bench.add(priority=-1_000_000)

        assert bench.taken(limit=4) == [high, usual, low, lowest]

    def test_age_is_the_place_in_the_log_and_not_the_clock(self, bench: BareQueues) -> None:
        """G3: a clock that was set back changes no order."""
        first = bench.add()
        bench.sleep(-3600)
        second = bench.add()

        assert bench.taken(limit=2) == [first, second]

    def test_a_job_that_is_tried_again_keeps_its_place(self, bench: BareQueues) -> None:
        first, second = bench.add(), bench.add()
        bench.queueing.fail(bench.one().id, 1, "boom", retry_us=bench.now_us)

        assert bench.taken(limit=2) == [first, second]

    def test_a_failing_job_does_not_starve_the_others(self, bench: BareQueues) -> None:
        """Spec 1.3: it waits for itself, and the next one is taken meanwhile."""
        first, second = bench.add(), bench.add()
        bench.queueing.fail(bench.one().id, 1, "boom")

        assert bench.taken(limit=2) == [second]
        assert bench.job(first).available_us == START_US + SECOND_US

    def test_a_requeued_job_keeps_its_place(self, bench: BareQueues) -> None:
        first, second = bench.add(), bench.add()
        bench.queueing.fail(bench.one().id, 1, "boom", terminal=True)
        bench.queueing.change([first], lambda job, cause: job.requeue(cause, "so"))

        assert bench.taken(limit=2) == [first, second]

    def test_queues_are_asked_in_the_order_in_which_they_are_named(self, bench: BareQueues) -> None:
        memory, summary = bench.add("memory"), bench.add("summary", priority=5)

        assert bench.taken("summary", "memory", limit=2) == [summary, memory]

    def test_other_queues_are_left_alone(self, bench: BareQueues) -> None:
        bench.add("summary")

        assert bench.taken("memory") == []

    def test_a_queue_that_is_named_twice_gives_a_job_once(self, bench: BareQueues) -> None:
        job = bench.add()

        assert bench.taken("memory", "memory", limit=2) == [job]

    def test_no_more_are_taken_than_were_asked_for(self, bench: BareQueues) -> None:
        jobs = [bench.add() for _ in range(4)]

        assert bench.taken(limit=3) == jobs[:3]
        assert bench.taken(limit=0) == []


class TestTypes:
    def test_only_what_can_be_done_is_taken(self, bench: BareQueues) -> None:
        bench.add(kind="ingest")
        hint = bench.add(kind="hint")

        assert bench.taken(types=["hint", "other"], limit=5) == [hint]

    def test_types_together_keep_the_order(self, bench: BareQueues) -> None:
        jobs = [bench.add(kind=kind) for kind in ("b", "a", "b", "c", "a")]

        assert bench.taken(types=("a", "b"), limit=5) == [jobs[0], jobs[1], jobs[2], jobs[4]]
        assert bench.taken(limit=5) == [jobs[3]]

    def test_a_type_that_is_named_twice_gives_a_job_once(self, bench: BareQueues) -> None:
        job = bench.add(kind="a")

        assert bench.taken(types=["a", "a"], limit=5) == [job]

    def test_types_may_differ_by_queue(self, bench: BareQueues) -> None:
        memory, summary = bench.add("memory", "a"), bench.add("summary", "a")
        can = {"memory": ["a"], "summary": ["b"]}

        assert bench.taken("summary", "memory", types=can.get, limit=5) == [memory]
        assert bench.statuses(summary) == ["pending"]

    def test_a_name_that_begins_another_is_another(self, make: Make) -> None:
        bench = make(QueueSettings("a"), QueueSettings("a.b"))
        short, long = bench.add("a", "t"), bench.add("a.b", "t.u")

        assert bench.taken("a", types=["t"], limit=5) == [short]
        assert bench.taken("a.b", types=["t"], limit=5) == []
        assert bench.taken("a.b", types=["t.u"], limit=5) == [long]


class TestDueTimes:
    def test_a_job_waits_for_its_time(self, bench: BareQueues) -> None:
        job = bench.add(available_us=START_US + 10 * SECOND_US)

        assert bench.taken() == []

        bench.now_us = START_US + 10 * SECOND_US - 1
        assert bench.taken() == []

        bench.now_us += 1
        assert bench.taken() == [job]

    def test_what_becomes_due_is_taken_by_priority_and_age(self, bench: BareQueues) -> None:
        late = bench.add(available_us=START_US + 5)
        soon = bench.add(available_us=START_US + 1)
        high = bench.add(available_us=START_US + 9, priority=1)
        bench.now_us += 10

        assert bench.taken(limit=5) == [high, late, soon]

    def test_a_worker_is_told_when_to_look_again(self, bench: BareQueues) -> None:
        bench.add(available_us=START_US + 50)
        bench.add(available_us=START_US + 20)
        bench.add("summary", available_us=START_US + 5)

        assert bench.queueing.next_us(["memory"]) == START_US + 20
        assert bench.queueing.next_us(["memory", "summary"]) == START_US + 5
        bench.now_us += 20
        assert len(bench.taken()) == 1
        assert bench.queueing.next_us(["memory"]) == START_US + 50

    def test_nothing_is_told_where_nothing_waits(self, bench: BareQueues) -> None:
        bench.add()

        assert bench.queueing.next_us(["memory", "summary"]) is None

    def test_a_scheduled_job_that_is_cancelled_is_not_waited_for(self, bench: BareQueues) -> None:
        job = bench.add(available_us=START_US + 20)
        bench.queueing.change([job], lambda job, cause: job.cancel(cause, "so"))
        bench.now_us += 50

        assert bench.queueing.next_us(["memory"]) is None
        assert bench.taken() == []

    def test_more_become_due_at_once_than_one_commit_moves(
        self, bench: BareQueues, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queue_rows, "MOST_MOVED", 3)
        jobs = [bench.add(available_us=START_US + 20 - n) for n in range(10)]
        bench.now_us += 20

        assert bench.taken(limit=20) == jobs


class TestConcurrencyKeys:
    def test_one_job_of_a_key_is_at_work_at_once(self, bench: BareQueues) -> None:
        first = bench.add(concurrency_key="disk")
        second = bench.add(concurrency_key="disk")
        other = bench.add(concurrency_key="net")
        free = bench.add()

        assert bench.taken(limit=5) == [first, other, free]
        assert bench.taken(limit=5) == []

        bench.queueing.complete(first, 1)
        assert bench.taken(limit=5) == [second]

    @pytest.mark.parametrize("end", ["complete", "fail", "release", "cancel", "stale"])
    def test_every_end_makes_room(self, bench: BareQueues, end: str) -> None:
        first = bench.add(concurrency_key="disk")
        second = bench.add(concurrency_key="disk")
        job = bench.one()
        assert bench.taken() == []
        finish(bench, job, end)

        assert bench.taken(limit=5) == (
            [second] if end in ("complete", "fail", "cancel") else [first]
        )

    def test_a_holder_of_one_type_leaves_room_for_another_type(self, bench: BareQueues) -> None:
        """What waited behind a job of a type that this worker cannot do is not forgotten."""
        first = bench.add(kind="a", concurrency_key="disk")
        second = bench.add(kind="a", concurrency_key="disk")
        third = bench.add(kind="b", concurrency_key="disk")
        assert bench.taken() == [first]
        assert bench.taken(limit=5) == []
        bench.queueing.complete(first, 1)

        assert bench.taken(types=["b"]) == [third]
        assert bench.statuses(second) == ["pending"]

    def test_more_of_a_key_may_be_allowed_later(self, make: Make) -> None:
        bench = make(QueueSettings("memory", per_key=1))
        jobs = [bench.add(concurrency_key="disk") for _ in range(5)]
        assert bench.taken(limit=5) == jobs[:1]
        assert bench.taken(limit=5) == []

        bench.plan.queues["memory"] = QueueSettings("memory", per_key=3)
        assert bench.taken(limit=5) == jobs[1:3]

        bench.plan.queues["memory"] = QueueSettings("memory", per_key=2)
        bench.queueing.complete(jobs[0], 1)
        assert bench.taken(limit=5) == []

        bench.queueing.complete(jobs[1], 1)
        assert bench.taken(limit=5) == jobs[3:4]

    def test_several_of_a_key_are_taken_in_one_go_as_far_as_there_is_room(self, make: Make) -> None:
        bench = make(QueueSettings("memory", per_key=2))
        jobs = [bench.add(concurrency_key="disk") for _ in range(3)]

        assert bench.taken(limit=5) == jobs[:2]

    def test_a_parked_job_that_is_cancelled_gives_its_turn_on(self, bench: BareQueues) -> None:
        jobs = [bench.add(concurrency_key="disk") for _ in range(4)]
        assert bench.taken() == jobs[:1]
        assert bench.taken() == []
        bench.queueing.complete(jobs[0], 1)
        bench.queueing.change(jobs[1:3], lambda job, cause: job.cancel(cause, "so"))

        assert bench.taken() == jobs[3:]

    def test_a_job_that_dies_instead_of_being_taken_holds_no_room(self, make: Make) -> None:
        bench = make(QueueSettings("memory", backoff=Backoff(0, 0, 0)))
        tried, fresh = bench.add(concurrency_key="disk"), bench.add(concurrency_key="disk")
        bench.queueing.fail(bench.one().id, 1, "boom")
        bench.plan.queues["memory"] = QueueSettings("memory", max_attempts=1)

        assert bench.taken(limit=5) + bench.taken(limit=5) == [fresh]
        assert bench.statuses(tried) == ["dead"]

    def test_the_end_of_one_makes_room_for_the_next_in_one_turn(self, bench: BareQueues) -> None:
        first, second = bench.add(concurrency_key="disk"), bench.add(concurrency_key="disk")
        bench.one()
        done = Completion(first, 1, None, None, None)
        found = bench.queueing.turn([done], ["memory"], owner(), limit=1)

        assert [each.job.id for each in found] == [second]

    def test_keys_of_two_queues_are_two(self, bench: BareQueues) -> None:
        memory = bench.add("memory", concurrency_key="disk")
        summary = bench.add("summary", concurrency_key="disk")

        assert bench.taken("memory", "summary", limit=5) == [memory, summary]

    def test_a_queue_may_have_a_bound_for_all(self, make: Make) -> None:
        bench = make(QueueSettings("memory", concurrency=2))
        jobs = [bench.add() for _ in range(4)]

        assert bench.taken(limit=5) == jobs[:2]
        assert bench.taken(limit=5, pid=2) == []

        bench.queueing.complete(jobs[0], 1)
        assert bench.taken(limit=5) == jobs[2:3]


class TestUniqueKeys:
    def test_a_key_has_one_job_while_it_waits_or_is_leased(self, bench: BareQueues) -> None:
        """Case 1."""
        want = Enqueue("memory", "ingest", key="document-7")
        first = bench.queueing.enqueue(want)
        second = bench.queueing.enqueue(want)
        bench.one()
        third = bench.queueing.enqueue(want)
        bench.queueing.complete(first.job_id, 1)
        fourth = bench.queueing.enqueue(want)

        assert [each.created for each in (first, second, third, fourth)] == [
            True,
            False,
            False,
            True,
        ]
        assert second.job_id == third.job_id == first.job_id != fourth.job_id

    def test_a_key_that_is_taken_records_nothing(self, bench: BareQueues) -> None:
        bench.add(key="k")
        bench.add(key="k")

        assert bench.topics() == ["enqueued"]

    def test_a_key_is_taken_within_one_call_too(self, bench: BareQueues) -> None:
        want = Enqueue("memory", "ingest", key="k")
        found = bench.queueing.enqueue_many([want, want, Enqueue("memory", "ingest")])

        assert [each.created for each in found] == [True, False, True]
        assert found[0].job_id == found[1].job_id

    def test_a_key_belongs_to_its_queue(self, bench: BareQueues) -> None:
        assert bench.add("memory", key="k") != bench.add("summary", key="k")

    @pytest.mark.parametrize(
        ("end", "free"),
        [
            ("complete", True),
            ("die", True),
            ("cancel", True),
            ("fail", False),
            ("release", False),
            ("stale", False),
        ],
    )
    def test_a_key_is_free_once_its_job_has_ended(
        self, bench: BareQueues, end: str, free: bool
    ) -> None:
        first = bench.add(key="k")
        finish(bench, bench.one(), end)

        assert (bench.add(key="k") != first) == free

    def test_a_key_may_stay_taken_for_a_while_after_success(self, bench: BareQueues) -> None:
        first = bench.add(key="k", key_window_us=10 * SECOND_US)
        bench.one()
        bench.sleep(5)
        bench.queueing.complete(first, 1)
        bench.now_us += 10 * SECOND_US - 1

        assert bench.add(key="k") == first

        bench.now_us += 1
        second = bench.add(key="k")
        assert second != first
        assert bench.add(key="k") == second

    def test_a_window_does_not_outlive_a_death(self, bench: BareQueues) -> None:
        """The work was not done: it may be asked for again."""
        first = bench.add(key="k", key_window_us=10 * SECOND_US)
        finish(bench, bench.one(), "die")

        assert bench.add(key="k") != first

    def test_a_job_whose_key_is_taken_cannot_wait_again(self, bench: BareQueues) -> None:
        dead = bench.add(key="k")
        finish(bench, bench.one(), "die")
        holder = bench.add(key="k")
        changed = bench.queueing.change([dead], lambda job, cause: job.requeue(cause, "so"))

        assert changed.done == []
        assert isinstance(changed.refused[dead], KeyTakenError)
        assert holder in str(changed.refused[dead])
        assert bench.statuses(dead, holder) == ["dead", "pending"]

    def test_of_two_jobs_of_a_key_one_waits_again(self, bench: BareQueues) -> None:
        both = []
        for _ in range(2):
            both.append(bench.add(key="k"))
            finish(bench, bench.one(), "die")
        changed = bench.queueing.change(both, lambda job, cause: job.requeue(cause, "so"))

        assert [job.id for job in changed.done] == both[:1]
        assert isinstance(changed.refused[both[1]], KeyTakenError)
        assert bench.add(key="k") == both[0]

    def test_a_requeued_job_has_its_key_again(self, bench: BareQueues) -> None:
        dead = bench.add(key="k")
        finish(bench, bench.one(), "die")
        bench.queueing.change([dead], lambda job, cause: job.requeue(cause, "so"))

        assert bench.add(key="k") == dead

    def test_old_windows_are_forgotten(self, bench: BareQueues) -> None:
        """The index does not grow with keys that nobody will ask for again."""
        for number in range(50):
            bench.add(key=f"k{number}", key_window_us=1)
            bench.sleep(1)
            bench.queueing.complete(bench.one().id, 1)
        keys = [key for key in bench.store.content() if key[:1] == b"k"]

        assert len(keys) <= 2


class TestRates:
    def test_so_many_are_taken_within_any_period(self, make: Make) -> None:
        """Within any window: not by the minute of the clock, where twice as many could pass."""
        bench = make(QueueSettings("memory", rate=Rate(3, 10 * SECOND_US)))
        for _ in range(20):
            bench.add()
        leased: list[int] = []
        for _ in range(40):
            leased += [bench.now_us] * len(bench.take(limit=2))
            bench.sleep(0.7)

        assert len(leased) == 9
        assert all(
            later - earlier >= 10 * SECOND_US
            for earlier, later in zip(leased, leased[3:], strict=False)
        )

    def test_a_period_ends_to_the_microsecond(self, make: Make) -> None:
        bench = make(QueueSettings("memory", rate=Rate(1, 10)))
        bench.add(), bench.add()
        assert len(bench.take()) == 1
        assert bench.queueing.next_us(["memory"]) == START_US + 10
        bench.now_us += 9
        assert bench.take() == []

        bench.now_us += 1
        assert len(bench.take()) == 1

    def test_a_clock_that_was_set_back_does_not_stop_a_queue(self, make: Make) -> None:
        bench = make(QueueSettings("memory", rate=Rate(1, 10 * SECOND_US)))
        bench.add(), bench.add()
        assert len(bench.take()) == 1
        bench.sleep(-86_400)

        assert len(bench.take()) == 1

    def test_a_job_that_died_instead_does_not_count(self, make: Make) -> None:
        bench = make(QueueSettings("memory", backoff=Backoff(0, 0, 0)))
        tried, fresh = bench.add(), bench.add()
        bench.queueing.fail(bench.one().id, 1, "boom")
        bench.plan.queues["memory"] = QueueSettings(
            "memory", max_attempts=1, rate=Rate(1, 10 * SECOND_US)
        )

        assert bench.taken(limit=5) + bench.taken(limit=5) == [fresh]
        assert bench.statuses(tried) == ["dead"]

    def test_other_queues_have_their_own(self, make: Make) -> None:
        bench = make(QueueSettings("memory", rate=Rate(1, 10)), QueueSettings("summary"))
        memory, summary = bench.add("memory"), bench.add("summary")
        bench.add("memory"), bench.add("summary")

        assert bench.taken("memory", "summary", limit=2) == [memory, summary]

    def test_no_more_leases_are_remembered_than_a_rate_may_count(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queue_rows, "MOST_METERED", 5)
        bench = make(QueueSettings("memory", rate=Rate(5, 1)))
        for number in range(12):
            bench.add()
            bench.now_us = START_US + number
            assert len(bench.take()) == 1
        metered = [key for key in bench.store.content() if key[:1] == b"t"]

        assert len(metered) == 5
        assert bench.answers()["memory"]["metered"] == [START_US + 11 - n for n in range(5)]


class TestLostHolders:
    def test_a_gone_holder_frees_its_job_at_once(self, bench: BareQueues) -> None:
        """G7."""
        job = bench.add()
        bench.one(pid=5)
        bench.gone.add(5)
        released = bench.queueing.release_stale()

        assert (released.pending, released.dead) == ([job], [])
        assert bench.job(job).attempts == 1
        assert bench.taken() == [job]

    def test_a_silent_holder_frees_it_after_its_lease(self, bench: BareQueues) -> None:
        """Case 4: ten minutes ago, of five; a fresh lease is left alone."""
        old = bench.add()
        bench.one()
        bench.sleep(600)
        fresh = bench.add()
        assert bench.taken() == [fresh]
        released = bench.queueing.release_stale()

        assert released.pending == [old]
        assert bench.statuses(old, fresh) == ["pending", "leased"]
        assert bench.job(old).leased_us is None

    def test_a_beat_keeps_the_lease(self, bench: BareQueues) -> None:
        bench.add()
        job = bench.one()
        bench.sleep(299)
        assert bench.queueing.beat(job)
        bench.sleep(299)

        assert bench.queueing.release_stale().pending == []

    def test_with_all_attempts_used_it_is_dead(self, bench: BareQueues) -> None:
        """Case 4: attempts 3 of 3."""
        job = bench.add(max_attempts=1)
        bench.one()
        bench.sleep(600)
        released = bench.queueing.release_stale()

        assert (released.pending, released.dead) == ([], [job])
        assert bench.job(job).error == "lease expired before completion"
        assert bench.job(job).code == "lease_expired"

    def test_a_holder_of_before_cannot_end_it(self, bench: BareQueues) -> None:
        """G5."""
        job = bench.add()
        bench.one(pid=5)
        bench.gone.add(5)
        bench.queueing.release_stale()
        bench.one(pid=6)
        with pytest.raises(LeaseLostError):
            bench.queueing.complete(job, 1)
        with pytest.raises(LeaseLostError):
            bench.queueing.fail(job, 1, "boom")
        with pytest.raises(LeaseLostError):
            bench.queueing.release(job, 1, "stopped", "so")
        bench.queueing.complete(job, 2)

        assert bench.statuses(job) == ["completed"]

    def test_a_beat_says_that_the_lease_is_lost(self, bench: BareQueues) -> None:
        bench.add()
        job = bench.one(pid=5)
        bench.gone.add(5)
        bench.queueing.release_stale()

        assert bench.queueing.beat(job) is False

    def test_an_end_of_what_has_ended_is_refused(self, bench: BareQueues) -> None:
        """Spec 1.4: a cancelled job is not brought back by its holder."""
        job = bench.add()
        bench.one()
        bench.queueing.change([job], lambda job, cause: job.cancel(cause, "so"))

        with pytest.raises(LeaseLostError, match="it is cancelled"):
            bench.queueing.complete(job, 1)
        with pytest.raises(JobNotFoundError):
            bench.queueing.complete(job_id(99), 1)

    def test_a_lowered_bound_kills_at_the_start(self, bench: BareQueues) -> None:
        """Case 3."""
        job, other = bench.add(), bench.add()
        bench.queueing.fail(bench.one().id, 1, "boom")
        bench.plan.queues["memory"] = QueueSettings("memory", max_attempts=1)

        assert bench.queueing.die_of_attempts() == [job]
        assert bench.statuses(job, other) == ["dead", "pending"]

    def test_many_stale_leases_are_released_together(self, bench: BareQueues) -> None:
        """Case 7: 250 of them; the dead among them are told apart."""
        bench.queueing.enqueue_many(
            [Enqueue("memory", "ingest", max_attempts=1 + n % 2) for n in range(250)]
        )
        assert len(bench.take(limit=250, pid=5)) == 250
        bench.gone.add(5)
        released = bench.queueing.release_stale()

        assert (len(released.pending), len(released.dead)) == (125, 125)
        assert bench.queueing.release_stale().pending == []


class TestDecide:
    def test_a_refusal_leaves_nothing(self, bench: BareQueues) -> None:
        """G2."""
        job = bench.add(key="k")
        content = bench.store.content()

        def work(index: Any) -> None:
            found = index.job(job)
            found.lease(bench.queueing.actor.cause(), {}, 1.0)
            index.save(found)
            raise InvalidValueError("colour", "red", "be serious")

        with pytest.raises(InvalidValueError):
            bench.store.decide(work)

        assert bench.topics() == ["enqueued"]
        assert bench.store.content() == content

    def test_a_fault_in_it_leaves_nothing(self, bench: BareQueues) -> None:
        bench.add()

        def work(index: Any) -> None:
            found = next(index.eligible("memory", None, bench.now_us, 1))
            found.lease(bench.queueing.actor.cause(), {}, 1.0)
            index.save(found)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            bench.store.decide(work)

        assert bench.topics() == ["enqueued"]
        assert bench.statuses(job_id(1)) == ["pending"]

    def test_one_refused_end_keeps_all_of_its_turn_from_being_recorded(
        self, bench: BareQueues
    ) -> None:
        """G2."""
        first, second = bench.add(), bench.add()
        bench.take(limit=2)
        bench.add()
        ends = [Completion(first, 1, None, None, None), Completion(second, 9, None, None, None)]

        with pytest.raises(LeaseLostError):
            bench.queueing.turn(ends, ["memory"], owner(), limit=5)

        assert bench.statuses(first, second, job_id(3)) == ["leased", "leased", "pending"]

    def test_what_is_refused_of_one_job_does_not_concern_the_others(
        self, bench: BareQueues
    ) -> None:
        waiting, done = bench.add(), bench.add()
        bench.queueing.complete(bench.one().id, 1)
        changed = bench.queueing.change(
            [waiting, done, job_id(77)], lambda job, cause: job.cancel(cause, "so")
        )
        again = bench.queueing.change([waiting], lambda job, cause: job.cancel(cause, "so"))

        assert [job.id for job in changed.done] == [waiting, done]
        assert isinstance(changed.refused[job_id(77)], JobNotFoundError)
        assert isinstance(again.refused[waiting], JobStatusError)

    def test_what_is_wanted_is_checked_before_anything_is_recorded(self, bench: BareQueues) -> None:
        """G2."""
        wants: list[tuple[Enqueue, type[TachographError]]] = [
            (Enqueue("memroy", "ingest"), UnknownQueueError),
            (Enqueue("memory", "in gest"), InvalidValueError),
            (Enqueue("memory", "ingest", max_attempts=0), InvalidValueError),
        ]
        for want, error in wants:
            with pytest.raises(error):
                bench.queueing.enqueue_many([Enqueue("memory", "ingest"), want])

        assert bench.topics() == []

    def test_reading_records_nothing(self, bench: BareQueues) -> None:
        bench.add()
        before = bench.store.last_transaction()
        found = bench.store.look(lambda index: [job.id for job in index.leased()])

        assert found == []
        assert bench.store.last_transaction() == before

    def test_every_write_can_be_noticed(self, bench: BareQueues) -> None:
        before = bench.store.last_transaction()
        bench.add()

        assert bench.store.last_transaction() != before

    def test_threads_enqueue_and_take_each_job_once(self, bench: BareQueues) -> None:
        def enqueue(number: int) -> list[str]:
            return [bench.add(key=f"{number}-{n}", payload=[number, n]) for n in range(50)]

        def work(number: int) -> list[str]:
            found: list[str] = []
            while jobs := bench.take(limit=3, pid=number):
                for job in jobs:
                    bench.queueing.complete(job.id, job.epoch)
                found += [job.id for job in jobs]
            return found

        with ThreadPoolExecutor(8) as pool:
            added = [job for jobs in pool.map(enqueue, range(8)) for job in jobs]
            taken = [job for jobs in pool.map(work, range(8)) for job in jobs]

        assert len(set(added)) == 400
        assert sorted(taken) == sorted(added)
        assert bench.answers()["count"] == 0
