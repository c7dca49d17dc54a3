"""`tacho maintenance diagnose|worker|explain-action|lift-halt`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from command_line import TACHO, Done, here
from stores import files, gone, opened

from tachograph.cli.exit_codes import FAILURE, FENCED, NOT_FOUND, OK, USAGE
from tachograph.cli.health_shapes import HEALTH
from tachograph.domain.repair_policy import ACTIONS, CHECK_VIEWS, OPERATOR, REQUEUE, RepairPolicy
from tachograph.healthkeeping import HealthKeeping
from tachograph.queue_plans import QueuePlans
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.domain.repairs import Repairs


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store, in a project of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACHO_STORE", str(tmp_path / "store"))
    with opened(tmp_path / "store"):
        pass
    return tmp_path / "store"


def fill(store: Path, *, dead: int = 0, completed: int = 0, stale: int = 0) -> None:
    """Put jobs that ended so, or that have a lost holder, in the queue `summary`."""
    with opened(store) as services:
        queueing = HealthKeeping(services, QueuePlans()).queueing
        for number in range(dead + completed + stale):
            queueing.enqueue(Enqueue("summary", "digest", {"number": number}))
        owner = services.owner()
        for number in range(dead + completed):
            (leased,) = queueing.lease(["summary"], owner)
            if number < dead:
                queueing.fail(leased.job.id, leased.job.epoch, "boom", terminal=True)
            else:
                queueing.complete(leased.job.id, leased.job.epoch)
        if stale:
            queueing.lease(["summary"], gone(), limit=stale)


def document(done: Done, command: str) -> Any:
    """Return what was printed, which has to have the shape of the command."""
    said = json.loads(done.stdout)
    HEALTH[command].validate_python(said)
    return said


def declare(text: str) -> None:
    """Write the project's file into the current folder."""
    with open("tachograph.toml", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)


