"""Turn what a command wants of a task into what its run records, all of it or nothing.

Decides by the state of the run alone; what is to be known of files comes in with the scene.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph import cards
from tachograph.domain import attention
from tachograph.domain.event import Cause
from tachograph.domain.gate import Facts
from tachograph.domain.outcome import NOT_JUDGED, SUCCESS_WITH_REVIEW
from tachograph.domain.recovery import Recovery
from tachograph.dropin.errors import TaskFinishedError
from tachograph.dropin.places import expanded_words, runs_dispatcher
from tachograph.dropin.wishes import Wish, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tachograph.domain.policy import Policy
    from tachograph.domain.run import Run
    from tachograph.domain.run_state import Phase
    from tachograph.dropin.callers import Caller

PYTHON = "python3"
"""What runs the adapters of a workspace, which know nothing of Tachograph's own Python."""
FOLLOWED = frozenset({cards.RUNNING, cards.STALLED})
"""Status words under which a task may be resumed unattended; so are words that nobody knows."""


class Scene:
    """What a command has to know besides the run: who gives it, and what files there are.

    `measured` are the files among the wished artifacts, by name: path, size, sha256. `exists`
    says whether an artifact's text names a file, None when it does not look like one. `policy`
    returns the gate policy in force.
    """

    def __init__(
        self,
        caller: Caller,
        *,
        working_folder: str,
        measured: Mapping[str, tuple[str, int, str]],
        exists: Callable[[str], bool | None],
        store: Callable[[Any], Any],
        policy: Callable[[], Policy],
    ) -> None:
        self.caller = caller
        self.working_folder = working_folder
        self.measured = measured
        self.exists = exists
        self.store = store
        self.policy = policy


def apply(run: Run, why: Cause, wish: Wish, scene: Scene) -> None:
    """Record a wish. Raises FencedError, TaskFinishedError, or what else the run refuses."""
    run.change_card(why, {})  # G5: a superseded attempt may not even change a note
    if run.finished:
        if wish.works or wish.declares:
            raise TaskFinishedError(run.id, cards.status(run))
        _change_card(run, why, wish, scene)
        return
    if wish.waits and not run.epoch:
        _change_card(run, why, wish, scene)
        _declare(run, why, wish, scene)
        return
    why = _take_part(run, why, wish, scene)
    if wish.phase is not None:
        _go_to(run, why, wish.phase, safe=_safe(run, wish))
    for name, (path, size, sha256) in scene.measured.items():
        run.record_artifact(why, name, path=path, size=size, sha256=sha256)
    _change_card(run, why, wish, scene)
    if wish.checkpoint:
        _save_checkpoint(run, why, wish, scene)
    if wish.works or wish.declares or "resume_adapter" in wish.meta:
        _declare(run, why, wish, scene)
    _change_status(run, why, wish, scene)


def _take_part(run: Run, why: Cause, wish: Wish, scene: Scene) -> Cause:
    """Begin an attempt where none is open, note who works, and return the cause to go on with."""
    if not wish.works:
        return why
    begins = not run.epoch
    if not run.attempt_open:
        run.start_attempt(why, scene.caller.owner, live_owner=None)
        why = Cause(why.time_us, why.actor, why.host, why.pid, run.epoch)
    # From the first command of a task nobody can tell who works.
    worker = None if begins else scene.caller.evident_worker(run)
    if worker is not None:
        run.start_worker(why, worker)
    return why


def _safe(run: Run, wish: Wish) -> bool:
    if wish.safe_to_retry is not None:
        return wish.safe_to_retry
    return Recovery.from_fields(run.recovery).safe_to_retry


# Phases.


def _go_to(run: Run, why: Cause, name: str, *, safe: bool) -> None:
    """End the phases that run and start this one; one that has ended stays so."""
    for phase in _running(run):
        if phase.name != name:
            _end(run, why, phase)
    known = run.phases.get(name)
    taken_up = known is not None and known.status == "running" and known.epoch == run.epoch
    if known is None or known.status == "failed" or (known.status == "running" and not taken_up):
        run.start_phase(why, name, safe_to_retry=safe)


