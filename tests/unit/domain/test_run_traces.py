"""That files of a run are removed is recorded at any time, and moves nothing."""

from __future__ import annotations

import pytest
from given_when_then import CREATED, PERSON, attempt, do, fact, given, running, started

from tachograph.domain import errors
from tachograph.domain.events import FilesRemoved
from tachograph.domain.run import Run

ME = attempt(1)


def test_removed_files_are_recorded_of_a_run_that_is_over() -> None:
    case = running(do(Run.finish, ME, "success"))
    case.when(Run.record_files_removed, PERSON, "checkpoint", ["/a"], 9, "rule").then(
        fact(FilesRemoved, what="checkpoint", paths=["/a"], size=9, rule="rule", reason=None)
    )


def test_a_person_who_lets_files_go_can_say_why() -> None:
    remove = do(Run.record_files_removed, PERSON, "checkpoint", ["/a"], 9, "rule", reason="room")
    running().when_asked(remove).then(
        fact(FilesRemoved, what="checkpoint", paths=["/a"], size=9, rule="rule", reason="room")
    )
    running().when(
        Run.record_files_removed, PERSON, "checkpoint", ["/a"], 9, "rule", reason=" "
    ).then(errors.InvalidValueError)


def test_no_files_record_nothing() -> None:
    running().when(Run.record_files_removed, PERSON, "checkpoint", [], 0, "rule").then()


@pytest.mark.parametrize(
    ("what", "paths", "size", "rule"),
    [
        ("", ["/a"], 1, "r"),
        ("w", [""], 1, "r"),
        ("w", ["/a"], -1, "r"),
        ("w", ["/a"], 1, " "),
    ],
)
def test_what_makes_no_sense_is_refused(what: str, paths: list[str], size: int, rule: str) -> None:
    running().when(Run.record_files_removed, PERSON, what, paths, size, rule).then(
        errors.InvalidValueError
    )


def test_a_superseded_attempt_records_nothing() -> None:
    case = given(CREATED, started(1), started(2))
    case.when(Run.record_files_removed, ME, "w", ["/a"], 1, "r").then(errors.FencedError)
