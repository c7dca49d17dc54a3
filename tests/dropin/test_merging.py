"""A saved card says what was changed in it, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tachograph.dropin.merging import is_newer, new_entries, wish_of
from tachograph.dropin.wishes import Wish, merged

BASE: dict[str, Any] = {
    "id": "job",
    "title": "T",
    "status": "running",
    "phase": "collect",
    "last_checkpoint_at": "2026-01-01T10:00:00+00:00",
    "updated_at": "2026-01-01T10:00:00+00:00",
    "safe_to_retry": True,
    "allow_auto_resume": False,
    "stale_after_minutes": 30,
    "max_retries": 2,
    "retry_count": 1,
    "resume_adapter": "/a.py",
    "resume_command": None,
    "artifacts": {"a": "1", "phase_x": {"b": "2"}},
    "meta": {"k": "v"},
    "notes": "",
    "history": [{"event": "created"}],
    "watchdog": {},
    "mine": 1,
}


def test_a_card_that_was_not_changed_wishes_nothing() -> None:
    assert wish_of(BASE, dict(BASE)) == Wish()
    assert wish_of(BASE, {"id": "job", "updated_at": "later"}) == Wish()


@pytest.mark.parametrize(
    ("change", "wish"),
    [
        ({"title": "U"}, {"title": "U"}),
        ({"notes": None}, {"notes": ""}),
        ({"phase": "render"}, {"phase": "render"}),
        ({"phase": ""}, {}),
        ({"status": "done"}, {"status": "done"}),
        ({"status": ""}, {}),
        ({"safe_to_retry": False}, {"safe_to_retry": False}),
        ({"allow_auto_resume": 1}, {"allow_auto_resume": True}),
        ({"stale_after_minutes": "45"}, {"stale_after_minutes": 45.0}),
        ({"stale_after_minutes": "soon"}, {}),
        ({"max_retries": 5}, {"max_retries": 5}),
        ({"retry_count": 3}, {"retries": 2}),
        ({"resume_adapter": None}, {"adapter": ""}),
        ({"resume_command": "make"}, {"resume_command": "make"}),
        ({"last_resume_error": "x"}, {"error": "x"}),
        ({"artifacts": {"a": "1"}}, {"artifacts": {"phase_x": None}}),
        (
            {"artifacts": {"a": "9", "phase_x": {"c": "3"}}},
            {"artifacts": {"a": "9", "phase_x": {"b": None, "c": "3"}}},
        ),
        ({"artifacts": "odd"}, {}),
        ({"meta": {"k": "v", "n": 1}}, {"meta": {"n": 1}}),
        ({"mine": 2, "yours": [1]}, {"more": {"mine": 2, "yours": [1]}}),
        ({"watchdog": {"slot": "f"}}, {"watchdog": {"slot": "f"}}),
    ],
)
def test_each_change_is_a_wish(change: dict[str, Any], wish: dict[str, Any]) -> None:
    assert wish_of(BASE, {**BASE, **change}) == Wish(**wish)


def test_a_newer_time_is_a_checkpoint_with_the_word_it_had() -> None:
    entries = [{"event": "created"}, {"event": "mine", "message": "100 rows"}]
    card = {**BASE, "last_checkpoint_at": "2026-01-01T10:00:05Z", "history": entries}

    assert wish_of(BASE, card) == Wish(
        checkpoint=True, status="running", message="100 rows", entries=[entries[1]]
    )


@pytest.mark.parametrize(
    ("theirs", "base", "newer"),
    [
        ("2026-01-01T10:00:01+00:00", "2026-01-01T10:00:00+00:00", True),
        ("2026-01-01T11:00:00+01:00", "2026-01-01T10:00:00+00:00", True),
        ("2026-01-01T10:00:00+00:00", "2026-01-01T10:00:00+00:00", False),
        ("2026-01-01T09:00:00+00:00", "2026-01-01T10:00:00+00:00", False),
        ("2026-01-01T10:00:00.5", None, True),
        ("soon", None, False),
        (None, None, False),
    ],
)
def test_whether_a_time_is_newer(theirs: Any, base: Any, newer: bool) -> None:
    assert is_newer(theirs, base) is newer


def test_only_new_entries_are_added_in_their_order() -> None:
    base = [{"event": "a"}, {"event": "b"}]

    assert new_entries(base, [{"event": "b"}, "odd", {"event": "c"}, {"event": "a"}]) == [
        {"event": "c"}
    ]
    assert new_entries(base, None) == []
    assert new_entries(None, base) == base


def test_changes_reach_into_tables() -> None:
    assert merged({"a": {"b": 1, "c": 2}}, {"a": {"b": None}, "d": 4}) == {"a": {"c": 2}, "d": 4}
