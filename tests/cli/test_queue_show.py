"""`queue show` tells a job: its state and why, who holds it, and what happened to it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here
from queued_here import Queued

from tachograph.domain.queue_settings import QueuePlan, QueueSettings
from tachograph.domain.queued_job import run_id_of
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Iterator

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def queued(store_environment: Path) -> Iterator[Queued]:
    with Queued(store_environment) as made:
        yield made


def shown(capsys: Capture, job: str) -> dict[str, Any]:
    done = here(capsys, "queue", "show", "--json", job)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_job_with_its_payload_and_every_event(queued: Queued, capsys: Capture) -> None:
    job_id = queued.dead("memory", error="disk full", payload={"document": 7})
    found = shown(capsys, job_id)

    assert (found["jobId"], found["state"], found["error"]) == (job_id, "dead", "disk full")
    assert found["payload"] == {"document": 7}
    assert found["runId"] is None
    assert [event["type"] for event in found["history"]] == [
        *("queue.job-enqueued", "queue.job-leased", "queue.job-failed", "queue.job-died")
    ]
    assert found["why"] == "no further attempt is made (terminal_error): disk full"


def test_for_people_each_event_says_when_and_by_whom(queued: Queued, capsys: Capture) -> None:
    job_id = queued.add(payload="x" * 999, key="k-1")
    queued.cancel(job_id, "not wanted")
    lines = here(capsys, "queue", "show", job_id).stdout.splitlines()

    assert lines[0].split() == ["Job", job_id, "(index", "in", "memory)"]
    assert any(line.startswith("State") and "cancelled, " in line for line in lines)
    assert any("it was cancelled: not wanted" in line for line in lines)
    payload = next(line for line in lines if line.startswith("Payload"))
    assert len(payload) < 450
    assert " job-cancelled " in lines[-1]
    assert f"by test ({queued.services.actor.pid} on " in lines[-1]
    assert 'reason="not wanted"' in lines[-1]


def test_a_large_payload_that_is_lost_is_said_to_be_lost(queued: Queued, capsys: Capture) -> None:
    job_id = queued.add(payload="x" * 100_000)

    assert shown(capsys, job_id)["payload"] == "x" * 100_000

    shutil.rmtree(Path(queued.services.folder) / "blobs")
    found = shown(capsys, job_id)

    assert found["payload"] is None
    assert found["payloadMissing"]


def test_a_unique_beginning_of_an_id_will_do(queued: Queued, capsys: Capture) -> None:
    job_id = queued.add()

    assert shown(capsys, job_id[:6])["jobId"] == job_id
    assert shown(capsys, job_id.upper())["jobId"] == job_id


def test_an_ambiguous_beginning_lists_the_candidates(queued: Queued, capsys: Capture) -> None:
    ids = [queued.add() for _ in range(3)]
    done = here(capsys, "queue", "show", ids[0][:4])

    assert done.returncode == 3
    assert all(job_id in done.stderr for job_id in ids)
    assert "…" not in done.stderr

    ids += [queued.add() for _ in range(10)]
    done = here(capsys, "queue", "show", ids[0][:4])

    assert f"{ids[9]}, …" in done.stderr
    assert ids[10] not in done.stderr


@pytest.mark.parametrize(
    "text", ["ffff", "no-such-job", "", "0190a000-0000-7000-8000-000000000000"]
)
def test_a_job_that_is_none_is_not_found(queued: Queued, capsys: Capture, text: str) -> None:
    queued.add()
    done = here(capsys, "queue", "show", text)

    assert done.returncode == 3
    assert "There is no job" in done.stderr


def test_a_pruned_job_is_found_and_says_where_its_events_are(
    queued: Queued, capsys: Capture
) -> None:
    job_id = queued.done()
    queued.prune(job_id)
    found = shown(capsys, job_id[:18])

    assert found["state"] == "pruned"
    assert found["why"] == "it was pruned: old; its events are in the archive archive-1"


def test_its_run_is_named_once_there_is_one(queued: Queued, capsys: Capture) -> None:
    job_id = queued.leased()
    job = queued.queues.repository.get(job_id)
    assert job is not None
    run_id = run_id_of(job)
    queued.services.starter.start(Start("index", run_id=run_id), queued.owner)

    assert shown(capsys, job_id)["runId"] == run_id


# Why it is where it is.


def why(capsys: Capture, job_id: str) -> str:
    found: str = shown(capsys, job_id)["why"]
    return found


def test_a_job_waits_for_a_worker(queued: Queued, capsys: Capture) -> None:
    assert why(capsys, queued.add()) == "it waits for a worker"


def test_a_job_waits_for_its_time(queued: Queued, capsys: Capture) -> None:
    later = queued.add(available_us=4_000_000_000_000_000)
    failed = queued.failed()

    assert why(capsys, later) == "it is not taken before 2096-10-02T07:06:40.000Z"
    assert why(capsys, failed).startswith("attempt 1 of 3 failed; it is not taken before ")


def test_a_job_waits_for_others_of_its_concurrency_key(queued: Queued, capsys: Capture) -> None:
    queued.leased(concurrency_key="doc-7")
    other = queued.leased(concurrency_key="doc-8")
    job_id = queued.add(concurrency_key="doc-7")

    assert why(capsys, job_id) == (
        "as many jobs of the concurrency key 'doc-7' as may be are at work"
    )

    queued.queues.complete(other, 1)

    assert why(capsys, queued.add(concurrency_key="doc-8")) == "it waits for a worker"


def test_a_job_waits_for_room_in_its_queue(
    queued: Queued, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tachograph.toml").write_text(
        "[queues.memory]\nconcurrency = 1\n", encoding="utf-8"
    )
    job_id = queued.add()

    assert why(capsys, job_id) == "it waits for a worker"

    queued.leased()

    assert why(capsys, job_id) == "1 jobs of the queue are at work, as many as may be"


def test_a_lowered_bound_ends_a_job_at_the_next_look(
    queued: Queued, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = queued.failed()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tachograph.toml").write_text(
        "[queues.memory]\nmax_attempts = 1\n", encoding="utf-8"
    )

    assert why(capsys, job_id) == "its 1 attempts are used up: the next worker ends it"


def test_who_holds_a_job_is_named(queued: Queued, capsys: Capture) -> None:
    job_id = queued.leased()
    found = shown(capsys, job_id)

    assert found["why"].startswith(f"process {queued.owner.pid} on ")
    assert found["why"].endswith("is at it, with a lease of 300s")
    assert found["holder"]["pid"] == queued.owner.pid
    assert (found["epoch"], found["leaseSeconds"]) == (1, 300.0)


def test_a_holder_that_is_gone_is_said_to_be_lost(queued: Queued, capsys: Capture) -> None:
    queued.owner.started = 1  # an earlier process of the same number
    found = shown(capsys, queued.leased())

    assert found["why"].startswith("its holder is lost (")


def test_a_completed_job_was_done(queued: Queued, capsys: Capture) -> None:
    found = shown(capsys, queued.done())

    assert found["why"] == "its holder did the work"
    assert (found["holder"], found["leaseSeconds"]) == (None, None)


def test_a_job_of_a_queue_that_is_not_declared_any_more_is_shown(
    queued: Queued, capsys: Capture, store_environment: Path
) -> None:
    with Queued(store_environment, QueuePlan({"old": QueueSettings("old")})) as former:
        job_id = former.add("old")

    assert shown(capsys, job_id)["queue"] == "old"
