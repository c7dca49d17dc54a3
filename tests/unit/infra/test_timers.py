"""The watchdog is installed once per store, and nothing that others put there is touched."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_timers import FakeTimers

from tachograph.domain.errors import (
    InvalidValueError,
    TimerCommandError,
    TimerUnavailableError,
)
from tachograph.infra import timers
from tachograph.infra.crontab import INTERVALS, schedule
from tachograph.infra.timers import Change

STORE = "/data/my store"
MARK = timers.mark_of(STORE)
COMMAND = ["/opt/my python/bin/python3", "-m", "tachograph", "--store", STORE, "watchdog", "run"]
OTHERS = b"# m h dom\n\xff = latin\nMAILTO=ada\n\n5 4 * * * backup \\% now\r\n"


@pytest.fixture
def fake(home: Path) -> FakeTimers:
    return FakeTimers(home)


def install(fake: FakeTimers, kind: Any = "auto", seconds: int = 60, **options: Any) -> Change:
    command = options.pop("command", COMMAND)
    store = options.pop("store", STORE)
    planned = timers.plan(kind, seconds, command, fake.environment, store=store)
    return timers.install(planned, **options)


def uninstall(fake: FakeTimers, kind: Any = "auto", **options: Any) -> list[Change]:
    return timers.uninstall(kind, fake.environment, store=STORE, **options)


# systemd


def test_a_timer_and_its_service_are_written_and_started(fake: FakeTimers) -> None:
    change = install(fake, seconds=90)
    units = fake.units()

    assert (change.kind, change.action) == ("systemd", "installed")
    assert [Path(path).name for path in change.files] == [f"{MARK}.service", f"{MARK}.timer"]
    assert fake.calls() == [
        "systemctl --user daemon-reload",
        f"systemctl --user enable --now {MARK}.timer",
    ]
    assert (
        'ExecStart="/opt/my python/bin/python3" "-m" "tachograph" "--store" "/data/my store"'
        ' "watchdog" "run"\n'
    ) in units[".service"]
    assert f'Environment="PATH={fake.programs}"\n' in units[".service"]
    assert "OnUnitInactiveSec=90s\n" in units[".timer"]
    assert f"Unit={MARK}.service\n" in units[".timer"]
    assert "WantedBy=timers.target\n" in units[".timer"]


def test_what_an_adapter_leaves_running_is_not_ended_with_the_service(fake: FakeTimers) -> None:
    install(fake)

    assert "KillMode=process\n" in fake.units()[".service"]


def test_a_second_install_changes_nothing(fake: FakeTimers) -> None:
    install(fake)
    fake.calls()
    before = fake.units()

    assert install(fake) == Change("systemd", "unchanged")
    assert (fake.calls(), fake.units()) == ([], before)


def test_another_interval_replaces_the_first_and_takes_effect_at_once(fake: FakeTimers) -> None:
    install(fake)
    fake.calls()
    change = install(fake, seconds=300)

    assert (change.action, [Path(path).suffix for path in change.files]) == ("updated", [".timer"])
    assert fake.calls()[-1] == f"systemctl --user restart {MARK}.timer"
    assert "OnUnitInactiveSec=300s\n" in fake.units()[".timer"]


def test_a_timer_that_was_switched_off_is_switched_on_again(fake: FakeTimers) -> None:
    install(fake)
    (fake.home / "on").unlink()

    assert install(fake).action == "updated"
    assert (fake.home / "on").exists()


def test_units_go_where_the_configuration_is(fake: FakeTimers) -> None:
    fake.environment["XDG_CONFIG_HOME"] = str(fake.home / "elsewhere")
    change = install(fake)

    assert change.files[0] == str(fake.home / "elsewhere/systemd/user" / f"{MARK}.service")


def test_each_store_has_its_own(fake: FakeTimers) -> None:
    install(fake)
    install(fake, store="/data/other")
    uninstall(fake)

    assert timers.where(fake.environment, store=STORE) == []
    assert timers.where(fake.environment, store="/data/other") == ["systemd"]


def test_one_store_under_two_names_is_one(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store")

    assert timers.mark_of(str(tmp_path / "link")) == timers.mark_of(str(tmp_path / "store"))


def test_what_units_give_a_meaning_is_written_so_that_it_has_none(fake: FakeTimers) -> None:
    odd = 'a "b" \\ 5% $HOME\n' + os.fsdecode(b"\xff") + "é"
    install(fake, command=["/bin/x", odd], store="/data/100%\n")
    units = fake.units()

    assert r'"a \"b\" \\ 5%% $$HOME\x0a\xff\xc3\xa9"' in units[".service"]
    assert "Description=Tachograph watchdog of /data/100%%?\n" in units[".service"]


def test_uninstall_stops_the_timer_and_removes_its_files(fake: FakeTimers) -> None:
    install(fake)
    fake.calls()
    (change,) = uninstall(fake)

    assert (change.kind, change.action, len(change.files)) == ("systemd", "removed", 2)
    assert fake.units() == {}
    assert fake.calls() == [
        f"systemctl --user disable --now {MARK}.timer",
        "systemctl --user daemon-reload",
    ]
    assert uninstall(fake) == [Change("auto", "absent")]


def test_a_manager_that_refuses_is_told(fake: FakeTimers) -> None:
    fake.tell("broken")
    with pytest.raises(TimerCommandError, match="daemon-reload` failed with exit code 4: Access"):
        install(fake)


# cron


def test_two_lines_are_appended_to_the_crontab(fake: FakeTimers) -> None:
    fake.tab = OTHERS
    change = install(fake, "cron", 300)
    added = (fake.tab or b"").removeprefix(OTHERS).decode().splitlines()

    assert (change.kind, change.action, change.lines) == ("cron", "installed", added)
    assert added[0].startswith(f"# {MARK}: ")
    assert added[1].startswith("*/5 * * * * PATH=")
    assert added[1].endswith(f" watchdog run # {MARK}")


def test_the_first_line_of_a_user_without_a_crontab(fake: FakeTimers) -> None:
    install(fake, "cron")

    assert len((fake.tab or b"").splitlines()) == 2


def test_a_second_line_is_not_added(fake: FakeTimers) -> None:
    install(fake, "cron")
    fake.calls()
    before = fake.tab

    assert install(fake, "cron") == Change("cron", "unchanged")
    assert (fake.calls(), fake.tab) == ([], before)


def test_another_interval_replaces_the_lines_where_they_are(fake: FakeTimers) -> None:
    fake.tab = b"first\n"
    install(fake, "cron")
    fake.tab = (fake.tab or b"") + b"last\n"
    change = install(fake, "cron", 600)
    lines = (fake.tab or b"").splitlines()

    assert change.action == "updated"
    assert (lines[0], lines[-1], len(lines)) == (b"first", b"last", 4)
    assert lines[2].startswith(b"*/10 ")


@pytest.mark.parametrize("others", [OTHERS, b""])
def test_uninstall_leaves_every_other_byte(others: bytes, fake: FakeTimers) -> None:
    fake.tab = others
    install(fake, "cron")
    (change,) = uninstall(fake, "cron")

    assert (change.action, len(change.lines)) == ("removed", 2)
    assert fake.tab == (others or None)
    assert uninstall(fake, "cron") == [Change("cron", "absent")]


def test_a_last_line_without_an_end_gets_one(fake: FakeTimers) -> None:
    fake.tab = b"0 0 * * * x"
    install(fake, "cron")

    assert (fake.tab or b"").startswith(b"0 0 * * * x\n# ")


def test_a_crontab_that_cannot_be_read_is_not_replaced(fake: FakeTimers) -> None:
    fake.tab = OTHERS
    fake.tell("broken")
    with pytest.raises(TimerCommandError, match="not allowed to use cron"):
        install(fake, "cron")

    assert (fake.tab, fake.calls()) == (OTHERS, [])
    assert timers.where(fake.environment, store=STORE) == []


def test_the_line_runs_the_command_word_for_word(fake: FakeTimers, tmp_path: Path) -> None:
    """As cron would: a bare % ends the command, the rest goes to a shell."""
    odd = ["a b", "it's", "100%", "$HOME", "#", "\\", '"']
    code = "import json, os, sys; print(json.dumps([os.environ['PATH'], *sys.argv[1:]]))"
    install(fake, "cron", command=[sys.executable, "-c", code, *odd])
    line = (fake.tab or b"").decode().splitlines()[1].removeprefix("* * * * * ")
    done = subprocess.run(
        ["/bin/sh", "-c", line.replace("\\%", "%")], env={}, capture_output=True, check=True
    )

    assert line.count("%") == line.count("\\%") == 1
    assert json.loads(done.stdout) == [str(fake.programs), *odd]


@pytest.mark.parametrize("odd", ["line\nbreak", "nul\0"])
def test_what_a_line_cannot_hold_is_refused(odd: str, fake: FakeTimers) -> None:
    with pytest.raises(InvalidValueError, match="a line of a crontab cannot hold it"):
        install(fake, "cron", command=["/bin/x", odd])


@pytest.mark.parametrize(
    ("seconds", "near"),
    [(1, "60 s"), (90, "60 s and 120 s"), (420, "360 s and 600 s"), (100_000, "86400 s")],
)
def test_an_interval_that_cron_does_not_know_is_refused_with_those_near_it(
    seconds: int, near: str, fake: FakeTimers
) -> None:
    with pytest.raises(InvalidValueError, match=f"near are {near}"):
        install(fake, "cron", seconds)


def test_cron_keeps_to_every_interval_it_is_given() -> None:
    """Each field that is stepped divides its whole, so that no step is cut short."""
    for seconds in INTERVALS:
        minute, hour, *rest = schedule(seconds).split()
        minutes = [at for at in range(60) if _due(minute, at)]
        hours = [at for at in range(24) if _due(hour, at)]
        times = [3600 * each + 60 * at for each in hours for at in minutes]
        gaps = {later - early for early, later in zip(times, [*times[1:], 86_400], strict=True)}

        assert (gaps, rest) == ({seconds}, ["*", "*", "*"])


def _due(field: str, at: int) -> bool:
    if field == "*":
        return True
    return at % int(field[2:]) == 0 if field.startswith("*/") else at == int(field)


# Which of them


def test_systemd_is_preferred(fake: FakeTimers) -> None:
    install(fake)

    assert timers.where(fake.environment, store=STORE) == ["systemd"]
    assert fake.tab is None


def test_cron_is_taken_where_the_user_manager_does_not_answer(fake: FakeTimers) -> None:
    fake.tell("no-bus")
    install(fake)

    assert timers.where(fake.environment, store=STORE) == ["cron"]


def test_cron_is_taken_where_there_is_no_systemd(home: Path) -> None:
    fake = FakeTimers(home, systemd=False)

    assert install(fake).kind == "cron"


@pytest.mark.parametrize(
    ("kind", "systemd", "said"),
    [
        ("auto", True, "systemd or cron: systemctl --user does not work here .Failed to connect"),
        ("auto", False, "there is no program systemctl and there is no program crontab"),
        ("systemd", True, "with systemd: systemctl --user does not work"),
        ("cron", True, "with cron: there is no program crontab"),
    ],
)
def test_where_there_is_neither_the_command_to_call_is_told(
    kind: str, systemd: bool, said: str, home: Path
) -> None:
    fake = FakeTimers(home, systemd=systemd, cron=False)
    fake.tell("no-bus")
    with pytest.raises(TimerUnavailableError, match=said) as caught:
        install(fake, kind)

    assert str(caught.value).endswith(
        "about every 60 s: '/opt/my python/bin/python3' -m tachograph"
        " --store '/data/my store' watchdog run"
    )


def test_uninstall_removes_it_from_both_places(fake: FakeTimers) -> None:
    install(fake, "systemd")
    install(fake, "cron")
    both = timers.where(fake.environment, store=STORE)

    assert both == ["systemd", "cron"]
    assert [change.kind for change in uninstall(fake)] == both
    assert timers.where(fake.environment, store=STORE) == []


def test_uninstall_of_lines_where_the_program_is_gone_is_told(home: Path) -> None:
    with pytest.raises(TimerCommandError, match="there is no program crontab"):
        uninstall(FakeTimers(home, cron=False), "cron")


@pytest.mark.parametrize("kind", ["systemd", "cron"])
def test_a_dry_run_says_the_same_and_does_nothing(kind: str, fake: FakeTimers) -> None:
    planned = install(fake, kind, dry_run=True)

    assert (fake.calls(), fake.units(), fake.tab) == ([], {}, None)
    assert install(fake, kind) == planned
    units, tab = fake.units(), fake.tab
    fake.calls()
    removal = uninstall(fake, kind, dry_run=True)

    assert (fake.calls(), fake.units(), fake.tab) == ([], units, tab)
    assert uninstall(fake, kind) == removal


@pytest.mark.parametrize(
    "error", [TimerUnavailableError("a", "b", "c", "d"), TimerCommandError("a", 1, "b")]
)
def test_its_errors_survive_pickling(error: Exception) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
