"""What a worker promises: each job done as a run, ended truthfully, taken by nobody else."""

from __future__ import annotations

import itertools
import logging
import threading
from typing import Any

import pytest
from queued import SECOND_US, Bench

from tachograph.contexts import current
from tachograph.domain.ended import Ended
from tachograph.domain.errors import StoreFullError
from tachograph.domain.nothing import Nothing
from tachograph.domain.owner import Owner
from tachograph.domain.queue_errors import (
    ImmutableArtifactError,
    LeaseLostError,
    RateLimitExceededError,
    RetryLaterError,
    TerminalJobError,
)
from tachograph.domain.queue_settings import JobType, QueueSettings
from tachograph.domain.queued_job import OWNER_GONE, run_id_of
from tachograph.queues.handlers import Handler, JobContext
from tachograph.queues.job_calling import Said
from tachograph.queues.job_processes import ChildEnd
from tachograph.queues.working import Worker


@pytest.fixture
def bench() -> Bench:
    return Bench()


def ran(bench: Bench, function: Any, payload: Any = None, **options: Any) -> str:
    """Do one job by a function, once, and return its id."""
    bench.handle("work", function)
    job_id = bench.enqueue(payload=payload, **options)
    bench.worker().work(once=True)
    return job_id


def run_of(bench: Bench, job_id: str, execution: str = "") -> Any:
    return bench.runs.repository.get(run_id_of(bench.job(job_id)) + execution)


class TestAJobIsARun:
    def test_its_inputs_name_the_job(self, bench: Bench) -> None:
        job_id = ran(bench, lambda job: None)
        run = run_of(bench, job_id)

        assert run.command == "work"
        assert run.inputs == {"job": job_id, "queue": "memory", "type": "work"}

    def test_an_undeclared_end_is_to_be_reviewed(self, bench: Bench) -> None:
        """G12: that a function returned says nothing of what it did."""
        job_id = ran(bench, lambda job: "whatever")

        assert run_of(bench, job_id).outcome == "success_with_review"
        assert run_of(bench, job_id).reason_code == "not_judged"
        assert bench.job(job_id).status == "completed"

    def test_what_it_returned_is_the_result_of_the_job(self, bench: Bench) -> None:
        job_id = ran(bench, lambda job: {"double": job.payload * 2}, payload=4)
        (fields,) = [
            fields
            for record, fields in bench.queueing.repository.history(job_id)
            if record.topic == "queue.job-completed"
        ]

        assert fields["result"] == {"double": 8}
        assert fields["run"] == run_of(bench, job_id).id
        assert fields["outcome"] == "success_with_review"

    def test_a_coroutine_is_run_to_its_end(self, bench: Bench) -> None:
        async def work(job: JobContext) -> str | None:
            recording = current()
            return None if recording is None else recording.id

        job_id = ran(bench, work)
        history = bench.queueing.repository.history(job_id)

        assert history[-1][1]["result"] == run_of(bench, job_id).id

    def test_a_retry_resumes_it_at_its_checkpoint(self, bench: Bench) -> None:
        seen = []

        def work(job: JobContext) -> None:
            seen.append((job.attempt, job.run.epoch, job.run.checkpoint))
            job.run.save_offset(5, 10)
            if job.attempt == 1:
                raise OSError("cut off")

        bench.handle("work", work)
        bench.enqueue()
        bench.worker().work(drain=True)

        assert seen == [(1, 1, None), (2, 2, {"offset": 5, "total": 10})]

    def test_an_effect_is_not_repeated(self, bench: Bench) -> None:
        sent = []

        def work(job: JobContext) -> None:
            job.run.effect("mail", lambda: sent.append(job.id))
            if job.attempt == 1:
                raise OSError("cut off")

        bench.handle("work", work)
        job_id = bench.enqueue()
        bench.worker().work(drain=True)

        assert sent == [job_id]
        assert bench.job(job_id).status == "completed"

    def test_only_its_own_warnings_are_noted(self, bench: Bench) -> None:
        def work(job: JobContext) -> None:
            logging.getLogger("job").warning("mine")
            other = threading.Thread(target=lambda: logging.getLogger("x").warning("another's"))
            other.start()
            other.join()

        job_id = ran(bench, work)
        notes = bench.runs.fields(run_of(bench, job_id).id, "note-added")

        assert [note["text"] for note in notes] == ["mine"]

    def test_a_handler_that_ended_it_has_the_last_word(self, bench: Bench) -> None:
        job_id = ran(bench, lambda job: job.run.finish("skipped", reason="nothing new"))

        assert bench.job(job_id).status == "completed"
        assert run_of(bench, job_id).outcome == "skipped"

    def test_open_phases_do_not_leave_it_open(self, bench: Bench) -> None:
        def work(job: JobContext) -> None:
            job.run.session.start_phase("one")

        job_id = ran(bench, work)

        assert bench.job(job_id).failing
        assert run_of(bench, job_id).outcome is not None
        assert not run_of(bench, job_id).attempt_open


