"""How queues are, from the events of their jobs alone (G8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from job_bench import NOON_US, OWNER, SECOND_US, Jobs, made_anew, us

from tachograph import portions, projecting
from tachograph.domain.bodies import ERASED
from tachograph.domain.errors import StoreCorruptError
from tachograph.domain.queued_job import FIELDS, QueuedJob
from tachograph.domain.records import NewRecord
from tachograph.infra.lmdb_views import LMDBViews
from tachograph.portions import ProjectionStoppedError
from tachograph.projections import queue_health
from tachograph.projections.queue_health import QueueHealth, matters_us, state_of
from tachograph.projections.queue_traffic import KEPT, MINUTE, Traffic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["memory", "lmdb"])
def jobs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Jobs]:
    bench = Jobs()
    if request.param == "lmdb":
        bench.views = LMDBViews(str(tmp_path / "views"), bench.codec)
    yield bench
    bench.catch_up()
    assert bench.content() == made_anew(bench)  # after every test (G8)
    bench.views.close()  # type: ignore[attr-defined]


# In which state a job is counted.


def test_an_empty_log_has_no_queue(jobs: Jobs) -> None:
    assert jobs.look(lambda view: view.names()) == []
    assert jobs.counts() == {}


def test_the_names_of_queues_come_in_order(jobs: Jobs) -> None:
    for queue in ("summary", "memory", "other", "summary"):
        jobs.add(queue=queue)

    assert jobs.look(lambda view: view.names()) == ["memory", "other", "summary"]


def test_a_job_that_was_enqueued_is_pending(jobs: Jobs) -> None:
    jobs.add()

    assert jobs.counts() == {"pending": 1}
    assert jobs.counts(queue="summary") == {}


def test_a_job_at_work_is_counted(jobs: Jobs) -> None:
    """The original's blind spot: what it was doing appeared in no counter."""
    jobs.lease(jobs.add(), 1)

    assert jobs.counts() == {"leased": 1}


def test_a_cancelled_job_is_counted(jobs: Jobs) -> None:
    """The other one."""
    jobs.do(jobs.add(), "cancel", 1, "not wanted")

    assert jobs.counts() == {"cancelled": 1}


def test_a_job_that_failed_and_waits_for_another_attempt_is_failed(jobs: Jobs) -> None:
    job_id = jobs.add()
    jobs.lease(job_id, 1)
    jobs.fail(job_id, 2, retry_us=us(60))

    assert jobs.counts(3) == jobs.counts(99) == {"failed": 1}

    jobs.lease(job_id, 60)

    assert jobs.counts(61) == {"leased": 1}


def test_a_job_that_was_given_back_is_pending(jobs: Jobs) -> None:
    job_id = jobs.add()
    jobs.lease(job_id, 1)
    jobs.do(job_id, "release", 2, "stopped", "going home")

    assert jobs.counts(3) == {"pending": 1}


def test_a_job_that_is_done_is_completed(jobs: Jobs) -> None:
    jobs.done()

    assert jobs.counts() == {"completed": 1}


def test_a_job_without_another_attempt_is_dead(jobs: Jobs) -> None:
    jobs.dead()

    assert jobs.counts() == {"dead": 1}


def test_a_requeued_job_is_pending_and_no_longer_dead(jobs: Jobs) -> None:
    job_id = jobs.dead()
    jobs.do(job_id, "requeue", 5, "mended")

    assert jobs.counts() == {"pending": 1}


def test_a_scheduled_job_is_pending_once_it_is_due(jobs: Jobs) -> None:
    jobs.add(0, available_us=us(100))

    assert jobs.counts(0) == jobs.counts(99.999999) == {"scheduled": 1}
    assert jobs.counts(100) == jobs.counts(1e6) == {"pending": 1}


def test_a_job_for_a_time_that_was_over_is_pending_at_once(jobs: Jobs) -> None:
    jobs.add(10, available_us=us(5))

    assert jobs.counts(10) == {"pending": 1}
    assert jobs.counts(0) == {"pending": 1}  # of a clock that is behind


