"""The program `scripts/task_runtime.py`: its commands, options and answers, over the ledger."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from tachograph import cards
from tachograph.domain.errors import TachographError
from tachograph.dropin.adopting import adopt, files_apart
from tachograph.dropin.errors import PairError, TaskNotFoundError
from tachograph.dropin.opening import exit_code, open_tasks
from tachograph.dropin.syncing import write_card
from tachograph.dropin.wishes import Wish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tachograph.dropin.places import Workspace
    from tachograph.dropin.tasks import Tasks

    Answer = dict[str, Any]
    Handler = Callable[[Tasks, argparse.Namespace], Answer]

PROGRAM = "task_runtime.py"
READING = frozenset({"inspect", "list", "stale"})
EVENTS = {
    "checkpoint": "checkpoint",
    "update": "update",
    "complete": "complete",
    "block": "blocked",
    "fail": "failed",
}
"""By command: the name of its history entry, which is also the `action` of its answer."""
RESULTS = {"complete": cards.DONE, "block": cards.BLOCKED, "fail": cards.TASK_FAILED}


def run(workspace: Workspace, argv: Sequence[str]) -> int:
    """Run one command, print its answer or its error as JSON, and return the exit code."""
    args = parser().parse_args(argv)
    try:
        tasks = open_tasks(workspace)
        try:
            answer = HANDLERS[args.command](tasks, args)
        finally:
            tasks.services.close()
    except (TachographError, OSError, ValueError) as error:
        fail(error)
        return exit_code(error)
    sys.stdout.write(json.dumps(answer, ensure_ascii=False, indent=2) + "\n")
    return 0


def fail(error: BaseException) -> None:
    """Print an error as JSON on stderr."""
    text = json.dumps({"ok": False, "error": str(error)}, ensure_ascii=False)
    sys.stderr.write(text + "\n")


def warn(text: str, program: str = PROGRAM) -> None:
    """Say on stderr what a person should know."""
    sys.stderr.write(f"{program}: {text}\n")


# The commands.


def _create(tasks: Tasks, args: argparse.Namespace) -> Answer:
    wish = _wish(tasks, args)
    wish.event = "created"
    wish.message = args.notes or "task created"
    wish.mode, wish.owner_skill = args.mode, args.owner_skill
    wish.status = args.status
    wish.checkpoint = args.status == cards.RUNNING
    if args.task_id:
        _adopt(tasks, args.task_id)
    run = tasks.create(args.task_type, wish, given_id=args.task_id)
    return _answer(tasks, "create", run)


def _change(tasks: Tasks, args: argparse.Namespace) -> Answer:
    wish = _wish(tasks, args)
    wish.event = EVENTS[args.command]
    wish.message = args.message or ""
    wish.status = args.status
    wish.checkpoint = args.command == "checkpoint"
    wish.result = RESULTS.get(args.command)
    if wish.result is not None and args.status in cards.WORDS:
        wish.result = None  # the word that was given says itself what it means
    _adopt(tasks, args.task_id)
    return _answer(tasks, wish.event, tasks.change(args.task_id, wish))


def _mark_retry(tasks: Tasks, args: argparse.Namespace) -> Answer:
    said = args.message or args.error or "resume attempt recorded"
    wish = Wish(event="resume-attempt", message=said, retries=1, error=args.error)
    _adopt(tasks, args.task_id)
    return _answer(tasks, "mark-retry", tasks.change(args.task_id, wish))


def _inspect(tasks: Tasks, args: argparse.Namespace) -> Answer:
    card = find_card(tasks, args.task_id)
    path = tasks.workspace.card_file(str(card["id"]))
    return {"ok": True, "action": "inspect", "task": card, "task_path": str(path)}


def _list(tasks: Tasks, args: argparse.Namespace) -> Answer:
    found = list_cards(tasks, task_type=args.task_type, status=args.status)
    if args.only_stale:
        found = [card for card in found if _is_stale(tasks, card)]
    return _answers(tasks, "list", found)


def _stale(tasks: Tasks, args: argparse.Namespace) -> Answer:
    found = [
        card
        for card in list_cards(tasks, task_type=args.task_type)
        if _is_stale(tasks, card)
        and (not args.require_resume_command or card["resume_command"] or card["resume_adapter"])
    ]
    return _answers(tasks, "stale", found)


HANDLERS: dict[str, Handler] = {
    "create": _create,
    **dict.fromkeys(EVENTS, _change),
    "inspect": _inspect,
    "list": _list,
    "stale": _stale,
    "mark-retry": _mark_retry,
}


# What they share.


def find_card(tasks: Tasks, task_id: str) -> dict[str, Any]:
    """Return the card of a task; one that is in its file only, as it is there.

    Raises TaskNotFoundError, or TaskNotImportedError for a file that cannot be read.
    """
    run = tasks.newest(tasks.task_id(task_id))
    if run is not None:
        return tasks.card(run)
    found = adopt(tasks, tasks.task_id(task_id), dry_run=True)
    if found is None:
        raise TaskNotFoundError(task_id)
    return found


def list_cards(
    tasks: Tasks, *, task_type: str | None = None, status: str | None = None
) -> list[dict[str, Any]]:
    """Return the cards of all tasks, latest update first; files not imported are among them."""
    found = {str(card["id"]): card for card in map(tasks.card, tasks.all())}
    for task_id in files_apart(tasks)[1]:
        card = adopt(tasks, task_id, dry_run=True) if task_id not in found else None
        if card is not None:
            found[task_id] = card
    return newest_first(
        card
        for card in found.values()
        if task_type in (None, "", card["task_type"]) and status in (None, "", card["status"])
    )


def newest_first(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return cards by their last update, the latest first."""
    return sorted(found, key=lambda card: _instant(card["updated_at"]), reverse=True)