class TestTheOutcomeDecides:
    @pytest.mark.parametrize("outcome", ["success", "success_with_review", "skipped", "empty"])
    def test_what_is_over_completes_the_job(self, bench: Bench, outcome: str) -> None:
        job_id = ran(bench, lambda job: job.run.finish(outcome, reason="so it is") and None)

        assert bench.job(job_id).status == "completed"

    @pytest.mark.parametrize("outcome", ["failed", "partial", "failed_semantic_empty"])
    def test_what_failed_fails_the_job(self, bench: Bench, outcome: str) -> None:
        job_id = ran(bench, lambda job: job.run.finish(outcome, reason="so it is") and None)
        job = bench.job(job_id)

        assert (job.failing, job.error, job.code) == (True, "so it is", outcome)

    def test_work_without_a_result_is_a_semantic_failure(self, bench: Bench) -> None:
        def work(job: JobContext) -> None:
            job.run.judge(inputs=10, outputs=0)

        job_id = ran(bench, work)

        assert run_of(bench, job_id).outcome == "failed_semantic_empty"
        assert bench.job(job_id).failing

    def test_a_declared_nothing_to_do_completes_it(self, bench: Bench) -> None:
        job_id = ran(bench, lambda job: job.run.judge(inputs=0, declared=Nothing("none").reason))

        assert bench.job(job_id).status == "completed"

    def test_what_stopped_at_its_budget_waits_without_losing_an_attempt(self, bench: Bench) -> None:
        def stops(job: JobContext) -> None:
            job.run.session.finish("partial", reason="budget", reason_code="stopped_by_budget")

        job_id = ran(bench, stops)
        job = bench.job(job_id)

        assert (job.status, job.attempts, job.error) == ("pending", 0, None)
        assert job.available_us == bench.clock.now_us() + SECOND_US

    def test_what_waits_for_an_approval_waits_without_losing_an_attempt(self, bench: Bench) -> None:
        job_id = ran(bench, lambda job: job.run.approval("send", {"to": "all"}))
        job = bench.job(job_id)

        assert (job.status, job.attempts) == ("pending", 0)


class TestCase2:
    """A handler that raises: pending with the error, dead when its attempts are used up."""

    def test_below_the_bound_it_waits_with_its_error(self, bench: Bench) -> None:
        def work(job: JobContext) -> None:
            raise ValueError("odd")

        job_id = ran(bench, work)
        job = bench.job(job_id)

        assert (job.status, job.error, job.attempts) == ("pending", "ValueError: odd", 1)
        assert run_of(bench, job_id).outcome == "failed"

    def test_at_the_bound_it_is_dead(self, bench: Bench) -> None:
        def work(job: JobContext) -> None:
            raise ValueError("odd")

        bench.handle("work", work)
        job_id = bench.enqueue(max_attempts=2)
        bench.worker().work(drain=True)
        job = bench.job(job_id)

        assert (job.status, job.error, job.attempts) == ("dead", "ValueError: odd", 2)
        assert bench.events() == ["begun", "failed", "begun", "dead"]

    def test_a_rate_limit_error_kills_it_at_its_first_attempt(self, bench: Bench) -> None:
        def work(job: JobContext) -> None:
            raise RateLimitExceededError("429 from the provider")

        job_id = ran(bench, work)
        job = bench.job(job_id)

        assert (job.status, job.attempts) == ("dead", 1)
        assert job.error == "RateLimitExceededError: 429 from the provider"

    def test_a_long_error_is_clipped(self, bench: Bench) -> None:
        def work(job: JobContext) -> None:
            raise ValueError("x" * 9_000)

        assert len(str(bench.job(ran(bench, work)).error)) == 2_000


