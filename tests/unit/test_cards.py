"""The card of a run: pure, deterministic, and proof against edits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from workbench import Workbench

from tachograph import cards
from tachograph.dropin.places import Workspace, find, of_store, runs_dispatcher

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.domain.run import Run


@pytest.fixture
def run() -> Run:
    return Workbench().start("report", run_id="job", title="R").run


def card_of(run: Run, **options: Any) -> cards.Card:
    return cards.render(run, "job", resume_runner="/w/resume.py", **options)


def test_a_run_that_no_script_made_has_a_card_too(run: Run) -> None:
    card = card_of(run)

    assert (card["id"], card["task_type"], card["title"]) == ("job", "report", "R")
    assert (card["status"], card["phase"], card["mode"]) == ("running", "", "full")
    assert (card["stale_after_minutes"], card["max_retries"]) == (0, 2)
    assert (card["resume_adapter"], card["resume_command_argv"]) == (None, [])


def test_the_same_run_gives_the_same_card(run: Run) -> None:
    assert cards.to_text(card_of(run)) == cards.to_text(card_of(run))


def test_any_change_breaks_the_seal(run: Run) -> None:
    card = card_of(run)
    again = json.loads(cards.to_text(card))

    assert cards.is_sealed(again)
    for name in card:
        if name != "ledger":
            assert not cards.is_sealed({**again, name: "changed"}), name
    assert not cards.is_sealed({**again, "more": 1})
    assert not cards.is_sealed({"id": "job"})
    assert not cards.is_sealed({**again, "ledger": {}})


def test_entries_of_others_stand_in_their_place(run: Run) -> None:
    run.history = [
        {"at": "2026-01-01T10:00:00Z", "event": "a"},
        {"at": "2026-01-01T12:00:00Z", "event": "c"},
        "odd",
    ]
    others = [
        {"at": "2026-01-01T11:00:00Z", "event": "b"},
        {"at": "2026-01-01T13:00:00Z", "event": "d"},
    ]
    history = card_of(run, entries=others)["history"]

    assert [entry["event"] if isinstance(entry, dict) else entry for entry in history] == [
        "a",
        "c",
        "odd",
        "b",
        "d",
    ]


@pytest.mark.parametrize(
    ("time_us", "card", "age"),
    [
        (0, {}, None),
        (5_000_000, {"updated_at": "1970-01-01T00:00:02Z"}, 3),
        (5_000_000, {"last_checkpoint_at": "1970-01-01T00:00:09Z"}, 0),
        (5_000_000, {"last_checkpoint_at": "soon"}, None),
    ],
)
def test_the_age_of_a_checkpoint(time_us: int, card: dict[str, str], age: int | None) -> None:
    assert cards.seconds_since_checkpoint(card, time_us) == age


def test_a_command_with_an_open_quote_is_one_word() -> None:
    assert cards.split("make 'it") == ["make 'it"]
    assert cards.split(None) == []


def test_a_workspace_is_found_upwards(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").touch()
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)

    assert find(None, {}, below).root == tmp_path
    assert find(None, {"OPENCLAW_WORKSPACE": str(below)}, tmp_path).root == below
    assert find(tmp_path, {"OPENCLAW_WORKSPACE": str(below)}, below).root == tmp_path


def test_the_workspace_of_a_store_is_known(tmp_path: Path) -> None:
    own = tmp_path / "data" / "tachograph"
    assert of_store(str(own), {}) is None
    (tmp_path / "AGENTS.md").touch()
    named = {"OPENCLAW_WORKSPACE": str(tmp_path)}

    for folder, environment in ((own, {}), (tmp_path / "elsewhere", named)):
        found = of_store(str(folder), environment)
        assert found is not None
        assert found.root == tmp_path
    assert of_store(str(tmp_path / "elsewhere"), {}) is None


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("", None),
        (None, None),
        ("jobs.report:resume", "jobs.report:resume"),
        ("a/b.py", "{root}/a/b.py"),
        ("/x/../b.py", "/b.py"),
    ],
)
def test_what_an_adapter_means(tmp_path: Path, written: str | None, found: str | None) -> None:
    expected = None if found is None else found.format(root=tmp_path)

    assert Workspace(tmp_path).adapter(written) == expected
    assert not runs_dispatcher(written)