@pytest.mark.parametrize("now", [0, 1, 66.9, 67.2, 4000, 30_000, 9_000_000, 3e9, -1e9])
def test_jobs_that_are_not_due_are_counted_at_any_time(jobs: Jobs, now: float) -> None:
    due = [0.5, 1, 1.000001, 60, 67, 68, 4000, 4000, 20_000, 4e6, 5e6, 9_000_001, 2e9]
    for seconds in due:
        jobs.add(-10, available_us=us(seconds))
    later = sum(seconds > now for seconds in due)

    expected = {"pending": len(due) - later, "scheduled": later}

    assert jobs.counts(now) == {name: number for name, number in expected.items() if number}


@pytest.mark.parametrize("now", [99.5, 100, 100.5])
def test_of_many_jobs_due_at_one_moment_few_are_read(
    jobs: Jobs, now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(50):
        jobs.add(0, available_us=us(100))
    jobs.catch_up()
    read = []
    with jobs.views.read() as view:
        scan = type(view._tables).scan  # type: ignore[attr-defined]

        def counted(self: Any, *args: Any, **options: Any) -> Iterator[Any]:
            for found in scan(self, *args, **options):
                read.append(found)
                yield found

        monkeypatch.setattr(type(view._tables), "scan", counted)  # type: ignore[attr-defined]
        counts = view.queues.counts("memory", us(now))

    assert counts.scheduled == (0 if now >= 100 else 50)
    assert len(read) < 10


def test_a_job_cancelled_before_its_time_is_not_scheduled_any_more(jobs: Jobs) -> None:
    job_id = jobs.add(0, available_us=us(100))
    jobs.catch_up()
    jobs.do(job_id, "cancel", 5, "not wanted")

    assert jobs.counts(6) == {"cancelled": 1}
    assert not [row for row in jobs.content() if row[0] == "queue_due"]

    jobs.do(job_id, "restore", 7, "wanted")

    assert jobs.counts(8) == {"scheduled": 1}


def test_a_pruned_job_is_in_no_counter_and_comes_back_when_it_is_restored(jobs: Jobs) -> None:
    job_id = jobs.dead(0, "disk full")
    jobs.prune(job_id, 100)

    assert jobs.counts() == {}
    assert jobs.ids() == jobs.ids("memory", "dead") == []
    assert jobs.ids(status="pruned") == [job_id]
    assert jobs.look(lambda view: view.last_error("memory")) is None

    jobs.do(job_id, "restore", 200, "by mistake")

    assert jobs.counts() == {"dead": 1}
    assert jobs.ids("memory", "dead") == [job_id]
    assert jobs.look(lambda view: view.last_error("memory")) == "disk full"
    assert jobs.kept(job_id).ended_us == us(0)


def test_a_job_is_in_the_state_that_it_is_counted_in(jobs: Jobs) -> None:
    waits, later, failed = jobs.add(), jobs.add(available_us=us(50)), jobs.add()
    jobs.lease(failed, 1)
    jobs.fail(failed, 2)
    pruned = jobs.done()
    jobs.prune(pruned, 3)
    ids = [waits, later, failed, jobs.done(), jobs.dead(), pruned]
    found = [jobs.kept(job_id) for job_id in ids]

    assert [state_of(job, us(10)) for job in found] == [
        *("pending", "scheduled", "failed", "completed", "dead", "pruned")
    ]
    assert state_of(found[1], us(50)) == "pending"


# What is kept of a job.


def test_a_job_comes_back_as_its_events_left_it(jobs: Jobs) -> None:
    job_id = jobs.add(key="k", concurrency_key="c", priority=5, available_us=us(9))
    jobs.lease(job_id, 10)

    assert jobs.kept(job_id).to_row() == jobs.queues.get(job_id).to_row()  # type: ignore[union-attr]


def test_no_job_is_found_by_what_is_no_id(jobs: Jobs) -> None:
    jobs.add()

    for text in ("", "x", "0190", "not-an-id", str(uuid4())):
        assert jobs.found(text) is None


def test_a_long_error_is_cut(jobs: Jobs) -> None:
    job_id = jobs.dead(error="x" * 9999)

    assert len(jobs.kept(job_id).error or "") == 500


def test_a_large_owner_is_left_out(jobs: Jobs) -> None:
    job_id = jobs.add()
    jobs.do(job_id, "lease", 1, {**OWNER, "command": "x" * 9999}, 300.0)

    assert jobs.kept(job_id).owner is None


def test_ids_are_found_by_their_beginning(jobs: Jobs) -> None:
    ids = [jobs.add() for _ in range(20)]

    def find(prefix: str, limit: int = 99) -> list[str]:
        return jobs.look(lambda view: view.find(prefix, limit))  # type: ignore[no-any-return]

    assert find("") == ids
    assert find("0190", 3) == ids[:3]
    assert find(ids[4]) == find(ids[4].upper()) == [ids[4]]
    assert find(ids[4][:8]) == [name for name in ids if name.startswith(ids[4][:8])]
    assert find(ids[4].replace("-", "")[:30]) == [ids[4]]
    assert find("01-90") == find("0190x") == find("0190" * 20) == find("7") == []


# Lists of jobs.


def test_jobs_come_in_the_order_of_the_event_that_matters(jobs: Jobs) -> None:
    """Dead ones by their death, whenever they were enqueued."""
    late, early = jobs.add(0), jobs.add(1)
    for job_id, seconds in ((early, 10), (late, 20)):
        jobs.lease(job_id, seconds)
        jobs.fail(job_id, seconds + 1, terminal=True)

    assert jobs.ids("memory", "dead") == [early, late]
    assert jobs.ids("memory", "dead", reverse=True) == [late, early]
    assert jobs.ids("memory", "dead", older_than_us=us(21)) == [early]
    assert jobs.ids("memory", "dead", older_than_us=us(11)) == []
    assert jobs.ids("memory", "dead", older_than_us=2**70) == [early, late]


def test_lists_of_several_queues_and_states_are_one_list(jobs: Jobs) -> None:
    one, other = jobs.done(5, queue="summary"), jobs.add(3)
    later, failed = jobs.add(0, available_us=us(99)), jobs.add(1)
    jobs.lease(failed, 2)
    jobs.fail(failed, 4)

    assert jobs.ids() == [other, failed, one, later]
    assert jobs.ids(reverse=True) == [later, one, failed, other]
    assert jobs.ids("memory") == jobs.ids(status="pending") == [other, failed, later]
    assert jobs.ids(status="waiting") == [other]
    assert jobs.ids(status="scheduled") == [later]
    assert jobs.ids(status="failed") == [failed]
    assert jobs.ids("nowhere") == []


def test_a_list_is_read_no_further_than_it_is_taken(jobs: Jobs) -> None:
    ids = [jobs.dead(number) for number in range(9)]
    jobs.catch_up()
    with jobs.views.read() as view:
        found = view.queues.jobs("memory", "dead")

        assert [next(found).id, next(found).id] == ids[:2]


def test_the_age_of_a_job_is_that_of_its_state() -> None:
    job = QueuedJob()
    job.waiting_us, job.leased_us, job.ended_us = 1, 2, 3

    def of(status: str) -> int:
        job.status = status
        return matters_us(job)

    assert [of("pending"), of("leased"), of("dead")] == [1, 2, 3]


# How long jobs wait.


def since(jobs: Jobs) -> Any:
    found = jobs.look(lambda view: view.waits_since_us("memory"))
    return None if found is None else (found - NOON_US) / SECOND_US


def test_nothing_waits_in_an_empty_queue(jobs: Jobs) -> None:
    jobs.done()

    assert since(jobs) is None


def test_a_job_at_work_counts_from_when_it_began_to_wait(jobs: Jobs) -> None:
    jobs.lease(jobs.add(10), 50)
    jobs.add(20)

    assert since(jobs) == 10


def test_a_scheduled_job_waits_from_when_it_is_due(jobs: Jobs) -> None:
    """Not from when it was enqueued: a job for tonight is not late all day."""
    jobs.add(0, available_us=us(500))

    assert since(jobs) == 500


def test_a_failed_job_waits_from_its_next_attempt(jobs: Jobs) -> None:
    job_id = jobs.add(0)
    jobs.lease(job_id, 1)
    jobs.fail(job_id, 2, retry_us=us(30))

    assert since(jobs) == 30


# The last error.


def error_of(jobs: Jobs, queue: str = "memory") -> Any:
    return jobs.look(lambda view: view.last_error(queue))


def test_the_last_error_is_the_latest_of_pending_leased_and_dead_jobs(jobs: Jobs) -> None:
    jobs.dead(10, "first")
    job_id = jobs.add(0)
    jobs.lease(job_id, 11)
    jobs.fail(job_id, 20, "second", retry_us=us(21))

    assert error_of(jobs) == "second"
    assert error_of(jobs, "summary") is None

    jobs.lease(job_id, 30)

    assert error_of(jobs) == "second"

    jobs.complete(job_id, 40)

    assert error_of(jobs) == "first"


def test_a_cancelled_or_requeued_job_has_no_last_error(jobs: Jobs) -> None:
    jobs.do(jobs.dead(10, "one"), "cancel", 11, "known")
    jobs.do(jobs.dead(12, "two"), "requeue", 13, "mended")

    assert error_of(jobs) is None


# Rates and latencies.


def traffic(jobs: Jobs, start: float, end: float) -> Traffic:
    return jobs.look(lambda view: view.traffic("memory", us(start), us(end)))  # type: ignore[no-any-return]


def test_what_happened_is_counted_in_its_minute(jobs: Jobs) -> None:
    job_id = jobs.add(0)
    jobs.lease(job_id, 30)
    jobs.fail(job_id, 90)
    jobs.lease(job_id, 100)
    jobs.do(job_id, "release", 110, "owner_gone", "killed")
    jobs.lease(job_id, 120)
    jobs.do(job_id, "release", 130, "stopped", "going home")
    jobs.lease(job_id, 140)
    jobs.fail(job_id, 150)
    jobs.done(200)

    all_of_it = traffic(jobs, 0, 300)

    assert [all_of_it.enqueued, all_of_it.leased, all_of_it.completed] == [2, 5, 1]
    assert [all_of_it.failed, all_of_it.died] == [3, 1]
    assert traffic(jobs, 0, 59).leased == 1
    assert traffic(jobs, 180, 300).enqueued == 1
    assert traffic(jobs, 1000, 2000) == Traffic()


def test_waiting_and_working_times_are_counted_with_their_minute(jobs: Jobs) -> None:
    job_id = jobs.add(0, available_us=us(100))
    jobs.lease(job_id, 130)
    jobs.complete(job_id, 131)
    found = traffic(jobs, 0, 300)

    assert found.waits == {queue_bucket(30): 1}
    assert found.works == {queue_bucket(1): 1}


def test_a_clock_that_is_behind_makes_no_time_negative(jobs: Jobs) -> None:
    job_id = jobs.add(0)
    jobs.lease(job_id, -5)
    jobs.complete(job_id, -9)
    found = traffic(jobs, -60, 60)

    assert (found.waits, found.works) == ({0: 1}, {0: 1})


def queue_bucket(seconds: float) -> int:
    from tachograph.projections.queue_traffic import bucket_of

    return bucket_of(round(seconds * SECOND_US))


@pytest.mark.parametrize("start", [0, 59, 3599, 3600, 3601, 7100])
@pytest.mark.parametrize("length", [0, 60, 3600, 3660, 86_400])
def test_a_span_is_summed_from_hours_and_minutes(jobs: Jobs, start: int, length: int) -> None:
    step = 1700
    for number in range(60):
        jobs.add(number * step)
    low, high = start // 60 * 60, (start + length) // 60 * 60 + 60
    expected = sum(low <= number * step < high for number in range(60))

    assert traffic(jobs, start, start + length).enqueued == expected


def test_the_newest_minutes_are_kept_and_a_wrong_clock_drops_few(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KEPT, MINUTE, 5)
    for number in range(20):
        jobs.add(number * 60)
        jobs.catch_up()
    jobs.add(10**9)  # far in the future
    jobs.add(0)  # and one whose minute was dropped
    minutes = [1 for table, key, _ in rows(jobs) if table == "queue_traffic" and key[16:17] == b"m"]

    assert len(minutes) == 5
    assert traffic(jobs, 16 * 60, 20 * 60).enqueued == 4


def rows(jobs: Jobs) -> list[tuple[str, bytes, bytes]]:
    jobs.catch_up()
    return jobs.content()


# Events that cannot be read, and events of others.


def test_a_job_whose_events_are_gone_is_not_shown(jobs: Jobs) -> None:
    job_id, other = jobs.dead(), jobs.add()
    jobs.catch_up()
    gone = {ERASED: True, "originator_version": 5, "originator_id": job_id, "time_us": 1}

    def fold(writer: Any) -> None:
        health = QueueHealth(writer.queues)
        health.fold("queue.job-requeued", gone, 99, job_id)
        health.fold("queue.job-leased", {"time_us": 1}, 100, job_id)
        health.fold("queue.job-cancelled", {"time_us": 1}, 101, str(uuid4()))
        health.fold("queue.job-enqueued", gone, 102, str(uuid4()))
        health.flush()

    jobs.views.update(fold)
    with jobs.views.read() as view:
        assert [job.id for job in view.queues.jobs()] == [other]
        assert view.queues.last_error("memory") is None
        assert view.queues.counts("memory", 0).dead == 0
        assert view.queues.job(job_id) is None
    jobs.views.discard()  # what was folded is in no log
    jobs.catch_up()


@pytest.mark.parametrize("caught_up", [False, True])
def test_a_job_that_was_erased_stops_nothing(jobs: Jobs, caught_up: bool) -> None:
    gone, other = jobs.dead(), jobs.add()
    if caught_up:
        jobs.catch_up()
    body = jobs.codec.pack({"status_before": "dead", "reason": "", "repair": None, "archive": ""})
    jobs.log.erase(NewRecord(UUID(gone), 5, "queue.job-pruned", us(9), body))
    if caught_up:
        jobs.views.discard()  # what they hold was erased

    assert jobs.queues.get(gone) is None
    assert [job.id for job in jobs.look(lambda view: list(view.jobs()))] == [other]
    assert jobs.counts() == {"pending": 1}
    assert jobs.look(lambda view: view.last_error("memory")) is None


def append(jobs: Jobs, topic: str, stream: Any, body: Any) -> None:
    jobs.log.append([NewRecord(stream, 1, topic, 1, jobs.codec.pack(body, ""))])


@pytest.mark.parametrize(
    ("topic", "stream", "reason"),
    [
        ("queue.job-teleported", UUID(int=5), "Unknown event type 'queue.job-teleported'"),
        ("queue.job-enqueued", "a-text", "the stream of a job is a UUID"),
        ("queue.job-enqueued", UUID(int=5), "KeyError"),
    ],
)
def test_an_event_that_cannot_be_read_stops_this_view_and_no_other(
    topic: str, stream: Any, reason: str
) -> None:
    jobs = Jobs()
    jobs.add()
    append(jobs, topic, stream, {})
    jobs.start(run_id="job-1")
    with pytest.raises(ProjectionStoppedError, match="'queue_health' stopped at position 2") as it:
        jobs.catch_up()

    assert reason in str(it.value)
    assert projecting.lag(jobs.log, jobs.views)["queue_health"] == jobs.log.head().position - 1
    assert projecting.lag(jobs.log, jobs.views)["run_summaries"] == 0
    with pytest.raises(ProjectionStoppedError):  # and again, with the others beyond it
        jobs.catch_up()


def test_a_view_of_runs_that_stopped_stops_no_queue() -> None:
    jobs = Jobs()
    append(jobs, "run.teleported", "run-1", {})
    jobs.add()
    with pytest.raises(ProjectionStoppedError, match="stopped at position 1"):
        jobs.catch_up()

    with jobs.views.read() as view:
        assert view.queues.names() == ["memory"]


def test_events_of_another_application_are_passed_over(jobs: Jobs) -> None:
    append(jobs, "queues.something", UUID(int=5), {})
    append(jobs, "queue", UUID(int=6), {})
    jobs.add()

    assert jobs.counts() == {"pending": 1}


def test_a_row_of_another_shape_is_said_to_be_damaged() -> None:
    jobs = Jobs()
    job_id = jobs.add()
    jobs.catch_up()

    def damage(writer: Any) -> None:
        for table in (b"queue_jobs", b"queue_traffic", b"queues"):
            for key, _ in list(writer._tables.scan(table)):
                writer._tables.put(table, key, jobs.codec.pack([1], ""))

    jobs.views.update(damage)
    with jobs.views.read() as view:
        for question in (
            lambda: view.queues.job(job_id),
            lambda: view.queues.traffic("memory", us(0), us(60)),
            lambda: view.queues.counts("memory", us(0)),
        ):
            with pytest.raises(StoreCorruptError, match="is odd"):
                question()

    assert jobs.counts() == {"pending": 1}  # they were made anew


# Whoever folds, in whatever portions (G8).

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("add", "add", "later", "lease", "lease", "complete", "fail", "fatal"),
                *("release", "requeue", "cancel", "prune", "restore"),
            ]
        ),
        st.integers(0, 5),
        st.integers(-30, 200),
    ),
    max_size=40,
)
COMMANDS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "lease": ("lease", (OWNER, 300.0), {}),
    "complete": ("complete", (), {}),
    "fail": ("fail", ("boom",), {"retry_us": us(150)}),
    "fatal": ("fail", ("fatal",), {"terminal": True}),
    "release": ("release", ("owner_gone", "killed"), {}),
    "requeue": ("requeue", ("mended",), {}),
    "cancel": ("cancel", ("not wanted",), {}),
    "prune": ("prune", ("old", "archive-1"), {}),
    "restore": ("restore", ("wanted",), {}),
}


