"""When a schedule is due, in its own time zone. Starts nothing; cronsim does the reckoning.

The rule for the hours that clocks skip or repeat is the one of Debian's cron. A schedule that names
its minutes and hours: a time that is skipped is due at the first moment thereafter, a time that
comes twice is due at the first. One whose minutes or hours begin with `*` follows elapsed time: it
is due at every moment that the clock shows as wanted, however often it shows it.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tachograph.domain.errors import ScheduleError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cronsim import CronSim

    from tachograph.domain.schedule import Schedule

FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
ETC = "/etc"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 30)  # noqa: DTZ001  # no zone is meant
"""The last day that is a date in every time zone."""


def check(schedule: Schedule) -> None:
    """Refuse a schedule that cannot be. Raises ScheduleError."""
    zone = zone_of(schedule)
    words = schedule.cron.split()
    if len(words) != len(FIELDS):
        hint = "; names such as @daily are not known" if schedule.cron.startswith("@") else ""
        raise ScheduleError(
            schedule.name,
            f"{schedule.cron!r} has {len(words)} fields, not five: {', '.join(FIELDS)}{hint}",
        )
    if next(_times(schedule, datetime(2024, 1, 1, tzinfo=UTC).astimezone(zone)), None) is None:
        raise ScheduleError(schedule.name, f"{schedule.cron!r} is never due")


def zone_of(schedule: Schedule) -> ZoneInfo:
    """Return the time zone that a schedule is read in. Raises ScheduleError."""
    if schedule.timezone is None:
        return machine_zone()
    try:
        return ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        near = _near(schedule.timezone)
        raise ScheduleError(
            schedule.name, f"there is no time zone {schedule.timezone!r}{near}"
        ) from error


def due_after(schedule: Schedule, after_us: int) -> Iterator[int]:
    """Yield the times after a moment at which a schedule is due, microseconds since 1970 UTC."""
    zone = zone_of(schedule)
    last = after_us
    for found in _times(schedule, _local(after_us, zone)):
        try:
            time_us = (found.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
        except OverflowError:  # the end of the year 9999
            return
        # Several wanted times within one skipped hour are due at its end, and that once.
        if time_us > last:
            yield time_us
            last = time_us


def local(schedule: Schedule, time_us: int) -> datetime:
    """Return a moment as the clocks of the schedule's time zone show it."""
    return _local(time_us, zone_of(schedule))


class ClockChange:
    """A wanted time that clocks skip, or show twice."""

    __slots__ = ("due_us", "skipped", "wanted")

    def __init__(self, wanted: datetime, due_us: int, *, skipped: bool) -> None:
        self.wanted = wanted
        """What the clock would show, without a time zone."""
        self.due_us = due_us
        self.skipped = skipped


def clock_changes(schedule: Schedule, after_us: int, *, days: int = 370) -> list[ClockChange]:
    """Return the wanted times that clocks skip or repeat within so many days."""
    if follows_elapsed_time(schedule.cron):
        return []
    zone = zone_of(schedule)
    start = _local(after_us, zone).replace(tzinfo=None)
    found = []
    for wanted in _times(schedule, start):
        if wanted - start > timedelta(days=days) or wanted > _LAST:
            break
        early, late = (wanted.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
        if early.utcoffset() == late.utcoffset():
            continue
        skipped = early.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != wanted
        just_before = (early.astimezone(UTC) - timedelta(hours=3) - _EPOCH) // timedelta(
            microseconds=1
        )
        due = [
            each
            for each, _ in zip(due_after(schedule, just_before), range(400), strict=False)
            if local(schedule, each).replace(tzinfo=None) >= wanted
        ]
        if due:
            found.append(ClockChange(wanted, due[0], skipped=skipped))
    return found


def same_times(schedule: Schedule, zone: ZoneInfo, now_us: int) -> bool:
    """Say whether the clocks of a schedule's time zone and of another one go alike."""
    return _go_alike(zone_of(schedule), zone, _at(now_us))


def _go_alike(one: ZoneInfo, other: ZoneInfo, start: datetime) -> bool:
    """Say whether two clocks go alike for two years."""
    if one.key is not None and one.key == other.key:
        return True
    moments = (start + timedelta(hours=6 * number) for number in range(4 * 366 * 2))
    return all(
        moment.astimezone(one).utcoffset() == moment.astimezone(other).utcoffset()
        for moment in moments
    )


