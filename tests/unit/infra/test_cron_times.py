"""When schedules are due, across the hours that clocks skip and repeat."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zones import live_in

from tachograph.domain.errors import ScheduleError
from tachograph.domain.schedule import Schedule
from tachograph.infra import cron_times
from tachograph.infra.cron_times import (
    CronFields,
    check,
    clock_changes,
    due_after,
    follows_elapsed_time,
    local,
    machine_zone,
    same_times,
)

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"


MOMENTS = st.integers(1_577_836_800, 2_051_222_400).map(lambda seconds: seconds * 1_000_000)
"""From 2020 to 2035, in microseconds."""


def us(text: str) -> int:
    """Return an ISO time with its offset in microseconds."""
    return round(datetime.fromisoformat(text).timestamp() * 1_000_000)


def due(cron: str, zone: str, after: str, number: int) -> list[str]:
    """Return the next times, as the zone's clocks show them, with their offsets."""
    schedule = Schedule("s", cron, timezone=zone)
    return [
        local(schedule, time_us).isoformat(timespec="minutes")
        for time_us in islice(due_after(schedule, us(after)), number)
    ]


# From field reports of schedulers: what is expected on the day that the clocks change.
CASES = [
    # A time that is skipped is due at the first moment after the gap, once.
    (
        "30 2 * * *",
        BERLIN,
        "2027-03-27T02:30+01:00",
        ["2027-03-28T03:00+02:00", "2027-03-29T02:30+02:00"],
    ),
    (
        "30 2 * * *",
        NEW_YORK,
        "2027-03-13T02:30-05:00",
        ["2027-03-14T03:00-04:00", "2027-03-15T02:30-04:00"],
    ),
    # There the clocks go forward by half an hour.
    (
        "15 2 * * *",
        LORD_HOWE,
        "2027-10-02T02:15+10:30",
        ["2027-10-03T02:30+11:00", "2027-10-04T02:15+11:00"],
    ),
    (
        "45 2 * * *",
        LORD_HOWE,
        "2027-10-02T02:45+10:30",
        ["2027-10-03T02:45+11:00", "2027-10-04T02:45+11:00"],
    ),
    # Several of them in one gap are due at its end together: that is once.
    (
        "5,35 2 * * *",
        BERLIN,
        "2027-03-27T02:35+01:00",
        ["2027-03-28T03:00+02:00", "2027-03-29T02:05+02:00"],
    ),
    # What the gap does not touch stays.
    (
        "0 3 * * *",
        BERLIN,
        "2027-03-27T03:00+01:00",
        ["2027-03-28T03:00+02:00", "2027-03-29T03:00+02:00"],
    ),
    # A time that comes twice is due at the first.
    (
        "30 2 * * *",
        BERLIN,
        "2027-10-30T02:30+02:00",
        ["2027-10-31T02:30+02:00", "2027-11-01T02:30+01:00"],
    ),
    (
        "30 1 * * *",
        NEW_YORK,
        "2027-11-06T01:30-04:00",
        ["2027-11-07T01:30-04:00", "2027-11-08T01:30-05:00"],
    ),
    (
        "45 1 * * *",
        LORD_HOWE,
        "2027-04-03T01:45+11:00",
        ["2027-04-04T01:45+11:00", "2027-04-05T01:45+10:30"],
    ),
    # Asked between the two, it is not due a second time.
    ("30 2 * * *", BERLIN, "2027-10-31T02:40+02:00", ["2027-11-01T02:30+01:00"]),
    ("30 2 * * *", BERLIN, "2027-10-31T02:10+01:00", ["2027-11-01T02:30+01:00"]),
    # An interval follows elapsed time: no hour is silent, none is doubled or halved.
    (
        "*/30 * * * *",
        BERLIN,
        "2027-03-28T01:30+01:00",
        ["2027-03-28T03:00+02:00", "2027-03-28T03:30+02:00"],
    ),
    (
        "*/30 * * * *",
        BERLIN,
        "2027-10-31T02:30+02:00",
        ["2027-10-31T02:00+01:00", "2027-10-31T02:30+01:00", "2027-10-31T03:00+01:00"],
    ),
    (
        "0 * * * *",
        NEW_YORK,
        "2027-11-07T00:00-04:00",
        ["2027-11-07T01:00-04:00", "2027-11-07T01:00-05:00", "2027-11-07T02:00-05:00"],
    ),
    (
        "0 */1 * * *",
        BERLIN,
        "2027-03-28T01:00+01:00",
        ["2027-03-28T03:00+02:00", "2027-03-28T04:00+02:00"],
    ),
    # A star among minutes of one hour: on the day without that hour it is not due.
    ("*/30 2 * * *", BERLIN, "2027-03-27T02:30+01:00", ["2027-03-29T02:00+02:00"]),
    # Every kind of day.
    ("0 5 29 2 *", BERLIN, "2027-03-01T00:00+01:00", ["2028-02-29T05:00+01:00"]),
    ("0 0 13 * fri", BERLIN, "2027-08-10T00:00+02:00", ["2027-08-13T00:00+02:00"]),
    ("0 0 31 * *", BERLIN, "2027-03-31T00:00+02:00", ["2027-05-31T00:00+02:00"]),
    ("0 0 * * 7", BERLIN, "2027-03-01T00:00+01:00", ["2027-03-07T00:00+01:00"]),
    ("0 0 L * *", BERLIN, "2027-02-01T00:00+01:00", ["2027-02-28T00:00+01:00"]),
    ("30 2 * * *", "UTC", "2027-03-28T01:00+00:00", ["2027-03-28T02:30+00:00"]),
]


