"""The watchdog is installed for the store that is meant, with a command line that works alone."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

import pytest
from command_line import here
from fake_timers import FakeTimers

from tachograph.infra.timers import mark_of

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def fake(home: Path, run: str, monkeypatch: pytest.MonkeyPatch) -> FakeTimers:
    """Programs on the PATH of this process, and a store."""
    fake = FakeTimers(home)
    monkeypatch.setenv("PATH", str(fake.programs))
    return fake


def test_it_is_installed_once_and_removed_again(
    fake: FakeTimers, store_path: Path, capsys: Capture
) -> None:
    command = ("watchdog", "install", "--interval", "5m", "--auto-resume")
    first = here(capsys, *command)
    second = here(capsys, *command, "--json")
    units = fake.units()
    removed = here(capsys, "watchdog", "uninstall")

    assert (first.returncode, first.stdout.splitlines()[0]) == (0, "systemd: installed")
    assert "loginctl enable-linger" in first.stderr
    assert json.loads(second.stdout) == {
        "kind": "systemd",
        "action": "unchanged",
        "dryRun": False,
        "files": [],
        "lines": [],
        "commands": [],
        "intervalSeconds": 300,
        "command": [
            *(sys.executable, "-m", "tachograph", "--store", str(store_path)),
            *("watchdog", "run", "--once", "--no-wait", "--auto-resume"),
        ],
    }
    assert f'"--store" "{store_path}" "watchdog" "run" "--once" "--no-wait"' in units[".service"]
    assert removed.stdout.splitlines()[0] == "systemd: removed"
    assert fake.units() == {}


def test_a_dry_run_shows_the_line_and_writes_none(
    fake: FakeTimers, store_path: Path, capsys: Capture
) -> None:
    done = here(capsys, "watchdog", "install", "--kind", "cron", "--dry-run")
    shown = done.stdout.splitlines()

    assert shown[0] == "cron: would be installed"
    assert shown[-1].startswith("  * * * * * PATH=")
    assert f"--store {shlex.quote(str(store_path))} watchdog run --once --no-wait # " in shown[-1]
    assert fake.tab is None


def test_a_second_kind_is_pointed_out(fake: FakeTimers, capsys: Capture) -> None:
    here(capsys, "watchdog", "install", "--kind", "cron")
    done = here(capsys, "watchdog", "install", "--kind", "systemd")

    assert "It is called by cron as well: tacho watchdog uninstall --kind cron" in done.stderr


def test_what_is_not_installed_is_absent(fake: FakeTimers, capsys: Capture) -> None:
    done = here(capsys, "watchdog", "uninstall", "--json")

    assert [change["action"] for change in json.loads(done.stdout)["changes"]] == ["absent"]
    assert here(capsys, "watchdog", "uninstall").stdout == "auto: absent\n"


def test_it_can_be_removed_when_the_store_is_gone(
    fake: FakeTimers, store_path: Path, capsys: Capture
) -> None:
    here(capsys, "watchdog", "install", "--kind", "cron")
    store_path.rename(store_path.with_name("gone"))
    done = here(capsys, "watchdog", "uninstall", "--kind", "cron")

    assert (done.returncode, fake.tab) == (0, None)
    assert mark_of(str(store_path)) in done.stdout


@pytest.mark.parametrize("interval", ["0", "0.5", "soon", "-5", "500ms"])
def test_an_interval_that_makes_no_sense_is_a_usage_error(
    interval: str, fake: FakeTimers, capsys: Capture
) -> None:
    assert here(capsys, "watchdog", "install", f"--interval={interval}").returncode == 2
    assert fake.units() == {}


def test_an_interval_that_cron_does_not_know_is_a_usage_error(
    fake: FakeTimers, capsys: Capture
) -> None:
    done = here(capsys, "watchdog", "install", "--kind", "cron", "--interval", "7m")

    assert done.returncode == 2
    assert "near are 360 s and 600 s" in done.stderr


def test_it_is_not_installed_for_a_store_that_is_not_there(
    fake: FakeTimers, tmp_path: Path, capsys: Capture
) -> None:
    assert here(capsys, "watchdog", "install", "--store", tmp_path / "none").returncode == 3


def test_where_it_cannot_be_installed_the_command_is_told(
    fake: FakeTimers, capsys: Capture
) -> None:
    (fake.programs / "crontab").unlink()
    fake.tell("no-bus")
    done = here(capsys, "watchdog", "install")

    assert done.returncode == 1
    assert "Have this called by whatever you have, about every 60 s: " in done.stderr
    assert "watchdog run --once" in done.stderr
