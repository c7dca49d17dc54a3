"""One run under a watchdog's eyes: how old its last work is, and what would be news of it."""

from __future__ import annotations

from tachograph.domain import attention, errors
from tachograph.domain.ages import age_us, awake_age_us, was_set
from tachograph.domain.recovery import Recovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.domain.ages import Moment
    from tachograph.domain.event import Cause
    from tachograph.domain.plan import Obstacle
    from tachograph.domain.run import Run
    from tachograph.signals import Report

GRACE_SECONDS = 20
"""What an adapter may take to end after its time: a polite signal, and the final one."""
TOLD = "told:"
"""Begins the slots of a card's `watchdog` table that say what was told of what a run asks."""


class Sighting:
    """One run under a watchdog's eyes."""

    def __init__(self, run: Run, now: Moment, seen: list[Moment], report: Report) -> None:
        self.run = run
        self.now = now
        self.report = report
        self._seen = seen

    @property
    def declared(self) -> Recovery:
        """What the job said about its recovery."""
        return Recovery.from_fields(self.run.recovery)

    @property
    def age_us(self) -> int:
        """How long the run has shown no work while the machine was awake."""
        since_us = self.run.worked_us or self.run.created_us
        return awake_age_us(since_us, self.now, self._seen)

    def is_overdue(self) -> bool:
        """Say whether the resume under way has taken longer than it may, and a while more."""
        dispatch = self.run.dispatch or {}
        limit = dispatch.get("timeout_seconds")
        if limit is None or self.run.dispatched_us is None:
            return False
        age = awake_age_us(self.run.dispatched_us, self.now, self._seen)
        return bool(age > (limit + GRACE_SECONDS) * 1_000_000)

    def is_past_its_window(self) -> bool:
        """Say whether it was left too long; never because, or just after, the clock was set."""
        window = self.declared.resume_window_seconds
        since_us = self.run.worked_us or self.run.created_us
        past = window is not None and age_us(since_us, self.now, self._seen) > window * 1_000_000
        return past and not was_set(self.now, self._seen)


def latest_us(now: Moment, seen: list[Moment]) -> int:
    """Return the wall time by the clock of this boot that was the furthest ahead.

    Some events may have their times from it: by a clock that was set back since, nothing that
    happened before would be due for as long as it was set back.
    """
    shown = [moment.wall_us + now.boot_us - moment.boot_us for moment in seen]
    return max([now.wall_us, *shown])


def reason_of(run: Run, obstacle: Obstacle) -> tuple[str, str | None]:
    """Return the reason for which a person is called about an obstacle, and its detail."""
    if obstacle.code == attention.MAX_RETRIES:
        return exhausted(run)
    return obstacle.code, obstacle.text


def exhausted(run: Run) -> tuple[str, str | None]:
    """Return why a run is not resumed any more: its resumes failed, or changed nothing."""
    detail = f"{run.futile} resumes in a row brought no progress"
    if run.resume_error is None:
        return attention.MAX_RETRIES, detail
    return attention.RESUME_FAILED, f"{detail}; the last one: {run.resume_error}"


def untold(run: Run, code: str) -> str | None:
    """Return what stands for a reason for attention as it is now; None when it was told."""
    asked = run.approvals.get(code.removeprefix(attention.APPROVAL))
    said = asked["subject_digest"] if asked else f"{run.epoch}:{run.attention.get(code)}"
    told = (run.card.get("watchdog") or {}).get(TOLD + code)
    return said if code in run.attention and told != said else None


def noting(code: str) -> Callable[[Run, Cause], bool]:
    """Return the command that notes on a run's card that this was told; False when it was."""

    def note(run: Run, why: Cause) -> bool:
        said = untold(run, code)
        if said is None:
            return False
        kept = {
            slot: value
            for slot, value in (run.card.get("watchdog") or {}).items()
            if not slot.startswith(TOLD) or slot.removeprefix(TOLD) in run.attention
        }
        run.change_card(why, {"watchdog": {**kept, TOLD + code: said}})
        return True

    return note


def would_be_news(run: Run, command: Callable[[Run, Cause], bool], now: Moment) -> bool:
    """Say whether a command would be news, on a copy that nobody keeps."""
    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run as Copy

    copy = Copy()
    copy.restore(run.to_snapshot())
    try:
        return command(copy, Cause(now.wall_us, "watchdog", "", 0, 0))
    except errors.RefusalError:
        return False