class TestDiagnose:
    """What is well and what is not, and by which rule."""

    def test_an_empty_store_is_healthy(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Case 9."""
        done = here(capsys, "maintenance", "diagnose", "--json")
        said = document(done, "maintenance-diagnose")

        assert done.returncode == OK
        assert said["composite"] == {"score": 1.0, "status": "healthy"}
        assert [domain["name"] for domain in said["domains"]] == [
            "queue",
            "storage",
            "views",
            "runs",
            "providers",
        ]
        assert {domain["score"] for domain in said["domains"]} == {1.0}

    def test_each_penalty_is_told_with_its_rule(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Case 10: five completed and five dead now."""
        fill(store, dead=5, completed=5)
        done = here(capsys, "maintenance", "diagnose", "--domain", "queue", "--json")
        said = document(done, "maintenance-diagnose")

        assert (said["status"], said["facts"]["deadRate"]) == ("degraded", 0.5)
        assert [(each["rule"], each["threshold"]) for each in said["penalties"]] == [
            ("queue.dead-rate", 0.01)
        ]

    def test_for_people(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        fill(store, dead=5, completed=5)
        text = here(capsys, "maintenance", "diagnose").stdout

        assert "composite  0.9310  degraded" in text
        assert "-0.3000  queue.dead-rate" in text
        assert "summary: " in text

    def test_an_unknown_domain_is_refused_with_those_there_are(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        done = here(capsys, "maintenance", "diagnose", "--domain", "timestamp")

        assert done.returncode == USAGE
        assert "queue, storage, views, runs, providers" in done.stderr

    @pytest.mark.parametrize(("below", "code"), [("healthy", FAILURE), ("degraded", OK)])
    def test_it_fails_below_a_status_where_that_is_asked_for(
        self, store: Path, capsys: pytest.CaptureFixture[str], below: str, code: int
    ) -> None:
        fill(store, dead=1, completed=1)

        assert here(capsys, "maintenance", "diagnose", "--fail-below", below).returncode == code

    def test_thresholds_of_the_project_count(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The original showed them and scored by its own."""
        fill(store, dead=3)
        declare("[health.queues.summary]\ndead_warn = 1\ndead_fail = 3\n")
        done = here(capsys, "maintenance", "diagnose", "--domain", "queue", "--json")
        said = document(done, "maintenance-diagnose")

        assert said["status"] == "unhealthy"
        assert said["facts"]["thresholds"]["summaryDeadFail"] == 3

    def test_views_can_be_checked_row_by_row(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        fill(store, completed=1)
        done = here(
            capsys, "maintenance", "diagnose", "--domain", "views", "--check-views", "--json"
        )

        assert document(done, "maintenance-diagnose")["facts"]["differences"] == 0

    def test_it_needs_a_store(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        done = here(capsys, "maintenance", "diagnose", "--store", tmp_path / "none")

        assert done.returncode == NOT_FOUND


class TestWorker:
    """Cycles: once, and again and again."""

    def once(self, capsys: pytest.CaptureFixture[str], *more: str) -> Any:
        """Do one cycle and return its report."""
        return document(
            here(capsys, "maintenance", "worker", "--once", "--json", *more), "maintenance-worker"
        )

    def test_one_cycle_repairs_what_is_amiss(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Cases 35 and 36."""
        fill(store, dead=5, completed=5, stale=1)
        said = self.once(capsys)

        assert [
            (each["action"], each["success"], each["affected"]) for each in said["executed"]
        ] == [
            ("requeueDeadJobs", True, 5),
            ("releaseStaleLeases", True, 1),
        ]
        assert said["delta"] > 0
        assert said["after"]["composite"]["status"] == "healthy"

    def test_it_is_a_run_with_its_phases_and_report(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        fill(store, stale=1)
        said = self.once(capsys)
        with opened(store) as services:
            run = services.repository.get(said["run"])

        assert run is not None
        assert (run.command, run.outcome, run.reason_code) == (
            "maintenance-care",
            "success",
            "repairs_done",
        )
        assert list(run.phases) == ["diagnose", "repair", "diagnose-again"]
        assert {"before", "executed", "after"} <= run.steps.keys()

    def test_with_nothing_to_do_the_run_is_empty(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        said = self.once(capsys)
        with opened(store) as services:
            run = services.repository.get(said["run"])

        assert run is not None
        assert (run.outcome, run.reason_code) == ("empty", "nothing_to_repair")

    def test_observed_only_nothing_is_changed(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Case 35."""
        fill(store, dead=2)
        said = self.once(capsys, "--mode", "observe")

        assert [each["action"] for each in said["recommendations"]] == [REQUEUE]
        assert said["executed"] == []
        assert self.once(capsys, "--mode", "observe")["recommendations"] == said["recommendations"]

    def test_the_mode_of_the_project_counts(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        declare('[repair]\nmode = "observe"\n')
        fill(store, dead=2)

        assert self.once(capsys)["mode"] == "observe"

    def test_the_cooldown_binds_the_next_process(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The original kept it in memory, and never asked it for the daemon."""
        fill(store, stale=1)
        self.once(capsys)
        fill(store, stale=1)
        (denied,) = [
            each for each in self.once(capsys)["executed"] if each["action"] == "releaseStaleLeases"
        ]

        assert (denied["success"], denied["denied"]) == (False, "cooldown")

    def test_one_that_is_killed_is_cancelled_by_the_next(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with opened(store) as services:
            from tachograph.health.keeping_diary import COMMAND
            from tachograph.starting import Start

            killed = services.starter.start(Start(COMMAND, {}), gone()).run_id
        said = self.once(capsys)
        with opened(store) as services:
            run = services.repository.get(killed)

        assert said["run"] != killed
        assert run is not None
        assert run.ended is not None

    def test_two_at_once_are_one(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with opened(store) as services:
            from tachograph.health.keeping_diary import COMMAND
            from tachograph.starting import Start

            services.starter.start(Start(COMMAND, {}), services.owner(os.getpid()))
            done = here(capsys, "maintenance", "worker", "--once")

        assert done.returncode == FENCED

    @pytest.mark.parametrize("setting", ["frozen = true", "enabled = false"])
    def test_where_repairs_are_off_nothing_is_repeated(
        self, store: Path, capsys: pytest.CaptureFixture[str], setting: str
    ) -> None:
        """Case 36: and one cycle is still done when it is asked for."""
        declare(f"[repair]\n{setting}\n")
        done = here(capsys, "maintenance", "worker")

        assert done.returncode == OK
        assert "Nothing is repeated" in done.stderr
        assert self.once(capsys)["recommendations"] == []

    def test_frozen_every_repair_is_denied(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        declare("[repair]\nfrozen = true\n")
        fill(store, dead=1, stale=1)

        assert [each["denied"] for each in self.once(capsys)["executed"]] == ["frozen"] * 2

    @pytest.mark.parametrize(
        "wrong",
        [
            ("--once", "--interval", "1h"),
            ("--interval", "1s"),
            ("--interval", "2d"),
            ("--interval", "soon"),
            ("--mode", "dry"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, store: Path, capsys: pytest.CaptureFixture[str], wrong: tuple[str, ...]
    ) -> None:
        assert here(capsys, "maintenance", "worker", *wrong).returncode == USAGE

    def test_it_begins_at_once_and_ends_when_it_is_asked_to(self, store: Path) -> None:
        with subprocess.Popen(
            [*TACHO, "maintenance", "worker", "--interval", "1h", "--json"],
            stdout=subprocess.PIPE,
            text=True,
        ) as worker:
            assert worker.stdout is not None
            first = json.loads(worker.stdout.readline())
            worker.send_signal(signal.SIGTERM)

        assert first["recommendations"] == []
        assert worker.returncode == OK


class TestExplain:
    """Why an action was denied or halted."""

    def halt(self, store: Path) -> None:
        """Halt the check of the views."""
        with opened(store) as services:
            keeper = HealthKeeping(services, QueuePlans()).gatekeeper

            def strike(repairs: Repairs, cause: Any) -> None:
                repair = f"{CHECK_VIEWS}~{repairs.count}"
                policy = RepairPolicy()
                repairs.judge(cause, policy, repair, {"text": "no help"}, improved=False)

            for number in range(3):
                forced = number > 0
                with keeper.gate(CHECK_VIEWS, OPERATOR, "by hand", force=forced) as permit:
                    permit.done(0)
                keeper.decide(CHECK_VIEWS, strike)

    def test_an_action_that_was_never_done(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        done = here(capsys, "maintenance", "explain-action", REQUEUE, "--json")
        (said,) = document(done, "maintenance-explain-action")["actions"]

        assert (said["allowed"], said["lastRepair"], said["events"]) == (True, None, [])
        assert (said["cooldownSeconds"], said["hourlyBudget"], said["haltAfter"]) == (60.0, 50, 3)

    def test_all_of_them(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        done = here(capsys, "maintenance", "explain-action", "--json")
        said = document(done, "maintenance-explain-action")["actions"]

        assert [each["action"] for each in said] == list(ACTIONS)

    def test_one_that_is_halted(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.halt(store)
        done = here(capsys, "maintenance", "explain-action", CHECK_VIEWS, "--json")
        (said,) = document(done, "maintenance-explain-action")["actions"]

        assert (said["allowed"], said["rule"], said["halted"]) == (False, "halted", True)
        assert said["uselessRepairs"] == [f"{CHECK_VIEWS}~{number}" for number in (1, 2, 3)]
        assert said["events"][-1]["event"] == "halted"
        assert "lift-halt" in said["explanation"]

    def test_for_people(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.halt(store)
        text = here(capsys, "maintenance", "explain-action", CHECK_VIEWS).stdout

        assert text.startswith(f"{CHECK_VIEWS} is denied: it was halted")
        assert "did not help: no help" in text
        assert "forced over cooldown" in text

    def test_a_halt_is_lifted_with_a_reason(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.halt(store)
        without = here(capsys, "maintenance", "lift-halt", CHECK_VIEWS)
        lift = ("maintenance", "lift-halt", CHECK_VIEWS, "--reason", "view repaired", "--json")
        lifted = document(here(capsys, *lift), "maintenance-lift-halt")
        again = document(here(capsys, *lift), "maintenance-lift-halt")

        assert without.returncode == USAGE
        assert (lifted["lifted"], again["lifted"]) == (True, False)

    def test_in_words(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.halt(store)
        lift = ("maintenance", "lift-halt", CHECK_VIEWS, "--reason", "view repaired")

        assert here(capsys, *lift).stdout == f"{CHECK_VIEWS} may be done again\n"
        assert "is not halted" in here(capsys, *lift).stderr

    @pytest.mark.parametrize("command", ["explain-action", "lift-halt"])
    def test_an_unknown_action_is_refused_with_a_near_one(
        self, store: Path, capsys: pytest.CaptureFixture[str], command: str
    ) -> None:
        done = here(capsys, "maintenance", command, "requeueDeadJob")

        assert done.returncode == USAGE
        assert "Did you mean requeueDeadJobs?" in done.stderr

    def test_negative_events_are_refused(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        done = here(capsys, "maintenance", "explain-action", "--events", "-1")

        assert done.returncode == USAGE


class TestDoctor:
    """It tells of what is not healthy, and of jobs that nobody will do."""

    def checks(self, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
        """Return the checks by name."""
        said = json.loads(here(capsys, "doctor", "--json").stdout)
        return {check["name"]: check for check in said["checks"]}

    def test_all_is_well(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        found = self.checks(capsys)

        assert (found["health"]["state"], found["dead_jobs_backlog"]["state"]) == ("ok", "ok")

    def test_dead_jobs(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        fill(store, dead=2, completed=2)
        found = self.checks(capsys)

        assert found["health"]["state"] == "warn"
        dead = found["dead_jobs_backlog"]
        assert dead["state"] == "warn"
        assert dead["found"] == "2 permanently dead job(s) (2 summary). Last error: boom"
        assert "tacho queue requeue" in dead["advice"]

    def test_more_than_the_thresholds_allow(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The original said ok with 10,952 dead jobs."""
        declare("[health.queues.summary]\ndead_warn = 1\ndead_fail = 2\n")
        fill(store, dead=2)
        found = self.checks(capsys)

        assert (found["health"]["state"], found["dead_jobs_backlog"]["state"]) == ("fail", "fail")

    def test_a_project_file_that_makes_no_sense(
        self, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        declare("[health]\ndead_warn = true\n")

        assert self.checks(capsys)["health"]["state"] == "fail"


def test_to_look_leaves_the_store_as_it_is(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(store)
    for command in ("diagnose", "explain-action"):
        here(capsys, "maintenance", command)

    assert files(store) == before
