"""Write times as ISO 8601 in UTC. Reads no clock, and knows no zone of a machine."""

from __future__ import annotations

from time import gmtime, strftime

EARLIEST_US = -62_135_596_800_000_000
LATEST_US = 253_402_300_799_999_999
"""First and last microsecond that ISO 8601 can name with four digits of a year, from 1 to 9999."""


def iso(time_us: int | None, digits: int = 3) -> str | None:
    """Return a time with `digits` (0, 3 or 6) digits of a second, cut off, not rounded.

    None for none, and for one outside the years 1 to 9999.

    >>> iso(1_700_000_000_123_456), iso(1_700_000_000_123_456, 0), iso(None), iso(2**62)
    ('2023-11-14T22:13:20.123Z', '2023-11-14T22:13:20Z', None, None)
    """
    if time_us is None or not EARLIEST_US <= time_us <= LATEST_US:
        return None
    seconds, rest_us = divmod(time_us, 1_000_000)
    moment = gmtime(seconds)
    rest = f".{rest_us // 10 ** (6 - digits):0{digits}}" if digits else ""
    # %Y is not padded on every platform.
    return f"{moment.tm_year:04}-{strftime('%m-%dT%H:%M:%S', moment)}{rest}Z"


def iso_stamp(time_us: int) -> str:
    """Return a time to the millisecond as a JSON file has to hold one: from 1970 to the year 9999.

    >>> iso_stamp(1_700_000_000_123_456), iso_stamp(-1)
    ('2023-11-14T22:13:20.123Z', '1970-01-01T00:00:00.000Z')
    """
    return iso(min(max(0, time_us), LATEST_US)) or ""
