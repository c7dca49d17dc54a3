"""`queue list` shows the jobs that are asked for, the latest first, and never more than those."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here
from queued_here import Queued

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def queued(store_environment: Path) -> Iterator[Queued]:
    with Queued(store_environment) as made:
        yield made


@pytest.fixture
def ids(queued: Queued) -> dict[str, str]:
    """Make a job in each state, each later than the one before; the scheduled one is to come."""
    made = {
        "dead": queued.dead("memory", error="Disk FULL on /srv"),
        "completed": queued.done("summary"),
        "cancelled": queued.add("memory"),
    }
    queued.cancel(made["cancelled"])
    made["pruned"] = queued.done("memory")
    queued.prune(made["pruned"])
    made["pending"] = queued.add("summary", key="k-1")
    made["leased"] = queued.leased("memory")
    made["failed"] = queued.failed("memory", error="no answer")
    made["scheduled"] = queued.add("memory", available_us=queued.now_us + 2 * 10**12)
    return made


def listed(capsys: Capture, *arguments: str) -> list[dict[str, Any]]:
    done = here(capsys, "queue", "list", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


ALL = ["scheduled", "failed", "leased", "pending", "cancelled", "completed", "dead"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), ALL),
        (("--limit", "2"), ALL[:2]),
        (("--limit", "0"), ALL),
        (("--status", "pruned"), ["pruned"]),
        (("--status", "pending"), ["pending"]),
        (("--status", "scheduled"), ["scheduled"]),
        (("--status", "pending", "--status", "scheduled"), ["scheduled", "pending"]),
        (("--status", "dead", "--status", "leased"), ["leased", "dead"]),
        (("--queues", "summary"), ["pending", "completed"]),
        (("--tables", "summary,memory"), ALL),
        (("--tables", "memory", "--status", "dead"), ["dead"]),
        (("--older-than", "1h"), []),
        (("--older-than", "1h", "--status", "pending", "--status", "scheduled"), []),
        (("--older-than", "0s", "--status", "dead"), ["dead"]),
        (("--error-pattern", "disk full"), ["dead"]),
        (("--error-pattern", "ANSWER"), ["failed"]),
        (("--error-pattern", "disk*srv"), ["dead"]),
        (("--error-pattern", "."), []),
    ],
)
def test_the_jobs_that_are_asked_for_are_listed_latest_first(
    ids: dict[str, str], capsys: Capture, arguments: tuple[str, ...], expected: list[str]
) -> None:
    found = listed(capsys, *arguments)

    assert [job["state"] for job in found] == expected
    assert [job["jobId"] for job in found] == [ids[name] for name in expected]


def test_a_job_that_has_become_due_is_pending_and_not_scheduled(
    queued: Queued, capsys: Capture
) -> None:
    job_id = queued.add(available_us=queued.now_us)

    assert [job["jobId"] for job in listed(capsys, "--status", "pending")] == [job_id]
    assert listed(capsys, "--status", "scheduled") == []


def test_a_job_is_told_in_full(ids: dict[str, str], capsys: Capture) -> None:
    found = listed(capsys, "--status", "dead")[0]
    times = {name: found.pop(name) for name in list(found) if name.endswith("At")}

    assert found.pop("since") == times["endedAt"]
    assert times["availableAt"] is None
    assert found == {
        "jobId": ids["dead"],
        "queue": "memory",
        "type": "index",
        "state": "dead",
        "priority": 9,
        "attempts": 1,
        "maxAttempts": 3,
        "key": None,
        "concurrencyKey": None,
        "error": "Disk FULL on /srv",
        "code": "terminal_error",
    }


def test_a_table_for_people(ids: dict[str, str], capsys: Capture) -> None:
    done = here(capsys, "queue", "list", "--status", "dead")

    head, row = done.stdout.splitlines()
    assert head.split() == [*("JOB", "QUEUE", "TYPE", "STATE", "SINCE", "ATTEMPTS", "KEY", "ERROR")]
    assert row.split()[:4] == [ids["dead"], "memory", "index", "dead"]
    assert row.endswith("Disk FULL on /srv")


def test_an_empty_list_says_so(queued: Queued, capsys: Capture) -> None:
    done = here(capsys, "queue", "list")

    assert (done.returncode, done.stdout) == (0, "")
    assert "no such jobs" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--queues", "bogus"), "no queue 'bogus'"),
        (("--queues", "memory,"), "--queues is 'memory,'"),
        (("--tables", ""), "--queues is ''"),
        (("--queues", "memory", "--tables", "memory"), "another word"),
        (("--older-than", "soon"), "'soon' is no length of time"),
        (("--older-than", "-2h"), "no length of time"),
        (("--error-pattern", ""), "error pattern"),
        (("--status", "extraction"), "'extraction' is not one of"),
        (("--limit", "-1"), "--limit is -1"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    queued: Queued, capsys: Capture, arguments: tuple[str, ...], message: str
) -> None:
    """A filter that is passed over would show more than was asked for."""
    done = here(capsys, "queue", "list", *arguments)

    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert done.stdout == ""
