#!/usr/bin/env python3
"""Durable cards of long-running work, kept in the ledger of Tachograph.

Run it (`task_runtime.py --help`) or import it from an adapter (`load_card`, `save_card`,
`append_history`, `now_iso`, …). It works with any Python from 3.8 on: what touches the ledger is
done by the interpreter named below.
Installed by `tacho workspace install`, which also refreshes it; `tacho workspace uninstall`
removes it again.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    Card = dict[str, Any]

INTERPRETER = ""
"""The Python in which Tachograph is installed; TACHO_PYTHON in the environment overrides it."""

UTC = timezone.utc  # noqa: UP017  # Python 3.8 has no datetime.UTC
MARK = "AGENTS.md"
FAILURE = 1


class TaskRuntimeError(Exception):
    """The task or the workspace refuses what was asked."""


class FencedError(TaskRuntimeError):
    """Another attempt has taken the task over: this process must stop writing."""


# Where things are.


def discover_workspace(start: Path) -> Path | None:
    """Return the nearest folder from `start` upwards that holds AGENTS.md."""
    for folder in [start, *start.parents]:
        if (folder / MARK).exists():
            return folder
    return None


def resolve_workspace() -> Path:
    """Return the workspace: OPENCLAW_WORKSPACE, else that of this file, else of the folder."""
    named = os.environ.get("OPENCLAW_WORKSPACE")
    if named:
        return Path(named).expanduser().resolve()
    for start in (Path(__file__).resolve().parent, Path.cwd()):
        found = discover_workspace(start)
        if found is not None:
            return found
    raise TaskRuntimeError(
        "There is no OpenClaw workspace: no AGENTS.md above this script or this folder. "
        "Set OPENCLAW_WORKSPACE to the folder of the workspace."
    )


def resolve_workspace_path(value: str | None) -> str | None:
    """Return a path with `~` and variables expanded, relative to the workspace."""
    if not value:
        return None
    path = Path(os.path.expandvars(value.strip())).expanduser()
    return str(path) if path.is_absolute() else str((resolve_workspace() / path).resolve())


def ensure_dir() -> None:
    """Make the folder of the cards."""
    (resolve_workspace() / "data" / "task-runs").mkdir(parents=True, exist_ok=True)


def task_path(task_id: str) -> Path:
    """Return where the card of a task is."""
    return resolve_workspace() / "data" / "task-runs" / f"{sanitize_task_id(task_id)}.json"


def __getattr__(name: str) -> Any:
    """Find the workspace when a name asks for it, and not before."""
    if name == "WORKSPACE":
        return resolve_workspace()
    if name == "TASK_RUNS_DIR":
        return resolve_workspace() / "data" / "task-runs"
    if name == "DEFAULT_RESUME_RUNNER":
        return resolve_workspace() / "scripts" / "task_runtime_resume.py"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# Times, ids and pairs.


def now_iso() -> str:
    """Return this moment in the zone of this machine, in whole seconds."""
    return datetime.now(UTC).astimezone().isoformat(timespec="seconds")


def parse_iso(value: str | None) -> datetime | None:
    """Return the moment of a text, None for what is no time; without an offset it is local."""
    if not value:
        return None
    try:
        moment = datetime.fromisoformat(value[:-1] + "+00:00" if value[-1] in "zZ" else value)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo is not None else moment.astimezone()


def sanitize_task_id(value: str) -> str:
    """Return the id under which a task is kept."""
    value = re.sub(r"~\d+$", "", value.strip())  # a further execution has the same card
    cleaned = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9._-]+", "-", value)).strip("-")
    if not cleaned.strip("."):
        raise ValueError(f"nothing is left of the task id {value!r} after cleaning")
    return cleaned.lower()


def default_task_id(task_type: str) -> str:
    """Return the id of a task for which none was given."""
    return sanitize_task_id(f"{task_type}-{datetime.now().astimezone():%Y%m%d-%H%M%S}")


def parse_kv_pairs(values: list[str] | None) -> dict[str, str]:
    """Return `key=value` texts as a dict."""
    found: dict[str, str] = {}
    for text in values or []:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"expected key=value, got: {text}")
        if not key.strip():
            raise ValueError(f"empty key in: {text}")
        found[key.strip()] = value.strip()
    return found


def shell_to_argv(command: str | None) -> list[str]:
    """Return the words of a command, with `~` and variables expanded."""
    words = shlex.split(command) if command else []
    return [os.path.expandvars(os.path.expanduser(word)) for word in words]  # noqa: PTH111


def normalize_resume_adapter(adapter: str | None) -> str | None:
    """Return the absolute path of an adapter."""
    return resolve_workspace_path(adapter)


def build_resume_command(
    task_id: str, *, resume_command: str | None, resume_adapter: str | None
) -> tuple[str | None, list[str]]:
    """Return the command that resumes a task, as text and as words."""
    command: str | None = (resume_command or "").strip() or None
    if command is None and resume_adapter:
        runner = resolve_workspace() / "scripts" / "task_runtime_resume.py"
        command = f"python3 {shlex.quote(str(runner))} --task-id {sanitize_task_id(task_id)}"
    return command, shell_to_argv(command)


# Cards.


def load_card(task_id: str) -> Card:
    """Return the card of a task. Raises TaskRuntimeError when there is none."""
    found: Card = _ask({"op": "load", "task_id": str(task_id)})
    return found


def save_card(card: Card) -> Path:
    """Record what was changed in a card since it was loaded, and bring the card up to date.

    What others changed in the meantime stays. Raises FencedError when another attempt has
    taken the task over.
    """
    answer = _ask({"op": "save", "card": card})
    _refresh(card, answer["card"])
    return Path(answer["path"])


def list_cards(*, task_type: str | None = None, status: str | None = None) -> list[Card]:
    """Return the cards, latest update first; files that cannot be read are named on stderr."""
    answer = _ask({"op": "list", "task_type": task_type, "status": status})
    for each in answer["unreadable"]:
        sys.stderr.write(f"task_runtime.py: {each['file']} cannot be read: {each['problem']}\n")
    found: list[Card] = answer["cards"]
    return found


def history_entry(
    event: str,
    *,
    phase: str | None = None,
    status: str | None = None,
    message: str = "",
    extra: Card | None = None,
) -> Card:
    """Return an entry for the history of a card."""
    entry: Card = {"at": now_iso(), "event": event}
    said = (("phase", phase), ("status", status), ("message", message), ("extra", extra))
    entry.update({name: value for name, value in said if value})
    return entry


def append_history(
    card: Card,
    event: str,
    *,
    phase: str | None = None,
    status: str | None = None,
    message: str = "",
    extra: Card | None = None,
) -> None:
    """Add an entry to the history of a card; files show the newest 80, the ledger has all."""
    entries = card.get("history")
    if not isinstance(entries, list):
        entries = card["history"] = []
    entries.append(history_entry(event, phase=phase, status=status, message=message, extra=extra))


def seconds_since_checkpoint(card: Card) -> int | None:
    """Return the age of a card's last checkpoint, never below 0."""
    moment = parse_iso(card.get("last_checkpoint_at") or card.get("updated_at"))
    if moment is None:
        return None
    return max(0, int((datetime.now(UTC) - moment).total_seconds()))


