"""The stored forms of dates, times and time zones. Converts nothing: a wall clock stays one.

The layouts are in the table of `codec_types`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from struct import Struct

from tachograph.infra.codec_types import decode_text, encode_text, name_of
from tachograph.infra.msgpack_plain import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo
    from typing import Any

    from tachograph.infra.codec_types import Pack, Unpack

_DATETIME = Struct(">BHBBBBBI")
_DATE = Struct(">HBB")
_TIME = Struct(">BBBBI")
_TIMEDELTA = Struct(">iII")

_NAIVE, _UTC, _OFFSET, _ZONE = range(4)
_NAMED = 4
_FOLD = 8

_MICROSECOND = timedelta(microseconds=1)


def encode_datetime(value: datetime, _pack: Pack) -> bytes:
    """Return the payload of a datetime."""
    flags, zone = _encode_zone(value)
    return (
        _DATETIME.pack(
            flags,
            value.year,
            value.month,
            value.day,
            value.hour,
            value.minute,
            value.second,
            value.microsecond,
        )
        + zone
    )


def decode_datetime(payload: bytes, _unpack: Unpack) -> datetime:
    """Return the datetime of a payload."""
    flags, year, month, day, hour, minute, second, microsecond = _DATETIME.unpack_from(payload)
    zone = _decode_zone(flags, payload[_DATETIME.size :])
    fold = flags // _FOLD
    return datetime(year, month, day, hour, minute, second, microsecond, zone, fold=fold)


def encode_time(value: time, _pack: Pack) -> bytes:
    """Return the payload of a time of day."""
    flags, zone = _encode_zone(value)
    return _TIME.pack(flags, value.hour, value.minute, value.second, value.microsecond) + zone


def decode_time(payload: bytes, _unpack: Unpack) -> time:
    """Return the time of day of a payload."""
    flags, hour, minute, second, microsecond = _TIME.unpack_from(payload)
    zone = _decode_zone(flags, payload[_TIME.size :])
    return time(hour, minute, second, microsecond, zone, fold=flags // _FOLD)


def encode_date(value: date, _pack: Pack) -> bytes:
    """Return the payload of a date."""
    return _DATE.pack(value.year, value.month, value.day)


def decode_date(payload: bytes, _unpack: Unpack) -> date:
    """Return the date of a payload."""
    return date(*_DATE.unpack(payload))


def encode_timedelta(value: timedelta, _pack: Pack) -> bytes:
    """Return the payload of a duration."""
    return _TIMEDELTA.pack(value.days, value.seconds, value.microseconds)


def decode_timedelta(payload: bytes, _unpack: Unpack) -> timedelta:
    """Return the duration of a payload."""
    days, seconds, microseconds = _TIMEDELTA.unpack(payload)
    value = timedelta(days, seconds, microseconds)
    if value.days != days or value.seconds != seconds:
        raise ValueError("not normalised")
    return value


def name_of_offset(zone: timezone) -> str | None:
    """Return the name that a fixed offset was given, None when it has only the made one."""
    arguments: Any = zone.__reduce__()[1]  # as pickle gets them; nothing else tells
    return arguments[1] if len(arguments) > 1 else None


def name_of_zone(zone: tzinfo) -> str | None:
    """Return the name under which `ZoneInfo` finds the zone again, None for any other zone."""
    from zoneinfo import ZoneInfo

    if type(zone) is not ZoneInfo or zone.key is None:
        return None
    try:
        ZoneInfo(zone.key)
    except (LookupError, OSError, ValueError):  # made from a file, under a name of its own
        return None
    return zone.key


def zone_named(name: str) -> tzinfo:
    """Return the time zone of a name. Raises `ValueError` where it is not known."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError) as error:
        raise ValueError(
            f"this machine does not know the time zone {name!r}: install the tzdata package"
        ) from error


def _encode_zone(value: datetime | time) -> tuple[int, bytes]:
    flags = _FOLD if value.fold else 0
    zone = value.tzinfo
    if zone is None:
        return flags, b""
    if zone is UTC:
        return flags | _UTC, b""
    if type(zone) is timezone:
        return _encode_offset(flags, zone)
    name = name_of_zone(zone)
    if name is None:
        raise RefusedError(f"a {type(value).__name__} in a time zone {_describe(zone)}")
    return flags | _ZONE, name.encode()


def _encode_offset(flags: int, zone: timezone) -> tuple[int, bytes]:
    offset = zone.utcoffset(None) // _MICROSECOND
    data = offset.to_bytes(8, signed=True)
    name = name_of_offset(zone)
    if name is None:
        return flags | _OFFSET, data
    return flags | _OFFSET | _NAMED, data + encode_text(name)


def _decode_zone(flags: int, data: bytes) -> tzinfo | None:
    kind, rest = flags & 3, flags & ~3
    if rest & ~(_FOLD | (_NAMED if kind == _OFFSET else 0)):
        raise ValueError(f"unknown flags {flags}")
    if kind == _OFFSET:
        return _decode_offset(flags, data)
    if kind == _ZONE:
        return zone_named(data.decode())
    if data:
        raise ValueError("too many bytes")
    return UTC if kind == _UTC else None


def _decode_offset(flags: int, data: bytes) -> timezone:
    if len(data) != 8 and not flags & _NAMED:
        raise ValueError("an offset has 8 bytes")
    offset = timedelta(microseconds=int.from_bytes(data[:8], signed=True))
    if flags & _NAMED:
        return timezone(offset, decode_text(data[8:]))
    return timezone(offset)


def _describe(zone: tzinfo) -> str:
    if getattr(zone, "key", ""):
        return f"that no other process can find ({zone})"
    return f"of type {name_of(type(zone))}"
