"""Orchestrators that are killed, asked to stop, or run side by side: real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_line import TACHO, tacho
from projects import Project, clean_environment, orchestrators, runs

if TYPE_CHECKING:
    from collections.abc import Iterator

ID = "cron-1"
WAITS = "echo begun >>log; echo begun >started; read word <go; echo done >>log"
"""A step that says on one pipe that it is at work, and ends at a word on another."""


class Rig:
    """A project whose step `slow` waits in the middle, and the processes that run it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = Project(folder)
        self.processes: list[subprocess.Popen[str]] = []
        for name in ("started", "go"):
            os.mkfifo(folder / name)

    def begin(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*TACHO, "maintenance", *(arguments or ("nightly",))],
            cwd=self.folder,
            env=clean_environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        return process

    def wait_until_it_works(self) -> None:
        assert (self.folder / "started").read_text() == "begun\n"

    def let_go(self) -> None:
        (self.folder / "go").write_text("word\n")

    def log(self) -> list[str]:
        path = self.folder / "log"
        return path.read_text().split() if path.exists() else []

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture
def rig(store_environment: Path, tmp_path: Path) -> Iterator[Rig]:
    folder = tmp_path / "project"
    folder.mkdir()
    rig = Rig(folder)
    yield rig
    rig.end()


def statuses(store: Path, run_id: str = ID) -> dict[str, str | None]:
    (run,) = [run for run in orchestrators(store) if run.id == run_id]
    return {name: step["status"] for name, step in run.maintenance_steps.items()}


def killed(rig: Rig) -> None:
    """Kill an orchestrator while its step `slow` is at work; the step itself lives on."""
    process = rig.begin(HM_RUN_ID=ID)
    rig.wait_until_it_works()
    process.kill()
    process.communicate()


def test_a_killed_run_goes_on_with_the_steps_that_are_left(rig: Rig, store_path: Path) -> None:
    rig.project.step("first", "echo first >>log").step("slow", WAITS)
    rig.project.step("last", "echo last >>log")
    killed(rig)

    assert statuses(store_path) == {"first": "ok", "slow": None}
    listed = tacho("run", "status", ID)
    assert "interrupted" in listed.stdout

    # What the killed one had started is still at work: it is not run beside it, and not done (G12).
    (worker,) = [run.worker for run in runs(store_path, "slow")]
    again = tacho("maintenance", "nightly", cwd=rig.folder, environment={"HM_RUN_ID": ID})
    (run,) = orchestrators(store_path)
    assert worker is not None
    assert again.returncode == 2, again.stderr
    assert statuses(store_path) == {"first": "ok", "slow": "deferred", "last": "ok"}
    assert f"process {worker['pid']}" in again.stdout
    assert (run.outcome, run.reason_code, run.finished) == ("partial", "still_at_work", False)
    assert rig.log() == ["first", "begun", "last"]
    rig.let_go()


@pytest.mark.parametrize("resumed", [False, True])
def test_another_run_does_not_run_a_step_beside_what_a_killed_one_has_left(
    resumed: bool, rig: Rig, store_path: Path
) -> None:
    """Neither while the killed one is open, nor after it was taken up and has ended."""
    rig.project.step("slow", WAITS)
    killed(rig)
    if resumed:
        tacho("maintenance", "nightly", cwd=rig.folder, environment={"HM_RUN_ID": ID})
    other = tacho("maintenance", "nightly", "--json", cwd=rig.folder)
    (step,) = json.loads(other.stdout)["steps"]

    assert (other.returncode, step["status"]) == (2, "deferred")
    assert rig.log() == ["begun"]
    rig.let_go()


def test_a_changed_command_is_not_run_beside_what_the_former_one_has_left(
    rig: Rig, store_path: Path
) -> None:
    rig.project.step("slow", WAITS)
    killed(rig)
    rig.project.steps.clear()
    rig.project.step("slow", "echo other >>log")
    again = tacho("maintenance", "nightly", cwd=rig.folder, environment={"HM_RUN_ID": ID})

    assert again.returncode == 2
    assert rig.log() == ["begun"]
    rig.let_go()


def test_the_watchdog_finishes_nothing_that_is_still_at_work(rig: Rig, store_path: Path) -> None:
    """The step of a killed run fails in the end: no resume of that run may say otherwise."""
    rig.project.head += "auto_resume = true\n"
    rig.project.step("slow", f"{WAITS}; exit 3")
    killed(rig)
    tacho("watchdog", "run", "--once", "--auto-resume", cwd=store_path.parent)
    (run,) = orchestrators(store_path)
    assert (run.epoch, run.outcome, run.finished) == (2, "partial", False)
    assert statuses(store_path) == {"slow": "deferred"}
    (worker,) = [run.worker for run in runs(store_path, "slow")]
    assert worker is not None
    os.killpg(worker["pid"], signal.SIGKILL)
    rig.project.steps.clear()
    rig.project.step("slow", "exit 3")
    again = tacho("maintenance", "nightly", cwd=rig.folder, environment={"HM_RUN_ID": ID})
    (run,) = orchestrators(store_path)

    assert (again.returncode, run.outcome) == (1, "failed")


