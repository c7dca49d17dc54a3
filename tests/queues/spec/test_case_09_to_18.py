"""Acceptance cases 9 to 18: what a diagnosis of a whole store says. Each as a user asks for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here

from tachograph.domain.queue_selection import Selection
from tachograph.domain.queue_settings import SECOND_US
from tachograph.health.other_domains import provider_facts
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from queue_bench import Clock, QueueBench

    Diagnose = Callable[..., dict[str, Any]]


@pytest.fixture
def diagnose(capsys: pytest.CaptureFixture[str]) -> Diagnose:
    """Run `tacho maintenance diagnose`."""

    def run(*words: str) -> dict[str, Any]:
        done = here(capsys, "maintenance", "diagnose", "--json", *words)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return run


def queue_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return the domain of the queues."""
    (found,) = [each for each in document["domains"] if each["name"] == "queue"]
    return dict(found)


def waiting(bench: QueueBench, number: int, queue: str = "memory", **more: Any) -> list[str]:
    """Enqueue jobs."""
    wants = [Enqueue(queue, "ingest", None, **more) for _ in range(number)]
    return [each.job_id for each in bench.queueing.enqueue_many(wants)]


def test_case_10_51_that_wait(bench: QueueBench, diagnose: Diagnose) -> None:
    """Case 10: depth 51, score below .8; 50 are not too many."""
    waiting(bench, 50)
    at_it = queue_of(diagnose())
    waiting(bench, 1, "summary")
    beyond = queue_of(diagnose())

    assert (at_it["facts"]["depth"], at_it["score"], at_it["status"]) == (50, 1.0, "healthy")
    assert (beyond["facts"]["depth"], beyond["score"], beyond["status"]) == (51, 0.7, "degraded")


def test_case_10_the_dead_of_this_hour_and_of_an_earlier_one(
    bench: QueueBench, clock: Clock, diagnose: Diagnose
) -> None:
    """Case 10: 5 of 10 within the hour are a rate of .5; two hours later it is 0."""
    bench.make("completed", number=5)
    bench.make("dead", number=5)
    now = queue_of(diagnose())
    clock.pass_by(seconds=7200)
    later = queue_of(diagnose())

    assert (now["facts"]["deadRate"], now["status"]) == (0.5, "degraded")
    assert later["facts"]["deadRate"] == 0.0
    assert later["facts"]["queues"]["memory"]["dead"] == 5
    assert (later["score"], later["status"]) == (1.0, "healthy")


def test_case_11_every_type_counts(bench: QueueBench, diagnose: Diagnose) -> None:
    """Case 11 has no retired type to leave out here: no type is in a blind spot.

    The original left jobs of one type out of health, and took them all the same when it cancelled
    and pruned.
    """
    bench.make("dead", kind="extract")
    bench.make("completed", kind="extract")
    facts = queue_of(diagnose())["facts"]

    assert facts["deadRate"] == 0.5
    assert bench.repairing().requeue(Selection(), "seen, so repaired").affected == 1


@pytest.mark.parametrize(
    ("dead", "status"), [(50, "healthy"), (51, "degraded"), (275, "degraded"), (500, "unhealthy")]
)
@pytest.mark.parametrize("queue", ["memory", "summary"])
def test_case_12_a_backlog_of_dead_jobs(
    bench: QueueBench, clock: Clock, diagnose: Diagnose, queue: str, dead: int, status: str
) -> None:
    """Case 12: the status of the whole follows, though they died hours ago."""
    bench.dead(queue, dead)
    clock.pass_by(seconds=7200)
    found = diagnose()

    assert queue_of(found)["status"] == status
    assert found["composite"]["status"] == status
    assert found["composite"]["score"] > 0.8


def test_case_13_every_look_is_of_now(
    bench: QueueBench, capsys: pytest.CaptureFixture[str], diagnose: Diagnose
) -> None:
    """Case 13: the original kept its counts for 30 s; a repair by another process is seen too."""
    bench.dead("memory", 3)
    before = queue_of(diagnose())["facts"]["queues"]["memory"]
    done = here(capsys, "queue", "requeue", "--apply", "--reason", "mended")
    after = queue_of(diagnose())["facts"]["queues"]["memory"]

    assert done.returncode == 0
    assert (before["dead"], before["pending"], before["lastError"]) == (3, 0, "boom")
    assert (after["dead"], after["pending"], after["lastError"]) == (0, 3, None)


def test_case_17_one_unhealthy_domain(bench: QueueBench, clock: Clock, diagnose: Diagnose) -> None:
    """Case 17: the whole is unhealthy though its score is .75 or more."""
    bench.dead("summary", 500)
    clock.pass_by(seconds=7200)
    found = diagnose()

    assert found["composite"]["score"] >= 0.75
    assert found["composite"]["status"] == "unhealthy"
    assert {each["status"] for each in found["domains"] if each["name"] != "queue"} == {"healthy"}


def test_case_18_each_reason_is_told_and_none_when_all_is_clear(
    bench: QueueBench, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 18, by the command that stands in for `/health/ready`: 0, or 1 with every reason."""
    ready = here(capsys, "maintenance", "diagnose", "--fail-below", "healthy")
    bench.make("dead", number=1)
    waiting(bench, 51)
    clock.pass_by(seconds=301)
    busy = here(capsys, "maintenance", "diagnose", "--fail-below", "healthy")

    assert ready.returncode == 0
    assert busy.returncode == 1
    assert "queue.depth: 51 jobs wait, more than 50" in busy.stdout
    assert "of the jobs that ended in the last hour 1 are dead, more than 0.01" in busy.stdout
    assert "a job of memory has waited for 301 s, more than 300 s" in busy.stdout


def test_case_18_an_old_backlog_is_a_reason_too(
    bench: QueueBench, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trap: a dead backlog of more than an hour ago let readiness stand."""
    bench.dead("memory", 60)
    clock.pass_by(seconds=7200)

    assert here(capsys, "maintenance", "diagnose", "--fail-below", "degraded").returncode == 0
    assert here(capsys, "maintenance", "diagnose", "--fail-below", "healthy").returncode == 1


def test_case_16_8_of_10_are_healthy_whatever_was_before_the_window() -> None:
    """Case 16: an answer of as long ago as the window is not in it, to the microsecond."""
    good = [{"time_us": 10 * SECOND_US, "fault": None}] * 8
    bad = [{"time_us": 10 * SECOND_US, "fault": "provider", "error": "500"}] * 2
    of_before = [{"time_us": SECOND_US, "fault": "provider", "error": "500"}] * 5
    found = provider_facts([*good, *bad, *of_before], 11 * SECOND_US, 10 * SECOND_US)

    assert (found["recentTotal"], found["availabilityRate"]) == (10, 0.8)


def test_case_9_every_domain_of_an_empty_store_is_healthy(
    bench: QueueBench, diagnose: Diagnose
) -> None:
    """Case 9: every domain of an empty store is at 1, with a status."""
    found = diagnose()

    assert [(each["score"], each["status"]) for each in found["domains"]] == [(1.0, "healthy")] * 5
    assert found["composite"] == {"score": 1.0, "status": "healthy"}