class TestCase3:
    """Pending with its attempts used up, as after the bound was lowered: dead at startup."""

    def test_it_dies_before_the_first_lease(self) -> None:
        def work(job: JobContext) -> None:
            raise ValueError("odd")

        bench = Bench()
        job_id = ran(bench, work)
        bench.queueing.plan.queues["memory"] = QueueSettings("memory", max_attempts=1)
        before = bench.job(job_id).status
        bench.worker().begin()

        assert (before, bench.job(job_id).status) == ("pending", "dead")
        assert bench.told[-1].event == "dead"


class TestCase4:
    def test_lost_holders_lose_their_jobs_at_startup(self, bench: Bench) -> None:
        bench.handle("work", lambda job: None)
        job_id = bench.enqueue()
        bench.queueing.lease(["memory"], Owner("here", pid=2))
        bench.lost[job_id] = OWNER_GONE, "process 2 has ended"
        worker = bench.worker()
        worker.begin()
        worker.work(drain=True)

        assert bench.events() == ["recovered", "begun", "completed"]
        assert bench.job(job_id).attempts == 2

    def test_an_idle_worker_looks_for_them_again(self, bench: Bench) -> None:
        bench.handle("work", lambda job: None)
        job_id = bench.enqueue()
        bench.queueing.lease(["memory"], Owner("here", pid=2))
        worker = bench.worker()

        def next_moment() -> None:
            bench.lost[job_id] = OWNER_GONE, "process 2 has ended"
            if bench.job(job_id).status == "completed":
                worker.stop()

        bench.clock.on_wait = next_moment
        worker.work()

        assert bench.job(job_id).status == "completed"
        assert bench.clock.seconds <= 6.0


class TestCase5:
    """stop() waits for the job in flight; overload leases nothing for 30 s."""

    def test_stop_lets_the_job_at_work_end(self, bench: Bench) -> None:
        worker = bench.worker()
        bench.handle("work", lambda job: worker.stop())
        first, second = bench.enqueue(), bench.enqueue()
        worker.work()

        assert bench.job(first).status == "completed"
        assert bench.job(second).status == "pending"

    def test_overload_leases_nothing_and_looks_again_after_30_seconds(self, bench: Bench) -> None:
        loads = itertools.chain([0.81], itertools.repeat(0.79))
        bench.handle("work", lambda job: None)
        bench.enqueue()
        worker = bench.worker(load=lambda: next(loads))
        worker.work(drain=True)

        assert bench.events() == ["overloaded", "begun", "completed"]
        assert bench.clock.waits == [30.0]

    def test_overload_does_not_keep_a_job_from_its_end(self, bench: Bench) -> None:
        loads = itertools.chain([0.0], itertools.repeat(9.0))
        bench.handle("work", lambda job: None)
        first, second = bench.enqueue(), bench.enqueue()
        worker = bench.worker(load=lambda: next(loads))
        bench.clock.on_wait = worker.stop
        worker.work()

        assert bench.job(first).status == "completed"
        assert bench.job(second).attempts == 0

    def test_a_bound_of_0_never_sheds(self, bench: Bench) -> None:
        bench.handle("work", lambda job: None)
        bench.enqueue()
        bench.worker(load=lambda: 99.0, max_load=0.0).work(drain=True)

        assert bench.events() == ["begun", "completed"]


class TestCase7:
    """The original recovered in-flight rows in batches, of one of its two queues only."""

    def test_all_jobs_of_lost_holders_are_recovered_at_startup(self) -> None:
        bench = Bench(QueueSettings("memory", max_attempts=2), QueueSettings("summary"))
        other = Owner("here", pid=2)
        last = bench.enqueue("memory", max_attempts=1)
        jobs = [bench.enqueue(queue) for queue in ("memory", "summary") for _ in range(125)]
        leased = bench.queueing.lease(["memory"], other, limit=500)
        leased += bench.queueing.lease(["summary"], other, limit=500)
        bench.lost = {each.job.id: (OWNER_GONE, "process 2 has ended") for each in leased}
        bench.worker(["memory", "summary"]).begin()

        assert len(leased) == 251
        assert {bench.job(each).status for each in jobs} == {"pending"}
        assert bench.job(last).status == "dead"
        assert bench.job(last).error == "lease expired before completion"
        assert bench.events() == ["recovered"] * 250 + ["dead"]

    def test_without_any_nothing_happens(self, bench: Bench) -> None:
        bench.worker().begin()

        assert bench.events() == []