def play(jobs: Jobs, steps: list[tuple[str, int, int]]) -> list[str]:
    """Let these things happen, as far as the rules allow; return the ids of all jobs."""
    from tachograph.domain.errors import TachographError

    ids: list[str] = []
    for name, number, seconds in steps:
        queue = ("memory", "summary")[number % 2]
        if name == "add":
            ids.append(jobs.add(seconds, queue))
        elif name == "later":
            ids.append(jobs.add(seconds, queue, available_us=us(seconds + number * 30)))
        elif ids:
            command, args, options = COMMANDS[name]
            try:
                jobs.do(ids[number % len(ids)], command, seconds, *args, **options)
            except TachographError:
                continue
    return ids


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(1, 7), st.integers(-50, 300))
def test_the_view_is_what_counting_all_jobs_gives(
    steps: list[tuple[str, int, int]], portion: int, now: int
) -> None:
    """Byte for byte the same in any portions, and no number is off."""
    jobs = Jobs()
    ids = play(jobs, steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portions, "CHUNK", portion)
        patch.setattr(portions, "CHUNKS", 2)
        jobs.catch_up()

    assert jobs.content() == made_anew(jobs)

    every = [job for job_id in ids if (job := jobs.queues.get(job_id)) is not None]
    for queue in ("memory", "summary"):
        here = [job for job in every if job.queue == queue]
        check_counts(jobs, queue, here, now)
        check_lists(jobs, queue, here)


