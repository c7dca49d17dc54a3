"""Queues from Python: what is enqueued, who gets it, and how a lease ends."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import tachograph
from tachograph import api, queue_leases
from tachograph.domain.errors import InvalidValueError, ProjectFileError, UnstorableValueError
from tachograph.domain.queue_errors import (
    LeaseLostError,
    PayloadError,
    RateLimitExceededError,
    RetryLaterError,
    UnknownQueueError,
)
from tachograph.infra.named_objects import load
from tachograph.queue_api import Queue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tachograph.domain.queued_job import QueuedJob

SECOND = 1_000_000
DECLARED = """
[queues.memory]
per_key = 1
lease = "10s"
backoff = { base = "1m", cap = "1h", jitter = 0 }

[queues.memory.types.mail]
model = "api_models:Mail"
max_attempts = 2
"""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time of everything that asks for it, in microseconds since 1970."""
    time_us = [1_700_000_000_000_000]
    monkeypatch.setattr("tachograph.infra.clock.now_us", lambda: time_us[0])
    return time_us


@pytest.fixture
def memory(
    store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[int]
) -> Iterator[Queue]:
    """A declared queue of a new store."""
    (tmp_path / "tachograph.toml").write_text(DECLARED)
    (tmp_path / "api_models.py").write_text(
        "from pydantic import BaseModel\n\nclass Mail(BaseModel):\n    to: str\n"
    )
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield tachograph.queue("memory")
    sys.path[:] = path
    sys.modules.pop("api_models", None)
    api._close_all()


def job(queue: Queue, job_id: str) -> QueuedJob:
    """Return a job as its events have left it."""
    return queue._queues().get(job_id)


def take(queue: Queue) -> str | None:
    """Do the next job, and name it."""
    with queue.lease() as leased:
        return None if leased is None else leased.id


# Unique keys.


def test_spec_10_case_1_a_key_is_taken_while_its_job_waits_or_is_leased(memory: Queue) -> None:
    first = memory.enqueue("a", key="k")
    again = memory.enqueue("b", key="k")
    with memory.lease() as leased:
        assert leased is not None
        while_leased = memory.enqueue("a", key="k")
    after = memory.enqueue("a", key="k")

    assert first.created
    assert (again.job_id, again.created) == (first.job_id, False)
    assert (while_leased.job_id, while_leased.created) == (first.job_id, False)
    assert after.created
    assert after.job_id != first.job_id


def test_a_key_of_another_queue_is_another_key(store_environment: Path) -> None:
    queues = [tachograph.queue("memory"), tachograph.queue("summary")]
    made = [each.enqueue("a", key="k").created for each in queues]
    api._close_all()

    assert made == [True, True]


@pytest.mark.parametrize("window", [timedelta(hours=1), 3600, 3600.0])
def test_a_key_stays_taken_for_its_window(memory: Queue, clock: list[int], window: Any) -> None:
    first = memory.enqueue("a", key="k", key_window=window)
    clock[0] += 60 * SECOND
    take(memory)
    clock[0] += 3_599 * SECOND
    within = memory.enqueue("a", key="k")
    clock[0] += 2 * SECOND
    after = memory.enqueue("a", key="k")

    assert (within.job_id, within.created) == (first.job_id, False)
    assert after.created


# Order and time.


def test_higher_priorities_come_first_and_then_the_oldest(memory: Queue) -> None:
    jobs = memory.enqueue_many({"type": "a", "priority": priority} for priority in (0, 5, 0, -1, 5))
    order = [1, 4, 0, 2, 3]

    assert [take(memory) for _ in range(6)] == [*(jobs[place].job_id for place in order), None]


def test_a_scheduled_job_is_taken_when_its_time_has_come(memory: Queue, clock: list[int]) -> None:
    at = datetime.fromtimestamp(clock[0] / SECOND, UTC) + timedelta(minutes=5)
    waits = memory.enqueue("a", at=at)
    clock[0] += 299 * SECOND
    early = take(memory)
    clock[0] += SECOND

    assert early is None
    assert take(memory) == waits.job_id


