"""Bounds on what a view keeps."""

from __future__ import annotations

import datetime as dt

import pytest

from tachograph.projections.folding import LONGEST_TEXT, clip, small


@pytest.mark.parametrize("value", [None, 7, "short", "x" * LONGEST_TEXT])
def test_what_fits_is_kept(value: object) -> None:
    assert clip(value) == value


def test_a_long_text_is_cut() -> None:
    assert clip("x" * (LONGEST_TEXT + 1)) == "x" * (LONGEST_TEXT - 1) + "…"


@pytest.mark.parametrize("value", [None, True, 1.5, "text", [], {}, {"a": [1, {"b": None}]}])
def test_a_small_plain_value_is_kept(value: object) -> None:
    assert small(value) == value


@pytest.mark.parametrize(
    "value",
    [
        "x" * 2000,
        ["x"] * 2000,
        {str(number): number for number in range(2000)},
        b"bytes",
        (1, 2),
        dt.date(2026, 3, 1),
        {"when": {dt.date(2026, 3, 1)}},
    ],
)
def test_a_large_or_unusual_value_is_left_out(value: object) -> None:
    assert small(value) is None


def test_a_deep_value_is_left_out() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]

    assert small(deep) is None
