"""One step as a real process: signs of life, deadlines, and what it leaves behind."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tachograph import step_work
from tachograph.bootstrap import open_store
from tachograph.domain.maintenance_plan import MaintenanceStep
from tachograph.orchestra import Orchestra, Stopping, new_id
from tachograph.orders import Bounds
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tachograph.bootstrap import Services
    from tachograph.session import Session

UNBOUND = Bounds(None, None, by_deadline=False)


@pytest.fixture
def services(
    store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Services]:
    monkeypatch.chdir(tmp_path)
    services = open_store(str(store_path), create=True)
    yield services
    services.close()


@pytest.fixture
def session(services: Services) -> Session:
    want = Start("maintenance-nightly", {"tier": "nightly"}, run_id="orch-1")
    session = services.starter.start(want, services.owner())
    session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["work"]))
    return session


def step(script: str) -> MaintenanceStep:
    return MaintenanceStep("work", "nightly", command=["/bin/sh", "-c", script])


def test_a_long_step_says_that_it_is_still_at_work(
    services: Services, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_work, "PULSE_SECONDS", 0.01)
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        (tmp_path / "seen").touch()

    around = Orchestra(services, session, Stopping(), say)
    worked = around.work(step("while ! test -e seen; do sleep 0.01; done"), UNBOUND)

    assert worked.outcome == "success"
    assert said[0] == "maintenance-orchestrator: work — still running after 0s"


def test_it_keeps_the_lease_of_both_runs(
    services: Services, session: Session, tmp_path: Path
) -> None:
    services.settings.heartbeat_seconds = 0.01
    beaten = set()
    beat = services.presence.beat

    def noting(run_id: str, epoch: int, note: object = None) -> None:
        beaten.add(run_id)
        beat(run_id, epoch, None)
        if len(beaten) > 1:
            (tmp_path / "seen").touch()

    services.presence.beat = noting  # type: ignore[method-assign,assignment]
    around = Orchestra(services, session, Stopping(), lambda _line: None)
    worked = around.work(step("while ! test -e seen; do sleep 0.01; done"), UNBOUND)

    assert beaten == {"orch-1", worked.runs[0]}


def test_a_step_that_does_not_heed_the_deadline_is_stopped_and_has_not_failed(
    services: Services, session: Session
) -> None:
    """It is due again, and a person hears of it; nothing about it is broken."""
    around = Orchestra(services, session, Stopping(), lambda _line: None)
    worked = around.work(step("exec sleep 100"), Bounds(0.2, 1, by_deadline=True))

    assert (worked.outcome, worked.reason_code) == ("partial", "stopped_before_output")
    assert worked.summary.startswith("stopped at the deadline of the run, killed by SIGTERM")


def test_a_run_that_was_left_at_work_is_no_success(services: Services, session: Session) -> None:
    tacho = f"{sys.executable} -m tachograph"
    # The owner it names, this test, lives on.
    script = f"{tacho} run start inner --owner-pid {os.getpid()} >/dev/null"
    around = Orchestra(services, session, Stopping(), lambda _line: None)
    worked = around.work(step(script), UNBOUND)

    assert (worked.outcome, worked.reason_code) == ("partial", "left_running")


def test_the_environment_of_this_process_stays(services: Services, session: Session) -> None:
    before = dict(os.environ)
    Orchestra(services, session, Stopping(), lambda _line: None).work(step("true"), UNBOUND)

    assert dict(os.environ) == before


def test_a_pause_ends_at_a_signal() -> None:
    stopping = Stopping()
    stopping.received = "SIGTERM"

    Orchestra(None, None, stopping, lambda _line: None).sleep(10**6)


def test_a_pause_renews_the_lease(
    services: Services, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("tachograph.orchestra.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(
        "tachograph.orchestra.time.sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds)
    )
    beats: list[float] = []
    monkeypatch.setattr(session, "beat", lambda: beats.append(clock[0]))
    Orchestra(services, session, Stopping(), lambda _line: None).sleep(35)

    assert len(beats) == 3
    assert clock[0] == pytest.approx(35)


# Ids.


def test_a_new_id_says_when_it_was_made() -> None:
    made = new_id(1_715_134_530_250_999)

    assert made.startswith("orch-20240508T021530Z-")
    assert 0 <= int(made.rpartition("-")[2]) <= 999_999
