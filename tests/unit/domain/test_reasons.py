"""Every reason code has words, and says what would have let the gate judge."""

from __future__ import annotations

import pytest

from tachograph.domain import reasons
from tachograph.domain.default_policy import NEWEST, default_policy

TABLES = (reasons.BY_THE_GATE, reasons.BY_ITS_END, reasons.OF_A_STEP)


def test_no_code_means_two_things() -> None:
    codes = [code for table in TABLES for code in table]

    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
def test_every_rule_that_comes_with_us_has_words(version: int) -> None:
    codes = {rule.reason_code for rule in default_policy(version).rules}

    assert codes <= reasons.BY_THE_GATE.keys()


def test_no_word_is_for_a_rule_that_never_was() -> None:
    every = {
        rule.reason_code
        for version in range(1, NEWEST + 1)
        for rule in default_policy(version).rules
    }

    assert reasons.BY_THE_GATE.keys() == every


@pytest.mark.parametrize("code", [code for table in TABLES for code in table])
def test_a_code_is_told_in_a_clause(code: str) -> None:
    words = reasons.meaning(code)

    assert words
    assert not words.endswith(".")
    assert words[0].islower() or words.startswith("Ctrl")


def test_a_code_of_a_project_has_no_words_here() -> None:
    assert reasons.meaning("ours") is None
    assert reasons.meaning(None) is None
    assert reasons.otherwise("ours") is None
    assert reasons.otherwise(None) is None


def test_only_an_end_without_the_gate_could_have_been_otherwise() -> None:
    assert reasons.otherwise("no_input") is None
    assert reasons.otherwise("timeout") == "had it ended in time"
    assert reasons.otherwise("steps_failed") is None