def _instant(text: Any) -> float:
    moment = cards.parse_iso(text)
    return 0.0 if moment is None else moment.timestamp()


def _is_stale(tasks: Tasks, card: dict[str, Any]) -> bool:
    return cards.is_stale(card, tasks.services.actor.now_us())


def _adopt(tasks: Tasks, task_id: str) -> None:
    """Take a card over that is in its file only, before it is changed."""
    sanitised = tasks.task_id(task_id)
    if tasks.newest(sanitised) is None:
        adopt(tasks, sanitised)


def _answer(tasks: Tasks, action: str, run: Any) -> Answer:
    task_id = cards.task_id_of(run.id)
    _, problem = write_card(tasks, task_id)
    if problem:
        warn(problem)
    return {"ok": True, "action": action, "task": tasks.result(tasks.card(tasks.get(task_id)))}


def _answers(tasks: Tasks, action: str, found: list[dict[str, Any]]) -> Answer:
    results = [tasks.result(card) for card in found]
    answer = {"ok": True, "action": action, "count": len(results), "tasks": results}
    unreadable = files_apart(tasks)[0]
    if unreadable:
        answer["unreadable"] = unreadable
    return answer


def _wish(tasks: Tasks, args: argparse.Namespace) -> Wish:
    """Return what the options that most commands share ask for."""
    wish = Wish(
        phase=args.phase or None,
        title=getattr(args, "title", None) or None,
        notes=args.notes or None,
        artifacts=pairs(args.artifact),
        meta=pairs(args.meta),
        safe_to_retry=args.safe_to_retry,
        allow_auto_resume=args.allow_auto_resume,
        stale_after_minutes=getattr(args, "stale_after_minutes", None),
        max_retries=getattr(args, "max_retries", None),
    )
    wish.adapter = tasks.workspace.adapter(getattr(args, "resume_adapter", None))
    wish.resume_command = getattr(args, "resume_command", None) or None
    if wish.phase is not None:
        wish.artifact_phases = dict.fromkeys(wish.artifacts, wish.phase)
    return wish


