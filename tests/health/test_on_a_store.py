"""Diagnostics, gate and cycles on a real store: what is counted, and what ends what never helps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command_line import TACHO
from stores import files, gone, opened

from tachograph import healthkeeping
from tachograph.domain.health import DomainHealth
from tachograph.domain.queue_settings import DAY_US, SECOND_US, QueuePlan, QueueSettings
from tachograph.domain.records import NewRecord
from tachograph.domain.repair_policy import (
    CANCEL,
    CHECK_VIEWS,
    CLEAR_READERS,
    EXECUTE,
    HOUR_US,
    OBSERVE,
    PRUNE,
    RELEASE,
    REQUEUE,
    SWEEP,
)
from tachograph.health.diagnosing import diagnose, look_at
from tachograph.health.keeping_diary import COMMAND
from tachograph.health.queue_facts import OBSOLETE_US, PRUNABLE_US
from tachograph.healthkeeping import HealthKeeping
from tachograph.queue_plans import QueuePlans
from tachograph.queues.enqueueing import Enqueue
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.bootstrap import Services
    from tachograph.health.caring import CareReport


class Clinic:
    """A store whose clock is moved by hand."""

    def __init__(self, services: Services, plan: QueuePlan | None = None) -> None:
        self.services = services
        self.now = services.actor.now_us()
        services.actor.now_us = lambda: self.now
        self.keeping = HealthKeeping(services, QueuePlans(plan))
        self.queueing = self.keeping.queueing

    def put(self, number: int = 1, queue: str = "summary", **options: Any) -> list[str]:
        """Enqueue jobs."""
        wants = [Enqueue(queue, "digest", None, **options) for _ in range(number)]
        return [each.job_id for each in self.queueing.enqueue_many(wants)]

    def end(self, *, well: bool, queue: str = "summary") -> int:
        """Do all jobs of a queue that are due; they die unless it goes well."""
        owner, number = self.services.owner(), 0
        while leased := self.queueing.lease([queue], owner, limit=50):
            for each in leased:
                number += 1
                if well:
                    self.queueing.complete(each.job.id, each.job.epoch)
                else:
                    self.queueing.fail(each.job.id, each.job.epoch, "boom", terminal=True)
        return number

    def facts(self) -> dict[str, Any]:
        """Return the facts about queues."""
        return self.keeping.queue_facts()

    def domain(self, name: str, **options: Any) -> DomainHealth:
        """Return the health of one domain."""
        keeping = HealthKeeping(self.services, self.keeping.plans, **options)
        return next(look_at(each) for each in keeping.domains() if each.name == name)

    def cycle(self, mode: str = EXECUTE) -> CareReport:
        """Do a cycle, half an hour after what was before it."""
        self.now += HOUR_US // 2
        return self.keeping.care(mode)


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    """A clinic with the default queues."""
    with opened(tmp_path / "store") as services:
        yield Clinic(services)


class TestQueueFacts:
    """What is counted."""

    def test_20_that_died_two_hours_ago_are_in_no_rate(self, clinic: Clinic) -> None:
        """Case 10."""
        clinic.put(20)
        clinic.end(well=False)
        clinic.now += 2 * HOUR_US
        found = clinic.facts()

        assert (found["deadRate"], found["queues"]["summary"]["dead"]) == (0.0, 20)
        assert found["queues"]["summary"]["oldestDeadAgeSec"] == 7200

    def test_five_of_ten(self, clinic: Clinic) -> None:
        """Case 10: of all queues together."""
        clinic.put(5, "memory")
        clinic.end(well=True, queue="memory")
        clinic.put(5)
        clinic.end(well=False)
        found = clinic.facts()

        assert (found["deadRate"], found["completedLastHour"], found["deadLastHour"]) == (0.5, 5, 5)

    def test_those_that_were_requeued_are_dead_no_more(self, clinic: Clinic) -> None:
        clinic.put(5)
        clinic.end(well=False)
        clinic.cycle()

        assert clinic.facts()["deadRate"] == 0.0

    def test_what_is_scheduled_does_not_wait_yet(self, clinic: Clinic) -> None:
        clinic.put(3)
        clinic.put(4, available_us=clinic.now + HOUR_US)

        assert clinic.facts()["depth"] == 3

    def test_a_queue_that_is_not_declared_any_more_is_counted(self, clinic: Clinic) -> None:
        clinic.put(1, "memory")
        other = Clinic(clinic.services, QueuePlan({"mail": QueueSettings("mail")}))

        assert set(other.facts()["queues"]) == {"mail", "memory"}

    def test_a_lease_is_stale_by_its_holder_and_not_by_the_age_of_its_job(
        self, clinic: Clinic
    ) -> None:
        """The original went by `created_at`: a job leased a second ago counted."""
        clinic.put(2)
        clinic.now += 20 * 60 * SECOND_US
        clinic.queueing.lease(["summary"], clinic.services.owner())
        fresh = clinic.facts()["leaseAnomalies"]
        clinic.queueing.lease(["summary"], gone())

        assert (fresh, clinic.facts()["leaseAnomalies"]) == (0, 1)

    def test_old_jobs_count_for_one_repair_each(self, tmp_path: Path) -> None:
        keeps = QueueSettings("keeps", dead_kept_us=365 * DAY_US, completed_kept_us=365 * DAY_US)
        plan = QueuePlan({"keeps": keeps, "drops": QueueSettings("drops")})
        with opened(tmp_path / "store") as services:
            clinic = Clinic(services, plan)
            for name in plan.queues:
                clinic.put(1, name)
                clinic.end(well=True, queue=name)
                clinic.put(1, name)
                clinic.end(well=False, queue=name)
                (job,) = clinic.put(1, name)
                clinic.queueing.change([job], lambda job, cause: job.cancel(cause, "not wanted"))
            clinic.now += max(OBSOLETE_US, PRUNABLE_US) + DAY_US
            found = clinic.facts()
            report = clinic.cycle()
            left = clinic.facts()
            strikes = clinic.keeping.gatekeeper.get(CANCEL).strikes

        assert (found["expired"], found["obsolete"], found["prunable"]) == (3, 1, 1)
        assert [(each.action, each.affected) for each in report.executed] == [
            (REQUEUE, 2),
            (SWEEP, 2),
            (CANCEL, 0),
            (PRUNE, 1),
        ]
        assert strikes == 0  # the requeue had taken what was to be cancelled
        assert (left["expired"], left["prunable"]) == (0, 0)


class TestOtherFacts:
    """Runs, views, storage, providers."""

    def test_an_empty_store_is_healthy(self, clinic: Clinic) -> None:
        """Case 9."""
        health = diagnose(clinic.keeping.domains(), clinic.now)

        assert (health.score, health.status) == (1.0, "healthy")

    def test_to_look_changes_nothing(self, clinic: Clinic) -> None:
        path = clinic.services.folder
        clinic.put(1)
        diagnose(clinic.keeping.domains(), clinic.now)
        before = files(Path(path))
        diagnose(clinic.keeping.domains(), clinic.now)

        assert files(Path(path)) == before

    def test_an_interrupted_run_is_told(self, clinic: Clinic) -> None:
        session = clinic.services.starter.start(Start("work", {}), gone())
        found = clinic.domain("runs")

        assert found.facts["interruptedRuns"] == [session.run_id]
        assert [penalty.rule for penalty in found.penalties] == ["runs.interrupted"]

    def test_a_stopped_view_is_told_and_the_queues_are_seen_all_the_same(
        self, clinic: Clinic
    ) -> None:
        clinic.put(3)
        newer = NewRecord("job-of-tomorrow", 1, "run.of-tomorrow", clinic.now, b"")
        clinic.services.log.append([newer])
        views = clinic.domain("views")

        assert views.facts["stoppedViews"] >= 1
        assert (views.score, views.status) == (0.5, "degraded")
        assert clinic.facts()["depth"] == 3

    def test_making_the_views_anew_does_not_help_there_and_is_halted(self, clinic: Clinic) -> None:
        """Trap (c): what cannot be repaired is not tried for ever."""
        newer = NewRecord("job-of-tomorrow", 1, "run.of-tomorrow", clinic.now, b"")
        clinic.services.log.append([newer])
        for _ in range(3):
            assert [each.action for each in clinic.cycle().executed] == [CHECK_VIEWS]
        report = clinic.cycle()

        assert [each.denied for each in report.executed] == ["halted"]

    def test_views_are_compared_where_that_is_asked_for(self, clinic: Clinic) -> None:
        clinic.put(1)

        assert clinic.domain("views").facts["differences"] is None
        assert clinic.domain("views", check_views=True).facts["differences"] == 0

    def test_a_store_that_cannot_be_written_is_looked_at(self, tmp_path: Path) -> None:
        with opened(tmp_path / "other") as services:
            Clinic(services).put(2)
        with opened(tmp_path / "other", read_only=True) as services:
            keeping = HealthKeeping(services, QueuePlans(), check_views=True)
            health = diagnose(keeping.domains(), services.actor.now_us())

        assert [domain.error for domain in health.domains] == [None] * 5
        assert health.fact("queue", "depth") == 2
        assert health.fact("views", "lag") == {}

    def test_answers_count_for_a_day(self, clinic: Clinic) -> None:
        """Case 16."""
        session = clinic.services.starter.start(Start("work", {}), clinic.services.owner())
        for fault in (None, None, None, "provider"):
            session.receive_answer(asked=1, answered=0 if fault else 1, fault=fault)
        now = clinic.domain("providers")
        clinic.now += DAY_US

        assert (now.score, now.facts["recentTotal"]) == (0.75, 4)
        assert clinic.domain("providers").score == 1.0

    def test_pages_are_counted(self, clinic: Clinic) -> None:
        clinic.put(500)
        found = clinic.domain("storage").facts

        assert found["pages"] > 10
        assert 0 <= found["freePagesRatio"] < 1
        assert found["staleReaders"] == 0


class TestPackages:
    """Domains of other packages."""

    class Entry:
        """An entry point."""

        name = "mine"
        value = "pkg:make"

        def __init__(self, made: Any) -> None:
            self.made = made

        def load(self) -> Any:
            """Return what it names."""
            if isinstance(self.made, Exception):
                raise self.made
            return lambda _folder: self.made

    class Mine:
        """A domain of another package."""

        weight = 0.1

        def __init__(self, name: str) -> None:
            self.name = name

        def collect(self) -> dict[str, Any]:
            """Return no facts."""
            return {}

        def judge(self, _facts: dict[str, Any]) -> list[Any]:
            """Find nothing."""
            return []

    def domains(
        self, clinic: Clinic, monkeypatch: pytest.MonkeyPatch, made: Any
    ) -> dict[str, DomainHealth]:
        """Return the health of all domains, with this one registered."""
        monkeypatch.setattr(healthkeeping, "entry_points", lambda group: [self.Entry(made)])
        found = diagnose(clinic.keeping.domains(), clinic.now).domains
        return {domain.name: domain for domain in found}

    def test_they_come_last(self, clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
        assert list(self.domains(clinic, monkeypatch, self.Mine("mine")))[-1] == "mine"

    @pytest.mark.parametrize("made", [ImportError("no module pkg"), Mine("queue")])
    def test_one_that_cannot_be_used_is_told(
        self, clinic: Clinic, monkeypatch: pytest.MonkeyPatch, made: Any
    ) -> None:
        found = self.domains(clinic, monkeypatch, made)["mine"]

        assert found.status == "degraded"
        assert "pkg:make" in str(found.error)


class TestCycles:
    """Whole cycles, each a run."""

    def test_jobs_that_die_again_and_again_are_requeued_three_times(self, clinic: Clinic) -> None:
        """Trap (b): the original requeued them for ever."""
        clinic.put(4)
        for _ in range(3):
            clinic.end(well=False)
            (done,) = clinic.cycle().executed
            assert done.affected == 4
        clinic.end(well=False)
        report = clinic.cycle()

        assert [each.denied for each in report.executed] == ["halted"]
        assert clinic.facts()["queues"]["summary"]["dead"] == 4

    def test_jobs_that_are_done_then_clear_it(self, clinic: Clinic) -> None:
        clinic.put(4)
        clinic.end(well=False)
        clinic.cycle()
        clinic.end(well=True)
        report = clinic.cycle()

        assert [judged.improved for judged in report.judged] == [True]
        assert clinic.keeping.gatekeeper.get(REQUEUE).strikes == 0

    def test_a_lease_that_is_lost_each_time_is_no_improvement(self, clinic: Clinic) -> None:
        """Its worker is killed by the job itself, say."""
        clinic.put(1, max_attempts=3)
        clinic.queueing.lease(["summary"], gone())
        clinic.cycle()
        clinic.queueing.lease(["summary"], gone())
        report = clinic.cycle()

        assert [(judged.action, judged.improved) for judged in report.judged] == [(RELEASE, False)]

    def test_backlogs_of_all_queues_get_their_share(self, clinic: Clinic) -> None:
        for queue, number in (("memory", 60), ("summary", 3)):
            clinic.put(number, queue)
            clinic.end(well=False, queue=queue)
        (done,) = clinic.cycle().executed
        queues = clinic.facts()["queues"]

        assert (done.affected, queues["summary"]["dead"], queues["memory"]["dead"]) == (50, 0, 13)

    def test_dead_jobs_that_a_queue_keeps_for_long_are_cancelled(self, tmp_path: Path) -> None:
        keeps = QueueSettings("keeps", dead_kept_us=365 * DAY_US)
        with opened(tmp_path / "store") as services:
            clinic = Clinic(services, QueuePlan({"keeps": keeps}))
            clinic.put(60, "keeps")
            clinic.end(well=False, queue="keeps")
            clinic.now += OBSOLETE_US
            report = clinic.cycle()

        assert [(each.action, each.affected) for each in report.executed] == [
            (REQUEUE, 50),
            (CANCEL, 10),
        ]

    def test_observed_only_the_log_has_the_run_alone(self, clinic: Clinic) -> None:
        """Case 35."""
        clinic.put(1)
        clinic.end(well=False)
        before = clinic.services.log.head().position
        report = clinic.cycle(OBSERVE)
        new = clinic.services.log.read(after=before)

        assert [each.action for each in report.recommendations] == [REQUEUE]
        assert {record.stream for record in new} == {report.run}

    def test_a_cycle_that_fails_is_cancelled_by_the_next(
        self, clinic: Clinic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(_self: Any) -> Any:
            raise RuntimeError("a bug")

        with monkeypatch.context() as patched:
            patched.setattr(HealthKeeping, "carer", broken)
            with pytest.raises(RuntimeError, match="a bug"):
                clinic.cycle()
        report = clinic.cycle()
        runs = clinic.domain("runs").facts

        assert report.run.endswith("~2")
        assert (runs["interrupted"], runs["needingPerson"]) == (0, 0)

    def test_slots_of_killed_readers_are_cleared(self, clinic: Clinic) -> None:
        script = (
            "import os, sys; from tachograph.bootstrap import open_store\n"
            f"services = open_store({clinic.services.folder!r})\n"
            "txn = services.environment.begin(write=False); os._exit(0)"
        )
        subprocess.run([sys.executable, "-c", script], check=True)
        found = clinic.domain("storage").facts["staleReaders"]
        report = clinic.cycle()

        assert found == 1
        assert [(each.action, each.affected) for each in report.executed] == [(CLEAR_READERS, 1)]

    def test_the_runs_are_of_one_command(self, clinic: Clinic) -> None:
        runs = [clinic.cycle().run, clinic.cycle().run]

        assert [run.startswith(f"job-{COMMAND}-") for run in runs] == [True, True]
        assert len(set(runs)) == 2


def test_of_many_processes_that_ask_at_once_one_passes(tmp_path: Path) -> None:
    """To check and to record is one step, in the log: the original's limits were in memory."""
    folder = str(tmp_path / "store")
    with opened(folder):
        pass
    script = (
        "import sys; from tachograph.bootstrap import open_store\n"
        "from tachograph.healthkeeping import HealthKeeping\n"
        "from tachograph.queue_plans import QueuePlans\n"
        "from tachograph.domain.repair_errors import RepairDeniedError\n"
        f"keeper = HealthKeeping(open_store({folder!r}), QueuePlans()).gatekeeper\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "try:\n    keeper.gate('requeueDeadJobs', 'operator', 'race'); print('passed')\n"
        "except RepairDeniedError as error:\n    print(error.rule)\n"
    )
    racers = [
        subprocess.Popen(
            [TACHO[0], "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    said = sorted(racer.communicate()[0].strip() for racer in racers)

    assert said == ["cooldown", "cooldown", "cooldown", "passed"]