def test_times_are_exact_and_local_without_a_zone(memory: Queue, clock: list[int]) -> None:
    local = datetime(2030, 5, 17, 12, 30, 15, 123_457)  # noqa: DTZ001  # that is the point
    from_now = memory.enqueue("a", at=timedelta(minutes=3))
    jobs = [memory.enqueue("a", at=at) for at in (local, local.astimezone(UTC))]
    times = [job(memory, each.job_id).available_us for each in jobs]

    assert times[0] == times[1]
    assert times[0] is not None
    assert times[0] % SECOND == 123_457
    assert job(memory, from_now.job_id).available_us == clock[0] + 180 * SECOND


def test_one_concurrency_key_is_at_work_once(memory: Queue) -> None:
    memory.enqueue_many({"type": "a", "concurrency_key": "host"} for _ in range(2))
    other = memory.enqueue("a")
    with memory.lease() as first:
        assert first is not None
        assert take(memory) == other.job_id
        assert take(memory) is None

    assert take(memory) is not None


def test_types_bound_what_is_taken(memory: Queue) -> None:
    memory.enqueue("a")
    wanted = memory.enqueue("b")
    with memory.lease(types=["b"]) as leased:
        assert leased is not None
        assert (leased.id, leased.type) == (wanted.job_id, "b")


# Payloads.


def test_a_payload_is_given_as_its_model_says(memory: Queue) -> None:
    memory.enqueue("mail", {"to": "ada"})
    with memory.lease() as leased:
        assert leased is not None
        assert leased.payload.to == "ada"
        assert type(leased.payload).__name__ == "Mail"
        assert (leased.attempt, leased.max_attempts, leased.epoch) == (1, 2, 1)


def test_an_instance_of_a_model_is_a_payload(memory: Queue) -> None:
    Mail = load("api_models:Mail", ".")  # noqa: N806  # a class
    memory.enqueue("mail", Mail(to="mira"))
    with memory.lease() as leased:
        assert leased is not None
        assert leased.payload == Mail(to="mira")


def test_a_payload_that_the_model_refuses_is_not_enqueued(memory: Queue) -> None:
    with pytest.raises(PayloadError, match="refused by api_models:Mail: to: Field required"):
        memory.enqueue("mail", {})

    assert take(memory) is None


def test_a_payload_that_the_model_takes_no_more_leaves_a_dead_job(
    memory: Queue, tmp_path: Path
) -> None:
    made = memory.enqueue("old", {"too": "ada"})
    text = (tmp_path / "tachograph.toml").read_text()
    (tmp_path / "tachograph.toml").write_text(text.replace("types.mail", "types.old"))
    changed = tachograph.queue("memory")
    with pytest.raises(PayloadError), changed.lease() as leased:
        assert leased is not None
        leased.payload  # noqa: B018

    assert job(memory, made.job_id).status == "dead"
    assert "PayloadError" in (job(memory, made.job_id).error or "")


# Many at once.


def test_many_are_checked_before_the_first_is_recorded(memory: Queue) -> None:
    jobs: list[dict[str, Any]] = [{"type": "a"} for _ in range(600)]
    jobs.append({"type": "mail", "payload": {}})
    with pytest.raises(PayloadError) as caught:
        memory.enqueue_many(jobs)

    assert caught.value.__notes__ == ["It is about job 601 of enqueue_many; none was enqueued."]
    assert take(memory) is None


def test_what_cannot_be_stored_is_told_before_the_first_is_recorded(memory: Queue) -> None:
    jobs: list[dict[str, Any]] = [{"type": "a"} for _ in range(600)]
    jobs.append({"type": "a", "payload": object()})
    with pytest.raises(UnstorableValueError) as caught:
        memory.enqueue_many(jobs)

    assert caught.value.__notes__ == ["It is about job 601 of enqueue_many; none was enqueued."]
    assert take(memory) is None


def test_many_of_one_key_are_one_job(memory: Queue) -> None:
    made = memory.enqueue_many({"type": "a", "key": "k"} for _ in range(3))

    assert [each.created for each in made] == [True, False, False]
    assert len({each.job_id for each in made}) == 1


def test_none_is_none(memory: Queue, store_environment: Path) -> None:
    assert memory.enqueue_many([]) == []
    assert not store_environment.exists()


