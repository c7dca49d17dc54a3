"""Facts: what is stated, what follows from it, and that what nobody said stays unsaid."""

from __future__ import annotations

import pytest

from tachograph.domain import checks
from tachograph.domain.errors import InvalidValueError
from tachograph.domain.facts import (
    COUNT,
    DERIVED,
    KINDS_OF_FAULT,
    MEANINGS,
    NAMES,
    NUMBER,
    TEXT,
    Facts,
    span_words,
)


def test_every_fact_has_a_kind_and_a_meaning() -> None:
    for kind, meaning in {**MEANINGS, **DERIVED}.values():
        assert kind in (COUNT, NUMBER, TEXT)
        assert meaning
    assert MEANINGS.keys() | DERIVED.keys() == NAMES
    assert {f"{kind}_faults" for kind in KINDS_OF_FAULT} <= MEANINGS.keys()


def test_a_fact_that_does_not_exist_is_a_mistake() -> None:
    with pytest.raises(TypeError, match=r"there are no facts \['input'\]: there are inputs, "):
        Facts(input=3)
    with pytest.raises(KeyError):
        Facts().value("input")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 0) for name in ("faults", "effects", "quiet", "recovered", "blank")),
        *((name, 0) for name in ("batches_missing", "failed_phases", "tool_faults")),
        *((name, 0) for name in ("produced", "accounted", "made")),
        *((name, None) for name in ("inputs", "outputs", "asked", "parsed", "files_present")),
        *((name, None) for name in ("work", "done", "unaccounted", "deadline_left", "stopped")),
        ("batches_done", None),
    ],
)
def test_what_nobody_said_is_unsaid_or_did_not_happen(name: str, value: int | None) -> None:
    assert Facts().value(name) == value
    assert Facts().number(name) == value


@pytest.mark.parametrize(
    ("facts", "name", "value"),
    [
        (Facts(inputs=3), "work", 3),
        (Facts(extracted=9), "work", 9),
        (Facts(inputs=3, extracted=9), "work", 9),
        (Facts(inputs=3, extracted=9, filtered=6), "work", 3),
        (Facts(extracted=2, filtered=6), "work", 0),
        (Facts(filtered=6), "work", None),
        (Facts(outputs=1, accepted=2, parsed=3), "done", 1),
        (Facts(accepted=2, parsed=3), "done", 2),
        (Facts(parsed=3), "done", 3),
        (Facts(batches_done=0), "done", 0),
        (Facts(batches_done=1), "done", None),
        (Facts(outputs=2, batches_done=0), "done", 2),
        (Facts(parsed=3), "produced", 3),
        (Facts(outputs=4, quiet=2), "accounted", 6),
        (Facts(quiet=2), "accounted", 2),
        (Facts(inputs=9, outputs=4, quiet=2), "unaccounted", 3),
        (Facts(inputs=2, outputs=4), "unaccounted", 0),
        (Facts(inputs=9, quiet=2), "unaccounted", None),
        (Facts(files_expected=2, files_present=1), "made", 1),
        (Facts(faults=1, tool_faults=5), "faults", 1),
        (Facts(tool_faults=5, provider_faults=1, failed_phases=2), "faults", 8),
        (Facts(faults=0, tool_faults=5), "faults", 0),
        (Facts(deadline_left_seconds=2475), "deadline_left", "41 min"),
    ],
)
def test_facts_follow_from_others(facts: Facts, name: str, value: object) -> None:
    assert facts.value(name) == value


def test_a_text_is_no_number() -> None:
    assert Facts(stopped="budget").number("stopped") is None


def test_only_what_was_said_is_stored() -> None:
    facts = Facts(inputs=0, stopped="budget", minimum_fraction=0.5)

    assert facts.to_fields() == {"inputs": 0, "stopped": "budget", "minimum_fraction": 0.5}
    assert Facts.from_fields(facts.to_fields()) == facts


def test_a_fact_of_a_later_version_is_left_out() -> None:
    assert Facts.from_fields({"inputs": 3, "mood": "good"}) == Facts(inputs=3)


def test_what_a_job_states_goes_before_what_was_counted() -> None:
    counted = Facts(inputs=9, outputs=8, asked=4)

    assert Facts(outputs=0, stopped="x").over(counted) == Facts(9, 0, None, "x", asked=4)


def test_a_change_leaves_the_facts_it_came_from_alone() -> None:
    facts = Facts(inputs=9, outputs=8)

    assert facts.with_(outputs=None, quiet=1) == Facts(inputs=9, quiet=1)
    assert facts == Facts(inputs=9, outputs=8)
    assert facts != {"inputs": 9, "outputs": 8}


def test_facts_say_what_they_are() -> None:
    facts = Facts(inputs=9, declared="old")

    assert repr(facts) == "Facts(inputs=9, declared='old')"
    assert facts.words()["outputs"] == "?"
    assert facts.words()["work"] == 9


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h 0 min")],
)
def test_a_span_is_told_in_words(seconds: float, words: str) -> None:
    assert span_words(seconds) == words


@pytest.mark.parametrize(
    ("facts", "saying"),
    [
        (Facts(asked=-1), "asked is -1"),
        (Facts(blank=True), "blank is True"),
        (Facts(declared=" "), "declared is ' '"),
    ],
)
def test_facts_that_make_no_sense_are_refused(facts: Facts, saying: str) -> None:
    with pytest.raises(InvalidValueError, match=saying):
        checks.facts(facts)


def test_a_number_may_be_negative_or_a_fraction() -> None:
    checks.facts(Facts(deadline_left_seconds=-3.5, minimum_fraction=0.5))

    assert Facts(deadline_left_seconds=-3.5).value("deadline_left") == "0 s"
