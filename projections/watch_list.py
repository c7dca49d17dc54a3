"""Which runs a watchdog has to look at, and when: cut from their summaries. No clock, no host.

It says who should be looked at, never what is to be done: that is decided by the run itself, at
that moment. So it may name a run too early, and never too late.
"""

from __future__ import annotations

from tachograph.domain import outcome
from tachograph.domain.attention import APPROVAL
from tachograph.domain.recovery import Recovery

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

    A run is no longer watched for that once its end was noted.
    """
    if not run["attempt_open"] or _is_gone(run):
        return None
    return run["worker"] or run["owner"]


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
    if declared.resume_window_seconds is not None:
        moments.append(run["worked_us"] + round(declared.resume_window_seconds * 1_000_000))
    if _may_go_on(run, declared):
        moments.append((run["returned_us"] or run["worked_us"]) + declared.pause_us(run["futile"]))
    elif declared.stale_after_seconds is not None and _is_at_work(run):
        moments.append(run["worked_us"] + round(declared.stale_after_seconds * 1_000_000))
    return min(moments, default=None)


def _is_gone(run: Summary) -> bool:
    """Say whether it is on record that nobody is at the current attempt any more."""
    stall = run["stall"]
    return stall is not None and stall["epoch"] == run["epoch"] and stall["kind"] == "gone"


def _is_at_work(run: Summary) -> bool:
    """Say whether the attempt may be at work, and its silence was not noted yet."""
    stall = run["stall"]
    noted = (
        stall is not None
        and stall["epoch"] == run["epoch"]
        and stall["time_us"] >= run["worked_us"]
    )
    return bool(run["attempt_open"]) and not noted


def _may_go_on(run: Summary, declared: Recovery) -> bool:
    if any(not reason.startswith(APPROVAL) for reason in run["attention"]) or run["approvals"]:
        return False
    if run["blocked"] is not None or not declared.auto_resume:
        return False
    if run["attempt_open"]:
        return _is_gone(run)
    if run["outcome"] is None:  # its resume returned, or it waits for others
        return bool(run["epoch"] or run["depends_on"])
    waited = run["reason_code"] == outcome.WAITS_FOR_APPROVAL
    return waited or outcome.traits(run["outcome"], run["reason_code"]).unattended
