"""For which attempt a command acts, judged by the processes above it."""

from __future__ import annotations

import os
from typing import Any

import pytest
from workbench import Workbench

from tachograph import cards
from tachograph.domain.errors import RunOwnedError
from tachograph.domain.owner import UNOWNED, Owner
from tachograph.domain.run_state import RunState
from tachograph.dropin.callers import Caller
from tachograph.infra import processes
from tachograph.infra.ancestry import Process

NOBODY = processes.nobody()
JOB = Process(11, 100, ["python3", "job.py"])
WRAPPER = Process(12, 200, ["bash", "run.sh"])


def caller(*above: Process, worker: Process | None = None, **environment: str) -> Caller:
    return Caller(list(above), worker, NOBODY, environment)


def recorded(epoch: int, process: Process, boot: str | None = NOBODY.boot_id) -> list[Any]:
    return [epoch, boot, process.pid, process.started]


@pytest.fixture
def run() -> RunState:
    """A run in its second attempt, which nobody in particular owns."""
    run: RunState = Workbench().start(run_id="job").run
    run.epoch = 2
    run.owner = NOBODY.to_fields()
    run.processes = []
    return run


def this_process() -> dict[str, Any]:
    return dict(processes.describe(os.getpid()).to_fields())


def test_whoever_is_not_known_acts_for_the_current_attempt(run: RunState) -> None:
    assert caller(JOB).epoch(run) == 2


def test_a_process_acts_for_the_newest_attempt_that_it_worked_in(run: RunState) -> None:
    run.processes = [recorded(1, JOB), recorded(2, WRAPPER), recorded(1, WRAPPER)]

    assert caller(JOB).epoch(run) == 1
    assert caller(JOB, WRAPPER).epoch(run) == 2


@pytest.mark.parametrize(
    "entry",
    [
        recorded(1, JOB, "another boot"),
        recorded(1, Process(11, 101, [])),  # the pid belongs to a later process now
        recorded(1, Process(13, 100, [])),
    ],
)
def test_another_process_is_not_taken_for_it(run: RunState, entry: list[Any]) -> None:
    run.processes = [entry]

    assert caller(JOB).epoch(run) == 2


def test_the_environment_names_the_attempt_of_its_run(run: RunState) -> None:
    assert caller(JOB, TACHO_EPOCH="1", TACHO_RUN_ID="job").epoch(run) == 1
    assert caller(JOB, TACHO_EPOCH="1").epoch(run) == 1
    assert caller(JOB, TACHO_EPOCH="1", TACHO_RUN_ID="other").epoch(run) == 2
    assert caller(JOB, TACHO_EPOCH="odd").epoch(run) == 2


def test_an_adapter_that_began_a_later_attempt_acts_for_that(run: RunState) -> None:
    run.processes = [recorded(2, JOB)]

    assert caller(JOB, TACHO_EPOCH="1", TACHO_RUN_ID="job").epoch(run) == 2


@pytest.mark.parametrize("role", ["worker", "owner"])
def test_a_stranger_does_not_come_between_a_living_process_and_its_task(
    run: RunState, role: str
) -> None:
    setattr(run, role, this_process())

    with pytest.raises(RunOwnedError, match=f"process {os.getpid()}"):
        caller(JOB).epoch(run)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": UNOWNED},
        {"started": 1},
        {"boot_id": "another"},
        {"pid_namespace": "another"},
        {"pid": None},
    ],
)
def test_only_a_process_that_is_seen_to_live_keeps_strangers_away(
    run: RunState, change: dict[str, Any]
) -> None:
    run.owner = {**this_process(), **change}

    assert caller(JOB).epoch(run) == 2


def test_an_attempt_that_ended_keeps_nobody_away(run: RunState) -> None:
    run.owner, run.attempt_open = this_process(), False

    assert caller(JOB).epoch(run) == 2


def test_the_second_command_of_a_process_shows_that_it_works(run: RunState) -> None:
    assert caller(JOB, worker=JOB).evident_worker(run) is None
    run.card[cards.CALLER] = caller(JOB, worker=JOB).mark
    found = Owner.from_fields(caller(JOB, worker=JOB).evident_worker(run) or {})

    assert (found.pid, found.started, found.boot_id) == (11, 100, NOBODY.boot_id)
    assert caller(WRAPPER, worker=WRAPPER).evident_worker(run) is None


def test_who_began_the_attempt_works_through_its_children(run: RunState) -> None:
    run.processes = [recorded(2, WRAPPER)]
    found = caller(JOB, WRAPPER, worker=JOB).evident_worker(run)

    assert found is not None
    assert found["pid"] == WRAPPER.pid


def test_who_is_known_to_work_is_not_noted_again(run: RunState) -> None:
    run.processes = [recorded(2, JOB)]
    run.worker = caller(JOB).hands_over(run)

    assert caller(JOB, worker=JOB).evident_worker(run) is None


def test_a_host_is_no_worker_and_belongs_to_no_attempt(run: RunState) -> None:
    run.processes = [recorded(1, JOB)]
    run.card = {cards.HOSTS: [caller(JOB, worker=JOB).mark], cards.CALLER: caller(worker=JOB).mark}

    assert caller(JOB).epoch(run) == 2
    assert caller(JOB, worker=JOB).evident_worker(run) is None
    assert caller(JOB).hosts(run) == []


def test_the_owner_of_a_new_attempt_is_nobody_with_a_note_of_the_caller() -> None:
    assert caller(JOB, worker=JOB).owner["kind"] == UNOWNED
    assert caller(JOB, worker=JOB).owner["pid"] == JOB.pid
    assert "pid" not in caller(JOB).owner
    assert Caller.outside().above == []
