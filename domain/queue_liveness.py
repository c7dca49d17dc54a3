"""Whether the holder of a leased job is lost, judged from facts handed in. No I/O, no clock."""

from __future__ import annotations

from tachograph.domain.liveness import GONE, judge, span
from tachograph.domain.owner import Owner
from tachograph.domain.queued_job import LEASE_EXPIRED, OWNER_GONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.domain.liveness import Lease, Observer
    from tachograph.domain.queued_job import QueuedJob


def lost(
    job: QueuedJob,
    *,
    here: Observer,
    process_start: Callable[[int], int | None],
    lease: Lease | None,
    boottime_us: int,
    now_us: int,
) -> tuple[str, str] | None:
    """Say why the holder of a leased job is to be taken for lost, code and reason; None if not.

    A holder whose process has ended frees its jobs at once (G7). One that lives, or that cannot
    be looked at, does so when it has been silent for longer than its lease: since it took the
    job, or since its last heartbeat (`lease`), by the clock that counts since boot. The wall
    clock decides only where the machine does not say which boot it is in.
    """
    owner = Owner.from_fields(job.owner or {})
    judged = judge(
        owner, here=here, process_start=process_start, lease=None, boottime_us=boottime_us
    )
    if judged.state == GONE:
        return OWNER_GONE, judged.reason
    if lease is not None and lease.epoch == job.epoch and lease.boot_id == here.boot_id:
        silent_us = boottime_us - lease.boottime_us
    elif job.leased_boot_us is not None and owner.boot_id == here.boot_id:
        silent_us = boottime_us - job.leased_boot_us
    else:
        silent_us = now_us - (job.leased_us or 0)
    if silent_us <= job.lease_seconds * 1_000_000:
        return None
    words = f"{owner} was silent for {span(silent_us)}, its lease is {job.lease_seconds:g}s"
    return LEASE_EXPIRED, words