class TestCase8:
    """Only the class of an error can say that no attempt helps, never its text."""

    @pytest.mark.parametrize("kind", [RateLimitExceededError, ImmutableArtifactError])
    def test_a_typed_error_kills_at_once(self, bench: Bench, kind: type[TerminalJobError]) -> None:
        def work(job: JobContext) -> None:
            raise kind("no")

        job_id = ran(bench, work)
        fields = [fields for _, fields in bench.queueing.repository.history(job_id)]

        assert bench.job(job_id).status == "dead"
        assert fields[-2]["code"] == kind.code
        assert fields[-2]["terminal"]

    @pytest.mark.parametrize(
        "text", ["timed out after 30 s", "rate limit exceeded (429)", "RateLimitExceededError"]
    )
    def test_a_text_does_not(self, bench: Bench, text: str) -> None:
        def work(job: JobContext) -> None:
            raise RuntimeError(text)

        assert bench.job(ran(bench, work)).failing

    @pytest.mark.parametrize(
        ("args", "seconds"), [((), 1), ((90,), 90), (("busy", 2.5), 2.5), ((float("nan"),), 1)]
    )
    def test_later_names_its_time(
        self, bench: Bench, args: tuple[Any, ...], seconds: float
    ) -> None:
        def work(job: JobContext) -> None:
            raise RetryLaterError(*args)

        job = bench.job(ran(bench, work))

        assert job.available_us == bench.clock.now_us() + round(seconds * SECOND_US)

    def test_an_effect_in_doubt_needs_a_person(self, bench: Bench) -> None:
        """Another attempt would only ask again."""

        def work(job: JobContext) -> None:
            job.run.effect("mail", lambda: 1 / 0)

        bench.handle("work", work)
        job_id = bench.enqueue()
        bench.worker().work(drain=True)
        job = bench.job(job_id)

        assert (job.status, job.attempts, job.code) == ("dead", 2, "terminal_error")
        assert "EffectInDoubtError" in str(job.error)


class TestARunThatEndedAlready:
    def test_a_job_is_not_run_again_after_a_crash_between_the_two_ends(self, bench: Bench) -> None:
        calls = []

        def work(job: JobContext) -> dict[str, int]:
            calls.append(job.attempt)
            return {"rows": 3}

        job_id = killed_before_its_end(bench, work)
        bench.worker().work(drain=True)
        history = bench.queueing.repository.history(job_id)

        assert calls == [1]
        assert history[-1][0].topic == "queue.job-completed"
        assert history[-1][1]["result"] == {"rows": 3}
        assert history[-1][1]["outcome"] == "success_with_review"

    def test_a_cancelled_run_kills_its_job_and_says_so(self, bench: Bench) -> None:
        def work(job: JobContext) -> None:
            cancel(bench, job.run.id)
            job.run.note("on it goes")

        job = bench.job(ran(bench, work))

        assert (job.status, job.attempts) == ("dead", 1)
        assert job.error is not None
        assert job.error.endswith("was cancelled: not wanted any more")

    def test_a_run_that_was_cancelled_while_its_job_waited(self, bench: Bench) -> None:
        calls = []

        def work(job: JobContext) -> None:
            calls.append(job.attempt)
            raise ValueError("odd")

        job_id = ran(bench, work)
        cancel(bench, run_of(bench, job_id).id)
        bench.worker().work(drain=True)

        assert bench.job(job_id).status == "dead"
        assert calls == [1]

    def test_a_requeued_job_gets_a_new_execution_of_its_run(self, bench: Bench) -> None:
        """A cancelled run cannot go on; a person who requeues its job wants it done."""
        calls = []

        def work(job: JobContext) -> None:
            calls.append(job.run.id)
            if len(calls) == 1:
                cancel(bench, job.run.id)
                job.run.note("on it goes")

        job_id = ran(bench, work)
        bench.queueing.change([job_id], lambda job, why: job.requeue(why, "do it after all"))
        bench.worker().work(drain=True)

        assert bench.job(job_id).status == "completed"
        assert calls == [f"queue-memory-{job_id}", f"queue-memory-{job_id}~2"]


