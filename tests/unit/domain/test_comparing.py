"""What counts of an event when two histories are compared."""

from __future__ import annotations

from tachograph.domain.comparing import essence

COMMON = {"originator_id": "r", "originator_version": 3, "time_us": 1, "by": ["a", "b", 1, 1]}


def test_an_attempt_is_no_part_of_the_history_that_is_compared() -> None:
    assert essence("run.attempt-started", {**COMMON, "epoch": 1}, 1) is None


def test_a_deadline_is_left_out_of_facts() -> None:
    facts = {"inputs": 3, "deadline_left_seconds": 4.5}
    fields = {**COMMON, "facts": facts, "outcome": "success", "evidence": {}}

    assert essence("run.semantic-gate-judged", fields, 1) == {
        "facts": {"inputs": 3},
        "outcome": "success",
    }


def test_facts_of_another_form_are_compared_as_they_are() -> None:
    fields = {**COMMON, "facts": None, "evidence": {}}

    assert essence("run.semantic-gate-judged", fields, 1) == {"facts": None}
