"""The card of a task, rendered from its run in the shape that task-recovery tools read.

Pure and deterministic: the same run, zone and workspace give the same card. Never writes.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tachograph.domain import attention
from tachograph.domain.outcome import is_terminal, traits
from tachograph.domain.recovery import Recovery
from tachograph.domain.recovery_state import MOST_HISTORY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tachograph.domain.run_state import Phase, RunState

    Card = dict[str, Any]

RUNNING = "running"
DONE = "done"
BLOCKED = "blocked"
TASK_FAILED = "failed"
PENDING = "pending"
STALLED = "stalled"
NEEDS_ATTENTION = "needs_attention"
ENDINGS = frozenset({DONE, "completed"})
WORDS = frozenset({RUNNING, BLOCKED, TASK_FAILED, PENDING, STALLED, NEEDS_ATTENTION, *ENDINGS})
"""The status words that mean something; any other one is kept, and treated as running."""

MODE = "full"
DEFAULT_STALE_MINUTES = 30
DEFAULT_MAX_RETRIES = 2

# Names in `RunState.card` that are no field of a card themselves.
END_WORD = "end_word"
MARKED = "marked_retries"
MORE = "more"
IMPORTED = "imported"
ARTIFACT_PHASES = "artifact_phases"
CALLER = "caller"
HOSTS = "hosts"
"""Processes that gave commands and turned out to give those of many, such as an agent's."""
TASK = "task"
"""Says that a run is a task with a card: the id under which its card is kept."""


def render(
    run: RunState, task_id: str, *, resume_runner: str, entries: Sequence[Mapping[str, Any]] = ()
) -> Card:
    """Return the card of a task.

    `resume_runner` is the dispatcher that an adapter is run by, `entries` are history entries
    of what others did to the run. `ledger` says which events the card shows and which phase
    made which artifact, and its digest covers all the rest, so that an edit by hand is seen.
    """
    recovery = Recovery.from_fields(run.recovery)
    card = {
        "id": task_id,
        "task_type": run.command,
        "title": run.card.get("title", run.title or ""),
        "mode": run.card.get("mode", MODE),
        "owner_skill": run.card.get("owner_skill", ""),
        "status": status(run),
        "phase": phase(run),
        "created_at": _imported(run, "created_at") or iso(run.created_us),
        "updated_at": _imported(run, "updated_at") or iso(run.updated_us),
        "last_checkpoint_at": last_checkpoint(run),
        "allow_auto_resume": bool(run.card.get("allow_auto_resume", recovery.auto_resume)),
        "safe_to_retry": recovery.safe_to_retry,
        "stale_after_minutes": _minutes(recovery),
        "retry_count": run.futile + run.card.get(MARKED, 0),
        "max_retries": recovery.max_retries,
        **_resume(run, task_id, recovery, resume_runner),
        "artifacts": _artifacts(run),
        "notes": run.card.get("notes", ""),
        "meta": dict(run.card.get("meta", {})),
        "history": _history(run, entries),
        **_attempts(run),
        "watchdog": _watchdog(run),
        **run.card.get(MORE, {}),
    }
    card["ledger"] = {
        "run_id": run.id,
        "version": run.version,
        "open": _is_open(run),
        "artifact_phases": dict(run.card.get(ARTIFACT_PHASES, {})),
    }
    return sealed(card)


def sealed(card: Card) -> Card:
    """Return the card with the digest of all the rest of it in its `ledger`."""
    ledger = {name: value for name, value in card["ledger"].items() if name != "digest"}
    card = {**card, "ledger": ledger}
    text = json.dumps(card, ensure_ascii=True, sort_keys=True)
    ledger["digest"] = hashlib.sha256(text.encode()).hexdigest()[:32]
    return card


def is_sealed(card: Mapping[str, Any]) -> bool:
    """Say whether nobody has changed a card since it was rendered."""
    ledger = card.get("ledger")
    if not isinstance(ledger, dict) or "digest" not in ledger:
        return False
    return bool(sealed(dict(card))["ledger"]["digest"] == ledger["digest"])


def to_text(card: Mapping[str, Any]) -> str:
    """Return the content of a card's file."""
    return json.dumps(card, ensure_ascii=False, indent=2) + "\n"