def stale_due(card: Card) -> bool:
    """Say whether a running task that may be resumed unattended has been silent too long."""
    after = 60 * float(card.get("stale_after_minutes") or 0)
    age = seconds_since_checkpoint(card)
    return (
        card.get("status") == "running"
        and bool(card.get("allow_auto_resume"))
        and after > 0
        and age is not None
        and age >= after
        and int(card.get("retry_count") or 0) < int(card.get("max_retries") or 0)
    )


@dataclass
class TaskSummary:
    """What a list shows of a card."""

    id: str
    task_type: str
    title: str
    mode: str
    status: str
    phase: str
    updated_at: str | None
    retry_count: int
    max_retries: int
    allow_auto_resume: bool
    stale_after_minutes: float
    seconds_since_checkpoint: int | None


def summarize(card: Card) -> TaskSummary:
    """Return the summary of a card."""
    texts = {
        name: str(card.get(name) or "")
        for name in ("id", "task_type", "title", "mode", "status", "phase")
    }
    return TaskSummary(
        updated_at=card.get("updated_at"),
        retry_count=int(card.get("retry_count") or 0),
        max_retries=int(card.get("max_retries") or 0),
        allow_auto_resume=bool(card.get("allow_auto_resume")),
        stale_after_minutes=card.get("stale_after_minutes") or 0,
        seconds_since_checkpoint=seconds_since_checkpoint(card),
        **texts,
    )


