"""Times are read and written exactly, and a bad one is refused, never replaced by a default."""

from __future__ import annotations

import pickle
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.errors import InvalidTimeError
from tachograph.infra import clock
from tachograph.infra.clock import iso, parse_time

NOW = 1_770_000_000_000_000  # 2026-02-02T02:40:00Z
MINUTE = 60_000_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> object:
    """Live in Central European time; the rule is spelt out, so no time zone files are needed."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_the_wall_clock_counts_microseconds_since_1970() -> None:
    before = time.time_ns() // 1_000
    now = clock.now_us()
    after = time.time_ns() // 1_000

    assert before <= now <= after


def test_the_boot_clock_counts_suspended_time_and_never_goes_back() -> None:
    first, second = clock.boottime_us(), clock.boottime_us()

    assert 0 < first <= second
    if hasattr(time, "CLOCK_BOOTTIME"):
        assert second <= time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000


def test_without_a_boot_clock_the_monotonic_one_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_BOOT_CLOCK", None)

    assert clock.boottime_us() <= time.monotonic_ns() // 1_000


@pytest.mark.parametrize(
    ("time_us", "digits", "text"),
    [
        (0, 3, "1970-01-01T00:00:00.000Z"),
        (1_999_999, 0, "1970-01-01T00:00:01Z"),
        (1_999_999, 3, "1970-01-01T00:00:01.999Z"),
        (1_999_999, 6, "1970-01-01T00:00:01.999999Z"),
        (-1, 6, "1969-12-31T23:59:59.999999Z"),
        (NOW, 3, "2026-02-02T02:40:00.000Z"),
    ],
)
def test_a_time_is_written_in_utc(time_us: int, digits: int, text: str) -> None:
    assert iso(time_us, digits=digits) == text


@pytest.mark.parametrize("time_us", [2**63, -(2**63)])
def test_a_time_outside_the_calendar_is_refused(time_us: int) -> None:
    with pytest.raises(InvalidTimeError, match="outside the years"):
        iso(time_us)


@given(st.integers(0, 253_402_300_799_999_999))
def test_a_written_time_reads_back_as_itself(time_us: int) -> None:
    assert parse_time(iso(time_us, digits=6), NOW) == time_us


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("now", NOW),
        (" Now ", NOW),
        ("0s", NOW),
        ("3d", NOW - 3 * DAY),
        ("3d ago", NOW - 3 * DAY),
        ("2h30m", NOW - 150 * MINUTE),
        ("2h 30m ago", NOW - 150 * MINUTE),
        ("90s ago", NOW - 90_000_000),
        ("90 seconds ago", NOW - 90_000_000),
        ("1 week 2 days", NOW - 9 * DAY),
        ("1.5h", NOW - 90 * MINUTE),
        ("250ms", NOW - 250_000),
        ("2 hrs 5 MINS", NOW - 125 * MINUTE),
        ("1770000000", NOW),
        ("@1770000000", NOW),
        ("1770000000.25", NOW + 250_000),
        ("1770000000.1234567", NOW + 123_456),
        ("1770000000000", NOW),
        ("1770000000000001", NOW + 1),
        ("@20260202", 20_260_202_000_000),
        ("@0", 0),
        ("2026-02-02T02:40:00Z", NOW),
        ("2026-02-02t02:40:00z", NOW),
        ("2026-02-02 02:40Z", NOW),
        ("20260202T024000Z", NOW),
        ("2026-02-02T03:40:00+01:00", NOW),
        ("2026-02-02T02:40:00.000001Z", NOW + 1),
    ],
)
def test_people_write_times_in_these_ways(text: str, time_us: int) -> None:
    assert parse_time(text, NOW) == time_us


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("yesterday", "no form"),
        ("ago", "no form"),
        ("3", "no unit"),
        ("1.5", "no unit"),
        ("3x", "no unit 'x'"),
        ("3 fortnights", "no unit 'fortnights'"),
        ("3d!", "no form"),
        ("d3", "no form"),
        ("30m2h", "large to small"),
        ("1h1h", "large to small"),
        ("-3d", "isoformat"),
        ("99999w", "before 1970"),
        ("20260202", "no unit"),
        ("123456789012", "neither seconds"),
        ("@", "no form"),
        ("1.2.3", "no form"),
        ("\u0663d", "no form"),
        ("\u0661" * 10, "no form"),  # a digit, not an ASCII one
        ("2026-13-01", "month"),
        ("2026-02-30T00:00Z", "day"),
        ("2026-02-02T25:00Z", "hour"),
        ("0001-01-01T00:00+14:00", "out of range"),
    ],
)
def test_what_is_not_a_time_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(InvalidTimeError, match=problem) as caught:
        parse_time(text, NOW)

    assert repr(text) in str(caught.value)
    assert "2h30m" in str(caught.value), "the message says what can be written"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@given(st.text(max_size=20))
def test_any_text_is_a_time_or_is_refused(text: str) -> None:
    try:
        found = parse_time(text, NOW)
    except InvalidTimeError:
        return

    assert isinstance(found, int)


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-02-02T03:40", NOW),
        ("2026-07-01", datetime(2026, 6, 30, 22, tzinfo=UTC)),
        ("2026-10-25T01:59:59", datetime(2026, 10, 24, 23, 59, 59, tzinfo=UTC)),
        ("2026-10-25T02:30:00+01:00", datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
    ],
)
def test_a_time_without_offset_is_local(text: str, expected: int | datetime) -> None:
    if isinstance(expected, datetime):
        expected = (expected - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    assert parse_time(text, NOW) == expected


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize("text", ["2026-03-29T02:30", "2026-10-25T02:30"])
def test_a_skipped_or_repeated_hour_is_refused(text: str) -> None:
    with pytest.raises(InvalidTimeError, match="the clocks change in that hour"):
        parse_time(text, NOW)
