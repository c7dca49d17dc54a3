"""Traps of spec §2, diagnostics: each test fails on what the original does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here

from tachograph.domain.queue_settings import QueuePlan
from tachograph.domain.queue_thresholds import HealthThresholds
from tachograph.domain.queued_job import DEAD, QueuedJob
from tachograph.health.diagnosing import look_at
from tachograph.health.queue_domain import queue_domain
from tachograph.health.queue_facts import queue_facts
from tachograph.projections.queue_health import COUNTED, Counts
from tachograph.projections.queue_traffic import HOUR, MINUTE, Traffic
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_bench import Clock, QueueBench

    from tachograph.healthkeeping import HealthKeeping

NOW_US = 1_700_000_000_000_000


class Busy:
    """The view of one queue in which so many jobs were completed, and died, within the hour."""

    def __init__(self, completed: int, died: int) -> None:
        self.completed = completed
        self.died = died

    def names(self) -> list[str]:
        return ["memory"]

    def counts(self, _queue: str, _now_us: int) -> Counts:
        tally = dict.fromkeys((*COUNTED, MINUTE, HOUR), 0)
        return Counts(tally | {"completed": self.completed, "dead": self.died}, 0)

    def traffic(self, _queue: str, _since_us: int, _until_us: int) -> Traffic:
        traffic = Traffic()
        traffic.completed, traffic.died = self.completed, self.died
        return traffic

    def waits_since_us(self, _queue: str) -> None:
        return None

    def last_error(self, _queue: str) -> str:
        return "boom"

    def jobs(
        self,
        _queue: str | None = None,
        status: str | None = None,
        *,
        older_than_us: int | None = None,
        **_order: bool,
    ) -> Iterator[QueuedJob]:
        if status == DEAD and older_than_us is None:
            for _ in range(self.died):
                job = QueuedJob()
                job.status, job.ended_us = DEAD, NOW_US - 1
                yield job


def facts(completed: int, died: int) -> dict[str, Any]:
    """Return the facts about such a queue."""
    view: Any = Busy(completed, died)
    return queue_facts(view, QueuePlan(), HealthThresholds(), NOW_US, lambda _job: False)


def rules(found: dict[str, Any]) -> set[str]:
    """Return the rules that facts break."""
    return {
        each.rule for each in look_at(queue_domain(lambda: found, HealthThresholds())).penalties
    }


@pytest.mark.parametrize(
    ("completed", "died", "broken"), [(9_900, 100, False), (9_959, 101, True), (99, 2, True)]
)
def test_a_rate_just_above_its_threshold_is_not_rounded_away(
    completed: int, died: int, broken: bool
) -> None:
    """§2.3: `deadRate > .01`. Issue 906 of the original: what is shown was rounded, then judged."""
    assert (died / (completed + died) > 0.01) is broken
    assert ("queue.dead-rate" in rules(facts(completed, died))) is broken


def test_a_rate_is_not_lower_because_so_many_died() -> None:
    """§2.3: 5,000 of 205,000 are 2.4 %, however far anybody cares to count."""
    found = facts(200_000, 5_000)

    assert found["deadRate"] == pytest.approx(5_000 / 205_000, abs=0.0005)
    assert "queue.dead-rate" in rules(found)


def test_a_job_at_work_does_not_wait(
    bench: QueueBench, clock: Clock, keeping: HealthKeeping
) -> None:
    """§2.3: the age of the oldest *pending* job costs .2; one at work for 10 minutes is none.

    It costs its queue .1 + .3·t all the same, with t = 300 / 1500.
    """
    (job_id,) = bench.make("leased")
    clock.pass_by(seconds=600)
    bench.queueing.beat(bench.job(job_id))
    found = look_at(next(each for each in keeping.domains() if each.name == "queue"))

    assert [penalty.rule for penalty in found.penalties] == ["queue.oldest"]
    assert found.score == 0.84
    assert found.status == "degraded"


def test_an_old_job_that_was_just_leased_is_no_anomaly(
    bench: QueueBench, clock: Clock, keeping: HealthKeeping
) -> None:
    """§2.3: anomalies went by `created_at`, and what is released by `leased_at`."""
    job_id = bench.queueing.enqueue(Enqueue("memory", "ingest")).job_id
    clock.pass_by(seconds=660)
    bench.queueing.lease(["memory"], bench.owner)
    fresh = keeping.queue_facts()["leaseAnomalies"]
    released = bench.queueing.release_stale().pending
    clock.pass_by(seconds=301)
    stale = keeping.queue_facts()["leaseAnomalies"]

    assert (fresh, released, stale) == (0, [], 1)
    assert bench.queueing.release_stale().pending == [job_id]


def test_the_thresholds_are_the_nine_of_the_report(
    bench: QueueBench, capsys: pytest.CaptureFixture[str]
) -> None:
    """§2.4: names and defaults; each queue has the one for old dead jobs, not `summary` alone."""
    said = json.loads(here(capsys, "queue", "status", "--json").stdout)["thresholds"]

    assert said == {
        "summaryDeadWarn": 50,
        "summaryDeadFail": 500,
        "summaryOldestPendingWarnSec": 300,
        "summaryOldestPendingFailSec": 1800,
        "summaryOldestDeadWarnSec": 86_400,
        "memoryDeadWarn": 50,
        "memoryDeadFail": 500,
        "memoryOldestPendingWarnSec": 300,
        "memoryOldestPendingFailSec": 1800,
        "memoryOldestDeadWarnSec": 86_400,
    }


def test_the_report_of_queues_field_by_field(
    bench: QueueBench, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """§2.4: every field of the original has its name, type and meaning; ages are of the state."""
    bench.make("completed")
    (oldest,) = bench.make("dead", kind="document_ingest", key="doc-1", error="first")
    clock.pass_by(seconds=100)
    bench.make("dead", error="second")
    bench.make("leased")
    bench.make("pending")
    clock.pass_by(seconds=40)
    said = json.loads(here(capsys, "queue", "status", "--json").stdout)
    memory = said["queues"]["memory"]

    assert said["timestamp"].endswith("Z")
    assert {
        name: memory[name] for name in ("pending", "leased", "completed", "failed", "dead")
    } == {
        "pending": 1,
        "leased": 1,
        "completed": 1,
        "failed": 0,
        "dead": 2,
    }
    assert (memory["oldestAgeSec"], memory["oldestDeadAgeSec"]) == (41, 143)
    assert memory["lastError"] == "second"
    assert said["oldestDeadMemoryJob"] == {
        "id": oldest,
        "harness": "document_ingest",
        "sessionKey": "doc-1",
        "createdAt": "2023-11-14T22:13:22.000Z",
        "attempts": 1,
        "error": "first",
    }
    assert said["oldestDeadSummaryJob"] is None
    assert "extraction" not in said["queues"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(59, "59s"), (60, "1m"), (3599, "59m"), (3600, "1.0h"), (86_400, "1.0d"), (216_000, "2.5d")],
)
def test_the_block_shows_how_long_the_oldest_waits_and_is_dead(
    bench: QueueBench,
    clock: Clock,
    capsys: pytest.CaptureFixture[str],
    seconds: int,
    shown: str,
) -> None:
    """§2.4: `p= l= c= f= d= oldest= dead=` with ages in one unit; the title tells of the dead."""
    bench.make("dead")
    bench.make("pending")
    clock.pass_by(seconds=seconds)
    lines = here(capsys, "queue", "status").stdout.splitlines()

    assert lines[0] == "Pipeline queues (dead jobs present)"
    assert lines[1].startswith(f"  memory   p=1 l=0 c=0 f=0 d=1 oldest={shown} dead=")
    assert not lines[1].endswith("dead=— s=0 x=0")
    assert lines[3].startswith("  summary  p=0 l=0 c=0 f=0 d=0 oldest=— dead=—")
    assert "tacho queue requeue" in lines[4]
    assert "tacho queue cancel" in lines[4]
