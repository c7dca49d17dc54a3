"""`run diff` shows how two runs differ, and where their histories part."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here
from stores import LARGE, begin, opened, record_run

from tachograph import erasurekeeping

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def store(store_environment: Path) -> Path:
    """Three runs: two alike, and one whose batches came to something else."""
    with opened(store_environment) as services:
        record_run(services, "one")
        record_run(services, "two")
        record_run(services, "other", output=LARGE)
    return store_environment


def document(capsys: Capture, *arguments: str) -> Any:
    done = here(capsys, "run", "diff", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_two_runs_that_did_the_same_are_the_same(store: Path, capsys: Capture) -> None:
    done = here(capsys, "run", "diff", "one", "two")
    found = document(capsys, "one", "two")

    assert done.stdout.startswith("one and two did the same and were judged the same.\n")
    assert (found["same"], found["differences"], found["firstDivergence"]) == (True, [], None)


def test_what_differs_is_shown_with_both_sides(store: Path, capsys: Capture) -> None:
    lines = here(capsys, "run", "diff", "one", "other").stdout.splitlines()
    found = document(capsys, "one", "other")

    assert "3 batches of phase 'parse' came to something else." in lines
    assert any(line.startswith("First of them: batch 0, text (1 of 1 items)") for line in lines)
    assert "  one: version 5, position 5: batch-completed" in lines
    assert "  other: version 5, position 23: batch-completed" in lines
    assert found["differing"] == [{"kind": "batch", "phase": "parse", "count": 3}]
    assert found["firstDiffering"]["right"]["output"].keys() == {"digest", "bytes"}
    assert found["firstDivergence"]["left"]["version"] == 5


def test_a_run_that_ends_earlier_is_told(store: Path, capsys: Capture) -> None:
    with opened(store) as services:
        begin(services, "short").start_phase("parse")
    text = here(capsys, "run", "diff", "short", "one").stdout
    found = document(capsys, "short", "one")

    assert "  short: has no further event" in text
    assert "phases.parse.status" in text
    assert "not ended" in text
    assert found["firstDivergence"]["left"] is None
    assert found["timings"][0] == {
        "phase": None,
        "left": None,
        "right": pytest.approx(0, abs=60),
    }


def test_steps_and_fields_that_differ_are_named(store: Path, capsys: Capture) -> None:
    with opened(store) as services:
        for run_id, result in (("x", 1), ("y", 2)):
            begin(services, run_id).complete_step("load(1)", result)
    text = here(capsys, "run", "diff", "x", "y").stdout

    assert "1 step came to something else." in text
    assert "First of them: step 'load(1)', 1 at version 3 against 2 at version 3." in text
    assert "    result: 1 against 2" in text


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("one", "two"), 0),
        (("one", "other"), 0),
        (("one", "two", "--exit-code"), 0),
        (("one", "other", "--exit-code"), 1),
        (("one", "nope"), 3),
        (("nope", "one"), 3),
        (("o", "two"), 3),
        (("one",), 2),
        (("one", "two", "other"), 2),
    ],
)
def test_the_exit_code_says_what_was_asked_for(
    store: Path, capsys: Capture, arguments: tuple[str, ...], code: int
) -> None:
    assert here(capsys, "run", "diff", *arguments).returncode == code


def test_of_an_erased_run_it_is_said_what_cannot_be_compared(store: Path, capsys: Capture) -> None:
    erasurekeeping.erase(str(store), "one", "it names a customer", actor="test")
    text = here(capsys, "run", "diff", "one", "two", "--exit-code")
    found = document(capsys, "one", "two")

    assert "Not compared: one: it was erased" in text.stdout
    assert text.returncode == 1
    assert found["same"] is None
    assert found["left"]["eventsUnread"] == 9


def test_many_differences_are_cut_for_people(store: Path, capsys: Capture) -> None:
    with opened(store) as services:
        session = begin(services, "many")
        for number in range(60):
            session.complete_step(f"step-{number:02}", number)
        begin(services, "none")
    text = here(capsys, "run", "diff", "many", "none").stdout

    assert "… and 10 more; --json names up to 60." in text
    assert len(document(capsys, "many", "none")["differences"]) == 60


def test_it_records_nothing(store: Path, capsys: Capture) -> None:
    with opened(store) as services:
        before = services.log.head()
    here(capsys, "run", "diff", "one", "other")
    with opened(store) as services:
        assert services.log.head() == before