@pytest.mark.parametrize(("cron", "zone", "after", "expected"), CASES)
def test_a_schedule_is_due(cron: str, zone: str, after: str, expected: list[str]) -> None:
    assert due(cron, zone, after, len(expected)) == expected


@given(
    st.integers(0, 59),
    st.integers(0, 23),
    st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE, "UTC", "Asia/Kolkata", "America/Sao_Paulo"]),
    MOMENTS,
)
def test_a_daily_schedule_is_due_once_on_every_day(
    minute: int, hour: int, zone: str, start: int
) -> None:
    schedule = Schedule("s", f"{minute} {hour} * * *", timezone=zone)
    times = list(islice(due_after(schedule, start), 400))
    days = [local(schedule, each).date() for each in times]

    assert times == sorted(set(times))
    assert times[0] > start
    assert days == [days[0] + timedelta(days=n) for n in range(400)]
    wanted = timedelta(hours=hour, minutes=minute)
    for each in times:
        found = local(schedule, each)
        shown = timedelta(hours=found.hour, minutes=found.minute)
        assert wanted <= shown <= wanted + timedelta(hours=1)


@given(
    st.sampled_from([1, 2, 5, 10, 15, 30]),
    st.sampled_from([BERLIN, NEW_YORK, "UTC"]),
    MOMENTS,
)
def test_an_interval_is_due_after_the_same_time_always(minutes: int, zone: str, start: int) -> None:
    schedule = Schedule("s", f"*/{minutes} * * * *", timezone=zone)
    times = list(islice(due_after(schedule, start), 30))
    gaps = {later - earlier for earlier, later in pairwise(times)}

    assert gaps == {minutes * 60_000_000}


@given(MOMENTS, st.integers(0, 10))
def test_it_does_not_matter_from_where_one_counts(start: int, skipped: int) -> None:
    schedule = Schedule("s", "15,45 1-3 * * mon,sun", timezone=BERLIN)
    times = list(islice(due_after(schedule, start), skipped + 5))

    assert list(islice(due_after(schedule, times[skipped]), 4)) == times[skipped + 1 :]


# What the clocks do to it.


def test_the_days_on_which_the_clocks_touch_it_are_known() -> None:
    schedule = Schedule("s", "30 2 * * *", timezone=BERLIN)
    found = clock_changes(schedule, us("2027-01-01T00:00+01:00"))

    assert [(str(each.wanted), each.skipped) for each in found] == [
        ("2027-03-28 02:30:00", True),
        ("2027-10-31 02:30:00", False),
    ]
    assert [local(schedule, each.due_us).isoformat(timespec="minutes") for each in found] == [
        "2027-03-28T03:00+02:00",
        "2027-10-31T02:30+02:00",
    ]


@pytest.mark.parametrize(
    ("cron", "zone"), [("30 4 * * *", BERLIN), ("30 2 * * *", "UTC"), ("*/5 * * * *", BERLIN)]
)
def test_what_no_clock_touches_has_no_such_days(cron: str, zone: str) -> None:
    schedule = Schedule("s", cron, timezone=zone)

    assert clock_changes(schedule, us("2027-01-01T00:00+00:00")) == []


@pytest.mark.parametrize(
    ("cron", "follows"),
    [("* * * * *", True), ("0 */2 * * *", True), ("*/5 2 * * *", True), ("0 2 * * *", False)],
)
def test_intervals_are_told_from_times(cron: str, follows: bool) -> None:
    assert follows_elapsed_time(cron) is follows