def check_counts(jobs: Jobs, queue: str, here: list[QueuedJob], now: int) -> None:
    expected: dict[str, int] = {}
    for job in here:
        state = state_of(job, us(now))
        if state != "pruned":
            expected[state] = expected.get(state, 0) + 1

    assert jobs.counts(now, queue) == expected
    live = [job.waiting_us for job in here if job.live]
    assert jobs.look(lambda view: view.waits_since_us(queue)) == min(live, default=None)


def check_lists(jobs: Jobs, queue: str, here: list[QueuedJob]) -> None:
    for status in ("pending", "leased", "completed", "dead", "cancelled", "pruned"):
        expected = [(matters_us(job), job.id) for job in here if job.status == status]
        assert jobs.ids(queue, status) == [job_id for _, job_id in sorted(expected)]
    for job in here:
        assert jobs.kept(job.id).to_row() == job.to_row()
    failed = [
        (job.ended_us if job.status == "dead" else job.failed_us, job.id, job.error)
        for job in here
        if job.error is not None and job.status in ("pending", "leased", "dead")
    ]
    assert error_of(jobs, queue) == max(failed, default=(0, "", None))[2]


def test_a_check_of_the_views_compares_the_queues_too() -> None:
    jobs = Jobs()
    jobs.dead()

    assert projecting.check(jobs.log, jobs.codec, jobs.views) == []

    jobs.views.update(lambda rows: rows._tables.put(b"queue_order", b"odd", b""))  # type: ignore[attr-defined]

    assert [str(found) for found in projecting.check(jobs.log, jobs.codec, jobs.views)] == [
        "queue_order 6f6464: should not be there"
    ]


def test_every_field_of_a_job_is_in_its_row() -> None:
    """A job with other fields makes other rows: raise the version of the view then."""
    assert len(FIELDS) == 26


def test_the_lists_that_are_counted_leave_no_state_out() -> None:
    job = QueuedJob()
    for status in ("pending", "leased", "completed", "dead", "cancelled"):
        job.status = status

        assert queue_health.list_of(job) in queue_health.COUNTED