def status(run: RunState) -> str:
    """Return the status word of a task.

    What is over says how; an open task says what was last said of it.
    """
    said = str(run.card.get("status", RUNNING))
    if run.ended is not None:
        return run.ended
    if run.outcome is not None:
        if is_terminal(run.outcome, run.reason_code):
            return str(run.card.get(END_WORD, DONE))
        failed = traits(run.outcome, run.reason_code).fails_step
        return str(run.card.get(END_WORD, TASK_FAILED)) if failed else PENDING
    if run.blocked is not None:
        return said if said not in WORDS else BLOCKED
    if attention.ADAPTER_ASKS in run.attention or run.approvals_pending:
        return NEEDS_ATTENTION
    return said if said not in (BLOCKED, TASK_FAILED, NEEDS_ATTENTION, *ENDINGS) else RUNNING


def phase(run: RunState) -> str:
    """Return the phase that a task is in: the one that runs, else the one last named."""
    running = [each for each in run.phases.values() if each.status == "running"]
    if running:
        return max(running, key=_latest).name
    if "phase" in run.card:
        return str(run.card["phase"])
    return max(run.phases.values(), key=_latest).name if run.phases else ""


def last_checkpoint(run: RunState) -> str | None:
    """Return when the last checkpoint was saved; an imported one says so itself."""
    if run.checkpoint_us is None or run.checkpoint is None:
        return _imported(run, "last_checkpoint_at")
    state = run.checkpoint["state"]
    at = state.get("at") if isinstance(state, dict) else None
    return at if isinstance(at, str) else iso(run.checkpoint_us)


