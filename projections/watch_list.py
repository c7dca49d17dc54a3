"""Which runs a watchdog has to look at, and when: cut from their summaries. No clock, no host.

It says who should be looked at, never what is to be done: that is decided by the run itself, at
that moment. So it may name a run too early, and never too late.
"""

from __future__ import annotations

from tachograph.domain import attention, outcome
from tachograph.domain.recovery import Recovery
from tachograph.domain.recovery_state import GONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    Summary = dict[str, Any]

    class WatchListView(Protocol):
        """Where the runs to look at are found, each by the position of its first event."""

        def watched_processes(self) -> Iterator[tuple[bytes, int]]:
            """Yield each process (or nobody in particular) that runs count on, and one of them."""
            ...

        def watched_by(self, process: bytes) -> Iterator[int]:
            """Yield the runs that count on a process."""
            ...

        def counting_on(self, process: dict[str, Any]) -> Iterator[int]:
            """Yield the runs that count on a process, given by its fields."""
            ...

        def needing(self) -> Iterator[int]:
            """Yield the runs that need a person, earliest created first."""
            ...

        def watched_count(self) -> int:
            """Return how many runs count on a process."""
            ...

        def due(self, now_us: int) -> Iterator[int]:
            """Yield the runs that should be looked at by a time, longest due first."""
            ...


VERSION = 1
"""Raised whenever the content changes for the same log: stored views are then rebuilt."""


def counts_on(run: Summary) -> Any:
    """Return the fields of the process whose end would strand the run; None when there is none.

    A run is no longer watched for that once its end was noted. While a resume is under way its
    dispatcher counts too, to record the return: even when the run has ended meanwhile.
    """
    if run["attempt_open"] and run["noted"] != GONE:
        return run["worker"] or run["owner"]
    return run["owner"] if _is_under_way(run["resume"]) and not run["attempt_open"] else None


def due_us(run: Summary) -> int | None:
    """Return when the run should be looked at whatever its owner does; None for never.

    That is at once where it can go on unattended, else when it has shown no work for too long.
    """
    if run["ended"] is not None or outcome.is_terminal(run["outcome"], run["reason_code"]):
        return None
    if not run["recovery"]:
        return None
    declared = Recovery.from_fields(run["recovery"])
    moments = []
    deadline_us = _deadline_us(run)
    if deadline_us is not None:
        moments.append(deadline_us)
    since_us = run["worked_us"] or run["created_us"]
    if declared.resume_window_seconds is not None:
        moments.append(_later(since_us, declared.resume_window_seconds))
    if _may_go_on(run, declared):
        moments.append(_next_try_us(run, declared))
    elif declared.stale_after_seconds is not None and _is_to_be_noted(run, declared):
        moments.append(_later(since_us, declared.stale_after_seconds))
    return min(moments, default=None)


def _is_under_way(resume: Any) -> bool:
    return resume is not None and resume["returned_us"] is None


def _deadline_us(run: Summary) -> int | None:
    """Return when the resume under way should be over, None where nothing says so."""
    resume = run["resume"]
    if not _is_under_way(resume) or resume["timeout_seconds"] is None or not run["attempt_open"]:
        return None
    return _later(resume["time_us"], resume["timeout_seconds"])


def _later(time_us: int, seconds: float) -> int:
    """Return a time so much later, or the end of time that a view can hold."""
    return min(time_us + round(min(seconds, 1e12) * 1_000_000), 2**63 - 1)


def _next_try_us(run: Summary, declared: Recovery) -> int:
    if not run["futile"]:
        return 0  # at once: no clock that was set back delays it
    last_us = run["returned_us"] or run["resume"]["time_us"]
    return _later(last_us, declared.pause_us(run["futile"]) / 1_000_000)


def _is_to_be_noted(run: Summary, declared: Recovery) -> bool:
    """Say whether the silence of an attempt is to be noted, or ended by who may do so."""
    if not run["attempt_open"]:
        return False
    ended = declared.kill_stalled and declared.auto_resume
    stays = attention.NOT_STOPPED in run["attention"]
    return run["noted"] is None or (run["noted"] != GONE and ended and not stays)


def _may_go_on(run: Summary, declared: Recovery) -> bool:
    if any(map(attention.holds, run["attention"])) or run["approvals"]:
        return False
    if run["blocked"] is not None or not declared.auto_resume:
        return False
    if run["attempt_open"]:
        return bool(run["noted"] == GONE)
    if run["outcome"] is None:  # its resume returned, or it waits for others
        return bool(run["epoch"] or run["depends_on"])
    waited = run["reason_code"] == outcome.WAITS_FOR_APPROVAL
    return waited or outcome.traits(run["outcome"], run["reason_code"]).unattended
