"""`run fork` starts a run that shares what another one has done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import bash, here, tacho, topics
from stores import begin, opened, record_run

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def store(store_environment: Path) -> Path:
    """A finished run, and one that has sent a mail after its phase."""
    with opened(store_environment) as services:
        record_run(services, "job-1")
        session = begin(services, "mails")
        session.start_phase("parse")
        session.complete_batch("parse", 0, inputs=1, parsed=1)
        session.end_phase("parse")
        session.intend_effect("mail")
        session.complete_effect("mail")
        session.start_phase("render")
    return store_environment


def document(capsys: Capture, *arguments: str) -> Any:
    done = here(capsys, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_new_id_is_printed_and_how_to_go_on(store: Path, capsys: Capture) -> None:
    done = here(capsys, "run", "fork", "job-1", "--from", "5")

    assert done.stdout == "job-1~2\n"
    assert "It shares 3 events of job-1, up to version 5." in done.stderr
    assert "Start report with the same inputs and the id job-1~2 again" in done.stderr
    assert topics("job-1~2") == [
        "created",
        "phase-started",
        "batches-planned",
        "batch-completed",
        "origin-recorded",
    ]


def test_a_fork_of_the_last_checkpoint_is_what_is_meant_by_default(
    store: Path, capsys: Capture
) -> None:
    with opened(store) as services:
        services.session("mails", 1).save_checkpoint({"row": 7})
        services.session("mails", 1).complete_step("later", 1)
    found = document(capsys, "run", "fork", "mails", "--id", "again", "--reason", "other prompt")

    assert (found["jobRunId"], found["forkOf"], found["version"]) == ("again", "mails", 9)
    assert found["effectsToRepeat"] == []


def test_a_fork_says_where_it_comes_from_wherever_it_is_shown(store: Path, capsys: Capture) -> None:
    here(capsys, "run", "fork", "job-1", "--from", "5", "--id", "mine", "--title", "Again")
    status = document(capsys, "run", "status", "mine")
    (row,) = [row for row in document(capsys, "run", "list") if row["jobRunId"] == "mine"]
    card = here(capsys, "run", "status", "mine").stdout
    listed = here(capsys, "run", "list").stdout

    assert status["origin"] == {"kind": "fork", "run": "job-1", "version": 5}
    assert row["origin"] == status["origin"]
    assert (status["status"], status["title"]) == ("waiting", "Again")
    assert "fork of job-1, up to its version 5" in card
    assert "no attempt has started; fork of job-1" in listed


def test_what_a_fork_has_is_planned_replayed_and_viewed_like_others(
    store: Path, capsys: Capture
) -> None:
    here(capsys, "run", "fork", "job-1", "--from", "5", "--id", "mine")
    plan = document(capsys, "run", "plan", "mine")

    assert plan["phases"][0]["batchesReused"] == [[0, 0]]
    assert plan["phases"][0]["batchesToRun"] == [[1, 2]]
    assert here(capsys, "run", "replay", "mine", "--strict").returncode == 0
    assert here(capsys, "view", "check").returncode == 0
    assert here(capsys, "run", "diff", "job-1", "mine").returncode == 0


def test_a_start_goes_on_in_the_fork(store: Path, capsys: Capture) -> None:
    here(capsys, "run", "fork", "job-1", "--from", "5", "--id", "mine")
    started = document(capsys, "run", "start", "report", "--id", "mine", "--input", "n:=1")
    attempt = ("--run", "mine", "--epoch", "1")
    phase = document(capsys, "run", "phase", "start", "parse", *attempt)
    left = document(capsys, "run", "batch", "parse", "--pending", *attempt)

    assert started == {"jobRunId": "mine", "epoch": 1, "resumed": False}
    assert phase["status"] == "running"
    assert left["pending"] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nope",), 3, "There is no run 'nope'"),
        (("job-1", "--from", "99"), 3, "its versions go from 1 to 9"),
        (("job-1", "--from", "0"), 3, "its versions go from 1 to 9"),
        (("job-1", "--from", "Parse"), 3, "it has no such phase, but 'parse'"),
        (("job-1", "--from", "5", "--id", "mails"), 1, "There is a run mails already"),
        (("job-1", "--from", "5", "--id", "a b"), 2, "cannot be a run id"),
        (("mails", "--from", "5"), 8, "'mail'"),
        (("mails", "--from", "5", "--repeat-effects"), 2, "needs --reason"),
        (("job-1", "--reason", " "), 2, "--reason is empty"),
    ],
)
def test_a_fork_that_makes_no_sense_is_refused(
    store: Path, capsys: Capture, arguments: tuple[str, ...], code: int, said: str
) -> None:
    with opened(store) as services:
        before = services.log.head()
    done = here(capsys, "run", "fork", *arguments)

    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    with opened(store) as services:
        assert services.log.head() == before


def test_a_person_may_let_effects_be_repeated(store: Path, capsys: Capture) -> None:
    """G10."""
    done = here(
        capsys, "run", "fork", "mails", "--from", "4", "--repeat-effects", "--reason", "test box"
    )

    assert done.returncode == 0
    assert "Done again: mail." in done.stderr


def test_an_effect_in_doubt_is_named(store: Path, capsys: Capture) -> None:
    done = here(capsys, "run", "fork", "mails", "--from", "6")

    assert "In doubt: mail." in done.stderr
    assert "Find out whether 'mail' has happened" in done.stderr


def test_a_wrapped_command_goes_on_in_the_fork_that_is_resumed(
    store: Path, capsys: Capture, tmp_path: Path
) -> None:
    """Its command has the inputs of the source, too, which stays as it is."""
    script = bash(
        """
        tacho run phase start collect --batches 2
        for i in $(tacho run batch collect --pending); do
          [ "$i" = 1 ] && [ ! -e ok ] && exit 3
          tacho run batch collect "$i" --inputs 1 --parsed 1
        done
        tacho run phase end collect
        tacho run judge --inputs 2 --outputs 2
        """,
        tmp_path,
    )
    tacho("run", "exec", "--name", "collect", "--", *script, cwd=tmp_path)
    (source,) = [
        row["jobRunId"] for row in document(capsys, "run", "list") if row["command"] == "collect"
    ]
    before = topics(source)
    here(capsys, "run", "fork", source, "--id", "mine")
    (tmp_path / "ok").touch()
    tacho("run", "resume", "mine")

    assert document(capsys, "run", "status", "mine")["semanticOutcome"] == "success"
    assert topics("mine").count("batch-completed") == 2
    assert topics(source) == before


def test_a_fork_of_a_run_that_goes_on_warns(store: Path, capsys: Capture) -> None:
    """G10: both would do what neither has begun yet."""
    done = here(capsys, "run", "fork", "mails")
    found = document(capsys, "run", "fork", "mails")

    assert "mails has not ended: effects that it begins from now on" in done.stderr
    assert (found["sourceGoesOn"], found["effectsUnknown"]) == (True, [])