def pairs(texts: Sequence[str]) -> dict[str, Any]:
    """Return `key=value` texts as a dict. Raises PairError.

    >>> pairs(["report = a=b "])
    {'report': 'a=b'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise PairError("expected key=value, and there is no `=`", text)
        if not key.strip():
            raise PairError("there is nothing before the `=`", text)
        found[key.strip()] = value.strip()
    return found


# The options.


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    main = argparse.ArgumentParser(PROGRAM, description="Keep durable cards of long-running work.")
    commands = main.add_subparsers(dest="command", required=True)
    _add_create(commands.add_parser("create", help="Begin a task."))
    for name, text in (
        ("checkpoint", "Record progress."),
        ("update", "Change what the card says, without touching its checkpoint."),
    ):
        each = commands.add_parser(name, help=text)
        each.add_argument("task_id")
        _add_common(each, message=name, status=None)
        _add_resume(each)
    for name, status in RESULTS.items():
        each = commands.add_parser(name, help=f"End a task as {status}.")
        each.add_argument("task_id")
        said = {"complete": "completed", "block": "blocked", "fail": "failed"}[name]
        _add_common(each, message=f"task {said}", status=status, flags=False)
    commands.add_parser("inspect", help="Show the whole card.").add_argument("task_id")
    _add_looking(commands)
    retry = commands.add_parser("mark-retry", help="Record that a resume was attempted.")
    retry.add_argument("task_id")
    retry.add_argument("--message")
    retry.add_argument("--error")
    return main


def _add_create(each: argparse.ArgumentParser) -> None:
    each.add_argument("--task-id")
    each.add_argument("--task-type", required=True)
    each.add_argument("--title", required=True)
    each.add_argument("--mode", default=cards.MODE)
    each.add_argument("--owner-skill", default="")
    each.add_argument("--status", default=cards.RUNNING)
    each.add_argument("--phase", default="planning")
    each.add_argument("--artifact", action="append", default=[])
    each.add_argument("--meta", action="append", default=[])
    each.add_argument("--notes", default="")
    each.add_argument("--resume-command")
    each.add_argument("--resume-adapter")
    each.add_argument("--stale-after-minutes", type=int, default=cards.DEFAULT_STALE_MINUTES)
    each.add_argument("--max-retries", type=int, default=cards.DEFAULT_MAX_RETRIES)
    each.add_argument("--safe-to-retry", action=argparse.BooleanOptionalAction, default=True)
    each.add_argument("--allow-auto-resume", action=argparse.BooleanOptionalAction, default=False)


def _add_common(
    each: argparse.ArgumentParser, *, message: str, status: str | None, flags: bool | None = None
) -> None:
    each.add_argument("--phase")
    each.add_argument("--status", default=status)
    each.add_argument("--artifact", action="append", default=[])
    each.add_argument("--meta", action="append", default=[])
    each.add_argument("--notes")
    each.add_argument("--message", default=message)
    for name in ("--safe-to-retry", "--allow-auto-resume"):
        each.add_argument(name, action=argparse.BooleanOptionalAction, default=flags)


def _add_resume(each: argparse.ArgumentParser) -> None:
    each.add_argument("--title")
    each.add_argument("--resume-command")
    each.add_argument("--resume-adapter")
    each.add_argument("--stale-after-minutes", type=int)
    each.add_argument("--max-retries", type=int)


def _add_looking(commands: Any) -> None:
    each = commands.add_parser("list", help="List the cards.")
    each.add_argument("--task-type")
    each.add_argument("--status")
    each.add_argument("--only-stale", action="store_true")
    stale = commands.add_parser("stale", help="List what may be resumed and has gone silent.")
    stale.add_argument("--task-type")
    stale.add_argument("--require-resume-command", action="store_true")