def killed_before_its_end(bench: Bench, function: Any) -> str:
    """Do a job whose worker does not live to record its end; its holder is lost."""
    bench.handle("work", function)
    job_id = bench.enqueue()
    worker = bench.worker()
    (leased,) = bench.queueing.lease(["memory"], worker._owner)
    from tachograph.queues.holds import Hold

    worker._perform(Hold(leased, 0, 0.0))
    bench.lost[job_id] = OWNER_GONE, "it was killed"
    bench.queueing.release_stale()
    return job_id


def cancel(bench: Bench, run_id: str) -> None:
    run = bench.runs.repository.get(run_id)
    assert run is not None
    run.cancel(bench.runs.actor.cause(), "not wanted any more")
    bench.runs.repository.save(run)


class TestALostLease:
    def test_the_end_is_not_recorded(self, bench: Bench) -> None:
        def work(job: JobContext) -> None:
            take_away(bench, job.id)

        job_id = ran(bench, work)

        assert bench.topics(job_id) == ["enqueued", "leased", "released"]
        assert bench.events() == ["begun", "lost"]

    def test_a_heartbeat_notices_it_and_the_handler_records_no_more(self, bench: Bench) -> None:
        """G5: its run's attempt is ended, so that its next record is refused."""
        seen = []
        worker = bench.worker()

        def work(job: JobContext) -> None:
            take_away(bench, job.id)
            worker.beat()
            try:
                job.run.progress(1)
            except Exception as error:
                seen.append(type(error).__name__)
                raise

        bench.handle("work", work)
        job_id = bench.enqueue()
        worker.work(once=True)

        assert seen == ["AttemptEndedError"]
        assert bench.topics(job_id)[-1] == "released"
        assert run_of(bench, job_id).reason_code == "lease_lost"

    def test_a_handler_can_ask(self, bench: Bench) -> None:
        seen = []

        def work(job: JobContext) -> None:
            job.heartbeat()
            take_away(bench, job.id)
            with pytest.raises(LeaseLostError):
                job.heartbeat()
            seen.append("asked")

        ran(bench, work)

        assert seen == ["asked"]

    def test_the_next_job_is_taken_all_the_same(self, bench: Bench) -> None:
        def work(job: JobContext) -> None:
            if job.payload == "first":
                bench.queueing.change([job.id], lambda job, why: job.cancel(why, "no"))

        bench.handle("work", work)
        bench.enqueue(payload="first")
        second = bench.enqueue(payload="second")
        bench.worker().work(drain=True)

        assert bench.events() == ["begun", "lost", "begun", "completed"]
        assert bench.job(second).status == "completed"

    def test_another_holder_that_lives_is_succeeded(self, bench: Bench) -> None:
        """Its lease ran out while it was silent: it is fenced by the epoch of the run."""

        def work(job: JobContext) -> None:
            raise ValueError("odd")

        job_id = ran(bench, work)
        run_id = run_of(bench, job_id).id
        bench.runs.start("work", run_of(bench, job_id).inputs, run_id=run_id)
        bench.runs.alive.add(run_id)
        bench.worker().work(drain=True)
        reasons = [each["reason"] for each in bench.runs.fields(run_id, "attempt-started")]

        assert "its lease was given to another worker" in reasons
        assert bench.around.ended[0] == run_id

    def test_what_cannot_be_ended_fails_the_attempt(self, bench: Bench) -> None:
        job_id = ran(bench, lambda job: 1 / 0)
        run_id = run_of(bench, job_id).id
        bench.runs.start("work", run_of(bench, job_id).inputs, run_id=run_id)
        bench.runs.alive.add(run_id)
        bench.around.left = "process 9 on there"
        bench.clock.seconds = 60.0
        bench.worker().work(once=True)

        assert "process 9 on there" in str(bench.job(job_id).error)


def take_away(bench: Bench, job_id: str) -> None:
    bench.lost[job_id] = OWNER_GONE, "so it seems"
    bench.queueing.release_stale()
    del bench.lost[job_id]


