"""Take over the cards that a workspace had before, of both shapes, with their history.

A file that cannot be read is reported by name and left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph import cards
from tachograph.domain import ids
from tachograph.domain.errors import TachographError
from tachograph.dropin.callers import Caller
from tachograph.dropin.errors import TaskExistsError, TaskNotImportedError
from tachograph.dropin.merging import KNOWN, new_entries
from tachograph.dropin.syncing import write_card
from tachograph.dropin.tasks import Tasks
from tachograph.dropin.wishes import Past, Wish
from tachograph.infra.card_files import CardFiles, UnreadableCardError, readable

if TYPE_CHECKING:
    from tachograph.domain.run import Run
    from tachograph.dropin.places import Workspace

    Card = dict[str, Any]

TASK_TYPE = "task"
"""Type of a card that names none."""
ARTICLE_RETRIES = 3
ARTICLE_NAMES = frozenset({"task_id", "metadata", "checkpoints"})
"""Fields that only the article's shape has."""

IMPORTED = "imported"
KNOWN_ALREADY = "known"
UNREADABLE = "unreadable"


def import_cards(workspace: Workspace, tasks: Tasks | None, *, dry_run: bool) -> list[Card]:
    """Take over every card that is not in the ledger, and say of each file what came of it.

    Each answer has `file`, `task_id`, `state` (imported, known or unreadable), `status` and
    `problem`. `tasks` are None in a dry run where there is no store yet.
    """
    files = CardFiles(workspace.cards)
    recorded = None if dry_run else tasks
    return [_import(tasks, recorded, files, name, found) for name, found in readable(files)]


def _import(
    tasks: Tasks | None, recorded: Tasks | None, files: CardFiles, name: str, found: Card | str
) -> Card:
    answer: Card = {
        "file": str(files.path(name)),
        "task_id": name,
        "state": UNREADABLE,
        "status": None,
        "problem": found if isinstance(found, str) else None,
    }
    if isinstance(found, str):
        return answer
    try:
        task_id = ids.task_id(name)
        answer["task_id"] = task_id
        run = None if tasks is None else tasks.newest(task_id)
        if run is None:
            card = published(found, task_id)
            if recorded is not None:
                run = _record(recorded, card)
                write_card(recorded, task_id, taken_over=True)
            status = card["status"] if run is None else cards.status(run)
            return {**answer, "state": IMPORTED, "status": status}
    except (TachographError, ValueError, TypeError) as error:
        return {**answer, "problem": str(error)}
    return {**answer, "state": KNOWN_ALREADY, "status": cards.status(run)}


def adopt(tasks: Tasks, task_id: str, *, dry_run: bool = False) -> Card | None:
    """Take over the card of a task from its file, and return it; None when there is none.

    A dry run only returns it. Raises TaskNotImportedError for a file that cannot be read.
    """
    files = CardFiles(tasks.workspace.cards)
    try:
        found = files.card(task_id)
        if found is None:
            return None
        card = published(found, task_id)
    except (UnreadableCardError, TachographError, ValueError, TypeError) as error:
        raise TaskNotImportedError(task_id, files.path(task_id), error) from error
    if not dry_run:
        try:
            _record(tasks, card)
        except TaskExistsError:  # another process was first
            return card
        write_card(tasks, task_id, taken_over=True)
    return card


def files_apart(tasks: Tasks) -> tuple[list[dict[str, str]], list[str]]:
    """Return the card files that cannot be read and why, and the tasks that are only in a file."""
    files = CardFiles(tasks.workspace.cards)
    unreadable: list[dict[str, str]] = []
    only: list[str] = []
    for name, found in readable(files):
        try:
            if isinstance(found, str):
                raise UnreadableCardError(found)
            if tasks.newest(ids.task_id(name)) is None:
                published(found, name)
                only.append(name)
        except (UnreadableCardError, TachographError, ValueError, TypeError) as error:
            unreadable.append({"file": str(files.path(name)), "problem": str(error)})
    return unreadable, only


