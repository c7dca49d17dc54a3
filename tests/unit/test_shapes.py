"""The JSON of runs: names, times, and no field that lies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from given_when_then import NOW_US
from viewed import Viewed, everything

from tachograph import reading, shapes


@pytest.fixture
def bench() -> Viewed:
    bench = Viewed()
    bench.now = NOW_US
    everything(bench)
    return bench


def shaped(bench: Viewed, run_id: str) -> dict[str, Any]:
    run = shapes.summary_shape(bench.ask(reading.summary, run_id))
    assert json.loads(json.dumps(run)) == run, "it is JSON as it stands"
    return run


def test_a_run_has_the_fields_of_a_job_run(bench: Viewed) -> None:
    run = shaped(bench, "job-one")

    assert run["schemaVersion"] == 1
    assert (run["jobRunId"], run["command"]) == ("job-one", "parse")
    assert (run["startedAt"], run["finishedAt"]) == (
        "2023-11-14T22:13:20.000Z",
        "2023-11-14T22:13:20.000Z",
    )
    assert run["inputs"] == {"n": 1}
    assert len(run["inputFingerprint"]) == 8
    assert run["semanticOutcome"] == run["status"] == "success_with_review"
    assert run["progress"] == {"completedUnits": 2, "totalUnits": 3, "unitLabel": "files"}
    assert run["phases"] == [
        {
            "name": "open",
            "status": "completed",
            "summary": None,
            "epoch": 1,
            "startedAt": "2023-11-14T22:13:20.000Z",
            "finishedAt": "2023-11-14T22:13:20.000Z",
            "total": 3,
            "batches": 3,
            "inputs": 6,
            "parsed": 3,
        }
    ]
    assert run["diagnostics"]["retries"] == run["diagnostics"]["fallbacks"] == 1
    assert run["diagnostics"]["batches"] == 3


def test_a_run_without_an_end_has_no_outcome_and_no_end(bench: Viewed) -> None:
    run = shaped(bench, "job-last")

    assert (run["semanticOutcome"], run["finishedAt"]) == (None, None)
    assert (run["status"], run["liveness"]) == ("interrupted", "gone")
    assert run["statusReason"] == "process 1 is gone"
    assert run["lastSeenAt"] == "2023-11-14T22:13:20.000Z"
    assert [phase["status"] for phase in run["phases"]] == ["interrupted"]


def test_a_run_shows_its_attempts_and_what_is_in_doubt(bench: Viewed) -> None:
    run = shaped(bench, "job-other")

    assert [(a["epoch"], a["outcome"], a["owner"]["host"]) for a in run["attempts"]] == [
        (1, "interrupted", "here"),
        (2, "partial", "here"),
        (3, "cancelled", "here"),
    ]
    assert [effect["key"] for effect in run["effectsInDoubt"]] == ["post"]
    assert run["checkpoint"]["kind"] == "offset"
    assert (run["status"], run["semanticReason"]) == ("cancelled", "no longer wanted")


def test_no_command_is_promised_that_does_not_exist(bench: Viewed) -> None:
    assert shaped(bench, "job-last")["resumeCommand"] is None


def test_a_row_of_a_list_is_part_of_its_run(bench: Viewed) -> None:
    for card in bench.ask(reading.list_runs):
        row = shapes.card_shape(card)
        run = shaped(bench, card["id"])

        assert {name: run[name] for name in row} == row


def test_a_timeline_has_durations(bench: Viewed) -> None:
    entries = shapes.timeline_shape(bench.ask(reading.timeline, "job-one"))
    phase = next(entry for entry in entries if entry["kind"] == "phase")

    assert json.loads(json.dumps(entries)) == entries
    assert (phase["at"], phase["endedAt"]) == (
        "2023-11-14T22:13:20.000Z",
        "2023-11-14T22:13:20.000Z",
    )
    assert 0 < phase["durationSeconds"] < 1
    assert entries[0]["durationSeconds"] is None
    assert entries[1]["owner"] == {"kind": "process", "host": "here", "pid": 1}


def test_names_of_an_owner_are_those_of_json(bench: Viewed) -> None:
    owner = {"kind": "process", "boot_id": "b", "pid_namespace": "4"}
    card = {**bench.ask(reading.list_runs)[0], "owner": owner}

    assert shapes.card_shape(card)["owner"] == {
        "kind": "process",
        "bootId": "b",
        "pidNamespace": "4",
    }
