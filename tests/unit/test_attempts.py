"""Where one attempt ends and the next begins, in events that do not say so."""

from __future__ import annotations

from typing import Any

import pytest

from tachograph.attempts import parts_of
from tachograph.job_run_records import Line

LAST_US = 1_000


def lines(*said: str) -> list[Line]:
    """Return events, 1 µs apart: `+a` begins a phase, `-a` ends it, `=o` judges, `.` a batch."""
    found = []
    for number, text in enumerate(said, 1):
        mark, rest = text[0], text[1:]
        kinds: dict[str, tuple[str, dict[str, Any]]] = {
            "+": ("phase_start", {"phase": rest}),
            "-": ("phase_end", {"phase": rest, "status": "completed"}),
            "=": ("semantic_gate", {"outcome": rest}),
            ".": ("batch_complete", {"index": 0}),
        }
        kind, fields = kinds[mark]
        found.append(Line(number, number, kind, fields))
    return found


@pytest.mark.parametrize(
    ("said", "starts"),
    [
        ([], [LAST_US]),
        (["+a", "-a"], [1, LAST_US]),
        (["+a", "-a", "+b", "+a"], [1, 4, LAST_US]),
        (["+a", "=partial", "-a", "+b"], [1, 4, LAST_US]),
        (["+a", "=partial", "+b"], [1, LAST_US]),
        (["+a", ".", "+a", ".", "+a"], [1, 3, 5, LAST_US]),
    ],
)
def test_an_attempt_begins_where_a_phase_begins_again(said: list[str], starts: list[int]) -> None:
    parts = parts_of(lines(*said), LAST_US, set())

    assert [part.started_us for part in parts] == starts
    assert [part.last for part in parts] == [False] * (len(starts) - 1) + [True]
    assert sum(len(part.lines) for part in parts) == len(said)


def test_what_is_logged_after_the_beginning_of_the_last_belongs_to_it() -> None:
    first, last = parts_of(lines("+a", "+a", "+a"), 2, set())

    assert ([line.number for line in first.lines], [line.number for line in last.lines]) == (
        [1],
        [2, 3],
    )


def test_the_first_lines_go_on_with_an_attempt_that_was_told() -> None:
    going_on, again, last = parts_of(lines("-a", "+a"), LAST_US, {"a"}, goes_on=True)

    assert [part.goes_on for part in (going_on, again, last)] == [True, False, False]


def test_a_phase_that_was_begun_before_begins_another_attempt() -> None:
    again, last = parts_of(lines("+a"), LAST_US, {"a"}, goes_on=True)

    assert [part.goes_on for part in (again, last)] == [False, False]


@pytest.mark.parametrize(
    ("said", "leading"),
    [
        (["+a", "=partial", "+a", "=failed"], [True, True, True]),
        (["+a", "=success", "+a", "=failed"], [False, True, True]),
        (["+a", "=failed", "+a", "=empty"], [False, False, True]),
    ],
)
def test_after_an_end_nothing_leads_to_the_last(said: list[str], leading: list[bool]) -> None:
    parts = parts_of(lines(*said), LAST_US, set())

    assert [part.leads_to_last for part in parts] == leading


def test_a_summary_of_all_attempts_bounds_none() -> None:
    first, last = parts_of(lines("+a", "=partial", "+a", "=success"), 0, set(), of_all=True)

    assert (first.started_us, last.started_us) == (0, 3)
    assert (first.last, last.last) == (False, True)
    assert (first.leads_to_last, last.leads_to_last) == (True, True)


def test_a_summary_of_all_attempts_without_new_lines_goes_on() -> None:
    (part,) = parts_of([], 0, {"a"}, goes_on=True, of_all=True)

    assert (part.goes_on, part.last) == (True, True)
