"""`run status` tells all that is known of a run, and how it can go on."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here
from stores import begin, opened, record_run

from tachograph.domain.events import ApprovalRequested
from tachograph.infra.processes import describe
from tachograph.starting import Start

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.bootstrap import Services
    from tachograph.session import Session

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def services(store_environment: Path) -> Any:
    """The store that the commands use."""
    with opened(store_environment) as services:
        yield services


def status(capsys: Capture, run: str = "job-1") -> dict[str, Any]:
    done = here(capsys, "run", "status", run, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def cut_off(services: Services) -> Session:
    """Record a run whose process has gone in the middle of a phase."""
    session = begin(services)
    session.start_phase("load")
    session.end_phase("load", summary="all of it")
    session.start_phase("parse")
    session.plan_batches("parse", 4, 1, None)
    session.complete_batch("parse", 0, inputs=2, parsed=1)
    session.complete_batch("parse", 2)
    session.intend_effect("mail 1", description="to Ada")
    session.intend_effect("ping", idempotent=True)
    session.save_checkpoint({"row": 7})
    return session


def test_a_card_has_everything_that_a_person_asks_for(services: Services, capsys: Capture) -> None:
    cut_off(services)
    card = status(capsys)

    assert (card["status"], card["liveness"], card["command"]) == ("interrupted", "gone", "report")
    assert [(p["name"], p["status"], p["batches"], p["total"]) for p in card["phases"]] == [
        ("load", "completed", 0, None),
        ("parse", "interrupted", 2, 4),
    ]
    assert [effect["key"] for effect in card["effectsInDoubt"]] == ["mail 1", "ping"]
    assert card["checkpoint"]["version"] == 11
    assert [attempt["epoch"] for attempt in card["attempts"]] == [1]
    assert card["progress"] == {"completedUnits": 2, "totalUnits": 4, "unitLabel": "batches"}
    assert card["diagnostics"]["batches"] == 2


def test_a_card_for_people_ends_with_the_newest_events_and_the_next_step(
    services: Services, capsys: Capture
) -> None:
    cut_off(services)
    text = here(capsys, "run", "status", "job-1").stdout

    for part in (
        "Run         job-1  (report)",
        "interrupted: process",
        "load completed: all of it",
        "parse interrupted, 2 of 4 batches, 1 of 2 items parsed",
        "In doubt    mail 1",
        "checkpoint-saved",
        "goes on in phase 'parse' after 2 of 4 batches",
        "tacho run effect 'mail 1' --run job-1 --done --reason",
    ):
        assert part in text
    assert "tacho run effect ping" not in text, "it may be repeated without asking"
    assert text.count("\n   ") == 5 + 2, "five events, and two rows that go on"


def ask_for_approval(session: Session) -> None:
    subject = {"approval": "deploy", "subject": 1, "subject_digest": "d"}
    session.execute(lambda run, why: run._record(ApprovalRequested, why, **subject))


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (lambda s: s.finish("failed", reason="no luck"), "a new attempt begins at the start"),
        (lambda s: s.save_checkpoint(1), "goes on from the checkpoint of version 3"),
        (lambda s: (s.start_phase("p"), s.end_phase("p")), "goes on after phase 'p'"),
        (ask_for_approval, "It waits for a person: `tacho run approve"),
        (lambda s: s.finish("success"), "is finished"),
        (lambda s: s.execute(lambda run, why: run.cancel(why, "no")), "is finished"),
        (lambda s: s.execute(lambda run, why: run.expire(why, "old")), "is finished"),
        (lambda s: s.execute(lambda run, why: run.block(why, "a disk")), "It waits: a disk"),
        (lambda s: s.start_phase("p"), "goes on in phase 'p'"),
    ],
)
def test_the_next_step_fits_the_state(
    services: Services, capsys: Capture, end: Any, expected: str
) -> None:
    end(begin(services))

    assert expected in status(capsys)["nextStep"]


def test_a_running_run_is_followed_not_started_again(services: Services, capsys: Capture) -> None:
    owner = describe(os.getpid())
    session = services.starter.start(Start("report", {}, run_id="job-1"), owner)
    session.intend_effect("mail")
    card = status(capsys)

    assert card["status"] == "running"
    assert card["effectsInDoubt"] == [], "the attempt is at it"
    assert "--follow" in card["nextStep"]


def test_an_effect_of_an_earlier_attempt_is_in_doubt_while_a_later_one_runs(
    services: Services, capsys: Capture
) -> None:
    begin(services).intend_effect("mail")
    services.starter.start(Start("report", {"n": 1}, run_id="job-1"), describe(os.getpid()))

    assert [effect["key"] for effect in status(capsys)["effectsInDoubt"]] == ["mail"]


def test_verdict_files_and_outcome_are_shown(
    services: Services, capsys: Capture, tmp_path: Path
) -> None:
    session = begin(services)
    session.execute(
        lambda run, why: run.record_artifact(why, "out", path="/x", size=3, sha256="ab")
    )
    session.finish()
    card = status(capsys)
    text = here(capsys, "run", "status", "job-1").stdout

    assert card["verdict"]["outcome"] == card["semanticOutcome"]
    assert card["artifacts"][0]["name"] == "out"
    assert f"Verdict    {card['semanticOutcome']}: " in text
    assert "Files      1" in text


# Ids, for every command that takes one


COMMANDS = ("status", "timeline", "events", "artifacts", "replay")


@pytest.fixture
def runs(services: Services) -> None:
    """Runs whose ids have beginnings in common."""
    for run_id in ("job-alpha", "job-beta", "job-beta~2", "other"):
        record_run(services, run_id, batches=0)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("job-alpha", 0, ""),
        ("job-a", 0, ""),
        ("job-beta", 0, ""),
        ("oth", 0, ""),
        ("job-b", 3, "job-beta~2, job-beta"),
        ("job", 3, "job-beta~2, job-beta, job-alpha"),
        ("", 3, "no run ''"),
        ("job-alfa", 3, "Did you mean job-alpha"),
        ("nothing-like-it", 3, "no run"),
    ],
)
def test_a_run_is_meant_by_its_id_or_a_unique_beginning(
    runs: None, capsys: Capture, command: str, text: str, code: int, said: str
) -> None:
    done = here(capsys, "run", command, text)

    assert done.returncode == code
    assert said in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_refusal_is_json_when_json_is_asked_for(
    runs: None, capsys: Capture, command: str
) -> None:
    done = here(capsys, "run", command, "nobody", "--json")

    assert json.loads(done.stderr)["error"] == "RunNotFoundError"
    assert done.stdout == ""
