"""Every rule by which an owner is judged, one case a line (G5, G7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.liveness import (
    UNSEEN,
    Lease,
    Liveness,
    Observer,
    judge,
    judge_attempt,
)
from tachograph.domain.owner import Owner

SECOND = 1_000_000
NOW = 1_000 * SECOND
HERE = Observer("ada", "boot-1", "ns-1")
OWNER = Owner("ada", "boot-1", 17, 4711, "ns-1")
UNOWNED = Owner("ada", "boot-1", kind="unowned")
IN_CONTAINER = Owner("c0ffee", "boot-1", 17, 4711, "ns-2")
OF_V1 = Owner("ada", pid=17)


def starts(*processes: tuple[int, int]) -> Callable[[int], int | None]:
    return dict(processes).get


def lease(age_seconds: float, *, boot_id: str | None = "boot-1", epoch: int = 1) -> Lease:
    age_us = int(age_seconds * SECOND)
    return Lease(epoch, boot_id, NOW - age_us, 5_000 - age_us, seconds=30)


def verdict(
    owner: Owner,
    *,
    here: Observer = HERE,
    processes: Callable[[int], int | None] = starts(),  # noqa: B008
    lease: Lease | None = None,
    epoch: int | None = None,
    shared: bool = False,
) -> Liveness:
    return judge(
        owner,
        here=here,
        process_start=processes,
        lease=lease,
        boottime_us=NOW,
        epoch=epoch,
        shared=shared,
    )


RUNNING = starts((17, 4711))
REUSED = starts((17, 9999))
HIDDEN = starts((17, UNSEEN))


@pytest.mark.parametrize(
    ("owner", "processes", "beat", "state", "reason"),
    [
        # Same boot, same pid namespace: the process table decides, whatever the lease says.
        (OWNER, RUNNING, None, "alive", "process 17 is running"),
        (OWNER, RUNNING, lease(9999), "alive", "process 17 is running"),
        (OWNER, starts(), None, "gone", "process 17 has ended"),
        (OWNER, starts(), lease(0), "gone", "process 17 has ended"),
        (OWNER, REUSED, lease(0), "gone", "a later process"),
        (Owner("other-name", "boot-1", 17, 4711, "ns-1"), RUNNING, None, "alive", "running"),
        # A process that may not be looked at: only a fresh lease proves anything.
        (OWNER, HIDDEN, lease(1), "alive", "may not be looked at"),
        (OWNER, HIDDEN, lease(31), "unknown", "may not be looked at"),
        (OWNER, HIDDEN, None, "unknown", "no heartbeat"),
        # Another boot: rebooted, however fresh the pid and the lease look.
        (Owner("ada", "boot-0", 17, 4711, "ns-1"), RUNNING, lease(0), "gone", "restarted since"),
        (Owner("c0ffee", "boot-0", 17, 4711, "ns-2"), RUNNING, lease(0), "gone", "last started"),
        (Owner("ada", "boot-0", kind="unowned"), RUNNING, lease(0), "gone", "restarted since"),
        # Another container: its pids mean nothing here, so the lease decides.
        (IN_CONTAINER, RUNNING, lease(30), "alive", "in another container; last heartbeat 30s"),
        (IN_CONTAINER, RUNNING, lease(30.000001), "gone", "last heartbeat 30s ago, good for 30s"),
        (IN_CONTAINER, starts(), lease(-1), "alive", "last heartbeat 0s ago"),
        (IN_CONTAINER, RUNNING, lease(0, boot_id="boot-0"), "unknown", "no heartbeat"),
        (IN_CONTAINER, RUNNING, None, "unknown", "no heartbeat"),
        (Owner("ada", "boot-1", 17, 4711, None), RUNNING, lease(31), "gone", "container"),
        # Nobody in particular: the lease decides.
        (UNOWNED, RUNNING, lease(1), "alive", "no process owns the run"),
        (UNOWNED, RUNNING, lease(3600), "gone", "1h00m ago"),
        (UNOWNED, RUNNING, lease(200_000), "gone", "2d07h ago"),
        (UNOWNED, RUNNING, None, "unknown", "no heartbeat"),
        # Recorded by a version that knew neither boot nor start time.
        (OF_V1, RUNNING, lease(1), "alive", "without its start time"),
        (OF_V1, RUNNING, lease(90), "gone", "1m30s ago"),
        (OF_V1, RUNNING, None, "unknown", "no heartbeat"),
        (Owner(None), RUNNING, None, "unknown", "no heartbeat"),
        (Owner("ada", "boot-1", 17, None, "ns-1"), RUNNING, None, "unknown", "start time"),
    ],
)
def test_an_owner_is_judged_by_process_then_boot_then_lease(
    owner: Owner,
    processes: Callable[[int], int | None],
    beat: Lease | None,
    state: str,
    reason: str,
) -> None:
    judged = verdict(owner, processes=processes, lease=beat)

    assert judged.state == state
    assert reason in judged.reason


def test_a_machine_that_does_not_say_its_boot_judges_nothing_by_pid() -> None:
    here = Observer("ada")

    judged = verdict(OWNER, here=here, processes=RUNNING, lease=lease(0))

    assert (judged.state, "which boot" in judged.reason) == ("unknown", True)


@pytest.mark.parametrize("boot_id", [None, "boot-1"])
def test_a_lease_of_no_known_boot_is_worth_nothing(boot_id: str | None) -> None:
    judged = verdict(UNOWNED, here=Observer("ada", boot_id), lease=lease(0, boot_id=None))

    assert judged.state == "unknown"


def test_a_namespace_may_be_unknown_on_both_sides_as_where_there_are_none() -> None:
    owner = Owner("mac", "boot-1", 17, 4711)

    judged = verdict(owner, here=Observer("mac", "boot-1"), processes=RUNNING)

    assert judged.state == "alive"


@pytest.mark.parametrize(
    ("owner", "state"),
    [(Owner("bob", "boot-9", 17, 4711), "unknown"), (Owner("ada", "boot-0", 17, 4711), "gone")],
)
def test_in_a_shared_store_only_its_own_machine_judges_an_owner(owner: Owner, state: str) -> None:
    assert verdict(owner, processes=RUNNING, lease=lease(0), shared=True).state == state


@pytest.mark.parametrize(("epoch", "state"), [(1, "alive"), (2, "unknown"), (None, "alive")])
def test_a_lease_of_another_attempt_counts_as_none(epoch: int | None, state: str) -> None:
    judged = verdict(UNOWNED, lease=lease(1, epoch=1), epoch=epoch)

    assert judged.state == state
    assert (judged.since_us is None) == (state == "unknown")


@given(step_us=st.integers(-(10**15), 10**15), age_us=st.integers(0, 10**10))
def test_a_step_of_the_wall_clock_changes_no_verdict(step_us: int, age_us: int) -> None:
    beaten = Lease(1, "boot-1", NOW - age_us, 10**15, 30)
    stepped = Lease(1, "boot-1", NOW - age_us, 10**15 + step_us, 30)

    before, after = verdict(UNOWNED, lease=beaten), verdict(UNOWNED, lease=stepped)

    assert (after.state, after.reason) == (before.state, before.reason)


def test_a_suspended_laptop_wakes_up_with_its_owner_alive() -> None:
    """The clock since boot goes on during suspend, so leases age; the process is still there."""
    assert verdict(OWNER, processes=RUNNING, lease=lease(8 * 3600)).state == "alive"


def test_since_is_the_wall_time_of_the_last_heartbeat() -> None:
    assert verdict(UNOWNED, lease=lease(0)).since_us == 5_000
    assert verdict(OWNER, processes=RUNNING).since_us is None


# An attempt whose work is done by another process.

WORKER = Owner("ada", "boot-1", 18, 5000, "ns-1")
WORKER_ELSEWHERE = Owner("c0ffee", "boot-1", 18, 5000, "ns-2")


def attempt_verdict(
    owner: Owner,
    worker: Owner | None,
    *processes: tuple[int, int],
    lease: Lease | None = None,
    epoch: int | None = 1,
    worker_start: Callable[[Owner], int | None] | None = None,
) -> Liveness:
    return judge_attempt(
        owner,
        worker,
        here=HERE,
        process_start=starts(*processes),
        lease=lease,
        boottime_us=NOW,
        epoch=epoch,
        worker_start=worker_start,
    )


@pytest.mark.parametrize(
    ("owner", "worker", "processes", "beat", "state", "reason"),
    [
        # While the worker lives, the attempt does.
        (OWNER, WORKER, [(18, 5000)], None, "alive", "process 18 is running"),
        (UNOWNED, WORKER, [(18, 5000)], lease(9999), "alive", "process 18 is running"),
        # When it has ended, the owner may be about to record the end.
        (OWNER, WORKER, [(17, 4711)], None, "alive", "process 17 is running"),
        (OWNER, WORKER, [], lease(0), "gone", "process 17 has ended"),
        (OWNER, WORKER, [(18, 9999)], None, "gone", "process 17 has ended"),
        (IN_CONTAINER, WORKER, [], lease(0), "alive", "in another container"),
        # Nobody in particular records nothing: the worker's end is the attempt's.
        (UNOWNED, WORKER, [], lease(0), "gone", "process 18 has ended"),
        (UNOWNED, WORKER, [(18, 9999)], lease(0), "gone", "a later process"),
        # A worker that cannot be judged leaves it to the owner; its own lease is none.
        (UNOWNED, WORKER_ELSEWHERE, [], lease(0), "alive", "no process owns the run"),
        (UNOWNED, WORKER_ELSEWHERE, [], lease(31), "gone", "no process owns the run"),
        (OWNER, WORKER_ELSEWHERE, [(17, 4711)], None, "alive", "process 17 is running"),
        # Without a worker it is judged by its owner.
        (OWNER, None, [(17, 4711)], None, "alive", "process 17 is running"),
        (UNOWNED, None, [], lease(31), "gone", "last heartbeat 31s ago"),
    ],
)
def test_an_attempt_is_judged_by_its_worker_then_its_owner(
    owner: Owner,
    worker: Owner | None,
    processes: list[tuple[int, int]],
    beat: Lease | None,
    state: str,
    reason: str,
) -> None:
    judged = attempt_verdict(owner, worker, *processes, lease=beat)

    assert judged.state == state
    assert reason in judged.reason


@pytest.mark.parametrize(
    ("beat", "epoch", "since_us"),
    [(lease(0), 1, 5_000), (lease(0, epoch=2), 1, None), (None, 1, None)],
)
def test_an_attempt_with_a_worker_was_heard_of_by_its_own_lease(
    beat: Lease | None, epoch: int, since_us: int | None
) -> None:
    assert attempt_verdict(OWNER, WORKER, (18, 5000), lease=beat, epoch=epoch).since_us == since_us


def leaves_something(worker: Owner) -> int | None:
    """The worker has ended, and what it has started lives."""
    return worker.started


def leaves_nothing(_worker: Owner) -> None:
    return None


@pytest.mark.parametrize("owner", [OWNER, UNOWNED])
def test_an_attempt_lives_on_in_what_its_dead_worker_has_started(owner: Owner) -> None:
    judged = attempt_verdict(owner, WORKER, worker_start=leaves_something)

    assert judged.state == "alive"
    assert judged.reason == "process 18 has ended; what it has started is still at work"


@pytest.mark.parametrize("owner", [OWNER, UNOWNED])
def test_an_attempt_is_gone_when_that_has_ended_too(owner: Owner) -> None:
    assert attempt_verdict(owner, WORKER, worker_start=leaves_nothing).state == "gone"


def test_a_worker_that_lives_is_named_itself() -> None:
    judged = attempt_verdict(OWNER, WORKER, (18, 5000), worker_start=leaves_something)

    assert judged == Liveness("alive", "process 18 is running")


def test_a_later_process_of_the_workers_pid_is_nothing_that_it_has_started() -> None:
    judged = attempt_verdict(OWNER, WORKER, (18, 9999), worker_start=lambda _worker: 9999)

    assert judged.state == "gone"


def test_what_is_left_of_a_worker_of_another_boot_or_container_is_not_asked() -> None:
    asked: list[Owner] = []

    def worker_start(worker: Owner) -> int | None:
        asked.append(worker)
        return worker.started

    states = [
        attempt_verdict(UNOWNED, worker, worker_start=worker_start).state
        for worker in (WORKER_ELSEWHERE, Owner("ada", "boot-0", 18, 5000, "ns-1"))
    ]

    assert (states, asked) == (["unknown", "gone"], [])
