"""Two values differ where a log would tell them apart, and nowhere else."""

from __future__ import annotations

from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.changes import Change, changes, same

leaves = st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.text(max_size=2)
nested = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)
trees = st.dictionaries(st.text(max_size=2), nested, max_size=4)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ([1], [True]),
        ((1,), [1]),
        ({1}, {True}),
        ({"a": 1}, {"a": 1.0}),
    ],
)
def test_values_that_python_calls_equal_are_told_apart(old: object, new: object) -> None:
    assert [change.new for change in changes({"a": old}, {"a": new})] != []


@pytest.mark.parametrize("value", [float("nan"), Decimal("sNaN"), {2, 1}, frozenset({1}), (1,)])
def test_values_that_python_does_not_call_equal_may_be_the_same(value: Any) -> None:
    assert same([value], [deepcopy(value)])


@given(tree=trees)
def test_a_value_does_not_differ_from_itself(tree: dict[Any, Any]) -> None:
    assert list(changes(tree, deepcopy(tree))) == []
    assert same(tree, deepcopy(tree))


@given(old=trees, new=trees)
def test_values_are_the_same_exactly_when_nothing_changed(
    old: dict[Any, Any], new: dict[Any, Any]
) -> None:
    assert same(old, new) == (list(changes(old, new)) == [])


@given(old=trees, new=trees)
def test_each_place_changes_once(old: dict[Any, Any], new: dict[Any, Any]) -> None:
    paths = [change.path for change in changes(old, new)]

    assert len(set(paths)) == len(paths)


def test_a_change_backwards_swaps_what_was_added_and_removed() -> None:
    old, new = {"a": {"b": 1}, "c": 2}, {"a": {"b": 3, "d": 4}}

    assert list(changes(old, new)) == [
        Change("c", "removed", 2, None),
        Change("a.b", "changed", 1, 3),
        Change("a.d", "added", None, 4),
    ]
    assert list(changes(new, old)) == [
        Change("a.d", "removed", 4, None),
        Change("a.b", "changed", 3, 1),
        Change("c", "added", None, 2),
    ]


def test_keys_that_do_not_count_are_left_out_at_the_outermost_level_only() -> None:
    old, new = {"v": 1, "gone": 1, "a": {"v": 1}}, {"v": 2, "a": {"v": 2}, "new": 1}

    assert [change.path for change in changes(old, new, without=("v", "gone", "new"))] == ["a.v"]
