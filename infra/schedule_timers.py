"""Have the machine call what is scheduled: systemd user timers, or lines of the crontab.

Each schedule of each project's file is known by a mark of its own. What others have put there is
never touched.
"""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from typing import TYPE_CHECKING

from tachograph.domain.errors import ScheduleError, SchedulesUnavailableError
from tachograph.infra import cron_times, crontab, timers
from tachograph.infra.cron_times import CronFields
from tachograph.infra.systemd_units import plain, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tachograph.domain.schedule import Schedule
    from tachograph.infra.timers import Change, Installation, Kind

PREFIX = "tachograph-cron-"
_NAMED = re.compile(
    r"^(?:Description=|# \S+: made by `tacho cron install` for )(\S+) of ", re.MULTILINE
)
_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")

_SERVICE = """\
# Made by `tacho cron install`; `tacho cron uninstall` removes it.
[Unit]
Description={title}

[Service]
Type=oneshot
WorkingDirectory={folder}
{environment}ExecStart={command}
"""

_TIMER = """\
# Made by `tacho cron install`; `tacho cron uninstall` removes it.
[Unit]
Description={title}

[Timer]
{calendar}
AccuracySec=1s
Persistent={persistent}
Unit={mark}.service

[Install]
WantedBy=timers.target
"""


def prefix_of(config: str) -> str:
    """Return what the marks of a project's file begin with."""
    path = os.path.realpath(config).encode("utf-8", "surrogateescape")
    return f"{PREFIX}{blake2b(path, digest_size=5).hexdigest()}-"


def mark_of(config: str, name: str) -> str:
    """Return the name by which everything that belongs to a schedule is known."""
    return prefix_of(config) + blake2b(name.encode("utf-8"), digest_size=4).hexdigest()


def choose(kind: str, environment: Mapping[str, str]) -> str:
    """Return the kind to use. Raises SchedulesUnavailableError."""
    chosen, problems = timers.choose(kind, environment)
    if chosen is None:
        name = "systemd or cron" if kind == timers.AUTO else kind
        raise SchedulesUnavailableError(name, " and ".join(problems))
    return chosen


def plan(
    kind: str,
    schedule: Schedule,
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    config: str,
    now_us: int,
) -> Installation:
    """Return what would call a schedule's command; changes nothing.

    Raises ScheduleError for a schedule that this kind cannot keep: a crontab knows no time zone,
    and neither knows days that are counted from the end of a month.
    """
    mark, folder = mark_of(config, schedule.name), os.path.dirname(os.path.abspath(config))
    path, title = environment.get("PATH"), f"{schedule.name} of {config}"
    if not CronFields(schedule).portable:
        raise ScheduleError(
            schedule.name,
            f"{schedule.cron!r} counts days from the end of a month or by weeks, which {kind} "
            "cannot be told; name the days",
        )
    if kind == timers.CRON:
        _check_zone(schedule, now_us)
        made_by = f"made by `tacho cron install` for {title}"
        lines = crontab.lines_at(mark, made_by, schedule.cron, command, path, folder)
        return timers.Installation(kind, mark, 0, command, environment, lines=lines)
    if not folder.isprintable():
        raise ScheduleError(schedule.name, f"systemd cannot be told of the folder {folder!r}")
    units = timers.unit_folder(environment)
    files = {
        os.path.join(units, f"{mark}.service"): _service(title, folder, command, path),
        os.path.join(units, f"{mark}.timer"): _timer(mark, title, schedule),
    }
    commands = [
        ["systemctl", "--user", "daemon-reload"],
        ["systemctl", "--user", "enable", "--now", f"{mark}.timer"],
    ]
    return timers.Installation(kind, mark, 0, command, environment, files=files, commands=commands)


def remove(
    kind: Kind, mark: str, environment: Mapping[str, str], *, dry_run: bool = False
) -> list[Change]:
    """Remove what is known by a mark. Raises TimerCommandError."""
    return timers.remove(kind, mark, environment, dry_run=dry_run)


def elsewhere(
    environment: Mapping[str, str], config: str, schedule: Schedule, kind: str
) -> list[str]:
    """Return the other kinds that call a schedule as well."""
    placed = timers.placed(environment, mark_of(config, schedule.name))
    return [each for each in placed if each != kind]


def installed(environment: Mapping[str, str], config: str) -> list[str]:
    """Return the marks of everything that is installed for a project's file."""
    return timers.marks(environment, prefix_of(config))


def name_of(environment: Mapping[str, str], config: str, mark: str) -> str | None:
    """Return the name of the schedule that is installed under a mark, declared or not any more.

    It stands in what was installed. None when nothing there says a name that the mark is of.
    """
    for text in timers.texts(environment, mark):
        for name in _NAMED.findall(text):
            if mark_of(config, name) == mark:
                return str(name)
    return None


def calendar(schedule: Schedule) -> list[str]:
    """Return a schedule as systemd.time(7) writes it, one expression or two.

    cron calls on a day that is of either kind, where both kinds are named; systemd wants both.
    """
    fields = CronFields(schedule)
    zone = "" if schedule.timezone is None else f" {schedule.timezone}"
    clock = f"{_listed(fields.hours, range(24))}:{_listed(fields.minutes, range(60))}:00{zone}"
    months = _listed(fields.months, range(1, 13))
    days = _listed(fields.days, range(1, 32))
    names = "" if len(fields.weekdays) == len(_DAYS) else _named(fields.weekdays)
    if fields.day_and or not names:
        return [f"{names}*-{months}-{days} {clock}"]
    return [f"*-{months}-{days} {clock}", f"{names}*-{months}-* {clock}"]


def _check_zone(schedule: Schedule, now_us: int) -> None:
    machine = cron_times.machine_zone()
    if not cron_times.same_times(schedule, machine, now_us):
        raise ScheduleError(
            schedule.name,
            f"a crontab knows no time zones: it would be called by the clock of {machine}, not by "
            f"that of {schedule.timezone}. Install it with --kind systemd, which knows them, or "
            f"schedule it in {machine}",
        )


def _service(title: str, folder: str, command: Sequence[str], path: str | None) -> str:
    variables = "" if path is None else f"Environment={quoted(f'PATH={path}', variable=False)}\n"
    return _SERVICE.format(
        title=plain(title),
        folder=folder.replace("%", "%%"),  # systemd takes it to the end of the line as it is
        environment=variables,
        command=" ".join(quoted(word) for word in command),
    )


def _timer(mark: str, title: str, schedule: Schedule) -> str:
    return _TIMER.format(
        mark=mark,
        title=plain(f"{title}: {schedule.cron}"),
        calendar="\n".join(f"OnCalendar={each}" for each in calendar(schedule)),
        persistent="true" if schedule.catch_up else "false",
    )


def _listed(numbers: Sequence[int], all_of_them: range) -> str:
    if list(numbers) == list(all_of_them):
        return "*"
    return ",".join(f"{number:02}" for number in numbers)


def _named(weekdays: Sequence[int | tuple[int, int]]) -> str:
    return ",".join(_DAYS[day] for day in weekdays if isinstance(day, int)) + " "
