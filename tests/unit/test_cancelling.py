"""Cancelling stops first, then records; what lives on is fenced, and can be stopped once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from workbench import Workbench

from tachograph.cancelling import cancel
from tachograph.domain.errors import RunFinishedError
from tachograph.domain.owner import Owner
from tachograph.infra.stopping import Stopped

if TYPE_CHECKING:
    from tachograph.session import Session

OWNER = Owner("here", pid=1)
WORKER = Owner("here", pid=2)


class Stopper:
    """Stops nothing, and keeps what it was asked."""

    def __init__(self, session: Session, *, asked: list[int] | None = None) -> None:
        self.session = session
        self.asked = [1] if asked is None else asked
        self.calls: list[tuple[Owner, Owner | None, str | None]] = []

    def __call__(self, owner: Owner, worker: Owner | None) -> Stopped:
        self.calls.append((owner, worker, self.session.reload().ended))
        return Stopped(self.asked, left=[1])


@pytest.fixture
def bench() -> Workbench:
    return Workbench()


def test_the_processes_are_stopped_before_it_is_recorded(bench: Workbench) -> None:
    session = bench.start(run_id="job")
    stop = Stopper(session)
    stopped = cancel(session, "not needed", stop=stop)

    assert stop.calls == [(OWNER, None, None)]
    assert stopped == Stopped([1], left=[1])
    assert bench.fields("job", "cancelled")[0]["reason"] == "not needed"


def test_the_worker_is_stopped_with_the_owner(bench: Workbench) -> None:
    session = bench.start(run_id="job")
    session.execute(lambda run, why: run.start_worker(why, WORKER.to_fields()))
    stop = Stopper(session)
    cancel(session, "not needed", stop=stop)

    assert stop.calls == [(OWNER, WORKER, None)]


def test_an_attempt_that_has_ended_leaves_its_process_in_peace(bench: Workbench) -> None:
    """Its owner may be a shell that does something else by now."""
    session = bench.start(run_id="job")
    session.finish("failed", reason="disk")
    stop = Stopper(session)

    assert cancel(session, "not needed", stop=stop) is None
    assert stop.calls == []
    assert bench.topics("job")[-1] == "cancelled"


def test_a_finished_run_is_refused_before_anything_is_stopped(bench: Workbench) -> None:
    session = bench.start(run_id="job")
    session.finish("success")
    stop = Stopper(session)
    with pytest.raises(RunFinishedError, match="success"):
        cancel(session, "not needed", stop=stop)

    assert stop.calls == []


def test_what_lived_on_can_be_stopped_once_more(bench: Workbench) -> None:
    session = bench.start(run_id="job")
    cancel(session, "not needed", stop=Stopper(session))
    events = bench.topics("job")
    again = cancel(session, "I said so", stop=Stopper(session))

    assert again == Stopped([1], left=[1])
    assert bench.topics("job") == events


def test_a_cancelled_run_of_which_nothing_lives_is_refused(bench: Workbench) -> None:
    session = bench.start(run_id="job")
    cancel(session, "not needed", stop=Stopper(session))
    with pytest.raises(RunFinishedError, match="cancelled"):
        cancel(session, "again", stop=Stopper(session, asked=[]))

    assert bench.topics("job").count("cancelled") == 1


def test_a_run_that_was_cancelled_between_attempts_has_nothing_to_stop(bench: Workbench) -> None:
    session = bench.start(run_id="job")
    session.finish("failed")
    cancel(session, "not needed", stop=Stopper(session))
    stop = Stopper(session)
    with pytest.raises(RunFinishedError):
        cancel(session, "again", stop=stop)

    assert stop.calls == []


def test_a_run_that_finishes_while_it_is_stopped_is_not_cancelled(bench: Workbench) -> None:
    session = bench.start(run_id="job")

    def stop(owner: Owner, worker: Owner | None) -> Stopped:
        session.finish("success")
        return Stopped([1], ended=True)

    with pytest.raises(RunFinishedError, match="success"):
        cancel(session, "not needed", stop=stop)

    assert bench.topics("job")[-1] == "finished"


def send(session: Session, worker: Owner | None = WORKER) -> None:
    """Let the owner of a run be a dispatcher, whose adapter is the worker."""
    session.execute(lambda run, why: run.dispatch_resume(why, "make", {}))
    if worker is not None:
        session.execute(lambda run, why: run.start_worker(why, worker.to_fields()))


def test_the_adapter_is_stopped_and_never_its_dispatcher(bench: Workbench) -> None:
    """That may be a watchdog, which has the adapters of other runs to wait for."""
    session = bench.start(run_id="job")
    send(session)
    stop = Stopper(session)
    cancel(session, "not needed", stop=stop)

    assert stop.calls == [(WORKER, None, None)]
    assert bench.topics("job")[-1] == "cancelled"


def test_an_adapter_that_has_not_begun_is_only_fenced(bench: Workbench) -> None:
    session = bench.start(run_id="job")
    send(session, None)
    stop = Stopper(session)

    assert cancel(session, "not needed", stop=stop) is None
    assert stop.calls == []
    with pytest.raises(RunFinishedError):
        session.execute(lambda run, why: run.start_worker(why, WORKER.to_fields()))


def test_the_dispatcher_records_the_return_of_a_cancelled_run(bench: Workbench) -> None:
    session = bench.start(run_id="job")
    send(session)
    cancel(session, "not needed", stop=Stopper(session))
    session.execute(lambda run, why: run.return_resume(why, {"signal": 15}))

    assert bench.topics("job")[-2:] == ["cancelled", "resume-returned"]


@pytest.mark.parametrize("returned_first", [True, False])
@pytest.mark.parametrize("worker", [WORKER, None])
def test_the_dispatcher_is_not_stopped_by_cancelling_once_more(
    worker: Owner | None, returned_first: bool, bench: Workbench
) -> None:
    session = bench.start(run_id="job")
    send(session, worker)
    if returned_first:
        session.execute(lambda run, why: run.return_resume(why, {}))
    cancel(session, "not needed", stop=Stopper(session))
    if not returned_first:
        session.execute(lambda run, why: run.return_resume(why, {}))
    stop = Stopper(session, asked=[])
    with pytest.raises(RunFinishedError, match="cancelled"):
        cancel(session, "once more", stop=stop)

    assert OWNER not in [process for call in stop.calls for process in call[:2]]


def test_what_an_adapter_left_running_is_stopped_and_not_its_dispatcher(bench: Workbench) -> None:
    session = bench.start(run_id="job")
    send(session)
    session.execute(lambda run, why: run.return_resume(why, {"left_running": [2]}))
    stop = Stopper(session)
    cancel(session, "not needed", stop=stop)

    assert stop.calls == [(WORKER, None, None)]


def test_the_attempt_after_a_resume_has_an_owner_of_its_own_again(bench: Workbench) -> None:
    session = bench.start(run_id="job")
    send(session)
    session = bench.start(run_id="job")
    stop = Stopper(session)
    cancel(session, "not needed", stop=stop)

    assert stop.calls == [(OWNER, None, None)]
