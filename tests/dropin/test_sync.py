"""The card files follow the ledger; what somebody wrote into one by hand is never lost."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here

from tachograph import cards
from tachograph.cli.output import Output
from tachograph.cli.task_cards import follow
from tachograph.cli.workspace_shapes import WORKSPACE
from tachograph.dropin.syncing import sync_cards, write_card
from tachograph.dropin.wishes import Wish

if TYPE_CHECKING:
    from collections.abc import Callable

    from workspaces import Bench

    from tachograph.dropin.tasks import Tasks

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def task(tasks: Tasks) -> Tasks:
    """A workspace with one task, whose card is written."""
    wish = Wish(status="running", checkpoint=True, phase="collect", title="R", event="created")
    tasks.create("report", wish, given_id="job")
    assert write_card(tasks, "job") == (True, None)
    return tasks


def edit(empty: Bench, change: Callable[[dict[str, Any]], object]) -> str:
    card = empty.card()
    change(card)
    text = json.dumps(card)
    empty.path().write_text(text, encoding="utf-8")
    return text


def kept(empty: Bench) -> list[str]:
    """Return what is in the copies of edited files."""
    found = sorted(empty.workspace.cards.glob("job.json.edited-*"))
    return [path.read_text("utf-8") for path in found]


def test_a_file_has_the_published_form(task: Tasks, empty: Bench) -> None:
    task.change("job", Wish(title="Bericht für Zoë"))
    write_card(task, "job")
    text = empty.path().read_text("utf-8")

    assert text.startswith('{\n  "id": "job",\n')
    assert text.endswith("}\n")
    assert "Zoë" in text
    assert cards.is_sealed(json.loads(text))


def test_a_file_that_is_up_to_date_is_not_touched(task: Tasks, empty: Bench) -> None:
    before = empty.path().stat()

    assert write_card(task, "job") == (False, None)
    assert empty.path().stat().st_ino == before.st_ino


def test_a_file_that_was_lost_is_made_anew(task: Tasks, empty: Bench) -> None:
    before = empty.path().read_bytes()
    empty.path().unlink()

    assert sync_cards(task.services, task.workspace) == []
    assert empty.path().read_bytes() == before


def test_an_edit_by_hand_is_kept_reported_and_has_no_effect(task: Tasks, empty: Bench) -> None:
    text = edit(empty, lambda card: card.update(phase="deliver", notes="by hand"))
    task.change("job", Wish(checkpoint=True, message="going on"))
    write_card(task, "job")

    assert kept(empty) == [text]
    assert (empty.card()["phase"], empty.card()["notes"]) == ("collect", "")
    (note,) = empty.fields("note-added")
    assert 'phase: "collect" -> "deliver"; notes: "" -> "by hand"' in note["text"]
    (raised,) = empty.fields("attention-raised")
    assert raised["reason"] == "card_edited"
    assert raised["detail"].startswith("phase, notes (job.json.edited-")


def test_two_edits_are_both_kept(task: Tasks, empty: Bench) -> None:
    first = edit(empty, lambda card: card.update(notes="one"))
    write_card(task, "job")
    second = edit(empty, lambda card: card.update(notes="two"))
    write_card(task, "job")

    assert kept(empty) == [first, second]


@pytest.mark.parametrize(
    "change",
    [
        lambda card: card.pop("notes"),
        lambda card: card["meta"].update(a="1"),
        lambda card: card["history"].clear(),
        lambda card: card.pop("ledger") and card.update(status="done"),
        lambda card: card.update(ledger={"run_id": "other", "version": 1}, status="done"),
        lambda card: card["ledger"].update(version=10_000) or card.update(status="done"),
    ],
)
def test_every_kind_of_edit_is_seen(
    task: Tasks, empty: Bench, change: Callable[[dict[str, Any]], object]
) -> None:
    text = edit(empty, change)
    write_card(task, "job")

    assert kept(empty) == [text]
    assert len(empty.fields("note-added")) == 1


def test_another_layout_of_the_same_content_is_no_edit(task: Tasks, empty: Bench) -> None:
    edit(empty, lambda card: None)
    write_card(task, "job")

    assert kept(empty) == []
    assert empty.topics().count("note-added") == 0


def test_an_edit_of_a_finished_task_is_noted_too(task: Tasks, empty: Bench) -> None:
    task.change("job", Wish(result="done"))
    write_card(task, "job")
    edit(empty, lambda card: card.update(status="running"))
    write_card(task, "job")

    assert empty.card()["status"] == "done"
    assert empty.topics()[-1] == "note-added"


def test_a_file_that_cannot_be_read_is_left_alone_and_named(task: Tasks, empty: Bench) -> None:
    empty.path().write_text("{ half", encoding="utf-8")
    (problem,) = sync_cards(task.services, task.workspace, ["job"])

    assert "job.json was left alone: it is no JSON" in problem
    assert empty.path().read_text("utf-8") == "{ half"


def test_a_full_disk_loses_no_card_and_fails_no_command(
    task: Tasks, empty: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = empty.path().read_bytes()
    task.change("job", Wish(notes="new"))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tachograph.infra.writing.sync_file", full)

    assert write_card(task, "job") == (
        False,
        f"{empty.path()} was not written: No space left on device",
    )
    assert empty.path().read_bytes() == before
    assert [path.name for path in empty.workspace.cards.iterdir() if path.suffix == ".json"] == [
        "job.json"
    ]


def test_runs_that_are_no_tasks_have_no_card(task: Tasks, empty: Bench) -> None:
    from tachograph.starting import Start

    session = task.services.starter.start(Start("other", {}), task.services.owner())

    assert sync_cards(task.services, task.workspace, [session.run_id, "nothing"]) == []
    assert [path.name for path in empty.workspace.cards.glob("*.json")] == ["job.json"]


def test_an_older_card_never_comes_over_a_newer_one(task: Tasks, empty: Bench) -> None:
    """Processes that write at once leave the newest."""
    words = [sys.executable, "-c", WRITER, str(empty.root)]
    writers = [subprocess.Popen([*words, str(number)]) for number in range(3)]

    assert [writer.wait() for writer in writers] == [0, 0, 0]
    run = task.get("job")
    assert empty.card()["ledger"]["version"] == run.version
    assert len(empty.card()["meta"]) == 15


WRITER = """
import sys
from pathlib import Path
from tachograph.dropin.callers import Caller
from tachograph.dropin.opening import open_services
from tachograph.dropin.places import Workspace
from tachograph.dropin.syncing import write_card
from tachograph.dropin.tasks import Tasks
from tachograph.dropin.wishes import Wish

