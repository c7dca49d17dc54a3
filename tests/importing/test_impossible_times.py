"""Times and numbers that cannot be are named, and lead no list of runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here, history
from imports import importing, run_of, texts
from job_run_trees import (
    JOB,
    ORCHESTRATOR,
    at,
    at_us,
    batches,
    cut_off,
    ending,
    event,
    opening,
    orchestrator,
    phase,
    put,
    summary,
)

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("store_environment")

FUTURE = "9999-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("changes", "said", "ended_us"),
    [
        ({"finishedAt": at(1)}, "before it began", at_us(59)),
        ({"finishedAt": FUTURE}, "and that is yet to come", at_us(59)),
        (
            {"phases": [phase("analyze", "completed", at(20), at(200))]},
            "it was finished before the last that it tells of",
            at_us(200),
        ),
        (
            {"phases": [phase("analyze", "completed", at(20), at(10))]},
            "of phase 'analyze', finishedAt is '2026-03-01T02:30:10.000Z', before it began",
            at_us(60),
        ),
        (
            {"phases": [phase("analyze", "completed", at(20), FUTURE)]},
            "of phase 'analyze', finishedAt is '9999-12-31T23:59:59Z', and that is yet to come",
            at_us(60),
        ),
        (
            {"phases": [phase("analyze", "completed", FUTURE, at(20))]},
            "phase 'analyze' is said to begin at '9999-12-31T23:59:59Z'",
            at_us(60),
        ),
        ({"progress": {"completedUnits": 5, "totalUnits": 3}}, "its progress is 5 of 3", at_us(60)),
        (
            {"progress": {"completedUnits": -1, "totalUnits": 3}},
            "its progress is -1 of 3",
            at_us(60),
        ),
        (
            {"progress": {"completedUnits": 1.5, "totalUnits": None}},
            "its progress is 1.5 of None",
            at_us(60),
        ),
    ],
)
def test_a_record_whose_times_or_numbers_cannot_be_is_no_success(
    tree: Path, capsys: Capture, changes: Any, said: str, ended_us: int
) -> None:
    put(tree, summary(**changes))
    (entry,) = importing(capsys, tree, code=1)
    run = run_of(JOB)

    assert said in texts(entry)
    assert (run.outcome, run.reason_code) == ("success_with_review", "contradictory_record")
    assert run.ended_us == ended_us
    assert (run.created_us, run.updated_us) == (at_us(5), ended_us)


def test_a_record_that_begins_later_than_now_is_refused(tree: Path, capsys: Capture) -> None:
    folder = put(tree, summary(startedAt=FUTURE))
    (entry,) = importing(capsys, tree, code=1)

    assert entry["state"] == "unreadable"
    assert entry["problems"] == [
        {
            "path": str(folder / "summary.json"),
            "text": f"its startedAt is {FUTURE!r}, and that is yet to come",
        }
    ]


def test_an_unfinished_record_with_impossible_numbers_is_named(tree: Path, capsys: Capture) -> None:
    put(tree, cut_off(progress={"completedUnits": 5, "totalUnits": 3}))
    (entry,) = importing(capsys, tree, code=1)

    assert "it contradicts itself: its progress is 5 of 3" in texts(entry)
    assert run_of(JOB).outcome is None


def test_an_end_that_is_no_time_is_named_and_ends_nothing(tree: Path, capsys: Capture) -> None:
    put(tree, summary(finishedAt="soon"))
    (entry,) = importing(capsys, tree, code=1)

    assert entry["status"] == "interrupted"
    assert "its finishedAt is 'soon', no time" in texts(entry)


@pytest.mark.parametrize(
    ("ts", "said"),
    [(FUTURE, "is yet to come"), (at(0), "is before that of the line above")],
)
def test_a_line_at_a_time_that_cannot_be_gets_that_of_the_line_above(
    tree: Path, capsys: Capture, ts: str, said: str
) -> None:
    started = at(-120)
    lines = [
        event("phase_start", at(100), phase="analyze"),
        event("retry", ts, kind="x", attempt=1),
        event("phase_end", at(101), phase="analyze", status="completed"),
    ]
    put(tree, summary(startedAt=started, finishedAt=at(110), phases=[]), lines)
    (entry,) = importing(capsys, tree, code=1)

    assert f"line 2: its ts {ts!r} {said}, and is not kept" in texts(entry)
    assert run_of(JOB).updated_us == at_us(110)


def test_a_first_line_that_is_yet_to_come_is_told_when_the_run_began(
    tree: Path, capsys: Capture
) -> None:
    put(tree, summary(finishedAt=None, phases=[]), [event("phase_start", FUTURE, phase="analyze")])
    importing(capsys, tree, code=1)

    assert run_of(JOB).phases["analyze"].started_us == at_us(5)
    assert run_of(JOB).epoch == 1


def test_a_checkpoint_that_is_yet_to_come_is_told_without_its_time(
    tree: Path, capsys: Capture
) -> None:
    put(tree, cut_off(), opening(), batches([0], updatedAt=FUTURE))
    (entry,) = importing(capsys, tree, code=1)

    assert "its time is yet to come, and is not kept" in texts(entry)
    assert run_of(JOB).updated_us < at_us(60)


def test_a_checkpoint_file_that_is_yet_to_come_is_told_when_it_was_changed(
    tree: Path, capsys: Capture
) -> None:
    path = tree / "m3-batches-0dc845e1.json"
    path.write_text(json.dumps(batches([0], updatedAt=FUTURE)), encoding="utf-8")
    done = here(capsys, "checkpoint", "import", path, "--apply")
    run = run_of("job-self-correction-run-0dc845e1")

    assert done.returncode == 1
    assert "its time is yet to come, and is not kept" in done.stderr
    assert run.updated_us == path.stat().st_mtime_ns // 1000


@pytest.mark.parametrize(
    ("changes", "said", "ended_us"),
    [
        ({"finishedAt": at(-5)}, "before it began", at_us(0)),
        ({"finishedAt": FUTURE}, "and that is yet to come", at_us(0)),
        ({"finishedAt": at(30)}, "its step tidy-index took longer than all of it", at_us(30)),
    ],
)
def test_an_orchestrator_run_whose_times_cannot_be_is_no_success(
    tree: Path, capsys: Capture, changes: Any, said: str, ended_us: int
) -> None:
    orchestrator(tree, **changes)
    (entry,) = importing(capsys, tree, code=1)
    run = run_of(ORCHESTRATOR)

    assert "it contradicts itself: its " in texts(entry)
    assert said in texts(entry)
    assert (run.outcome, run.reason_code) == ("success_with_review", "contradictory_record")
    assert (run.ended_us, run.updated_us) == (ended_us, ended_us)
    assert said in str(history(ORCHESTRATOR))


def test_an_orchestrator_run_that_begins_later_than_now_is_refused(
    tree: Path, capsys: Capture
) -> None:
    orchestrator(tree, startedAt=FUTURE, finishedAt=FUTURE)
    (entry,) = importing(capsys, tree, code=1)

    assert entry["state"] == "unreadable"
    assert "and that is yet to come" in texts(entry)


def test_lines_a_little_out_of_order_are_told_without_a_word(tree: Path, capsys: Capture) -> None:
    """Two writers of one file overlap, and clocks are set back a little."""
    lines = [*opening(), event("retry", at(7), kind="x", attempt=1), *ending("success")]
    put(tree, summary(), lines)
    (entry,) = importing(capsys, tree)

    assert entry["problems"] == []
