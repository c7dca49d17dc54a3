"""What a repair takes: nothing that was not asked for, and of each queue its share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from given_jobs import CANCELLED, DEAD, HISTORIES, SECOND_US, START_US, after
from hypothesis import given
from hypothesis import strategies as some

from tachograph.domain.errors import InvalidValueError
from tachograph.domain.queue_selection import (
    CANCEL_RULE,
    PRUNE_RULE,
    REQUEUE_RULE,
    RESTORE_RULE,
    RULES,
    Rule,
    Selection,
    fits,
)
from tachograph.domain.queue_settings import DAY_US
from tachograph.domain.queue_shares import shares
from tachograph.projections.queue_health import matters_us

if TYPE_CHECKING:
    from given_jobs import Fact

QUEUES = some.dictionaries(some.text("abcd", min_size=1), some.integers(0, 3_000), max_size=6)


@given(QUEUES, some.integers(1, 4_000))
def test_shares_are_no_more_than_there_is_and_as_much_as_can_be(
    available: dict[str, int], most: int
) -> None:
    given_ = shares(available, most)

    assert given_.keys() == available.keys()
    assert all(0 <= given_[name] <= number for name, number in available.items())
    assert sum(given_.values()) == min(most, sum(available.values()))


@given(QUEUES, some.integers(1, 4_000))
def test_no_queue_is_starved_while_the_bound_allows(available: dict[str, int], most: int) -> None:
    given_ = shares(available, most)
    filled = [name for name, number in available.items() if number]

    assert sum(1 for name in filled if given_[name]) == min(most, len(filled))


@given(QUEUES, some.integers(1, 4_000))
def test_who_gets_less_than_another_had_no_more(available: dict[str, int], most: int) -> None:
    given_ = shares(available, most)
    wanting = [given_[name] for name, number in available.items() if given_[name] < number]

    assert max(given_.values(), default=0) <= min(wanting, default=max([0, *given_.values()])) + 1


def test_101_and_3_share_50() -> None:
    """Case 31: the summary queue is not starved by the memory queue."""
    assert shares({"memory": 101, "summary": 3}, 50) == {"memory": 47, "summary": 3}
    assert shares({"memory": 54, "summary": 0}, 50) == {"memory": 50, "summary": 0}
    assert shares({"memory": 5, "summary": 5}, 1) == {"memory": 1, "summary": 0}


@pytest.mark.parametrize(
    "said",
    [
        {"ids": []},
        {"ids": [""]},
        {"ids": ["a", " "]},
        {"ids": "abc"},
        {"queues": []},
        {"queues": [""]},
        {"queues": ["me mory"]},
        {"statuses": []},
        {"statuses": ["gone"]},
        {"older_than_us": 0},
        {"older_than_us": -1},
        {"older_than_us": math.nan},
        {"older_than_us": 2.5},
        {"older_than_us": True},
        {"error_pattern": ""},
        {"error_pattern": "  "},
        {"max_batch": 0},
        {"max_batch": -5},
        {"max_batch": math.nan},
        {"max_batch": "abc"},
        {"max_batch": True},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_an_error(said: dict[str, Any]) -> None:
    """Trap: such a filter was dropped, and the repair took what it should have left."""
    with pytest.raises(InvalidValueError):
        Selection(**said)


@pytest.mark.parametrize("rule", [CANCEL_RULE, PRUNE_RULE], ids=lambda rule: rule.verb)
def test_cancel_and_prune_take_at_most_1000(rule: Rule) -> None:
    """Trap: a negative batch size meant no bound at all."""
    rule.check(Selection(max_batch=1_000))
    with pytest.raises(InvalidValueError, match="at most 1000"):
        rule.check(Selection(max_batch=1_001))
    with pytest.raises(InvalidValueError, match="at most 1000"):
        rule.check(Selection(ids=[str(number) for number in range(1_001)]))


def test_a_status_that_a_repair_cannot_take_is_an_error() -> None:
    for rule in RULES.values():
        for status in HISTORIES:
            if status in rule.takes:
                rule.check(Selection(statuses=[status]))
            else:
                with pytest.raises(InvalidValueError):
                    rule.check(Selection(statuses=[status]))


def mismatch(rule: Rule, selection: Selection, history: tuple[Fact, ...], days: float) -> str:
    """Say why a job with a history is not taken, so many days after it; empty where it is."""
    job = after(*history)
    since_us = matters_us(job)
    return rule.mismatch(selection, job, since_us, since_us + round(days * DAY_US)) or ""


@pytest.mark.parametrize(
    ("rule", "days", "taken"),
    [
        (REQUEUE_RULE, 0, {"dead"}),
        (CANCEL_RULE, 29, set()),
        (CANCEL_RULE, 31, {"dead", "completed"}),
        (PRUNE_RULE, 89, set()),
        (PRUNE_RULE, 91, {"dead", "completed", "cancelled"}),
        (RESTORE_RULE, 0, {"cancelled", "pruned"}),
    ],
)
def test_what_each_repair_takes_by_itself(rule: Rule, days: float, taken: set[str]) -> None:
    assert taken == {
        status
        for status, history in HISTORIES.items()
        if not mismatch(rule, Selection(), history, days)
    }


def test_ids_name_jobs_whatever_their_age() -> None:
    """Trap: the age by default counted for ids too, so that a young job matched nothing."""
    named = Selection(ids=["x"])

    assert not mismatch(CANCEL_RULE, named, DEAD, 0)
    assert not mismatch(PRUNE_RULE, named, CANCELLED, 0)
    assert not mismatch(CANCEL_RULE, named, HISTORIES["leased"], 0)


def test_what_is_asked_for_besides_ids_counts() -> None:
    old = Selection(ids=["x"], older_than_us=DAY_US)

    assert "no longer than 1d00h" in mismatch(CANCEL_RULE, old, DEAD, 0.5)
    assert not mismatch(CANCEL_RULE, old, DEAD, 1.5)
    assert "it is pending" in mismatch(REQUEUE_RULE, Selection(ids=["x"]), HISTORIES["pending"], 9)
    elsewhere = Selection(ids=["x"], queues=["summary"])
    assert mismatch(CANCEL_RULE, elsewhere, DEAD, 0) == "it is in queue memory"


def test_waiting_jobs_are_cancelled_whatever_their_age_when_asked_for() -> None:
    assert not mismatch(CANCEL_RULE, Selection(statuses=["pending"]), HISTORIES["pending"], 0)
    assert mismatch(CANCEL_RULE, Selection(statuses=["dead"]), DEAD, 0)


def test_the_age_counts_from_the_death() -> None:
    """Trap: it counted from when the job was enqueued."""
    from given_jobs import died, enqueued, failed, leased

    late = (enqueued(max_attempts=1), leased(1, 9_000), failed(1, 9_000), died(9_001))
    job = after(*late)
    selection = Selection(older_than_us=3_600 * SECOND_US)
    now_us = START_US + 9_100 * SECOND_US

    assert matters_us(job) == START_US + 9_001 * SECOND_US
    assert REQUEUE_RULE.mismatch(selection, job, matters_us(job), now_us) is not None


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("boom", "It went BOOM.", True),
        ("100%", "100 of them", False),
        ("100%", "at 100% of it", True),
        ("a_b", "axb", False),
        ("time*connect", "timeout: cannot connect", True),
        ("connect*time", "timeout: cannot connect", False),
        ("aa*aa", "aaa", False),
        ("STRASSE", "Straße 5", True),
        ("[a-z]", "abc", False),
    ],
)
def test_a_pattern_is_a_text_in_which_only_the_star_is_special(
    pattern: str, text: str, found: bool
) -> None:
    """Trap: % and _ were wildcards that nobody had asked for."""
    assert fits(pattern, text) is found


@given(some.text(min_size=1), some.text(), some.text())
def test_a_text_without_star_is_found_wherever_it_is(part: str, before: str, behind: str) -> None:
    if "*" not in part:
        assert fits(part, f"{before}{part}{behind}")