def follows_elapsed_time(cron: str) -> bool:
    """Say whether a schedule is an interval, which no change of the clocks moves."""
    return any(field.startswith("*") for field in cron.split()[:2])


class CronFields:
    """The five fields of a schedule as sets of numbers; days of the week from 0, Sunday."""

    __slots__ = ("day_and", "days", "hours", "minutes", "months", "weekdays")

    def __init__(self, schedule: Schedule) -> None:
        parsed = _parsed(schedule, datetime(2024, 1, 1))  # noqa: DTZ001  # no zone is meant
        self.minutes = sorted(parsed.minutes)
        self.hours = sorted(parsed.hours)
        self.days = sorted(parsed.days)
        self.months = sorted(parsed.months)
        self.weekdays = sorted(
            {each % 7 if isinstance(each, int) else each for each in parsed.weekdays}, key=str
        )
        self.day_and = parsed.day_and
        """Whether a day has to be one of both kinds, or of either."""

    @property
    def portable(self) -> bool:
        """Whether every cron knows it: nothing is counted from the end of a month."""
        return all(isinstance(each, int) and each >= 0 for each in (*self.days, *self.weekdays))


def machine_zone() -> ZoneInfo:
    """Return the time zone of the machine: that of cron and of systemd's timers.

    TZ says nothing of it: it is a matter of the shell that has it, and what is called by the
    machine has another one, or none. Without any, the C library takes UTC.
    """
    return _zone_in(ETC)


@lru_cache(maxsize=16)
def _zone_in(etc: str) -> ZoneInfo:
    path = os.path.join(etc, "localtime")
    for place in (_link(path), os.path.realpath(path)):
        named = _zone(place.partition("zoneinfo/")[2])
        if named is not None:
            return named
    try:
        with open(path, "rb") as file:
            found = ZoneInfo.from_file(file, key=path)
    except (OSError, ValueError):
        return ZoneInfo("UTC")
    # A copy has no name of its own: that of the other file counts where it fits.
    named = _zone(_first_line(os.path.join(etc, "timezone")))
    start = datetime.now(UTC)
    return named if named is not None and _go_alike(named, found, start) else found


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _link(path: str) -> str:
    """Return where a link leads at first: the name that a person chose, of several for a zone."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def _times(schedule: Schedule, start: datetime) -> Iterator[datetime]:
    """Yield the times that are wanted, as long as there are dates: to the year 9999."""
    found = iter(_parsed(schedule, start))
    while True:
        try:
            yield next(found)
        except (StopIteration, OverflowError, ValueError):
            return


def _parsed(schedule: Schedule, start: datetime) -> CronSim:
    from cronsim import CronSim, CronSimError

    try:
        return CronSim(schedule.cron, start)
    except CronSimError as error:
        # Its words name a field: "Bad minute".
        if _has_no_such_day(schedule.cron):
            raise ScheduleError(schedule.name, f"{schedule.cron!r} is never due") from error
        raise ScheduleError(schedule.name, f"{schedule.cron!r}: {str(error).lower()}") from error


def _has_no_such_day(cron: str) -> bool:
    """Say whether a schedule is refused only since none of its months has one of its days."""
    from cronsim import CronSim, CronSimError

    words = cron.split()
    start = datetime(2024, 1, 1)  # noqa: DTZ001  # no zone is meant
    try:
        for each in ([*words[:2], "*", *words[3:]], [*words[:3], "*", *words[4:]]):
            CronSim(" ".join(each), start)
    except CronSimError:
        return False
    return True


def _at(time_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_us)


def _local(time_us: int, zone: ZoneInfo) -> datetime:
    """Return a moment as the clocks of a zone show it; the first or last date beyond all dates."""
    try:
        return _at(time_us).astimezone(zone)
    except OverflowError:
        last = datetime.max if time_us > 0 else datetime.min  # noqa: DTZ901  # it gets the zone
        return last.replace(tzinfo=zone)


def _near(name: str) -> str:
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    found = get_close_matches(name, available_timezones(), 1)
    return f"; there is {found[0]!r}" if found else ""