workspace = Workspace(Path(sys.argv[1]))
tasks = Tasks(open_services(workspace), workspace, Caller.outside())
for number in range(5):
    tasks.change("job", Wish(meta={f"{sys.argv[2]}-{number}": "x"}))
    write_card(tasks, "job")
"""


def test_other_commands_let_the_cards_follow(
    task: Tasks, empty: Bench, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    task.change("job", Wish(notes="new"))
    follow(task.services, ["job"], Output())
    assert empty.card()["notes"] == "new"
    empty.path().write_text("{", encoding="utf-8")
    follow(task.services, ["job"], Output())
    told = capsys.readouterr().err
    empty.workspace.cards.rename(empty.root / "elsewhere")
    follow(task.services, ["job"], Output())
    monkeypatch.setenv("OPENCLAW_WORKSPACE", str(empty.root))
    follow(task.services, ["job"], Output())

    assert "job.json was left alone" in told
    assert not empty.workspace.cards.exists()


def test_the_command_says_what_it_wrote(task: Tasks, empty: Bench, capsys: Capture) -> None:
    task.change("job", Wish(notes="new"))
    first = here(capsys, "workspace", "sync", "--workspace", empty.root)
    second = here(capsys, "workspace", "sync", "--workspace", empty.root)
    empty.path().write_text("{", encoding="utf-8")
    third = here(capsys, "workspace", "sync", "--workspace", empty.root, "--json")

    assert (first.returncode, first.stdout) == (0, f"{empty.path()}\n")
    assert (second.stdout, "up to date" in second.stderr) == ("", True)
    assert third.returncode == 1
    assert WORKSPACE["workspace-sync"].validate_json(third.stdout).written == []
    assert len(json.loads(third.stdout)["problems"]) == 1
