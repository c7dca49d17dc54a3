"""A time is written as ISO 8601 in UTC, or not at all."""

from __future__ import annotations

import pytest

from tachograph.domain.iso_time import EARLIEST_US, LATEST_US, iso, iso_stamp


@pytest.mark.parametrize(
    ("time_us", "expected"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (951_782_400_000_000, "2000-02-29T00:00:00.000Z"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00.000Z"),
        (-62_135_596_800_000_001, None),
        (253_402_300_799_999_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000_000, None),
        (2**63 - 1, None),
        (2**90, None),
    ],
)
def test_times_are_iso_8601_in_utc(time_us: int, expected: str | None) -> None:
    assert iso(time_us) == expected


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        (0, "2023-11-14T22:13:20Z"),
        (3, "2023-11-14T22:13:20.999Z"),
        (6, "2023-11-14T22:13:20.999999Z"),
    ],
)
def test_a_second_is_cut_off_and_not_rounded(digits: int, expected: str) -> None:
    assert iso(1_700_000_000_999_999, digits) == expected


def test_the_first_and_the_last_time_of_the_calendar_can_be_written() -> None:
    assert (iso(EARLIEST_US), iso(LATEST_US)) == (
        "0001-01-01T00:00:00.000Z",
        "9999-12-31T23:59:59.999Z",
    )
    assert (iso(EARLIEST_US - 1), iso(LATEST_US + 1)) == (None, None)


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-5, "1970-01-01T00:00:00.000Z"),
        (2**62, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_that_no_reader_could_take_is_the_nearest_one_it_can(
    time_us: int, text: str
) -> None:
    assert iso_stamp(time_us) == text
