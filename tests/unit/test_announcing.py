"""Signals come from the log: each is told at least once, in order, whatever failed meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tachograph.announcing import KEPT_US, announce
from tachograph.bootstrap import open_store
from tachograph.infra.sinks import SinkDownError
from tachograph.infra.told import Told
from tachograph.news import news
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tachograph.bootstrap import Services
    from tachograph.session import Session


class Listener:
    """A sink that remembers what it was sent, and fails when told to."""

    def __init__(self, name: str = "listener") -> None:
        self.name = self.receiver = name
        self.heard: list[str] = []
        self.refuses: set[str] = set()
        self.down = False

    def send(self, signal: Any) -> None:
        if self.down:
            raise SinkDownError("it is down")
        if signal["id"] in self.refuses:
            raise ValueError("it does not like this one")
        self.heard.append(signal["id"])

    def close(self) -> None:
        pass


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    found = open_store(str(tmp_path / "store"), create=True)
    yield found
    found.close()


@pytest.fixture
def session(services: Services) -> Session:
    return services.starter.start(Start("report", run_id="job"), services.owner())


def stall(session: Session, kind: str = "gone") -> None:
    evidence = {"reason": "process 7 has ended", "silent_seconds": 120}
    session.execute(lambda run, why: run.detect_stall(why, kind, evidence))


def call(session: Session, reason: str) -> None:
    session.execute(lambda run, why: run.raise_attention(why, reason, "look"))


def resumed(session: Session, *, further: bool, unattended: bool = True) -> None:
    plan = {"unattended": unattended}
    session.execute(lambda run, why: run.dispatch_resume(why, "jobs:resume", plan))
    if further:
        session.complete_step("load", 1)
    result = {"left_running": [7]}  # so that the attempt goes on
    session.execute(lambda run, why: run.return_resume(why, result))


def told(services: Services, **options: Any) -> list[dict[str, Any]]:
    head = services.log.head().position
    return [each.signal for each in news(services.repository, after=0, up_to=head, **options)]


class TestNews:
    def test_each_event_that_somebody_should_hear_of_is_a_signal(
        self, services: Services, session: Session
    ) -> None:
        session.start_phase("work")
        stall(session)
        call(session, "no_adapter")
        resumed(session, further=True)
        alert, need, recovery = told(services)

        assert [each["kind"] for each in (alert, need, recovery)] == [
            "alert",
            "needs_attention",
            "recovery",
        ]
        assert (alert["situation"], alert["stale_for_minutes"]) == ("gone", 2)
        assert (need["code"], need["detail"]) == ("no_adapter", "look")
        assert (recovery["from_phase"], recovery["to_phase"]) == ("work", "work")

    def test_an_id_says_which_event_it_is(self, services: Services, session: Session) -> None:
        stall(session)
        session.complete_step("load", 1)
        stall(session)

        assert [each["id"] for each in told(services)] == ["job:3", "job:5"]

    @pytest.mark.parametrize(("further", "unattended"), [(False, True), (True, False)])
    def test_only_unattended_progress_is_a_recovery(
        self, services: Services, session: Session, further: bool, unattended: bool
    ) -> None:
        resumed(session, further=further, unattended=unattended)

        assert told(services) == []

    def test_those_of_another_command_are_left_out(
        self, services: Services, session: Session
    ) -> None:
        stall(session)

        assert len(told(services, command="report")) == 1
        assert told(services, command="other") == []


class TestAnnouncing:
    def test_each_is_told_once_to_each(self, services: Services, session: Session) -> None:
        one, two = Listener("one"), Listener("two")
        stall(session)
        announce(services, [one], since=0)
        call(session, "no_adapter")
        announce(services, [one, two], since=0)
        announce(services, [one, two], since=0)

        assert one.heard == two.heard == ["job:3", "job:4"]

    def test_a_new_listener_hears_nothing_old(self, services: Services, session: Session) -> None:
        stall(session)
        listener = Listener()
        announce(services, [listener], since=services.log.head().position)
        call(session, "no_adapter")
        announce(services, [listener], since=services.log.head().position)

        assert listener.heard == ["job:4"]

    def test_what_a_listener_missed_it_hears_next_time(
        self, services: Services, session: Session
    ) -> None:
        down, well = Listener("down"), Listener("well")
        down.down = True
        stall(session)
        failures = announce(services, [down, well], since=0)
        call(session, "no_adapter")
        down.down = False
        announce(services, [down, well], since=0)

        assert [(each.sink, each.signals) for each in failures] == [("down", ["job:3"])]
        assert down.heard == well.heard == ["job:3", "job:4"]

    def test_what_is_refused_is_told_again_for_a_day_and_no_longer(
        self, services: Services, session: Session
    ) -> None:
        listener = Listener()
        listener.refuses = {"job:3"}
        stall(session)
        call(session, "no_adapter")
        announce(services, [listener], since=0)
        later = services.actor.now_us() + KEPT_US
        services.actor.now_us = lambda: later
        announce(services, [listener], since=0)
        failures = announce(services, [listener], since=0)

        assert listener.heard == ["job:4", "job:4"]
        assert failures == []

    def test_a_watchdog_that_was_killed_before_it_told_leaves_it_to_the_next(
        self, services: Services, session: Session
    ) -> None:
        listener = Listener()
        announce(services, [listener], since=0)
        stall(session)  # recorded, and then the watchdog is killed
        announce(services, [listener], since=services.log.head().position)

        assert listener.heard == ["job:3"]

    def test_a_position_that_makes_no_sense_counts_as_none(self, services: Services) -> None:
        positions = Told(services.folder)
        with positions.lock():
            positions.keep("listener", 7)
        kept = positions.position("listener")
        positions._path("listener").write_text("seven", "ascii")

        assert (kept, positions.position("listener")) == (7, None)
