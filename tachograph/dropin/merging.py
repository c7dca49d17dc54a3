"""What a saved card changes, compared with the card that was loaded. Records nothing.

Only that is applied, so that nobody's change is undone by somebody else's older copy.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from tachograph import cards
from tachograph.dropin.wishes import Wish

if TYPE_CHECKING:
    from collections.abc import Mapping

    Card = Mapping[str, Any]

TEXTS = ("title", "mode", "owner_skill", "notes")
KNOWN = frozenset(
    {
        "id",
        "task_type",
        "title",
        "mode",
        "owner_skill",
        "status",
        "phase",
        "created_at",
        "updated_at",
        "last_checkpoint_at",
        "allow_auto_resume",
        "safe_to_retry",
        "stale_after_minutes",
        "retry_count",
        "max_retries",
        "resume_adapter",
        "resume_command",
        "resume_command_argv",
        "artifacts",
        "notes",
        "meta",
        "history",
        "last_resume_attempt_at",
        "last_resume_error",
        "watchdog",
        "ledger",
    }
)
"""The fields that mean something; any other one is kept as it is."""


def wish_of(base: Card, theirs: Card) -> Wish:
    """Return what was changed in a card since it was `base`; a field that is gone was not."""
    wish = Wish()
    for name in TEXTS:
        if name in theirs and theirs[name] != base.get(name):
            setattr(wish, name, _text(theirs[name]))
    _recovery(wish, base, theirs)
    for name in ("artifacts", "meta", "watchdog"):
        setattr(wish, name, _changes(base.get(name), theirs.get(name)))
    own = _unknown(theirs)
    wish.more = _changes({name: base[name] for name in own if name in base}, own)
    wish.entries = new_entries(base.get("history"), theirs.get("history"))
    _attempts(wish, base, theirs)
    _progress(wish, base, theirs)
    return wish


def _progress(wish: Wish, base: Card, theirs: Card) -> None:
    """Tell a checkpoint from a change of words: its time was set anew."""
    if theirs.get("phase") not in (None, "", base.get("phase")):
        wish.phase = _text(theirs["phase"])
    if theirs.get("status") not in (None, "", base.get("status")):
        wish.status = _text(theirs["status"])
    wish.checkpoint = is_newer(theirs.get("last_checkpoint_at"), base.get("last_checkpoint_at"))
    if wish.checkpoint and wish.status is None and base.get("status") not in (None, ""):
        wish.status = _text(base["status"])
    if wish.status in (cards.BLOCKED, cards.TASK_FAILED, cards.NEEDS_ATTENTION):
        wish.message = _last_message(theirs)
    elif wish.checkpoint:
        wish.message = _last_message({"history": list(wish.entries)})


def _recovery(wish: Wish, base: Card, theirs: Card) -> None:
    for name in ("safe_to_retry", "allow_auto_resume"):
        if name in theirs and bool(theirs[name]) != bool(base.get(name)):
            setattr(wish, name, bool(theirs[name]))
    for name, kind in (("stale_after_minutes", float), ("max_retries", int)):
        value = _number(theirs.get(name))
        if value is not None and value != _number(base.get(name)):
            setattr(wish, name, kind(value))
    if "resume_adapter" in theirs and theirs["resume_adapter"] != base.get("resume_adapter"):
        wish.adapter = _text(theirs["resume_adapter"])
    if "resume_command" in theirs and theirs["resume_command"] != base.get("resume_command"):
        wish.resume_command = _text(theirs["resume_command"])


def _attempts(wish: Wish, base: Card, theirs: Card) -> None:
    retries = (_number(theirs.get("retry_count")) or 0) - (_number(base.get("retry_count")) or 0)
    if "retry_count" in theirs and retries:
        wish.retries = int(retries)
    for name, to in (("last_resume_attempt_at", "attempt_at"), ("last_resume_error", "error")):
        if name in theirs and theirs[name] != base.get(name):
            setattr(wish, to, _text(theirs[name]))


def new_entries(base: Any, theirs: Any) -> list[Any]:
    """Return the history entries that were added, in their order.

    >>> new_entries([{"event": "a"}], [{"event": "a"}, {"event": "a"}, {"event": "b"}])
    [{'event': 'a'}, {'event': 'b'}]
    """
    known = Counter(map(_key, base)) if isinstance(base, list) else Counter[str]()
    added: list[Any] = []
    for entry in theirs if isinstance(theirs, list) else ():
        if not isinstance(entry, dict):
            continue
        key = _key(entry)
        if known[key]:
            known[key] -= 1
        else:
            added.append(entry)
    return added


def is_newer(theirs: Any, base: Any) -> bool:
    """Say whether a time is another than it was, and not before it."""
    moment, before = cards.parse_iso(theirs), cards.parse_iso(base)
    if moment is None:
        return False
    return (
        before is None
        or int(moment.timestamp()) > int(before.timestamp())
        or (theirs != base and int(moment.timestamp()) == int(before.timestamp()))
    )


def _changes(base: Any, theirs: Any) -> dict[str, Any]:
    """Return single changes: new values, and None for what is gone."""
    old = base if isinstance(base, dict) else {}
    if not isinstance(theirs, dict):
        return {}
    changes: dict[str, Any] = {name: None for name in old if name not in theirs}
    for name, value in theirs.items():
        if value == old.get(name):
            continue
        nested = isinstance(value, dict) and isinstance(old.get(name), dict)
        changes[str(name)] = _changes(old[name], value) if nested else value
    return changes


def _unknown(card: Card) -> dict[str, Any]:
    return {name: value for name, value in card.items() if name not in KNOWN}


def _last_message(card: Card) -> str:
    history = card.get("history")
    last = history[-1] if isinstance(history, list) and history else None
    return _text(last.get("message")) if isinstance(last, dict) else ""


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _key(entry: Any) -> str:
    return json.dumps(entry, sort_keys=True, ensure_ascii=True, default=str)
