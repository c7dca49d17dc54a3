"""Cards: cut from summaries."""

from __future__ import annotations

import pytest
from given_when_then import CREATED, OWNER, attempt, do, fact, given, started
from viewed import summary_of

from tachograph.domain import events
from tachograph.domain.outcome import OUTCOMES, is_terminal
from tachograph.domain.run import Run
from tachograph.projections.run_cards import card, is_open

ONE = attempt(1)


def cut(*history: object) -> dict[str, object]:
    return card(summary_of(given(*history).events))  # type: ignore[arg-type]


def test_a_card_holds_what_a_list_shows() -> None:
    shown = cut(CREATED, started(1), do(Run.report_progress, ONE, 1, 2, "files"))

    assert (shown["id"], shown["command"]) == ("job-code-report-0dc845e1", "code-report")
    assert (shown["epoch"], shown["owner"], shown["attempt_open"]) == (1, OWNER, True)
    assert shown["progress"] == {"completed": 1, "total": 2, "unit": "files"}
    assert (shown["attention"], shown["approval"]) == (False, None)


def test_a_card_says_what_a_person_should_look_at() -> None:
    shown = cut(
        CREATED,
        fact(events.AttentionRaised, reason="stalled"),
        fact(events.ApprovalRequested, approval="deploy", subject_digest="d"),
    )

    assert (shown["attention"], shown["approval"]) == (True, "deploy")


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_run_whose_attempt_ended_is_not_open(outcome: str) -> None:
    assert not is_open(cut(CREATED, started(1), do(Run.finish, ONE, outcome)))


def test_a_run_without_an_end_is_open() -> None:
    assert is_open(cut(CREATED))
    assert is_open(cut(CREATED, started(1)))


def test_a_cancelled_run_is_not_open() -> None:
    assert not is_open(cut(CREATED, started(1), do(Run.cancel, ONE, "enough")))


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_blocked_run_is_open_until_it_ends_for_good(outcome: str) -> None:
    blocked = cut(CREATED, started(1), do(Run.block, ONE, "waits"), do(Run.finish, ONE, outcome))

    assert is_open(blocked) == (not is_terminal(outcome))
