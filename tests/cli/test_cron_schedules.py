"""`tacho cron next`, `install` and `uninstall`."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from command_line import TACHO, here, tacho
from fake_timers import FakeTimers
from projects import Project, orchestrators, runs
from zones import live_in

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]
SCHEDULES = """
[schedules.nightly]
cron = "30 2 * * *"
timezone = "Europe/Berlin"
maintenance = "nightly"

[schedules.report]
cron = "0 6 * * mon"
command = ["make", "report"]
catch_up = true
"""


@pytest.fixture
def project(
    store_environment: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    live_in("UTC", tmp_path, monkeypatch)
    project = Project(folder)
    project.tail = SCHEDULES
    return project.write()


@pytest.fixture
def fake(home: Path, project: Project, monkeypatch: pytest.MonkeyPatch) -> FakeTimers:
    fake = FakeTimers(home)
    monkeypatch.setenv("PATH", str(fake.programs))
    return fake


def changes(capsys: Capture, *arguments: str) -> list[tuple[str, str, str]]:
    done = here(capsys, "cron", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["changes"]
    return [(each["schedule"], each["kind"], each["action"]) for each in found]


def test_the_next_times_are_told_in_the_zone_of_the_schedule(
    project: Project, capsys: Capture
) -> None:
    done = here(capsys, "cron", "next", "nightly", "-n", "2", "--from", "2027-03-27T12:00Z")

    assert done.stdout.splitlines() == [
        "nightly: 30 2 * * * (Europe/Berlin)",
        "  2027-03-28T03:00+02:00  2027-03-28T01:00:00Z  (02:30 is skipped that day)",
        "  2027-03-29T02:30+02:00  2027-03-29T00:30:00Z",
    ]


def test_without_a_timezone_the_clock_of_the_machine_counts_and_not_that_of_the_shell(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    live_in("Europe/Berlin", tmp_path, monkeypatch)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    done = here(capsys, "cron", "next", "report", "-n", "1", "--from", "2027-03-01T12:00Z")
    named = here(capsys, "cron", "next", "nightly", "-n", "1")

    assert done.stdout.splitlines() == [
        "report: 0 6 * * mon (Europe/Berlin, the machine's own)",
        "  2027-03-08T06:00+01:00  2027-03-08T05:00:00Z",
    ]
    assert "TZ is Asia/Tokyo, and says nothing here" in done.stderr
    assert "Europe/Berlin." in done.stderr
    assert "TZ" not in named.stderr


def test_there_are_no_times_after_the_year_9999(project: Project, capsys: Capture) -> None:
    done = here(capsys, "cron", "next", "-n", "9", "--from", "9999-12-30T00:00Z")

    assert done.returncode == 0, done.stderr
    assert "9999-12-31T02:30+01:00" in done.stdout


def test_all_schedules_are_told_as_json(project: Project, capsys: Capture) -> None:
    done = here(capsys, "cron", "next", "--number", "1", "--from", "2027-10-30T12:00Z", "--json")
    document = json.loads(done.stdout)

    assert document["from"] == "2027-10-30T12:00:00.000Z"
    assert [each["name"] for each in document["schedules"]] == ["nightly", "report"]
    assert document["schedules"][0]["times"] == [
        {
            "local": "2027-10-31T02:30+02:00",
            "utc": "2027-10-31T00:30:00Z",
            "clockChange": "the first 02:30 of two",
        }
    ]
    assert document["schedules"][1]["timezone"] == "UTC"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("next", "nigthly"), 3, "There are: nightly, report."),
        (("next", "-n", "0"), 2, "give a number from 1 to 10000"),
        (("next", "--from", "soon"), 2, "soon"),
        (("next", "--config", "gone.toml"), 3, "gone.toml"),
        (("install", "nigthly"), 3, "There are: nightly, report."),
    ],
)
def test_what_makes_no_sense_is_told(
    arguments: tuple[str, ...], code: int, words: str, fake: FakeTimers, capsys: Capture
) -> None:
    done = here(capsys, "cron", *arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


def test_nothing_is_changed_without_apply(fake: FakeTimers, capsys: Capture) -> None:
    told = here(capsys, "cron", "install")

    assert "nightly: systemd: would be installed" in told.stdout
    assert "Nothing was changed: add --apply." in told.stderr
    assert (fake.units(), fake.calls()) == ({}, [])


def test_schedules_are_installed_once_and_removed_again(fake: FakeTimers, capsys: Capture) -> None:
    first = changes(capsys, "install", "--apply")
    second = changes(capsys, "install", "--apply")
    removed = changes(capsys, "uninstall", "--apply")

    assert first == [("nightly", "systemd", "installed"), ("report", "systemd", "installed")]
    assert second == [("nightly", "systemd", "unchanged"), ("report", "systemd", "unchanged")]
    assert removed == [("nightly", "systemd", "removed"), ("report", "systemd", "removed")]
    assert fake.units() == {}


def test_what_is_declared_no_more_is_removed(
    fake: FakeTimers, project: Project, capsys: Capture
) -> None:
    changes(capsys, "install", "--apply")
    project.tail = SCHEDULES.partition("[schedules.report]")[0]
    project.write()
    one = changes(capsys, "install", "nightly", "--apply")
    every = changes(capsys, "install", "--apply")

    assert one == [("nightly", "systemd", "unchanged")]
    assert every == [("nightly", "systemd", "unchanged"), ("report", "systemd", "removed")]


def test_one_schedule_is_removed_by_its_name(fake: FakeTimers, capsys: Capture) -> None:
    changes(capsys, "install", "--apply")

    assert changes(capsys, "uninstall", "report", "--apply") == [("report", "systemd", "removed")]
    assert len(fake.units()) == 2


def test_a_crontab_refuses_another_zone_and_leaves_everything(
    fake: FakeTimers, capsys: Capture
) -> None:
    done = here(capsys, "cron", "install", "--kind", "cron", "--apply")

    assert done.returncode == 2
    assert "a crontab knows no time zones" in done.stderr
    assert fake.tab is None


def test_what_the_machine_does_otherwise_is_told(fake: FakeTimers, capsys: Capture) -> None:
    systemd = here(capsys, "cron", "install", "nightly")
    cron = here(capsys, "cron", "install", "report", "--kind", "cron", "--apply")
    both = here(capsys, "cron", "install", "report", "--apply")

    assert "does not exist in Europe/Berlin: it is due at 03:00 CEST" in systemd.stderr
    assert "a systemd timer leaves it out" in systemd.stderr
    assert "comes twice" not in systemd.stderr
    assert "cron makes up for no time that the machine was off" in cron.stderr
    assert "tacho cron uninstall report --kind cron --apply" in both.stderr


def test_where_there_is_neither_it_is_told(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = here(capsys, "cron", "install")

    assert (done.returncode, done.stdout) == (1, "")
    assert "Schedules cannot be installed with systemd or cron" in done.stderr


def test_the_installed_line_runs_the_maintenance(
    fake: FakeTimers, project: Project, store_path: Path, capsys: Capture
) -> None:
    """Called as cron calls it: from another folder, without any variable of ours."""
    project.tail = SCHEDULES.replace('timezone = "Europe/Berlin"', 'timezone = "UTC"')
    project.step("work", "echo done >>ran", guard="20h")
    here(capsys, "cron", "install", "nightly", "--kind", "cron", "--apply")
    (line,) = [each for each in (fake.tab or b"").decode().splitlines() if each[0] != "#"]
    called = line.partition("30 2 * * * ")[2].replace("\\%", "%")
    environment = {"HOME": os.environ["HOME"], "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        ["/bin/sh", "-c", called], cwd="/", env=environment, capture_output=True, text=True
    )
    (run,) = orchestrators(store_path)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (project.folder / "ran").read_text() == "done\n"
    assert run.outcome == "success"
    assert run.parent is not None
    assert run.id == f"{run.parent}-nightly"
    (harness,) = [each for each in runs(store_path) if each.id == run.parent]
    assert (harness.outcome, harness.reason_code) == ("success", "steps_done")
    assert harness.reason == f"as its run {run.id}: 1 of 1 steps were run"


@pytest.mark.parametrize(
    ("script", "result"),
    [
        ("tacho run exec --id inner -- true", "success_with_review"),
        ("tacho run exec --id inner -- false || true", "failed"),
        ("true", "success_with_review"),
    ],
)
def test_a_cron_line_comes_to_the_worst_of_the_runs_that_it_has_started(
    script: str, result: str, project: Project, store_path: Path
) -> None:
    """A script that ends with 0 hides nothing."""
    python, flag, code = TACHO
    function = f"tacho() {{ {python} {flag} '{code}' \"$@\"; }}; "
    tacho("cron", "exec", "--job", "line", "--", "/bin/sh", "-c", function + script)
    (harness,) = runs(store_path, "line")

    assert harness.outcome == result


def test_a_line_of_maintenance_with_nothing_due_was_skipped(
    project: Project, store_path: Path
) -> None:
    project.step("work", gate=False)
    line = ("--", *TACHO, "maintenance", "nightly", "--config", str(project.path))
    done = tacho("cron", "exec", "--job", "line", "--allow-skip", *line)
    (harness,) = runs(store_path, "line")

    assert done.returncode == 0, done.stderr
    assert harness.outcome == "skipped"
