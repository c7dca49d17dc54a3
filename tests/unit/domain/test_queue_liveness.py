"""When the holder of a leased job is lost: by its process at once, by silence after a while."""

from __future__ import annotations

import pytest

from tachograph.domain.liveness import Lease, Observer
from tachograph.domain.owner import Owner
from tachograph.domain.queue_liveness import lost
from tachograph.domain.queued_job import LEASE_EXPIRED, LEASED, OWNER_GONE, QueuedJob

HERE = Observer("ada", boot_id="b1")
SECOND = 1_000_000
LEASED_AT = 1_000 * SECOND


def leased(boot_id: str | None = "b1", boottime_us: int | None = 50 * SECOND) -> QueuedJob:
    job = QueuedJob()
    job.status, job.epoch, job.lease_seconds = LEASED, 2, 300.0
    job.owner = Owner("ada", boot_id, 17, 4711).to_fields()
    job.leased_us, job.leased_boot_us = LEASED_AT, boottime_us
    return job


def judged(
    job: QueuedJob,
    *,
    started: int | None = 4711,
    lease: Lease | None = None,
    boottime_us: int = 60 * SECOND,
    now_us: int = LEASED_AT,
    here: Observer = HERE,
) -> str | None:
    found = lost(
        job,
        here=here,
        process_start=lambda _pid: started,
        lease=lease,
        boottime_us=boottime_us,
        now_us=now_us,
    )
    return None if found is None else found[0]


def test_a_holder_that_lives_and_is_not_silent_keeps_its_job() -> None:
    assert judged(leased()) is None


@pytest.mark.parametrize("started", [None, 4712])
def test_a_holder_whose_process_has_ended_loses_its_job_at_once(started: int | None) -> None:
    assert judged(leased(), started=started) == OWNER_GONE


def test_a_holder_of_another_boot_is_gone() -> None:
    assert judged(leased("b0")) == OWNER_GONE


@pytest.mark.parametrize(("silent", "code"), [(300, None), (301, LEASE_EXPIRED)])
def test_a_holder_that_never_beat_is_silent_since_it_took_the_job(
    silent: int, code: str | None
) -> None:
    assert judged(leased(), boottime_us=(50 + silent) * SECOND) == code


@pytest.mark.parametrize(("silent", "code"), [(300, None), (301, LEASE_EXPIRED)])
def test_a_heartbeat_renews_the_lease(silent: int, code: str | None) -> None:
    lease = Lease(2, "b1", 1_000 * SECOND, 0, 300.0)

    assert judged(leased(), lease=lease, boottime_us=(1_000 + silent) * SECOND) == code


def test_a_heartbeat_of_an_earlier_holder_renews_nothing() -> None:
    lease = Lease(1, "b1", 1_000 * SECOND, 0, 300.0)

    assert judged(leased(), lease=lease, boottime_us=1_000 * SECOND) == LEASE_EXPIRED


@pytest.mark.parametrize("now_us", [0, LEASED_AT + 10**9 * SECOND])
def test_no_wall_clock_frees_a_job_on_a_machine_that_knows_its_boot(now_us: int) -> None:
    assert judged(leased(), now_us=now_us) is None


def test_without_a_boot_to_go_by_the_wall_clock_has_to_do() -> None:
    nowhere = Observer("ada")
    job = leased(None, None)

    assert judged(job, here=nowhere, now_us=LEASED_AT + 300 * SECOND) is None
    assert judged(job, here=nowhere, now_us=LEASED_AT + 301 * SECOND) == LEASE_EXPIRED
