"""What the machine is told to call, and when."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from fake_timers import FakeTimers
from zones import live_in

from tachograph.domain.errors import ScheduleError, SchedulesUnavailableError
from tachograph.domain.schedule import Schedule
from tachograph.infra import schedule_timers, timers
from tachograph.infra.cron_times import due_after
from tachograph.infra.schedule_timers import calendar, choose, installed, mark_of, name_of, plan

if TYPE_CHECKING:
    from pathlib import Path

NOW_US = 1_800_000_000_000_000


@pytest.fixture
def fake(home: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTimers:
    live_in("Europe/Paris", home, monkeypatch)
    return FakeTimers(home)


def planned(
    fake: FakeTimers, kind: str, config: Path, cron: str = "30 4 * * *", **named: Any
) -> timers.Installation:
    schedule = Schedule("nightly", cron, command=["x"], **named)
    command = ["tool", "a b", "100%"]
    return plan(kind, schedule, command, fake.environment, config=str(config), now_us=NOW_US)


@pytest.mark.parametrize(
    ("cron", "zone", "expected"),
    [
        ("30 2 * * *", None, ["*-*-* 02:30:00"]),
        ("30 2 * * *", "Europe/Berlin", ["*-*-* 02:30:00 Europe/Berlin"]),
        ("*/15 * * * *", None, ["*-*-* *:00,15,30,45:00"]),
        ("* * * * *", None, ["*-*-* *:*:00"]),
        ("0 5 1 1,7 *", None, ["*-01,07-01 05:00:00"]),
        ("0 5 * * mon-wed,7", None, ["Sun,Mon,Tue,Wed *-*-* 05:00:00"]),
        # Either of the two kinds of day, as cron has it.
        (
            "0 5 13 * fri",
            "UTC",
            ["*-*-13 05:00:00 UTC", "Fri *-*-* 05:00:00 UTC"],
        ),
        # Both of them, since one begins with a star.
        ("0 5 */10 * fri", None, ["Fri *-*-01,11,21,31 05:00:00"]),
    ],
)
def test_a_schedule_as_systemd_writes_it(cron: str, zone: str | None, expected: list[str]) -> None:
    assert calendar(Schedule("s", cron, timezone=zone)) == expected


def test_systemd_gets_a_timer_and_a_service(fake: FakeTimers, tmp_path: Path) -> None:
    folder = tmp_path / "a 50% folder"
    folder.mkdir()
    change = timers.install(
        planned(fake, "systemd", folder / "t.toml", timezone="Asia/Tokyo", catch_up=True)
    )
    units = fake.units()

    assert change.action == "installed"
    assert "OnCalendar=*-*-* 04:30:00 Asia/Tokyo\n" in units[".timer"]
    assert "Persistent=true\n" in units[".timer"]
    assert 'ExecStart="tool" "a b" "100%%"\n' in units[".service"]
    assert f"WorkingDirectory={tmp_path}/a 50%% folder\n" in units[".service"]
    assert "[Unit]\nDescription=nightly of " in units[".timer"]


def test_what_is_not_made_up_for_is_not(fake: FakeTimers, tmp_path: Path) -> None:
    timers.install(planned(fake, "systemd", tmp_path / "t.toml"))

    assert "Persistent=false\n" in fake.units()[".timer"]


def test_a_crontab_line_runs_the_command_word_for_word(fake: FakeTimers, tmp_path: Path) -> None:
    folder = tmp_path / "it's"
    folder.mkdir()
    fake.tab = b"0 0 * * * others\n"
    timers.install(planned(fake, "cron", folder / "t.toml"))
    tab = fake.tab or b""
    others, comment, line = tab.decode().splitlines()
    mark = mark_of(str(folder / "t.toml"), "nightly")

    assert others == "0 0 * * * others"
    assert comment.startswith(f"# {mark}: made by `tacho cron install` for nightly of ")
    assert line.startswith("30 4 * * * cd ")
    called = line.removeprefix("30 4 * * * ").replace("\\%", "%").replace("tool", "echo")
    called = called.replace(f"PATH={shlex.quote(fake.environment['PATH'])}", "PATH=/usr/bin:/bin")
    ran = subprocess.run(["/bin/sh", "-c", called], capture_output=True, text=True)
    assert ran.stdout == "a b 100%\n"


@pytest.mark.parametrize("kind", ["systemd", "cron"])
def test_a_second_install_changes_nothing(kind: str, fake: FakeTimers, tmp_path: Path) -> None:
    first = timers.install(planned(fake, kind, tmp_path / "t.toml"))
    second = timers.install(planned(fake, kind, tmp_path / "t.toml"))
    third = timers.install(planned(fake, kind, tmp_path / "t.toml", cron="0 5 * * *"))

    assert [each.action for each in (first, second, third)] == ["installed", "unchanged", "updated"]
    assert installed(fake.environment, str(tmp_path / "t.toml")) == [
        mark_of(str(tmp_path / "t.toml"), "nightly")
    ]


def test_what_is_installed_for_another_file_is_not_ours(fake: FakeTimers, tmp_path: Path) -> None:
    for kind in ("systemd", "cron"):
        timers.install(planned(fake, kind, tmp_path / "one.toml"))

    assert installed(fake.environment, str(tmp_path / "other.toml")) == []
    assert len(installed(fake.environment, str(tmp_path / "one.toml"))) == 1


def test_it_is_removed_from_both_places(fake: FakeTimers, tmp_path: Path) -> None:
    fake.tab = b"0 0 * * * others\n"
    for kind in ("systemd", "cron"):
        timers.install(planned(fake, kind, tmp_path / "t.toml"))
    mark = mark_of(str(tmp_path / "t.toml"), "nightly")
    removed = schedule_timers.remove("auto", mark, fake.environment)

    assert [(each.kind, each.action) for each in removed] == [
        ("systemd", "removed"),
        ("cron", "removed"),
    ]
    assert (fake.tab, fake.units()) == (b"0 0 * * * others\n", {})


def test_the_other_place_that_calls_it_too_is_known(fake: FakeTimers, tmp_path: Path) -> None:
    config, schedule = str(tmp_path / "t.toml"), Schedule("nightly", "30 4 * * *")
    timers.install(planned(fake, "cron", tmp_path / "t.toml"))
    timers.install(planned(fake, "systemd", tmp_path / "t.toml"))

    assert schedule_timers.elsewhere(fake.environment, config, schedule, "systemd") == ["cron"]


@pytest.mark.parametrize("kind", ["systemd", "cron"])
def test_what_is_installed_says_the_name_of_its_schedule(
    kind: str, fake: FakeTimers, tmp_path: Path
) -> None:
    config = tmp_path / "t of 5%.toml"
    timers.install(planned(fake, kind, config))
    (mark,) = installed(fake.environment, str(config))

    assert name_of(fake.environment, str(config), mark) == "nightly"
    assert name_of(fake.environment, str(tmp_path / "other.toml"), mark) is None
    assert name_of(fake.environment, str(config), "tachograph-cron-0") is None


# Refusals.


def test_a_crontab_is_not_told_of_another_time_zone(fake: FakeTimers, tmp_path: Path) -> None:
    with pytest.raises(ScheduleError) as caught:
        planned(fake, "cron", tmp_path / "t.toml", timezone="Asia/Tokyo")

    assert "the clock of Europe/Paris, not by that of Asia/Tokyo" in str(caught.value)
    assert "--kind systemd" in str(caught.value)


def test_the_zone_of_the_shell_is_not_the_one_that_a_crontab_follows(
    fake: FakeTimers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")

    assert planned(fake, "cron", tmp_path / "t.toml", timezone="Europe/Paris").lines
    with pytest.raises(ScheduleError, match="the clock of Europe/Paris, not by that of Asia/Tok"):
        planned(fake, "cron", tmp_path / "t.toml", timezone="Asia/Tokyo")


@pytest.mark.parametrize("zone", [None, "Europe/Paris", "Europe/Berlin"])
def test_a_zone_whose_clocks_go_alike_is_no_other(
    zone: str | None, fake: FakeTimers, tmp_path: Path
) -> None:
    assert planned(fake, "cron", tmp_path / "t.toml", timezone=zone).lines


@pytest.mark.parametrize("kind", ["systemd", "cron"])
@pytest.mark.parametrize("cron", ["0 5 L * *", "0 5 * * fri#1"])
def test_days_that_neither_knows_are_refused(
    kind: str, cron: str, fake: FakeTimers, tmp_path: Path
) -> None:
    with pytest.raises(ScheduleError, match=f"which {kind} cannot be told; name the days"):
        planned(fake, kind, tmp_path / "t.toml", cron)


def test_a_folder_that_a_unit_cannot_name_is_refused(fake: FakeTimers, tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match="systemd cannot be told of the folder"):
        planned(fake, "systemd", tmp_path / "new\nline" / "t.toml")


def test_the_kind_is_chosen(fake: FakeTimers, tmp_path: Path) -> None:
    assert choose("auto", fake.environment) == "systemd"
    fake.tell("no-bus")
    assert choose("auto", fake.environment) == "cron"
    with pytest.raises(SchedulesUnavailableError, match=r"systemd: systemctl --user does not"):
        choose("systemd", fake.environment)
    with pytest.raises(SchedulesUnavailableError, match="systemd or cron: there is no program"):
        choose("auto", {"PATH": str(tmp_path), "HOME": str(tmp_path)})


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize(
    ("cron", "zone"),
    [
        ("30 4 * * *", "Europe/Berlin"),
        ("*/15 9-10 * * mon-fri", "UTC"),
        ("0 5 13 * fri", "America/New_York"),
        ("0 5 */10 * fri", "UTC"),
        ("0 0 1 1,7 *", "Asia/Tokyo"),
        ("30 2 * * *", "Europe/Berlin"),  # twice on 2027-10-31, and due at the first
    ],
)
def test_systemd_reads_it_as_it_is_meant(cron: str, zone: str) -> None:
    """Against the program itself, where it is installed."""
    schedule = Schedule("s", cron, timezone=zone)
    base = datetime(2027, 10, 29, 12, tzinfo=UTC)
    found = set()
    for expression in calendar(schedule):
        ran = subprocess.run(
            [
                *("systemd-analyze", "calendar", "--iterations=6"),
                *(f"--base-time={base:%Y-%m-%d %H:%M:%S} UTC", expression),
            ],
            env={**os.environ, "TZ": "UTC", "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
        )
        lines = re.findall(r"(?:Next elapse|Iter\. #\d+): \w+ ([\d-]+ [\d:]+) UTC", ran.stdout)
        found |= {datetime.fromisoformat(f"{line}+00:00") for line in lines}
    ours = islice(due_after(schedule, round(base.timestamp() * 1_000_000)), 6)

    assert sorted(found)[:6] == [datetime.fromtimestamp(each / 1_000_000, UTC) for each in ours]