class TestWhatIsTaken:
    def test_only_types_with_a_handler(self, bench: Bench) -> None:
        bench.handle("work", lambda job: None)
        other = bench.enqueue(kind="other")
        bench.enqueue()
        bench.worker().work(drain=True)

        assert bench.job(other).status == "pending"
        assert bench.job(other).attempts == 0

    def test_queues_take_turns(self, bench: Bench) -> None:
        order: list[str] = []
        bench.handle("work", lambda job: order.append(job.queue))
        for queue in ("memory", "memory", "memory", "summary", "summary"):
            bench.enqueue(queue)
        bench.worker(["memory", "summary"]).work(drain=True)

        assert order == ["memory", "summary", "memory", "summary", "memory"]

    def test_once_does_one(self, bench: Bench) -> None:
        bench.handle("work", lambda job: None)
        bench.enqueue()
        second = bench.enqueue()
        bench.worker().work(once=True)

        assert bench.events() == ["begun", "completed"]
        assert bench.job(second).status == "pending"

    def test_once_without_a_job_ends_at_once(self, bench: Bench) -> None:
        bench.handle("work", lambda job: None)
        bench.worker().work(once=True)

        assert (bench.events(), bench.clock.waits) == ([], [])

    def test_drain_leaves_what_is_for_later(self, bench: Bench) -> None:
        bench.handle("work", lambda job: None)
        later = bench.enqueue(available_us=bench.clock.now_us() + 3_600 * SECOND_US)
        bench.enqueue()
        bench.worker().work(drain=True)

        assert bench.job(later).status == "pending"
        assert bench.clock.waits == []

    def test_drain_does_not_wait_for_a_person(self, bench: Bench) -> None:
        bench.handle("work", lambda job: job.run.approval("send", {"to": "all"}))
        bench.enqueue()
        bench.worker().work(drain=True)

        assert bench.events() == ["begun", "released"]

    def test_drain_goes_on_after_a_budget(self, bench: Bench) -> None:
        def slices(job: JobContext) -> None:
            if job.run.epoch < 3:
                job.run.session.finish("partial", reason="x", reason_code="stopped_by_budget")

        job_id = ran(bench, slices)
        bench.worker().work(drain=True)

        assert bench.job(job_id).status == "completed"
        assert bench.job(job_id).attempts == 1

    def test_a_worker_sleeps_until_a_job_is_due(self, bench: Bench) -> None:
        bench.handle("work", lambda job: None)
        job_id = bench.enqueue(available_us=bench.clock.now_us() + SECOND_US // 2)
        worker = bench.worker()
        bench.clock.on_wait = lambda: None
        done = bench.handlers
        worker.work(once=True)
        first = bench.job(job_id).status
        bench.clock.on_wait = lambda: worker.stop() if bench.clock.seconds > 3 else None
        worker = bench.worker()
        worker.work()

        assert done is bench.handlers
        assert first == "pending"
        assert bench.clock.waits[0] == 0.5
        assert bench.job(job_id).status == "completed"

    def test_an_idle_worker_looks_as_often_as_its_queue_says(self) -> None:
        bench = Bench(QueueSettings("memory", poll_seconds=7.0))
        bench.handle("work", lambda job: None)
        worker = bench.worker()
        bench.clock.on_wait = worker.stop
        worker.work()

        assert bench.clock.waits == [7.0]


class TestThreads:
    def test_slots_do_jobs_side_by_side_and_none_twice(self, bench: Bench) -> None:
        both = threading.Barrier(2)
        done: list[str] = []

        def work(job: JobContext) -> None:
            both.wait()
            done.append(job.id)

        bench.handle("work", work)
        jobs = [bench.enqueue() for _ in range(6)]
        worker = bench.worker()
        slots = [
            threading.Thread(target=worker.work, args=(n,), kwargs={"drain": True}) for n in (0, 1)
        ]
        for slot in slots:
            slot.start()
        for slot in slots:
            slot.join()

        assert sorted(done) == sorted(jobs)
        assert worker.tally.completed == 6


class TestTrouble:
    def test_what_could_not_be_recorded_is_tried_again(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id = ""
        turn = bench.queueing.turn
        refusals = iter([False, True, True])

        def sometimes(*arguments: Any, **more: Any) -> Any:
            if next(refusals, False):
                raise StoreFullError("/store", "the disk is full")
            return turn(*arguments, **more)

        monkeypatch.setattr(bench.queueing, "turn", sometimes)
        bench.handle("work", lambda job: None)
        job_id = bench.enqueue()
        bench.worker().work(drain=True)

        assert bench.events() == ["begun", "error", "error", "completed"]
        assert bench.job(job_id).status == "completed"

    def test_a_failing_sweep_stops_nothing(self, bench: Bench) -> None:
        def sweep() -> None:
            raise StoreFullError("/store", "the disk is full")

        worker = bench.worker(sweep=sweep)
        worker.upkeep.sweep()
        worker.upkeep.sweep()  # it is tried again later

        assert bench.events() == ["error"]

    def test_sys_exit_fails_the_job_and_not_the_worker(self, bench: Bench) -> None:
        bench.handle("work", lambda job: exit_with(3))
        job_id = bench.enqueue()
        bench.worker().work(once=True)
        job = bench.job(job_id)

        assert (job.status, job.error, job.attempts) == ("pending", "SystemExit: 3", 1)

    def test_ctrl_c_gives_the_job_back_and_ends_the_worker(self, bench: Bench) -> None:
        def work(job: JobContext) -> None:
            raise KeyboardInterrupt

        bench.handle("work", work)
        job_id = bench.enqueue()
        with pytest.raises(KeyboardInterrupt):
            bench.worker().work()
        job = bench.job(job_id)

        assert (job.status, job.error, job.attempts) == ("pending", None, 0)

    def test_a_payload_that_its_model_refuses_kills_the_job(self, bench: Bench) -> None:
        from tachograph.domain.queue_errors import PayloadError

        def model(payload: Any) -> Any:
            raise PayloadError("work", "memory", "Document", "id: missing.")

        bench.handlers.add(Handler("work", lambda job: None, model=model))
        job_id = bench.enqueue(payload={})
        bench.worker().work(once=True)

        assert bench.job(job_id).status == "dead"


def exit_with(code: int) -> None:
    raise SystemExit(code)


class Children:
    """Processes that end as the test says."""

    def __init__(self, *ends: ChildEnd | OSError, within: Any = None) -> None:
        self.ends = list(ends)
        self.stopped: list[bool] = []
        self.within = within

    def command(self, hold: Any, session: Any, handler: Any, timeout_seconds: Any) -> Children:
        self.session = session
        return self

    def isolated(self, hold: Any, session: Any, handler: Any, timeout_seconds: Any) -> Children:
        self.session = session
        return self

    def run(self, on_started: Any) -> ChildEnd:
        on_started(41)
        if self.within is not None:
            self.within(self.session)
        end = self.ends.pop(0)
        if isinstance(end, OSError):
            raise end
        return end

    def stop(self, *, at_once: bool) -> None:
        self.stopped.append(at_once)

    def describe(self, pid: int) -> Any:
        return Owner("here", pid=pid)


def stop(worker: Worker) -> None:
    worker.stop()
    worker.stop_jobs()


def ended(code: int | None = 0, output: bytes = b"", **more: Any) -> Ended:
    return Ended(code, more.pop("signal", None), 0.1, output, len(output), **more)


def executed(bench: Bench, *ends: ChildEnd | OSError, within: Any = None) -> str:
    bench.children = Children(*ends, within=within)
    bench.handlers.add(Handler("work", command=["do-it"]))
    job_id = bench.enqueue()
    bench.worker().work(once=True)
    return job_id


class TestExecutables:
    def test_exit_code_0_is_judged(self, bench: Bench) -> None:
        job_id = executed(bench, ChildEnd(ended(), result={"rows": 3}))

        assert run_of(bench, job_id).outcome == "success_with_review"
        assert bench.queueing.repository.history(job_id)[-1][1]["result"] == {"rows": 3}

    def test_exit_code_0_is_no_success_when_it_said_otherwise(self, bench: Bench) -> None:
        from tachograph.domain.facts import Facts

        job_id = executed(
            bench,
            ChildEnd(ended()),
            within=lambda session: session.judge(Facts(inputs=9, outputs=0)),
        )

        assert bench.job(job_id).failing
        assert run_of(bench, job_id).outcome == "failed_semantic_empty"

    def test_its_output_is_kept_in_the_run(self, bench: Bench) -> None:
        job_id = executed(bench, ChildEnd(ended(output=b"line\n")))
        results = bench.runs.fields(run_of(bench, job_id).id, "step-completed")

        assert results[-1]["result"]["output"] == "line\n"

    @pytest.mark.parametrize(
        ("code", "status", "error"),
        [
            (3, "pending", "exit code 3: no such file"),
            (75, "pending", "exit code 75: no such file"),
            (65, "dead", "exit code 65: no such file"),
        ],
    )
    def test_other_exit_codes(self, bench: Bench, code: int, status: str, error: str) -> None:
        job_id = executed(bench, ChildEnd(ended(code, b"begin\nno such file\n")))
        job = bench.job(job_id)

        assert (job.status, job.error) == (status, error)

    def test_a_time_limit_is_a_failure(self, bench: Bench) -> None:
        job_id = executed(bench, ChildEnd(ended(None, signal=15, timed_out=True)))
        job = bench.job(job_id)

        assert job.failing
        assert job.code == "timeout"

    def test_one_that_is_not_there_is_a_failure(self, bench: Bench) -> None:
        job_id = executed(bench, FileNotFoundError(2, "No such file or directory"))

        assert bench.job(job_id).error == "do-it cannot be run: No such file or directory"
        assert run_of(bench, job_id).reason_code == "not_run"

    def test_one_that_was_stopped_gives_its_job_back(self, bench: Bench) -> None:
        worker = bench.worker()
        bench.children = Children(
            ChildEnd(ended(None, signal=15, asked=("SIGTERM",))),
            within=lambda session: stop(worker),
        )
        bench.handlers.add(Handler("work", command=["do-it"]))
        job_id = bench.enqueue()
        worker = bench.worker()
        worker.work()
        job = bench.job(job_id)

        assert bench.children.stopped == [False]
        assert (job.status, job.attempts, job.error) == ("pending", 0, None)
        assert run_of(bench, job_id).outcome == "partial"

    def test_one_whose_lease_is_lost_is_killed(self, bench: Bench) -> None:
        worker = bench.worker()

        def lose(session: Any) -> None:
            take_away(bench, job_id)
            worker.beat()

        bench.children = Children(ChildEnd(ended(None, signal=9)), within=lose)
        bench.handlers.add(Handler("work", command=["do-it"]))
        job_id = bench.enqueue()
        worker = bench.worker()
        worker.work(once=True)

        assert bench.children.stopped == [True]
        assert bench.topics(job_id)[-1] == "released"

    def test_who_does_the_work_is_recorded_first(self, bench: Bench) -> None:
        job_id = executed(bench, ChildEnd(ended()))

        assert run_of(bench, job_id).worker["pid"] == 41


class TestAHandlerWithATimeLimit:
    @pytest.fixture
    def bench(self) -> Bench:
        kind = JobType("work", timeout_seconds=5.0)
        bench = Bench(QueueSettings("memory", types={"work": kind}))
        bench.handle("work", lambda job: pytest.fail("called in the worker"))
        return bench

    def test_it_is_called_in_a_process(self, bench: Bench) -> None:
        bench.children = Children(ChildEnd(ended()), within=lambda session: session.finish())
        job_id = bench.enqueue()
        bench.worker().work(once=True)

        assert bench.job(job_id).status == "completed"

    def test_what_it_raised_counts(self, bench: Bench) -> None:
        said = Said("RateLimitExceededError: 429", "rate_limit_exceeded", terminal=True)
        bench.children = Children(
            ChildEnd(ended(1), said=said),
            within=lambda session: session.finish("failed", reason="raised"),
        )
        job_id = bench.enqueue()
        bench.worker().work(once=True)

        assert (bench.job(job_id).status, bench.job(job_id).error) == ("dead", said.error)

    @pytest.mark.parametrize(
        ("end", "code"),
        [
            (ended(None, signal=15, timed_out=True), "timeout"),
            (ended(None, signal=9), "killed"),
            (ended(0), "exit_code"),
        ],
    )
    def test_one_that_ended_without_a_word_failed(
        self, bench: Bench, end: Ended, code: str
    ) -> None:
        bench.children = Children(ChildEnd(end))
        job_id = bench.enqueue()
        bench.worker().work(once=True)

        assert (bench.job(job_id).failing, bench.job(job_id).code) == (True, code)
        assert run_of(bench, job_id).outcome == "failed"
