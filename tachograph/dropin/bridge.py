"""What an imported `task_runtime` asks of the ledger: one question as JSON in, one answer out."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from tachograph.domain.errors import InvalidValueError, TachographError
from tachograph.dropin.adopting import adopt, files_apart
from tachograph.dropin.merging import wish_of
from tachograph.dropin.opening import is_fenced, open_tasks
from tachograph.dropin.runtime import find_card, list_cards, warn
from tachograph.dropin.syncing import write_card

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tachograph.domain.run import Run
    from tachograph.dropin.places import Workspace
    from tachograph.dropin.tasks import Tasks

    Fields = dict[str, Any]

TASK_TYPE = "task"


def run(workspace: Workspace, argv: Sequence[str]) -> int:  # noqa: ARG001  # like all programs
    """Answer the question on stdin, on stdout; refusals are answers too."""
    try:
        question = json.load(sys.stdin)
        tasks = open_tasks(workspace)
        try:
            answer = {"ok": True, "value": QUESTIONS[question["op"]](tasks, question)}
        finally:
            tasks.services.close()
    except (TachographError, OSError, ValueError, LookupError, TypeError) as error:
        kind = "fenced" if is_fenced(error) else "error"
        answer = {"ok": False, "error": str(error) or type(error).__name__, "kind": kind}
    sys.stdout.write(json.dumps(answer))
    return 0


def save(tasks: Tasks, card: Fields) -> Fields:
    """Apply what was changed in a card since it was loaded, and return the card as it is now.

    A card of a task that does not exist begins it.
    """
    if not card.get("id"):
        raise InvalidValueError("id", card.get("id"), "a card needs the id of its task")
    task_id = tasks.task_id(str(card["id"]))
    run = _run_of(tasks, task_id, card)
    if run is None:
        run = _begin(tasks, task_id, card)
    else:
        wish = wish_of(_base(tasks, run, card), card)
        wish.adapter = _adapter(tasks, wish.adapter)
        run = tasks.change_run(run, wish)
    problem = write_card(tasks, task_id)[1]
    if problem:
        warn(problem)
    return tasks.card(run)


def _run_of(tasks: Tasks, task_id: str, card: Fields) -> Run | None:
    """Return the execution that a card is of; one without a word of it is of the newest."""
    ledger = card.get("ledger")
    run = tasks.newest(task_id)
    if isinstance(ledger, dict) and run is not None and ledger.get("run_id") not in (None, run.id):
        return tasks.services.repository.get(str(ledger["run_id"])) or run
    if run is None and adopt(tasks, task_id) is not None:
        run = tasks.newest(task_id)
    return run


def _base(tasks: Tasks, run: Run, card: Fields) -> Fields:
    ledger = card.get("ledger")
    version = ledger.get("version") if isinstance(ledger, dict) else None
    if isinstance(version, int) and 0 < version <= run.version:
        found = tasks.card_at(run.id, version)
        if found is not None:
            return found
    return tasks.card(run)


def _begin(tasks: Tasks, task_id: str, card: Fields) -> Run:
    wish = wish_of({}, card)
    wish.adapter = _adapter(tasks, wish.adapter)
    return tasks.create(str(card.get("task_type") or TASK_TYPE), wish, given_id=task_id)


def _adapter(tasks: Tasks, written: str | None) -> str | None:
    """Return an adapter's absolute path; an empty text takes it away."""
    return tasks.workspace.adapter(written) if written else written


def _load(tasks: Tasks, question: Fields) -> Any:
    return find_card(tasks, str(question["task_id"]))


def _save(tasks: Tasks, question: Fields) -> Any:
    card = save(tasks, question["card"])
    return {"card": card, "path": str(tasks.workspace.card_file(str(card["id"])))}


def _list(tasks: Tasks, question: Fields) -> Any:
    found = list_cards(tasks, task_type=question.get("task_type"), status=question.get("status"))
    return {"cards": found, "unreadable": files_apart(tasks)[0]}


QUESTIONS: dict[str, Callable[[Tasks, Fields], Any]] = {
    "load": _load,
    "save": _save,
    "list": _list,
}
