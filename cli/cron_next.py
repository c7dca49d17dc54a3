"""`tacho cron next`: say when what is scheduled is due next."""

from __future__ import annotations

from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.options import WHOLE, Argument, Option, Spec, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.schedule import Schedule

SPEC = Spec(
    "Say when what is scheduled is due next.",
    Argument("name", "The schedule; all without it.", required=False, metavar="NAME"),
    Option("--number", "How many times.", kind=WHOLE, default=5, metavar="N", short="-n"),
    Option("--from", "Count from this time on; now without it.", metavar="TIME", name="start"),
    CONFIG,
    details="""Times are those of the schedule's own time zone; without one, those of the machine
by which its timers go, whatever TZ says. A time that the clocks skip is due
at the first moment thereafter; a time that comes twice is due at the first. Schedules whose minutes
or hours begin with * follow elapsed time. See docs/schedules.md.""",
)

MOST = 10_000


def run(params: Params, out: Output) -> None:
    """Print the next times of each schedule."""
    from tachograph.cli.cron_scheduling import meant
    from tachograph.cli.projects import project
    from tachograph.infra import clock

    if not 1 <= params.number <= MOST:
        raise UsageError(f"--number is {params.number}: give a number from 1 to {MOST}.")
    now_us = clock.now_us()
    start_us = now_us if params.start is None else clock.parse_time(params.start, now_us)
    schedules = meant(project(params, out), params.name)
    found = [_next(schedule, start_us, params.number) for schedule in schedules]
    zoned = {schedule.name for schedule in schedules if schedule.timezone is not None}
    if len(zoned) < len(schedules):
        _warn(out)
    if out.json:
        out.document({"from": clock.iso(start_us), "schedules": found})
        return
    if not found:
        out.note("No schedule is declared. docs/schedules.md shows how.")
    for schedule in found:
        own = "" if schedule["name"] in zoned else ", the machine's own"
        out.line(f"{schedule['name']}: {schedule['cron']} ({schedule['timezone']}{own})")
        for each in schedule["times"]:
            change = f"  ({each['clockChange']})" if each["clockChange"] else ""
            out.line(f"  {each['local']}  {each['utc']}{change}")


def _warn(out: Output) -> None:
    """Say which clock counts where no timezone is declared, when the shell has another one."""
    import os

    from tachograph.infra import cron_times

    here, zone = os.environ.get("TZ", "").removeprefix(":"), cron_times.machine_zone()
    if here and here != str(zone):
        out.note(
            f"TZ is {here}, and says nothing here: without a timezone a schedule is called by the "
            f"clock of the machine, {zone}."
        )


def _next(schedule: Schedule, start_us: int, number: int) -> dict[str, Any]:
    from itertools import islice

    from tachograph.infra import cron_times

    times = list(islice(cron_times.due_after(schedule, start_us), number))
    changes = _changes(schedule, start_us, times)
    return {
        "name": schedule.name,
        "cron": schedule.cron,
        "timezone": str(cron_times.zone_of(schedule)),
        "job": schedule.job,
        "times": [_shown(schedule, time_us, changes) for time_us in times],
    }


def _changes(schedule: Schedule, start_us: int, times: list[int]) -> dict[int, str]:
    from tachograph.infra import cron_times

    if not times:
        return {}
    days = (times[-1] - start_us) // 86_400_000_000 + 2
    return {
        change.due_us: f"{change.wanted:%H:%M} is skipped that day"
        if change.skipped
        else f"the first {change.wanted:%H:%M} of two"
        for change in cron_times.clock_changes(schedule, start_us - 86_400_000_000, days=days)
    }


def _shown(schedule: Schedule, time_us: int, changes: dict[int, str]) -> dict[str, Any]:
    from tachograph.infra import clock, cron_times

    return {
        "local": cron_times.local(schedule, time_us).isoformat(timespec="minutes"),
        "utc": clock.iso(time_us, digits=0),
        "clockChange": changes.get(time_us),
    }
