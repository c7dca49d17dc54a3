"""What a watchdog tells people and tools: plain data, under names that existing readers know.

Pure: it says what happened and decides nothing.
"""

from __future__ import annotations

from tachograph.domain import attention
from tachograph.domain.iso_time import iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.domain.run import Run
    from tachograph.resuming import Resumption

    Signal = dict[str, Any]

MINUTE_US = 60_000_000


class Report:
    """What one tick of a watchdog found and did.

    `running_count` runs are at work, some of which `running` lists.
    `alerts`, `recoveries` and `needs_attention` are what is new, each once per situation;
    `active_needs_attention` repeats what is still open. `stale` are the runs that showed no
    life, `resumed` what was tried, `skipped` what was not, `expired` what was left too long.
    """

    KINDS = ("alerts", "recoveries", "needs_attention")

    def __init__(self, checked_us: int) -> None:
        self.checked_us = checked_us
        self.running_count = 0
        self.running: list[Signal] = []
        self.stale: list[Signal] = []
        self.alerts: list[Signal] = []
        self.recoveries: list[Signal] = []
        self.resumed: list[Signal] = []
        self.skipped: list[Signal] = []
        self.expired: list[Signal] = []
        self.needs_attention: list[Signal] = []
        self.active_needs_attention: list[Signal] = []

    @property
    def touched(self) -> list[str]:
        """The runs that something was recorded of, or tried."""
        names = ("stale", "alerts", "recoveries", "resumed", "expired", "needs_attention")
        return list(
            dict.fromkeys(each["task_id"] for name in names for each in getattr(self, name))
        )

    def take(self) -> Report:
        """Return what is here, and begin anew: resumes in the background go on telling.

        The lists stay the same ones, so that nothing told at this very moment is lost.
        """
        taken = Report(self.checked_us)
        taken.running_count, self.running_count = self.running_count, 0
        for name, told in vars(self).items():
            if isinstance(told, list):
                moved = told[:]
                del told[: len(moved)]
                setattr(taken, name, moved)
        return taken

    def to_fields(self) -> dict[str, Any]:
        """Return the report as plain values."""
        fields = {name: value for name, value in vars(self).items() if name != "checked_us"}
        return {"checked_at": iso(self.checked_us), "stale_count": len(self.stale), **fields}


def stale(run: Run, age_us: int) -> Signal:
    """Return a run that shows no life."""
    return {**_of(run, age_us), "retry_count": run.futile, "max_retries": _max_retries(run)}


def at_work(card: dict[str, Any]) -> Signal:
    """Return a run that is at work, given by its card."""
    return {
        "task_id": card["id"],
        "task_type": card["command"],
        "title": card["title"],
        "epoch": card["epoch"],
        "updated_at": iso(card["updated_us"]),
    }


def alert(run: Run, situation: str, reason: str, age_us: int) -> Signal:
    """Say that a run went silent: its owner is `gone`, or lives and does nothing (`silent`)."""
    return {
        **_of(run, age_us),
        "kind": "silent",
        "situation": situation,
        "reason": reason,
        "id": f"{run.id}:{run.epoch}:{run.progress_version}:{situation}",
        "message": f"{_ref(run)} has shown no work for {_span(age_us)}: {reason}.",
    }


def recovery(before: Run, after: Run, done: Resumption, now_us: int) -> Signal:
    """Say that a run got further by a resume."""
    where = phase(after)
    stands = f"is in phase {where}" if where else "is unfinished"
    if done.outcome:
        stands = f"ended as {done.outcome}"
    return {
        **_of(after, 0),
        "id": f"{after.id}:{done.epoch}:recovered",
        "retry_count": before.futile + 1,
        "from_phase": phase(before),
        "to_phase": "completed" if after.finished else phase(after),
        "recovered_at": iso(now_us),
        "message": f"{_ref(after)} went on by itself (attempt {done.epoch}); it {stands}.",
    }


def needs_attention(run: Run, code: str, detail: str | None, since_us: int | None) -> Signal:
    """Say that a run needs a person."""
    reason = attention.text(code)
    signal = {
        **_of(run, 0),
        "id": f"{run.id}:{run.epoch}:{run.progress_version}:{code}",
        "reason": reason,
        "code": code,
        "blocked_since": iso(since_us if since_us is not None else run.updated_us),
        "message": f"{_ref(run)} needs attention: {reason}.",
    }
    if detail:
        signal["detail"] = detail
        signal["message"] += f" {detail}"
    return signal


def tried(run_id: str, action: str, run: Run, done: Resumption | None, error: str | None) -> Signal:
    """Say what was tried to resume a run."""
    execute = done.execute if done is not None else {}
    result = done.result if done is not None else {}
    return {
        "task_id": run_id,
        "task_type": run.command,
        "ok": action in ("resume", "dry-run"),
        "action": action,
        "command": execute.get("name"),
        "argv": execute.get("argv"),
        "returncode": result.get("exit_code"),
        "epoch": done.epoch if done is not None else run.epoch,
        "retry_count": run.futile,
        "error": error,
    }


def skipped(run: Run, reason: str, age_us: int) -> Signal:
    """Say why a run was left alone."""
    return {**_of(run, age_us), "reason": reason}


def phase(run: Run) -> str | None:
    """Return the phase that a run is in: what its card says, else the last one that runs."""
    said = run.card.get("phase")
    if said is not None:
        return str(said)
    names = [each.name for each in run.phases.values()]
    at_work = [each.name for each in run.phases.values() if each.status == "running"]
    known = at_work or names
    return known[-1] if known else None


def _of(run: Run, age_us: int) -> Signal:
    last_us = run.checkpoint_us or run.worked_us or run.created_us
    return {
        "task_id": run.id,
        "task_type": run.command,
        "title": run.title,
        "phase": phase(run),
        "stale_for_minutes": age_us // MINUTE_US,
        "last_checkpoint": iso(last_us),
        "summary": (
            f"{_ref(run)}, phase {phase(run) or '-'}, attempt {run.epoch}, "
            f"last work {_span(age_us)} ago"
        ),
    }


def _ref(run: Run) -> str:
    return f"{run.command}:{run.id}"


def _max_retries(run: Run) -> int:
    from tachograph.domain.recovery import Recovery

    return Recovery.from_fields(run.recovery).max_retries


def _span(span_us: int) -> str:
    from tachograph.domain.liveness import span

    return span(span_us)
