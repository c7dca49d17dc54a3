"""A step's place in a foreign log is found by its name as a word, whatever letters it has."""

from __future__ import annotations

import pytest

from tachograph.domain import cron_log


@pytest.mark.parametrize(
    ("text", "names", "places"),
    [
        ("start\nprune: 3 files\nprune again", ["prune"], [("prune", 1)]),
        ("a\nb\nsync.all=done", ["sync.all"], [("sync.all", 2)]),
        ("a\nxsync.all=done\nsync.all", ["sync.all"], [("sync.all", 2)]),
        ("sync.allowed", ["sync.all"], []),
        ("prune_deep: 3", ["prune"], []),
    ],
)
def test_the_first_line_that_names_a_step_is_found(
    text: str, names: list[str], places: list[tuple[str, int]]
) -> None:
    assert list(cron_log._first_lines(text, names)) == places


@pytest.mark.parametrize(
    ("line", "named"),
    [("prune: ok", True), ("the prune", True), ("deep-prune", False), ("nothing here", False)],
)
def test_a_name_is_a_word(line: str, named: bool) -> None:
    assert cron_log._is_named("prune", line) is named