@pytest.mark.parametrize("wrong", [{"typ": "a"}, {"payload": 3}, {"type": 3}, "a"])
def test_what_is_no_job_is_refused(memory: Queue, wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        memory.enqueue_many([{"type": "a"}, wrong])

    assert take(memory) is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"priority": 1.5}, "priority is 1.5"),
        ({"priority": 2_000_000}, "priority is 2000000"),
        ({"key": " "}, "key is ' '"),
        ({"key_window": 5}, "name a key too"),
        ({"key": "k", "key_window": -1}, "key window is -1"),
        ({"key": "k", "key_window": True}, "key window is True"),
        ({"at": 5}, "give a datetime, or a timedelta from now"),
        ({"at": timedelta(seconds=-1)}, "give a time from now on"),
        ({"max_attempts": 0}, "max attempts is 0"),
        ({"max_attempts": 4}, "queue 'memory' allows 3: raise its max_attempts"),
        ({"concurrency_key": ""}, "concurrency key is ''"),
    ],
)
def test_what_makes_no_sense_is_refused_before_there_is_a_store(
    memory: Queue, store_environment: Path, said: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidValueError) as caught:
        memory.enqueue("a", **said)

    assert words in str(caught.value)
    assert not store_environment.exists()


def test_an_unknown_queue_is_refused_with_a_near_one(store_environment: Path) -> None:
    with pytest.raises(UnknownQueueError, match="Did you mean 'memory'"):
        tachograph.queue("memry")


