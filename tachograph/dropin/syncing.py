"""Keep the card files of a workspace up to date with the ledger. An edit by hand is never lost."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tachograph import cards
from tachograph.domain import attention
from tachograph.dropin.callers import Caller
from tachograph.dropin.tasks import Tasks, is_task
from tachograph.infra.card_files import CardFiles, UnreadableCardError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tachograph.bootstrap import Services
    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run
    from tachograph.dropin.places import Workspace

    Card = dict[str, Any]

MOST_SHOWN = 60
"""Characters of a value that a note shows."""


def sync_cards(
    services: Services, workspace: Workspace, run_ids: Iterable[str] | None = None
) -> list[str]:
    """Write the card files of these runs, or of all tasks, and return what could not be done.

    Runs that are no tasks have no card. A file that is as it should be is not touched.
    """
    return sync_tasks(Tasks(services, workspace, Caller.outside()), run_ids)[1]


def sync_tasks(tasks: Tasks, run_ids: Iterable[str] | None = None) -> tuple[list[str], list[str]]:
    """Do so, and return the tasks whose files were written, and what could not be done."""
    if run_ids is None:
        wanted = [cards.task_id_of(run.id) for run in tasks.all()]
    else:
        wanted = list(dict.fromkeys(cards.task_id_of(run_id) for run_id in run_ids))
    written: list[str] = []
    problems: list[str] = []
    for task_id in wanted:
        done, problem = write_card(tasks, task_id)
        written += [task_id] * done
        problems += [problem] if problem else []
    return written, problems


def write_card(tasks: Tasks, task_id: str, *, taken_over: bool = False) -> tuple[bool, str | None]:
    """Write the card file of a task, when it differs; say whether, and what went wrong.

    The ledger has everything already, so that a file which cannot be written is no failure.
    `taken_over` says that what is in the file has just been imported, and is no edit.
    """
    files = CardFiles(tasks.workspace.cards)
    try:
        with files.lock():
            run = tasks.newest(task_id)
            if run is None or not is_task(run):
                return False, None
            return _write(tasks, files, run, task_id, taken_over=taken_over), None
    except UnreadableCardError as error:
        return False, f"{files.path(task_id)} was left alone: {error}"
    except OSError as error:
        return False, f"{files.path(task_id)} was not written: {error.strerror}"


def _write(tasks: Tasks, files: CardFiles, run: Run, task_id: str, *, taken_over: bool) -> bool:
    found = files.card(task_id)
    card = tasks.card(run)
    if found == card:
        return False
    if found is not None and not taken_over and not cards.is_sealed(found):
        fields = _edited(tasks, found, card)
        if fields:
            kept = files.keep_aside(task_id, _stamp(tasks))
            card = tasks.card(_note_edit(tasks, run, fields, kept))
    files.write(task_id, cards.to_text(card))
    return True


def _edited(tasks: Tasks, found: Card, now: Card) -> dict[str, tuple[Any, Any]]:
    """Return the fields that were edited: what they were, and what they were made."""
    ledger = found.get("ledger")
    before: Card | None = None
    if isinstance(ledger, dict) and ledger.get("run_id") == now["ledger"]["run_id"]:
        version = ledger.get("version")
        if isinstance(version, int) and 0 < version <= now["ledger"]["version"]:
            before = tasks.card_at(ledger["run_id"], version)
    before = before or now
    names = dict.fromkeys((*before, *found))
    return {
        name: (before.get(name), found.get(name))
        for name in names
        if name != "ledger" and before.get(name) != found.get(name)
    }


def _note_edit(tasks: Tasks, run: Run, fields: dict[str, tuple[Any, Any]], kept: Path) -> Run:
    """Record what was edited, so that a person sees it, and return the run with it."""
    said = "; ".join(
        f"{name}: {_shown(old)} -> {_shown(new)}" for name, (old, new) in fields.items()
    )
    text = f"The card file was edited by hand ({said}). The edit is kept as {kept.name}."
    session = tasks.services.session(run.id, 0)

    def note(run: Run, why: Cause) -> None:
        run.add_note(why, text, level="warning", source="card file")
        if not run.finished:
            run.raise_attention(why, attention.CARD_EDITED, f"{', '.join(fields)} ({kept.name})")

    session.execute(note)
    return session.run


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"


def _stamp(tasks: Tasks) -> str:
    moment = datetime.fromtimestamp(tasks.services.actor.now_us() // 1_000_000, UTC)
    return moment.strftime("%Y%m%dT%H%M%SZ")