def published(card: Card, task_id: str) -> Card:
    """Return a card of either shape in the published one, with every field that it must have.

    Raises ValueError for a value that can mean nothing.
    """
    article = ARTICLE_NAMES & card.keys() and "id" not in card
    times = {name: card.get(name) for name in _TIMES}
    found = {
        "id": task_id,
        "task_type": str(card.get("task_type") or TASK_TYPE),
        "title": str(card.get("title") or ""),
        "mode": str(card.get("mode") or cards.MODE),
        "owner_skill": str(card.get("owner_skill") or ""),
        "status": str(card.get("status") or cards.RUNNING),
        "phase": str(card.get("phase") or ""),
        **times,
        "allow_auto_resume": bool(card.get("allow_auto_resume", False)),
        "safe_to_retry": bool(card.get("safe_to_retry", True)),
        "stale_after_minutes": _whole(card, "stale_after_minutes", cards.DEFAULT_STALE_MINUTES),
        "retry_count": _whole(card, "retry_count", 0),
        "max_retries": _whole(
            card, "max_retries", ARTICLE_RETRIES if article else cards.DEFAULT_MAX_RETRIES
        ),
        "resume_adapter": card.get("resume_adapter") or None,
        "resume_command": card.get("resume_command") or None,
        "resume_command_argv": cards.split(card.get("resume_command")),
        "artifacts": _table(card, "artifacts"),
        "notes": str(card.get("notes") or ""),
        "meta": _table(card, "meta") or _table(card, "metadata"),
        "history": _history(card),
        **{name: card[name] for name in _ATTEMPTS if card.get(name)},
        "watchdog": _table(card, "watchdog"),
    }
    found["updated_at"] = times["updated_at"] or times["last_checkpoint_at"] or times["created_at"]
    more = {
        name: value
        for name, value in card.items()
        if name not in KNOWN and name not in ARTICLE_NAMES and value is not None
    }
    return {**found, **more}


_ATTEMPTS = ("last_resume_attempt_at", "last_resume_error")
_TIMES = ("created_at", "updated_at", "last_checkpoint_at")


def _record(tasks: Tasks, card: Card) -> Run:
    """Record a card as a run: one commit, its history taken in as it is."""
    outside = Tasks(tasks.services, tasks.workspace, Caller.outside())
    wish = Wish(
        status=card["status"],
        phase=card["phase"] or None,
        checkpoint=card["last_checkpoint_at"] is not None and card["status"] != cards.PENDING,
        title=card["title"],
        mode=card["mode"],
        owner_skill=card["owner_skill"],
        notes=card["notes"] or None,
        adapter=tasks.workspace.adapter(_text(card["resume_adapter"])),
        resume_command=card["resume_command"],
        stale_after_minutes=card["stale_after_minutes"],
        max_retries=card["max_retries"],
        safe_to_retry=card["safe_to_retry"],
        allow_auto_resume=card["allow_auto_resume"],
        retries=card["retry_count"],
        attempt_at=card.get("last_resume_attempt_at"),
        error=card.get("last_resume_error"),
        artifacts=card["artifacts"],
        meta=card["meta"],
        watchdog=card["watchdog"],
        more={name: value for name, value in card.items() if name not in KNOWN},
        entries=card["history"],
        past=_past(card, tasks.services.actor.now_us()),
    )
    return outside.create(card["task_type"], wish, given_id=card["id"])


def _past(card: Card, now_us: int) -> Past:
    """Return what a card says of its past; no clock that was wrong puts it into the future."""
    said = {name: card[name] for name in _TIMES if cards.parse_iso(card[name]) is not None}
    worked_us = _time_us(said.get("last_checkpoint_at") or said.get("updated_at"), now_us)
    created_us = _time_us(said.get("created_at"), now_us if worked_us is None else worked_us)
    entry = {
        "at": cards.iso(now_us),
        "event": "imported",
        "message": "taken over from its card file",
    }
    return Past(now_us, worked_us if created_us is None else created_us, worked_us, said, entry)


def _time_us(text: str | None, most_us: int) -> int | None:
    moment = cards.parse_iso(text)
    return None if moment is None else max(0, min(round(moment.timestamp() * 1_000_000), most_us))


def _history(card: Card) -> list[Card]:
    """Return the entries of a card; an article's checkpoints are such entries."""
    entries = new_entries(None, card.get("history"))
    checkpoints = card.get("checkpoints")
    for point in checkpoints if isinstance(checkpoints, list) else ():
        if isinstance(point, dict):
            entries.append({**point, "event": point.get("event", "checkpoint")})
    return entries


def _table(card: Card, name: str) -> Card:
    value = card.get(name)
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else {}


def _whole(card: Card, name: str, default: int) -> int:
    value = card.get(name)
    if value is None:
        return default
    try:
        return max(0, int(float(value)))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"its {name} is {value!r}, no number") from error


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