def make_result(card: Card, path: Path) -> Card:
    """Return the short form of a card, as the commands print it."""
    summary = vars(summarize(card))
    del summary["updated_at"]
    return {
        "task_id": summary.pop("id"),
        "task_path": str(path),
        **summary,
        "artifacts": deepcopy(card.get("artifacts") or {}),
        "resume_command": card.get("resume_command"),
        "resume_adapter": card.get("resume_adapter"),
        "watchdog": deepcopy(card.get("watchdog") or {}),
    }


# The other shape: a card with attributes, its artifacts by phase.


class RunCard:
    """A card with attributes: task_id, status, phase, artifacts by `phase_<name>`, metadata, …."""

    def __init__(self, **fields: Any) -> None:
        self.task_id = ""
        self.task_type = ""
        self.title = ""
        self.status = "running"
        self.phase = ""
        self.created_at: str | None = None
        self.last_checkpoint_at: str | None = None
        self.resume_adapter: str | None = None
        self.allow_auto_resume = False
        self.stale_after_minutes: float = 30
        self.max_retries = 3
        self.retry_count = 0
        self.artifacts: dict[str, Any] = {}
        self.checkpoints: list[Card] = []
        self.metadata: dict[str, Any] = {}
        self.__dict__.update(fields)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field by its name."""
        return getattr(self, name, default)

    def to_dict(self) -> Card:
        """Return the fields."""
        return {name: value for name, value in vars(self).items() if name[0] != "_"}


def load_run_card(task_id: str) -> RunCard | None:
    """Return the card of a task with attributes, None when there is none."""
    try:
        card = load_card(task_id)
    except TaskRuntimeError as error:
        if str(error).startswith("task not found"):
            return None
        raise
    run_card = RunCard()
    _show(run_card, card)
    return run_card


def update_run_card(task_id: str, card: Any) -> RunCard:
    """Record what was changed in a card since it was loaded, and bring the card up to date."""
    run_card = card if isinstance(card, RunCard) else RunCard(**dict(card))
    published = _published(run_card, task_id)
    save_card(published)
    _show(run_card, published)
    return run_card


_SAME = (
    "task_type",
    "title",
    "phase",
    "created_at",
    "updated_at",
    "last_checkpoint_at",
    "resume_adapter",
    "resume_command",
    "allow_auto_resume",
    "safe_to_retry",
    "stale_after_minutes",
    "max_retries",
    "retry_count",
    "notes",
    "mode",
    "owner_skill",
)


def _show(run_card: RunCard, card: Card) -> None:
    """Give a card with attributes the content of a published one."""
    fields: Card = {name: card.get(name) for name in _SAME}
    fields["task_id"] = card["id"]
    fields["status"] = "completed" if card["status"] == "done" else card["status"]
    fields["artifacts"] = _by_phase(card)
    fields["metadata"] = deepcopy(card.get("meta") or {})
    fields["checkpoints"] = [
        {"phase": entry.get("phase"), "at": entry.get("at"), "message": entry.get("message", "")}
        for entry in card.get("history") or []
        if isinstance(entry, dict) and entry.get("event") == "checkpoint"
    ]
    run_card.__dict__.update(fields, _card=deepcopy(card), _shown=deepcopy(fields))


def _by_phase(card: Card) -> dict[str, Any]:
    """Return the artifacts of a card by the phase that made each, where that is known."""
    phases = (card.get("ledger") or {}).get("artifact_phases") or {}
    found: dict[str, Any] = {}
    for name, value in deepcopy(card.get("artifacts") or {}).items():
        if name in phases and not isinstance(value, dict):
            found.setdefault(f"phase_{phases[name]}", {})[name] = value
        elif isinstance(value, dict):
            found.setdefault(name, {}).update(value)
        else:
            found[name] = value
    return found


def _published(run_card: RunCard, task_id: str) -> Card:
    """Return a card with attributes as a published one: the one it was, with its changes."""
    shown: Card = getattr(run_card, "_shown", {})
    card: Card = deepcopy(getattr(run_card, "_card", {}))
    card["id"] = task_id
    for name, value in run_card.to_dict().items():
        if name in shown and shown[name] == value:
            continue
        if name == "metadata":
            card["meta"] = deepcopy(value)
        elif name == "artifacts":
            card["artifacts"] = _flat(run_card, card)
        elif name == "checkpoints":
            known = shown.get("checkpoints", [])
            added = [point for point in value if point not in known]
            card.setdefault("history", []).extend(
                {**point, "event": "checkpoint"} for point in added
            )
        elif name not in ("task_id", "checkpoints"):
            card[name] = value
    return card


def _flat(run_card: RunCard, card: Card) -> dict[str, Any]:
    """Return artifacts by phase as the card keeps them: by name where it has the name so."""
    phases = (card.get("ledger") or {}).get("artifact_phases") or {}
    found: dict[str, Any] = {}
    for name, value in run_card.artifacts.items():
        if not isinstance(value, dict):
            found[name] = value
            continue
        for inner, path in value.items():
            if f"phase_{phases.get(inner)}" == name:
                found[inner] = path
            else:
                found.setdefault(name, {})[inner] = path
    return found


# The bridge to the ledger.


def interpreter() -> str:
    """Return the Python in which Tachograph is installed."""
    named = os.environ.get("TACHO_PYTHON") or INTERPRETER
    if not named or not os.access(named, os.X_OK):
        raise TaskRuntimeError(
            f"Tachograph's Python, {named or 'which no installation named'}, cannot be run. "
            "Run `tacho workspace install` again, or name the Python with TACHO_PYTHON."
        )
    return named


def _command(program: str) -> list[str]:
    return [interpreter(), "-P", "-m", "tachograph.dropin", program, str(resolve_workspace())]


def _ask(question: Card) -> Any:
    """Ask the ledger one thing. Raises TaskRuntimeError or FencedError."""
    try:
        text = json.dumps(question)
    except (TypeError, ValueError) as error:
        raise TaskRuntimeError(f"the card holds what JSON has no form for: {error}") from error
    done = subprocess.run(
        _command("bridge"),
        input=text.encode(),
        stdout=subprocess.PIPE,
        env=_environment(),
        check=False,
    )
    try:
        answer = json.loads(done.stdout.decode("utf-8"))
    except ValueError:
        raise TaskRuntimeError(
            f"Tachograph did not answer (exit status {done.returncode}); stderr says why."
        ) from None
    if answer["ok"]:
        return answer["value"]
    raise (FencedError if answer["kind"] == "fenced" else TaskRuntimeError)(answer["error"])


def _environment() -> dict[str, str]:
    """Return the variables for the other Python: none that say where this one is."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}


def _refresh(old: Any, new: Any) -> None:
    """Give a card new content in place, its tables and lists as well: others may hold them."""
    for name in [name for name in old if name not in new]:
        del old[name]
    for name, value in new.items():
        held = old.get(name)
        if isinstance(held, dict) and isinstance(value, dict):
            _refresh(held, value)
        elif isinstance(held, list) and isinstance(value, list):
            held[:] = value
        else:
            old[name] = value


def become(program: str, failure: int) -> NoReturn:
    """Hand this process over to a program of Tachograph; `failure` is the code when it cannot."""
    try:
        command = [*_command(program), *sys.argv[1:]]
        os.execve(command[0], command, _environment())  # noqa: S606
    except (TaskRuntimeError, OSError) as error:
        text = json.dumps({"ok": False, "error": str(error)}, ensure_ascii=False)
        sys.stderr.write(text + "\n")
        sys.exit(failure)


if __name__ == "__main__":
    become("runtime", FAILURE)
