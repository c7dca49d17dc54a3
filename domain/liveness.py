"""Whether the owner of a run is alive, judged from facts handed in. No I/O, no clock.

G7: `running` is shown only for an owner that is judged alive at the moment of reading.
G5: an owner judged alive is not robbed; one judged gone may be succeeded at once.
Wall clocks decide nothing here: leases are measured by the clock that counts since boot.
"""

from __future__ import annotations

from tachograph.domain.owner import UNOWNED
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.domain.owner import Owner

ALIVE = "alive"
GONE = "gone"
UNKNOWN = "unknown"

UNSEEN = -1
"""Start time of a process that exists but may not be looked at (`hidepid`, other users)."""


class Lease(_Fields):
    """The last heartbeat of an attempt.

    `boottime_us` counts microseconds since the boot named by `boot_id` and goes on during
    suspend; the lease is fresh until `seconds` later. `time_us` is wall time, for display only.
    """

    __slots__ = ("boot_id", "boottime_us", "epoch", "note", "seconds", "time_us")

    def __init__(
        self,
        epoch: int,
        boot_id: str | None,
        boottime_us: int,
        time_us: int,
        seconds: float,
        note: dict[str, object] | None = None,
    ) -> None:
        self.epoch = epoch
        self.boot_id = boot_id
        self.boottime_us = boottime_us
        self.time_us = time_us
        self.seconds = seconds
        self.note = note


class Observer(_Fields):
    """Where the judge stands: its host, boot and pid namespace. None: not known."""

    __slots__ = ("boot_id", "host", "pid_namespace")

    def __init__(
        self, host: str, boot_id: str | None = None, pid_namespace: str | None = None
    ) -> None:
        self.host = host
        self.boot_id = boot_id
        self.pid_namespace = pid_namespace


class Liveness(_Fields):
    """A verdict about an owner.

    `state` is "alive", "gone" or "unknown"; `reason` tells people why; `since_us` is the wall
    time of the last heartbeat on record, for display, None when there is none.
    """

    __slots__ = ("reason", "since_us", "state")

    def __init__(self, state: str, reason: str, since_us: int | None = None) -> None:
        self.state = state
        self.reason = reason
        self.since_us = since_us


def judge(
    owner: Owner,
    *,
    here: Observer,
    process_start: Callable[[int], int | None],
    lease: Lease | None,
    boottime_us: int,
    epoch: int | None = None,
    shared: bool = False,
) -> Liveness:
    """Say whether the owner of an attempt is alive.

    `process_start` returns the start time of a pid as `here` sees it, None when there is no
    such process, UNSEEN when it may not be looked at. `lease` is the last heartbeat on record,
    `boottime_us` the clock it was measured by, now. Given the attempt's `epoch`, a lease of any
    other attempt counts as none. `shared` says that other machines can reach the store: only
    then may an owner of another boot still be alive.
    """
    if lease is not None and epoch is not None and lease.epoch != epoch:
        lease = None
    if owner.boot_id is not None and here.boot_id is not None and owner.boot_id != here.boot_id:
        verdict = _of_another_boot(owner, here, shared=shared)
    elif _is_visible(owner, here):
        verdict = _by_process(owner, process_start, lease, here, boottime_us)
    else:
        verdict = _by_lease(_why_by_lease(owner, here), lease, here, boottime_us)
    return Liveness(*verdict, lease.time_us if lease else None)