# What cannot be.


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [
        ("60 2 * * *", None, "'60 2 * * *': bad minute"),
        ("0 24 * * *", None, "bad hour"),
        ("0 0 0 * *", None, "bad day-of-month"),
        ("0 0 * 13 *", None, "bad month"),
        ("0 0 * * 8", None, "bad day-of-week"),
        ("0 0 32 * *", None, "bad day-of-month"),
        ("0 0 30 2 *", None, "'0 0 30 2 *' is never due"),
        ("0 0 31 4,6,9,11 *", None, "'0 0 31 4,6,9,11 *' is never due"),
        ("x * * * *", None, "bad minute"),
        ("* * * *", None, "has 4 fields, not five: minute, hour, day of the month"),
        ("0 0 0 * * *", None, "has 6 fields, not five"),
        ("@daily", None, "names such as @daily are not known"),
        ("", None, "has 0 fields"),
        ("0 0 * * *", "Europe/Berlim", "no time zone 'Europe/Berlim'; there is 'Europe/Berlin'"),
        ("0 0 * * *", "../etc/passwd", "there is no time zone"),
        ("0 0 * * *", "", "there is no time zone"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(cron: str, zone: str | None, words: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        check(Schedule("nightly", cron, timezone=zone))

    assert str(caught.value).startswith("Schedule 'nightly': ")
    assert words in str(caught.value)


def test_a_schedule_that_can_be_is_not() -> None:
    check(Schedule("nightly", "  30   2 * *  mon-fri "))

    assert Schedule("nightly", "  30   2 * *  mon-fri ").cron == "30 2 * * mon-fri"


def test_its_fields_are_numbers() -> None:
    fields = CronFields(Schedule("s", "*/20 1-3 1,15 jan-mar sun,7,5"))

    assert (fields.minutes, fields.hours) == ([0, 20, 40], [1, 2, 3])
    assert (fields.days, fields.months, fields.weekdays) == ([1, 15], [1, 2, 3], [0, 5])
    assert (fields.day_and, fields.portable) == (False, True)


@pytest.mark.parametrize("cron", ["0 0 L * *", "0 0 LW * *", "0 0 * * 5L", "0 0 * * mon#2"])
def test_days_that_not_every_cron_knows_are_told(cron: str) -> None:
    assert not CronFields(Schedule("s", cron)).portable


# Time zones.


@pytest.mark.parametrize("shell", ["Asia/Tokyo", ":Asia/Tokyo", ""])
def test_the_zone_of_the_machine_is_not_the_one_of_the_shell(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", shell)
    live_in("Europe/Berlin", tmp_path, monkeypatch)

    assert machine_zone().key == BERLIN
    assert cron_times.zone_of(Schedule("s", "0 0 * * *")) == ZoneInfo(BERLIN)


def test_a_machine_without_a_zone_is_in_utc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etc = live_in("Mars/Olympus", tmp_path, monkeypatch)
    assert machine_zone().key == "UTC"
    (etc / "localtime").unlink()
    cron_times._zone_in.cache_clear()
    assert machine_zone().key == "UTC"


@pytest.mark.parametrize(
    ("written", "name"), [("Europe/Berlin\n", BERLIN), ("Asia/Tokyo\n", None), ("?", None)]
)
def test_a_copy_of_a_zone_has_the_name_that_fits_it(
    written: str, name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name may be out of date; its content is what the C library goes by."""
    etc = live_in("UTC", tmp_path, monkeypatch)
    data = next(each for each in map(zone_file, TZPATH) if each.exists())
    (etc / "localtime").unlink()
    (etc / "localtime").write_bytes(data.read_bytes())
    (etc / "timezone").write_text(written)

    assert machine_zone().key == name or machine_zone().key == str(etc / "localtime")
    assert (name is None) is (machine_zone().key == str(etc / "localtime"))
    assert same_times(Schedule("s", "0 0 * * *", timezone=BERLIN), machine_zone(), 0)


def zone_file(folder: str) -> Path:
    return Path(folder) / BERLIN


@pytest.mark.parametrize(
    ("zone", "other", "alike"),
    [
        (BERLIN, BERLIN, True),
        (BERLIN, "Europe/Paris", True),
        ("UTC", "Etc/UTC", True),
        (BERLIN, "UTC", False),
        (BERLIN, "Africa/Lagos", False),  # alike in winter only
    ],
)
def test_two_zones_are_alike_when_their_clocks_are(zone: str, other: str, alike: bool) -> None:
    schedule = Schedule("s", "0 0 * * *", timezone=zone)

    assert same_times(schedule, ZoneInfo(other), us("2027-01-10T00:00+00:00")) is alike


# The end of all dates.


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", NEW_YORK, "UTC"])
@pytest.mark.parametrize("cron", ["0 0 * * *", "*/5 * * * *", "30 2 29 2 *", "0 0 1 * mon"])
@pytest.mark.parametrize("after", ["9999-12-30T12:00+00:00", "9999-12-31T23:59+00:00"])
def test_there_is_nothing_after_the_last_date(cron: str, zone: str, after: str) -> None:
    schedule = Schedule("s", cron, timezone=zone)
    times = list(due_after(schedule, us(after)))

    assert times == sorted(set(times))
    assert all(local(schedule, each).year in (9999, 10000) for each in times)
    assert clock_changes(schedule, us(after)) == []


def test_before_the_first_date_one_counts_from_it() -> None:
    assert next(due_after(Schedule("s", "0 0 * * *", timezone=NEW_YORK), -(10**18))) < 0