def iso(time_us: int) -> str:
    """Return a time in the zone of this machine, with its offset, in whole seconds."""
    moment = datetime.fromtimestamp(time_us // 1_000_000, UTC)
    return moment.astimezone().isoformat(timespec="seconds")


def parse_iso(text: object) -> datetime | None:
    """Return the moment of a text; one without an offset is in the zone of this machine.

    >>> parse_iso("2026-03-01T12:00:00Z").isoformat(), parse_iso("soon")
    ('2026-03-01T12:00:00+00:00', None)
    """
    if not isinstance(text, str) or not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else moment.astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def seconds_since_checkpoint(card: Mapping[str, Any], now_us: int) -> int | None:
    """Return the age of a card's last checkpoint, never below 0; None when it has none."""
    moment = parse_iso(card.get("last_checkpoint_at") or card.get("updated_at"))
    if moment is None:
        return None
    return max(0, now_us // 1_000_000 - int(moment.timestamp()))


def is_stale(card: Mapping[str, Any], now_us: int) -> bool:
    """Say whether a running task that may be resumed unattended has been silent too long."""
    age = seconds_since_checkpoint(card, now_us)
    after = 60 * card["stale_after_minutes"]
    return (
        is_running(card)
        and bool(card["allow_auto_resume"])
        and after > 0
        and age is not None
        and age >= after
        and card["retry_count"] < card["max_retries"]
    )


def is_running(card: Mapping[str, Any]) -> bool:
    """Say whether a task is to be watched; a word that nobody knows does not hide it."""
    if card["status"] in (RUNNING, STALLED):
        return True
    return card["status"] not in WORDS and bool(card["ledger"]["open"])


def make_result(card: Mapping[str, Any], path: str, now_us: int) -> Card:
    """Return the short form of a card, as the commands print it."""
    return {
        "task_id": str(card.get("id", "")),
        "task_path": path,
        "task_type": str(card.get("task_type", "")),
        "title": str(card.get("title", "")),
        "mode": str(card.get("mode", "")),
        "status": str(card.get("status", "")),
        "phase": str(card.get("phase", "")),
        "retry_count": int(card.get("retry_count") or 0),
        "max_retries": int(card.get("max_retries") or 0),
        "allow_auto_resume": bool(card.get("allow_auto_resume")),
        "stale_after_minutes": int(card.get("stale_after_minutes") or 0),
        "seconds_since_checkpoint": seconds_since_checkpoint(card, now_us),
        "artifacts": card.get("artifacts") or {},
        "resume_command": card.get("resume_command"),
        "resume_adapter": card.get("resume_adapter"),
        "watchdog": card.get("watchdog") or {},
    }


def _is_open(run: RunState) -> bool:
    return run.ended is None and run.outcome is None and run.blocked is None


def _latest(phase: Phase) -> int:
    return phase.last_version


def _minutes(recovery: Recovery) -> float:
    """Return the threshold in minutes, 0 where there is none; whole where it is."""
    minutes = (recovery.stale_after_seconds or 0) / 60
    return int(minutes) if minutes == int(minutes) else minutes


def _imported(run: RunState, name: str) -> str | None:
    """Return a time that an imported card said, while nothing has happened since."""
    said = run.card.get(IMPORTED, {})
    if name == "updated_at" and said.get("time_us") != run.updated_us:
        return None
    found = said.get(name)
    return str(found) if found else None


def _resume(run: RunState, task_id: str, recovery: Recovery, runner: str) -> Card:
    adapter = run.card.get("resume_adapter", recovery.adapter)
    command = run.card.get("resume_command")
    if command is None and recovery.command:
        command = shlex.join(recovery.command)
    if command is None and adapter:
        command = f"python3 {shlex.quote(runner)} --task-id {task_id}"
    return {
        "resume_adapter": adapter,
        "resume_command": command,
        "resume_command_argv": split(command),
    }


def split(command: str | None) -> list[str]:
    """Return the words of a command; one with an open quote is one word."""
    if not command:
        return []
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def _artifacts(run: RunState) -> Card:
    """Return the artifacts that the task named, and those that its run recorded besides."""
    named: Card = dict(run.card.get("artifacts", {}))
    known = {_flat(name) for name in _names(named)}
    for name, found in run.artifacts.items():
        if name not in known:
            named[name] = found["path"]
    return named


def _names(artifacts: Mapping[str, Any]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, value in artifacts.items():
        if isinstance(value, dict):
            found.extend((name, inner) for inner in value)
        else:
            found.append((name,))
    return found


def _flat(names: tuple[str, ...]) -> str:
    return ".".join(names)


def artifact_paths(artifacts: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each artifact by the name under which the run records it.

    >>> artifact_paths({"report": "a.pdf", "phase_collect": {"raw": "b.json"}})
    {'report': 'a.pdf', 'phase_collect.raw': 'b.json'}
    """
    found: dict[str, str] = {}
    for names in _names(artifacts):
        value: Any = artifacts
        for name in names:
            value = value[name]
        if isinstance(value, str):
            found[_flat(names)] = value
    return found


def _history(run: RunState, entries: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the newest entries, those of others in their place by time."""
    mine: list[Any] = list(run.history)
    for entry in entries:
        at = parse_iso(entry["at"])
        place = len(mine)
        while place and at is not None and _after(mine[place - 1], at):
            place -= 1
        mine.insert(place, dict(entry))
    return mine[-MOST_HISTORY:]


def _after(entry: Any, at: datetime) -> bool:
    moment = parse_iso(entry.get("at")) if isinstance(entry, dict) else None
    return moment is not None and moment > at


def _attempts(run: RunState) -> Card:
    found: Card = {}
    marked = run.card.get("last_resume_attempt_at")
    dispatched = None if run.dispatched_us is None else iso(run.dispatched_us)
    times = [time for time in (marked, dispatched) if time]
    if times:
        found["last_resume_attempt_at"] = max(times, key=_moment)
    error = run.resume_error or run.card.get("last_resume_error")
    if error:
        found["last_resume_error"] = error
    return found


def _moment(text: str) -> float:
    moment = parse_iso(text)
    return 0.0 if moment is None else moment.timestamp()


def _watchdog(run: RunState) -> Card:
    """Return what the watchdog has said of this situation, and what a tool has put there."""
    found: Card = dict(run.card.get("watchdog", {}))
    if run.stall is not None:
        said = {name: run.stall[name] for name in ("kind", "epoch", "progress_version")}
        found["last_stale_notice"] = json.dumps(said, sort_keys=True)
    if run.attention:
        found["last_attention_notice"] = json.dumps(run.attention, sort_keys=True)
    return found


def task_id_of(run_id: str) -> str:
    """Return the id under which the card of a run is kept: that of all its executions.

    >>> task_id_of("report~2")
    'report'
    """
    return run_id.partition("~")[0]
