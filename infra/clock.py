"""Times: the wall clock for display, the clock since boot for leases, and how people write them.

Nothing here orders events: order comes from positions (G3).
"""

from __future__ import annotations

import sys
import time

from tachograph.domain.errors import InvalidSpanError, InvalidTimeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.domain.ages import Moment

SECOND_US = 1_000_000
_UNITS_US = {
    "ms": 1_000,
    "s": SECOND_US,
    "m": 60 * SECOND_US,
    "h": 3_600 * SECOND_US,
    "d": 86_400 * SECOND_US,
    "w": 604_800 * SECOND_US,
}
_LONG_UNITS = {
    "millisecond": "ms",
    "sec": "s",
    "second": "s",
    "min": "m",
    "minute": "m",
    "hr": "h",
    "hour": "h",
    "day": "d",
    "week": "w",
}


def now_us() -> int:
    """Return the wall time: microseconds since 1970 in UTC."""
    return time.time_ns() // 1_000


def boottime_us() -> int:
    """Return microseconds since the machine was started, including those it was suspended."""
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000 if _BOOT_CLOCK else _monotonic_us()


def moment() -> Moment:
    """Return what the clocks show now. The awake clock stops while the machine sleeps."""
    from tachograph.domain.ages import Moment

    return Moment(now_us(), boottime_us(), _awake_us())


def _awake_us() -> int:
    # CLOCK_MONOTONIC stops during suspend on Linux; on macOS CLOCK_UPTIME_RAW does.
    uptime = getattr(time, "CLOCK_UPTIME_RAW", None)
    return _monotonic_us() if uptime is None else time.clock_gettime_ns(uptime) // 1_000


def _monotonic_us() -> int:
    return time.monotonic_ns() // 1_000


def _boot_clock() -> int | None:
    """Return the clock that goes on during suspend, None where Python has no such clock."""
    if sys.platform == "darwin":  # there, this one does: mach_continuous_time
        return time.CLOCK_MONOTONIC_RAW
    return getattr(time, "CLOCK_BOOTTIME", None)


_BOOT_CLOCK = _boot_clock()


def iso(time_us: int, *, digits: int = 3) -> str:
    """Write a time in UTC with `digits` (0, 3 or 6) digits of a second, cut off, not rounded.

    Raises InvalidTimeError outside the years 1 to 9999.
    """
    from tachograph.domain.iso_time import iso as written

    found = written(time_us, digits)
    if found is None:
        raise InvalidTimeError(time_us, "it is outside the years 1 to 9999")
    return found


def parse_time(text: str, now_us: int) -> int:
    """Return the time that a person wrote, in microseconds since 1970 in UTC.

    Understands ISO 8601 (local time unless it says otherwise), seconds since 1970 (with 13
    digits milliseconds, with 16 microseconds; below 9 digits marked by `@`), `now`, and how
    long before `now_us`: `3d`, `2h30m`, `90s ago`, `2 days ago`. Raises InvalidTimeError for
    everything else; there is no default.
    """
    written = text.strip()
    lowered = written.lower()
    if not written:
        raise InvalidTimeError(text, "it is empty")
    if lowered == "now":
        return now_us
    if written.removeprefix("@").replace(".", "", 1).isdecimal() and written.isascii():
        return _parse_epoch(text, written)
    if "-" in written or "T" in written:
        return _parse_iso(text, written.upper())
    return now_us - _parse_span(text, lowered.removesuffix("ago").rstrip(), now_us)


def parse_span(text: str) -> int:
    """Return a length of time that a person wrote, in microseconds: `90s`, `2h30m`, `7 days`.

    A plain number means seconds. Raises InvalidSpanError for everything else.
    """
    lowered = text.strip().lower()
    if lowered.replace(".", "", 1).isdecimal() and lowered.isascii():
        lowered += "s"
    try:
        return _parse_span(text, lowered, 2**62)
    except InvalidTimeError as error:
        raise InvalidSpanError(text, error.args[1]) from error


def _parse_epoch(text: str, written: str) -> int:
    whole, _, fraction = written.removeprefix("@").partition(".")
    if not written.startswith("@") and len(whole) < 9:
        # `3` lacks a unit and `20260301` its dashes; neither means a day in the 1970s.
        raise InvalidTimeError(text, f"it has no unit; for seconds since 1970 write @{written}")
    if len(whole) in (13, 16) and not fraction:
        return int(whole) * (1_000 if len(whole) == 13 else 1)
    if not 1 <= len(whole) <= 11:
        raise InvalidTimeError(text, "it is neither seconds, milliseconds nor microseconds")
    return int(whole) * SECOND_US + int(fraction[:6].ljust(6, "0"))


def _parse_iso(text: str, written: str) -> int:
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime.fromisoformat(written)
        early, late = (moment.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidTimeError(text, str(error)) from error
    if early != late:  # so in the hour that is skipped or repeated when the clocks change
        raise InvalidTimeError(
            text, "the clocks change in that hour; add an offset such as +01:00, or Z"
        )
    return (early - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _parse_span(text: str, span: str, now_us: int) -> int:
    total_us, smallest = 0, None
    for number, unit in _amounts(text, span):
        size = _UNITS_US[unit]
        if smallest is not None and size >= smallest:
            raise InvalidTimeError(text, "its units must go from large to small, each once")
        smallest = size
        whole, _, fraction = number.partition(".")
        total_us += int(whole) * size + int(fraction or "0") * size // 10 ** len(fraction)
    if total_us > now_us:
        raise InvalidTimeError(text, "it is before 1970")
    return total_us


def _amounts(text: str, span: str) -> list[tuple[str, str]]:
    """Split `2h30m` into its numbers and units."""
    import re

    parts = re.findall(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*([a-z]+)", span, re.ASCII)
    again = re.sub(r"\s*\d{1,12}(?:\.\d{1,9})?\s*[a-z]+", "", span, flags=re.ASCII)
    if not parts or again.strip():
        raise InvalidTimeError(text, "it is in no form that is understood")
    amounts = []
    for number, word in parts:
        unit = _LONG_UNITS.get(word.removesuffix("s"), word)
        if unit not in _UNITS_US:
            raise InvalidTimeError(text, f"there is no unit {word!r}; there are w, d, h, m, s, ms")
        amounts.append((number, unit))
    return amounts