def test_a_step_that_was_cut_off_is_run_again(rig: Rig, store_path: Path) -> None:
    rig.project.step("first", "echo first >>log").step("slow", WAITS)
    killed(rig)
    (worker,) = [run.worker for run in runs(store_path, "slow")]
    assert worker is not None
    os.killpg(worker["pid"], signal.SIGKILL)
    second = rig.begin(HM_RUN_ID=ID)
    rig.wait_until_it_works()
    rig.let_go()
    second.communicate()

    assert second.returncode == 0
    assert statuses(store_path) == {"first": "ok", "slow": "ok"}
    assert rig.log() == ["first", "begun", "begun", "done"]
    (run,) = orchestrators(store_path)
    (slow,) = runs(store_path, "slow")
    assert (run.epoch, run.outcome) == (2, "success")
    assert (slow.epoch, slow.outcome, slow.parent) == (2, "success", ID)


def test_the_watchdog_takes_up_a_run_that_was_killed(rig: Rig, store_path: Path) -> None:
    rig.project.head += "auto_resume = true\n"
    rig.project.step("slow", "echo x >>log; test -e again || { touch again; kill -9 $PPID; }")
    process = rig.begin(HM_RUN_ID=ID)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    looked = tacho("watchdog", "run", "--once", "--auto-resume", cwd=store_path.parent)

    assert looked.returncode in (0, 1), looked.stderr
    assert statuses(store_path) == {"slow": "ok"}
    assert rig.log() == ["x", "x"]
    (run,) = orchestrators(store_path)
    assert (run.epoch, run.outcome) == (2, "success")


@pytest.mark.parametrize(
    ("number", "code", "reason_code"),
    [(signal.SIGINT, -signal.SIGINT, "stopped_by_person"), (signal.SIGTERM, 143, "interrupted")],
)
def test_a_run_that_is_asked_to_stop_ends_its_step_and_records_both(
    number: signal.Signals, code: int, reason_code: str, rig: Rig, store_path: Path
) -> None:
    rig.project.step("slow", WAITS).step("last", "echo last >>log")
    process = rig.begin(HM_RUN_ID=ID)
    rig.wait_until_it_works()
    process.send_signal(number)
    printed, _ = process.communicate()
    (run,) = orchestrators(store_path)

    assert process.returncode == code, printed
    assert (run.outcome, run.reason_code) == ("partial", reason_code)
    assert run.maintenance_steps["slow"]["status"] != "ok"
    assert run.maintenance_steps["last"]["status"] == "deferred"
    assert rig.log() == ["begun"]


def test_of_two_at_once_each_step_is_run_by_one(rig: Rig, store_path: Path) -> None:
    rig.project.step("slow", WAITS, guard="20h")
    first = rig.begin()
    rig.wait_until_it_works()
    second = tacho("maintenance", "nightly", cwd=rig.folder)
    rig.let_go()
    first.communicate()
    third = tacho("maintenance", "nightly", cwd=rig.folder)

    assert (first.returncode, second.returncode, third.returncode) == (0, 0, 0)
    assert f"locked by a concurrent maintenance run (pid={first.pid} host=" in second.stdout
    assert "guard (ran 0m ago)" in third.stdout
    assert rig.log() == ["begun", "done"]


def test_a_run_that_is_alive_is_not_taken_over_by_its_id(rig: Rig, store_path: Path) -> None:
    rig.project.step("slow", WAITS)
    first = rig.begin(HM_RUN_ID=ID)
    rig.wait_until_it_works()
    second = tacho("maintenance", "nightly", cwd=rig.folder, environment={"HM_RUN_ID": ID})
    rig.let_go()
    first.communicate()

    assert (first.returncode, second.returncode) == (0, 6)
    assert f"process {first.pid}" in second.stderr
    assert rig.log() == ["begun", "done"]


def test_many_that_start_at_the_same_moment_run_each_step_once(rig: Rig, store_path: Path) -> None:
    """The log says who was first: no lock file, and none that is left over."""
    for name in ("a", "b", "c"):
        rig.project.step(name, f"echo {name} >>log", guard="20h")
    processes = [rig.begin() for _ in range(4)]
    printed = [process.communicate()[0] for process in processes]

    assert [process.returncode for process in processes] == [0] * 4, printed
    assert sorted(rig.log()) == ["a", "b", "c"]


def test_a_killed_run_holds_no_lock(rig: Rig, store_path: Path) -> None:
    rig.project.step("slow", "echo x >>log; test -e again || { touch again; kill -9 $PPID; }")
    process = rig.begin()
    process.communicate()
    again = tacho("maintenance", "nightly", cwd=rig.folder)

    assert again.returncode == 0, again.stdout + again.stderr
    assert rig.log() == ["x", "x"]
