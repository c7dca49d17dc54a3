"""What a run is measured by: checked, stored without loss, added to and never lost."""

from __future__ import annotations

from typing import Any

import pytest

from tachograph.domain.errors import InvalidValueError
from tachograph.domain.expectations import Expectations

EVERYTHING: dict[str, Any] = {
    "inputs": 9,
    "extracted": 12,
    "minimum_fraction": 0.5,
    "files": ["/out/report.html"],
    "traces": {"/out/report.html": None},
    "deadline_us": 1_700_000_000_000_000,
}


def test_what_is_declared_is_stored_and_comes_back() -> None:
    said = Expectations(**EVERYTHING)
    said.check()

    assert said.to_fields() == EVERYTHING
    assert Expectations.from_fields(said.to_fields()).to_fields() == EVERYTHING


def test_what_is_not_declared_is_not_stored() -> None:
    assert Expectations().to_fields() == {}
    assert Expectations(inputs=0).to_fields() == {"inputs": 0}
    assert Expectations.from_fields(None).to_fields() == {}


def test_what_a_later_version_declares_is_ignored() -> None:
    assert Expectations.from_fields({"inputs": 3, "mood": "good"}).to_fields() == {"inputs": 3}


def test_what_is_said_later_counts_and_the_rest_stays() -> None:
    later = Expectations(inputs=10).over(Expectations(**EVERYTHING))

    assert later.to_fields() == {**EVERYTHING, "inputs": 10}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"inputs": -1}, "inputs is -1"),
        ({"extracted": 1.5}, "extracted is 1.5"),
        ({"deadline_us": -1}, "deadline_us is -1"),
        ({"minimum_fraction": -0.1}, "minimum fraction is -0.1"),
        ({"minimum_fraction": 1.1}, "it is a share, from 0 to 1"),
        ({"minimum_fraction": float("nan")}, "minimum fraction is nan"),
        ({"minimum_fraction": True}, "minimum fraction is True"),
        ({"files": [" "]}, "expected file is ' '"),
    ],
)
def test_what_makes_no_sense_is_refused(said: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidValueError, match=problem):
        Expectations(**said).check()


@pytest.mark.parametrize("fraction", [0, 1, 0.25])
def test_a_share_goes_from_none_to_all(fraction: float) -> None:
    Expectations(minimum_fraction=fraction).check()

    assert Expectations(minimum_fraction=fraction).to_fields() == {"minimum_fraction": fraction}