def _running(run: Run) -> list[Phase]:
    return [phase for phase in run.phases.values() if phase.status == "running"]


def _end(run: Run, why: Cause, phase: Phase) -> None:
    """End a phase as what it is: with batches missing, it was not completed."""
    missing = phase.count_missing()
    if missing:
        summary = f"the task went on with {missing} of {phase.total} batches unfinished"
        run.end_phase(why, phase.name, status="failed", summary=summary)
    else:
        run.end_phase(why, phase.name)


def _save_checkpoint(run: Run, why: Cause, wish: Wish, scene: Scene) -> None:
    """Save where the task stands. What is the same as before is a sign of life, no progress."""
    phase = cards.phase(run)
    state = {
        "phase": phase,
        "status": wish.shown_status(cards.status(run)),
        "message": wish.message,
        "artifacts": run.card.get("artifacts", {}),
    }
    if wish.past is not None:
        state["at"] = wish.past.said.get("last_checkpoint_at")
    known = run.phases.get(phase)
    is_open = known is not None and known.status == "running"
    run.save_checkpoint(why, phase=phase if is_open else None, state=scene.store(state))


# The card.


def _change_card(run: Run, why: Cause, wish: Wish, scene: Scene) -> None:
    changes = _card_changes(run, why, wish, scene)
    entries = list(wish.entries)
    if not entries and wish.event is not None:
        entries.append(_entry(run, why, wish))
    run.change_card(why, changes, entries)


def _card_changes(run: Run, why: Cause, wish: Wish, scene: Scene) -> dict[str, Any]:
    card = run.card
    changes: dict[str, Any] = {
        name: getattr(wish, name)
        for name in ("phase", "title", "mode", "owner_skill", "notes", "allow_auto_resume")
        if getattr(wish, name) is not None
    }
    for name in ("artifacts", "artifact_phases", "meta", "more", "watchdog"):
        if getattr(wish, name):
            changes[name] = merged(card.get(name, {}), getattr(wish, name))
    if wish.adapter is not None:
        changes["resume_adapter"] = wish.adapter or None
    if wish.resume_command is not None:
        changes["resume_command"] = wish.resume_command or None
    if wish.retries:
        changes[cards.MARKED] = card.get(cards.MARKED, 0) + wish.retries
        changes["last_resume_attempt_at"] = wish.attempt_at or cards.iso(why.time_us)
    elif wish.attempt_at is not None:
        changes["last_resume_attempt_at"] = wish.attempt_at
    if wish.error is not None:
        changes["last_resume_error"] = wish.error or None
    if wish.works:
        changes.update(_status_changes(wish))
        if scene.caller.mark is not None:
            changes[cards.CALLER] = scene.caller.mark
    return changes


def _status_changes(wish: Wish) -> dict[str, Any]:
    """Return how the status word of the card changes; what has an event of its own is none."""
    meaning, word = wish.meaning, wish.status
    if meaning is None:
        return {}
    if meaning in (cards.DONE, cards.TASK_FAILED):
        return {"status": None, cards.END_WORD: word if word != meaning else None}
    if meaning == cards.BLOCKED:
        return {"status": word if word not in cards.WORDS else None}
    plain = meaning in (cards.RUNNING, cards.NEEDS_ATTENTION)
    return {"status": None if plain else word, cards.END_WORD: None}


def _entry(run: Run, why: Cause, wish: Wish) -> dict[str, Any]:
    """Return the history entry of a command."""
    entry = {"at": cards.iso(why.time_us), "event": wish.event}
    phase = wish.phase or cards.phase(run)
    said = (
        ("phase", phase),
        ("status", wish.shown_status(cards.status(run))),
        ("message", wish.message),
    )
    return {**entry, **{name: text for name, text in said if text}}


# Recovery.