def test_a_file_that_is_named_counts(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("[queues.mail]\nmax_attempts = 7\n")
    (tmp_path / "broken.toml").write_text("[queues.mail]\nmax_attempts = 0\n")
    found = tachograph.queue("mail", store=tmp_path / "s", config=tmp_path / "other.toml")

    assert found.settings.max_attempts == 7
    with pytest.raises(ProjectFileError):
        tachograph.queue("mail", config=tmp_path / "broken.toml")


def test_the_status_counts_each_job_once(memory: Queue, clock: list[int]) -> None:
    memory.enqueue("a", max_attempts=1)
    with pytest.raises(ValueError, match="boom"), memory.lease():
        raise ValueError("boom")
    memory.enqueue_many([{"type": "a"}, {"type": "a"}, {"type": "a", "at": timedelta(hours=1)}])
    take(memory)
    clock[0] += 30 * SECOND
    found = memory.status()
    states = ("pending", "leased", "completed", "failed", "dead", "cancelled", "scheduled")

    assert [found[state] for state in states] == [1, 0, 1, 0, 1, 0, 1]
    assert (found["oldestAgeSec"], found["lastError"]) == (30, "ValueError: boom")


# How a lease ends.


def test_leaving_the_block_completes_the_job_with_its_result(memory: Queue) -> None:
    made = memory.enqueue("a")
    with memory.lease() as leased:
        assert leased is not None
        leased.result = {"kept": 3}
    events = memory._queues().repository.history(made.job_id)

    assert job(memory, made.job_id).status == "completed"
    assert events[-1][1]["result"] == {"kept": 3}


def test_nothing_due_is_none_and_ends_nothing(memory: Queue) -> None:
    with memory.lease() as leased:
        assert leased is None


def test_an_exception_fails_the_attempt_and_goes_on(memory: Queue, clock: list[int]) -> None:
    made = memory.enqueue("a")
    with pytest.raises(ValueError, match="boom"), memory.lease():
        raise ValueError("boom")
    found = job(memory, made.job_id)

    assert (found.status, found.error, found.code) == ("pending", "ValueError: boom", "exception")
    assert found.available_us == clock[0] + 60 * SECOND
    assert take(memory) is None


def test_the_last_attempt_that_fails_leaves_a_dead_job(memory: Queue, clock: list[int]) -> None:
    made = memory.enqueue("a", max_attempts=2)
    for _ in range(2):
        with pytest.raises(ValueError), memory.lease():
            raise ValueError
        clock[0] += 3_600 * SECOND

    assert job(memory, made.job_id).status == "dead"
    assert job(memory, made.job_id).error == "ValueError"


def test_a_terminal_error_leaves_a_dead_job_at_once(memory: Queue) -> None:
    made = memory.enqueue("a")
    with pytest.raises(RateLimitExceededError), memory.lease():
        raise RateLimitExceededError("the provider refuses")
    found = job(memory, made.job_id)

    assert (found.status, found.attempts) == ("dead", 1)
    failed = memory._queues().repository.history(made.job_id)[-2][1]
    assert (failed["code"], failed["terminal"]) == ("rate_limit_exceeded", True)


@pytest.mark.parametrize(("error", "seconds"), [(RetryLaterError(90), 90), (RetryLaterError(), 60)])
def test_later_is_when_the_job_said_or_after_the_backoff(
    memory: Queue, clock: list[int], error: RetryLaterError, seconds: int
) -> None:
    made = memory.enqueue("a")
    with pytest.raises(RetryLaterError), memory.lease():
        raise error

    assert job(memory, made.job_id).available_us == clock[0] + seconds * SECOND


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_who_is_stopped_gives_the_job_back_and_no_attempt_counts(
    memory: Queue, stop: type[BaseException]
) -> None:
    made = memory.enqueue("a")
    with pytest.raises(stop), memory.lease():
        raise stop
    found = job(memory, made.job_id)

    assert (found.status, found.attempts, found.available_us) == ("pending", 0, None)


def test_a_block_may_end_its_job_itself(memory: Queue, clock: list[int]) -> None:
    done, failed, back = (memory.enqueue("a").job_id for _ in range(3))
    with memory.lease() as leased:
        assert leased is not None
        leased.complete(5)
    with memory.lease() as leased:
        assert leased is not None
        leased.fail("no", code="mine", retry_in=timedelta(seconds=7))
    with memory.lease() as leased:
        assert leased is not None
        leased.release("not now")

    assert job(memory, done).status == "completed"
    assert job(memory, failed).code == "mine"
    assert job(memory, failed).available_us == clock[0] + 7 * SECOND
    assert (job(memory, back).status, job(memory, back).attempts) == ("pending", 0)


def test_g5_who_has_lost_the_lease_completes_nothing(memory: Queue) -> None:
    made = memory.enqueue("a")
    with pytest.raises(LeaseLostError, match=f"Job {made.job_id} is not leased to epoch 1"):
        with memory.lease() as leased:
            assert leased is not None
            memory._queues().change([made.job_id], lambda job, why: job.cancel(why, "so"))
            with pytest.raises(LeaseLostError):
                leased.heartbeat()

    assert job(memory, made.job_id).status == "cancelled"


def test_an_error_of_the_block_is_not_hidden_by_a_lost_lease(memory: Queue) -> None:
    made = memory.enqueue("a")
    with pytest.raises(ValueError, match="boom") as caught, memory.lease():
        memory._queues().change([made.job_id], lambda job, why: job.cancel(why, "so"))
        raise ValueError("boom")

    assert "is not leased to epoch 1 any more" in caught.value.__notes__[0]


def test_the_lease_is_kept_up_while_the_block_lasts(
    memory: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Any] = []

    class Noted:
        def __init__(self, beat: Any, seconds: float) -> None:
            kept.append(seconds)
            self.beat = beat

        def start(self) -> None:
            self.beat()
            kept.append("started")

        def stop(self) -> None:
            kept.append("stopped")

    monkeypatch.setattr(queue_leases, "Heartbeat", Noted)
    memory.enqueue("a")
    take(memory)

    assert kept == [pytest.approx(10 / 3), "started", "stopped"]


DIES = """
import os, tachograph
with tachograph.queue("memory").lease() as job:
    print(job.id, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_g7_the_job_of_a_process_that_was_killed_is_given_to_the_next(memory: Queue) -> None:
    made = memory.enqueue("a")
    done = subprocess.run(
        [sys.executable, "-c", DIES], capture_output=True, text=True, env={**os.environ}
    )
    with memory.lease() as leased:
        assert leased is not None
        assert (leased.id, leased.attempt, leased.epoch) == (made.job_id, 2, 2)

    assert (done.stdout.strip(), done.returncode) == (made.job_id, -9)
    assert job(memory, made.job_id).status == "completed"


ENQUEUES = """
import sys, tachograph
queue = tachograph.queue("memory")
sys.stdin.read()
made = [queue.enqueue("a", key=f"k{number}") for number in range(50)]
print(*(each.job_id for each in made if each.created))
print(*(each.job_id for each in made))
"""


def test_processes_that_enqueue_the_same_keys_at_once_make_one_job_of_each(
    store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", ENQUEUES],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for each in started:
        assert each.stdin is not None
        each.stdin.close()
    created, named = [], []
    for each in started:
        assert each.stdout is not None
        made, held = each.stdout.read().splitlines()
        created += made.split()
        named.append(held.split())
        each.stdout.close()
        assert each.wait() == 0

    assert len(created) == len(set(created)) == 50
    assert named[0] == named[1] == named[2]
    assert set(named[0]) == set(created)
