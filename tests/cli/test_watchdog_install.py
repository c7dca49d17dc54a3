"""The watchdog is installed for the store that is meant, with a command line that works alone."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from abandoned import abandon
from command_line import here
from fake_timers import FakeTimers
from loopback import Loopback
from stores import gone, opened
from workspaces import lines

from tachograph.cli.watch_options import WATCHING
from tachograph.cli.watchdog_install import SPEC as INSTALL
from tachograph.cli.watchdog_run import SPEC as RUN
from tachograph.infra.timers import mark_of
from tachograph.starting import Start

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
            *(sys.executable, "-P", "-m", "tachograph", "--store", str(store_path)),
            *("watchdog", "run", "--once", "--no-wait", "--auto-resume"),
        ],
    }
    assert f'"--store" "{store_path}" "watchdog" "run" "--once" "--no-wait"' in units[".service"]
    assert removed.stdout.splitlines()[0] == "systemd: removed"
    assert fake.units() == {}


def test_the_installed_command_is_ours_whatever_lies_in_the_folder_it_is_called_in(
    fake: FakeTimers, tmp_path: Path, capsys: Capture
) -> None:
    """The folder comes first on Python's path otherwise."""
    (tmp_path / "signal.py").write_text("raise SystemExit('not ours')")
    done = here(capsys, "watchdog", "install", "--dry-run", "--json")
    command = json.loads(done.stdout)["command"]
    called = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert (called.returncode, called.stderr) == (0, "")


def test_a_dry_run_shows_the_line_and_writes_none(
    fake: FakeTimers, store_path: Path, capsys: Capture
) -> None:
    done = here(capsys, "watchdog", "install", "--kind", "cron", "--dry-run")
    shown = done.stdout.splitlines()

    assert shown[0] == "cron: would be installed"
    assert shown[-1].startswith("  * * * * * PATH=")
    assert f"--store {shlex.quote(str(store_path))} watchdog run --once --no-wait # " in shown[-1]
    assert fake.tab is None


def test_what_is_called_does_what_was_asked_for_at_install(
    fake: FakeTimers,
    store_path: Path,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither the folder nor the variables of the installation are there when cron calls it."""
    folder = tmp_path / "my folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    secret = folder / "secret"
    secret.write_text("correct-horse-battery")
    secret.chmod(0o600)
    teller = folder / "tell"
    teller.write_text(f'#!/bin/sh\n/bin/cat >>"{folder}/told"\n')
    teller.chmod(0o755)
    monkeypatch.setenv("TACHO_SIGNAL_FILE", "signals %")
    monkeypatch.setenv("TACHO_SIGNAL_COMMAND", "./tell")
    with opened(store_path) as services:
        services.starter.start(Start("other", run_id="other"), gone())
    abandon(store_path, run_id="mine")
    with Loopback() as server:
        monkeypatch.setenv("TACHO_WEBHOOK", server.url)
        options = ("--ping", f"{server.url}/ping", "--command", "report", "--timeout", "5m")
        done = here(capsys, "watchdog", "install", "--kind", "cron", "--jobs", "2", *options,
                    "--webhook-secret-file", "secret")  # fmt: skip
        tab = (fake.tab or b"").decode()
        line = tab.splitlines()[-1].removeprefix("* * * * * ").replace("\\%", "%")
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(fake.home)}
        called = subprocess.run(["/bin/sh", "-c", line], cwd="/", env=environment)
        signals = [each for each in server.requests if "X-Tachograph-Signature" in each.headers]

    assert (done.returncode, called.returncode) == (0, 0)
    assert "correct-horse-battery" not in tab
    assert "--timeout 5m --jobs 2" in tab
    assert [path for path in server.paths() if path != "/"] == ["/ping/start", "/ping"]
    assert [json.loads(each.body)["task_id"] for each in signals] == ["mine"]
    for name in ("signals %", "told"):
        assert [json.loads(each)["task_id"] for each in lines(folder / name)] == ["mine"]


def test_no_secret_is_written_where_others_read_it(
    fake: FakeTimers, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACHO_WEBHOOK_SECRET", "correct-horse-battery")
    refused = here(capsys, "watchdog", "install", "--webhook", "https://hooks.example/x")
    units = fake.units()
    unneeded = here(capsys, "watchdog", "install")

    assert (refused.returncode, units, unneeded.returncode) == (2, {}, 0)
    assert "name that with --webhook-secret-file" in refused.stderr
    assert "correct-horse" not in refused.stderr + "".join(fake.units().values())
    modes = [path.stat().st_mode & 0o777 for path in fake.home.rglob("*.service")]
    assert modes == [0o600]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--jobs", "0"], "--jobs is 0"),
        (["--timeout", "0"], "--timeout is 0"),
        (["--timeout", "soon"], "soon"),
        (["--webhook-secret-file", "/no/such"], "No such file"),
        (["--signal-command", "a 'b"], "--signal-command is"),
    ],
)
def test_what_would_fail_at_every_call_is_not_installed(
    options: list[str], problem: str, fake: FakeTimers, capsys: Capture
) -> None:
    done = here(capsys, "watchdog", "install", *options)

    assert (done.returncode, fake.units()) == (2, {})
    assert problem in done.stderr


def test_a_value_that_looks_like_an_option_is_handed_on_as_a_value(
    fake: FakeTimers, capsys: Capture
) -> None:
    done = here(capsys, "watchdog", "install", "--command=-x", "--json")

    assert json.loads(done.stdout)["command"][-1] == "--command=-x"


def test_run_and_install_take_the_same_options() -> None:
    names = [{option.flag for option in spec.options} for spec in (INSTALL, RUN)]

    assert {option.flag for option in WATCHING} <= names[0] & names[1]


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