def _declare(run: Run, why: Cause, wish: Wish, scene: Scene) -> None:
    """Declare how the task may be resumed, as the card says now."""
    old = Recovery.from_fields(run.recovery)
    adapter, command = _continues(run)
    allowed = run.card.get("allow_auto_resume", old.auto_resume)
    word = wish.shown_status(cards.status(run))
    followed = word in FOLLOWED or word not in cards.WORDS
    if wish.result in (cards.BLOCKED, cards.TASK_FAILED, cards.DONE):
        followed = False
    new = old.changed(
        adapter=adapter,
        command=command,
        working_folder=scene.working_folder,
        auto_resume=bool(allowed) and followed,
        python=PYTHON,
    )
    if wish.stale_after_minutes is not None:
        minutes = wish.stale_after_minutes
        new.stale_after_seconds = minutes * 60 if minutes > 0 else None
    if wish.max_retries is not None:
        new.max_retries = max(0, wish.max_retries)
    if wish.safe_to_retry is not None:
        new.safe_to_retry = wish.safe_to_retry
    run.declare_recovery(why, new)


def _continues(run: Run) -> tuple[str | None, list[str] | None]:
    """Return the adapter or the command by which the task is resumed.

    A command of one's own wins, unless it is the dispatcher, which runs the adapter.
    """
    command = run.card.get("resume_command")
    if command is not None and not runs_dispatcher(command):
        words = expanded_words(command)
        if words:
            return None, words
    adapter = run.card.get("resume_adapter") or run.card.get("meta", {}).get("resume_adapter")
    return (str(adapter) if adapter else None), None


# Status.


def _change_status(run: Run, why: Cause, wish: Wish, scene: Scene) -> None:
    meaning = wish.meaning
    if meaning is None:
        return
    for reason in (attention.ADAPTER_ASKS, attention.STATUS_UNKNOWN):
        run.clear_attention(why, reason)
    said = wish.message or str(run.card.get("notes") or "")
    if meaning == cards.DONE:
        _finish(run, why, scene)
    elif meaning == cards.TASK_FAILED:
        _fail(run, why, said)
    elif meaning == cards.BLOCKED:
        run.block(why, said or "the task says that it is blocked")
    elif meaning == cards.NEEDS_ATTENTION:
        run.raise_attention(why, attention.ADAPTER_ASKS, said or None)
    elif meaning == cards.RUNNING and run.blocked is not None:
        _save_checkpoint(run, why, wish, scene)
    elif meaning not in cards.WORDS:
        run.raise_attention(why, attention.STATUS_UNKNOWN, wish.status)


def _fail(run: Run, why: Cause, said: str) -> None:
    for phase in _running(run):
        run.end_phase(why, phase.name, status="failed", summary=said or None)
    run.finish(why, "failed", reason=said or "the task says so", reason_code="task_failed")


def _finish(run: Run, why: Cause, scene: Scene) -> None:
    """Finish the task; whether it is a success, the files that it made say (G12)."""
    for phase in _running(run):
        _end(run, why, phase)
    found = [scene.exists(text) for text in _artifacts(run).values()]
    files = [each for each in found if each is not None]
    faults = sum(phase.status == "failed" for phase in run.phases.values())
    if any(files):
        facts = Facts(inputs=len(files), outputs=sum(files), faults=faults)
        run.judge(why, facts, policy=scene.policy())
        run.finish(why)
        return
    reason = (
        f"none of the {len(files)} artifacts that it names is there"
        if files
        else "it names no artifact, so nothing says that it did its work"
    )
    code = "artifacts_missing" if files else NOT_JUDGED
    run.finish(why, SUCCESS_WITH_REVIEW, reason=reason, reason_code=code)


def _artifacts(run: Run) -> dict[str, str]:
    """Return every artifact of the task: what the card names, and what the run recorded."""
    recorded = {name: str(found["path"]) for name, found in run.artifacts.items()}
    return {**recorded, **cards.artifact_paths(run.card.get("artifacts", {}))}