def judge_attempt(
    owner: Owner,
    worker: Owner | None,
    *,
    here: Observer,
    process_start: Callable[[int], int | None],
    lease: Lease | None,
    boottime_us: int,
    epoch: int | None = None,
    shared: bool = False,
    worker_start: Callable[[Owner], int | None] | None = None,
) -> Liveness:
    """Say whether an attempt is alive, whose work may be done by a process other than its owner.

    While the worker lives, the attempt does. When it has ended, the owner counts, which may be
    about to record the end; an owner that is nobody in particular cannot do so. `worker_start`
    returns the start time of a worker as long as anything lives that it has started in its own
    session or group; without it only the worker itself counts.
    """
    verdict: Liveness | None = None
    if worker is not None:
        start_of = worker_start
        verdict = judge(
            worker,
            here=here,
            process_start=process_start if start_of is None else lambda _pid: start_of(worker),
            lease=None,
            boottime_us=boottime_us,
            shared=shared,
        )
    if verdict is not None and (
        verdict.state == ALIVE or (verdict.state == GONE and owner.kind == UNOWNED)
    ):
        since_us = lease.time_us if lease is not None and lease.epoch == epoch else None
        reason = verdict.reason
        if verdict.state == ALIVE and worker is not None and process_start(worker.pid or 0) is None:
            reason = f"process {worker.pid} has ended; what it has started is still at work"
        return Liveness(verdict.state, reason, since_us)
    return judge(
        owner,
        here=here,
        process_start=process_start,
        lease=lease,
        boottime_us=boottime_us,
        epoch=epoch,
        shared=shared,
    )


def _is_visible(owner: Owner, here: Observer) -> bool:
    """Whether the owner's pid means the same here as where it was recorded."""
    return (
        owner.kind != UNOWNED
        and owner.pid is not None
        and owner.started is not None
        and owner.boot_id is not None
        and owner.boot_id == here.boot_id
        and owner.pid_namespace == here.pid_namespace
    )


def _of_another_boot(owner: Owner, here: Observer, *, shared: bool) -> tuple[str, str]:
    if not shared or owner.host == here.host:
        # A local disk serves one kernel at a time: whatever ran under another one has ended.
        # Host names cannot say so: a container has a new one each time it is made.
        return GONE, f"{owner} has ended: {_since_then(owner, here)}"
    return UNKNOWN, f"{owner} can be judged only on its own machine; this is {here.host}"


def _since_then(owner: Owner, here: Observer) -> str:
    if owner.host == here.host:
        return "this machine has been restarted since"
    return "it ran before this machine was last started, or on another one"


def _by_process(
    owner: Owner,
    process_start: Callable[[int], int | None],
    lease: Lease | None,
    here: Observer,
    boottime_us: int,
) -> tuple[str, str]:
    started = process_start(owner.pid) if owner.pid is not None else None
    if started is None:
        return GONE, f"process {owner.pid} has ended"
    if started == UNSEEN:
        state, reason = _by_lease("", lease, here, boottime_us)
        # A process of this pid exists, so a stale lease is no proof of death here.
        state = UNKNOWN if state == GONE else state
        return state, f"process {owner.pid} exists but may not be looked at; {reason}"
    if started == owner.started:
        return ALIVE, f"process {owner.pid} is running"
    return GONE, f"process {owner.pid} has ended; its pid belongs to a later process now"


def _why_by_lease(owner: Owner, here: Observer) -> str:
    if owner.kind == UNOWNED:
        return "no process owns the run; "
    if owner.boot_id is None or owner.pid is None or owner.started is None:
        return f"{owner} was recorded without its start time; "
    if here.boot_id is None:
        return "this machine does not say which boot it is in; "
    return f"{owner} is in another container; "


def _by_lease(why: str, lease: Lease | None, here: Observer, boottime_us: int) -> tuple[str, str]:
    if lease is None or lease.boot_id is None or lease.boot_id != here.boot_id:
        return UNKNOWN, f"{why}there is no heartbeat to judge by"
    # Another process may have beaten between the reading of the clock and of the lease.
    age_us = max(0, boottime_us - lease.boottime_us)
    state = ALIVE if age_us <= lease.seconds * 1_000_000 else GONE
    return state, f"{why}last heartbeat {span(age_us)} ago, good for {lease.seconds:g}s"


def span(span_us: int) -> str:
    """Return a length of time for people.

    >>> span(900_000), span(61_000_000), span(7_200_000_000), span(200_000_000_000)
    ('0s', '1m01s', '2h00m', '2d07h')
    """
    seconds = span_us // 1_000_000
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02}s"
    if seconds < 86400:
        return f"{seconds // 3600}h{seconds % 3600 // 60:02}m"
    return f"{seconds // 86400}d{seconds % 86400 // 3600:02}h"
