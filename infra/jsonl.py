r"""Stored values as JSON that people can read, and back without loss. Reads and writes no file.

`from_json(to_json(value))` is the value again, with the same types, for everything a `Codec`
unpacks, also after `json.dumps` and `json.loads` (which must keep the order of keys). What JSON
has no form for becomes an object whose first key begins with `$`:

=================  ===================================================================
Value              JSON
=================  ===================================================================
other float        ``{"$float": "nan"}``, ``"inf"``, ``"-inf"``, or the 8 bytes in hex
large int          ``{"$int": "9007199254740993"}``, from 2**53; very large ones in hex
text, surrogates   ``{"$str": "caf\\udce9"}``, with a backslash written twice
bytes, bytearray   ``{"$bytes": "base64"}``
tuple, set, …      ``{"$tuple": [1, 2]}``
other dict         ``{"$dict": [[1, "a"], [2, "b"]]}``, when a key is no text or begins with $
datetime           ``{"$datetime": "2025-01-31T12:00:00+01:00", "zone": "Europe/Zurich"}``
time               as datetime, with ``zone``, ``fold`` or ``name`` of an offset where set
date               ``{"$date": "2025-01-31"}``
timedelta          ``{"$timedelta": "-1.500000"}``, in seconds
UUID               ``{"$uuid": "hex with hyphens"}``
Decimal, Fraction  ``{"$decimal": "1.50"}``, ``{"$fraction": [1, 3]}``
path               ``{"$path": "a/b", "flavour": "PurePosixPath"}``
BlobRef            ``{"$blob": "digest", "size": 12}``
custom value       ``{"$custom": "name", "value": …}``
=================  ===================================================================
"""

from __future__ import annotations

import base64
import pathlib
import re
import struct
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tachograph.domain.blobref import BlobRef
from tachograph.domain.errors import MalformedValueError, UnstorableValueError
from tachograph.infra.codec import Codec
from tachograph.infra.codec_extensions import CustomValue
from tachograph.infra.codec_times import name_of_offset, name_of_zone, zone_named
from tachograph.infra.codec_types import name_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

_EXACT_IN_DOUBLES = 2**53
_DECIMAL_BITS = 4096
"""Python neither reads nor writes decimal integers of more than 4300 digits."""

_CODEC = Codec(keep_custom=True)
_DOUBLE = struct.Struct(">d")
_SPECIAL_FLOATS = {_DOUBLE.pack(float(name)): name for name in ("nan", "inf", "-inf")}
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")
_SECONDS = re.compile(r"(-?)([0-9]+)\.([0-9]{6})")
_MICROSECOND = timedelta(microseconds=1)
_FLAVOURS = ("PurePosixPath", "PureWindowsPath", "PosixPath", "WindowsPath")


def to_json(value: Any) -> Any:
    """Return what `json.dumps` can write and `from_json` turns back into the value.

    Raises `UnstorableValueError` for a value that no codec gives.
    """
    encode = _ENCODERS.get(type(value))
    if encode is None:
        raise UnstorableValueError("value", f"a value of type {name_of(type(value))}")
    return encode(value)


def from_json(obj: Any) -> Any:
    """Return the value that `to_json` was given.

    Raises `MalformedValueError` for anything else.
    """
    if type(obj) is list:
        return _items(obj)
    if type(obj) is dict and all(type(key) is str for key in obj):
        return _from_object(obj)
    if obj is None or type(obj) in (bool, int, float, str):
        return obj
    raise MalformedValueError(f"JSON has no such {name_of(type(obj))}")


def _from_object(obj: dict[str, Any]) -> Any:
    tag = next(iter(obj), "")
    if tag.startswith("$"):
        return _untag(tag, obj)
    return {key: from_json(item) for key, item in obj.items()}


def _items(items: list[Any]) -> list[Any]:
    if type(items) is not list:
        raise MalformedValueError(f"a {name_of(type(items))} stands where a list should")
    return [from_json(item) for item in items]


def _untag(tag: str, obj: dict[str, Any]) -> Any:
    decode = _DECODERS.get(tag)
    if decode is None:
        raise MalformedValueError(f"the tag {tag!r} is unknown")
    details = dict(obj)
    content = details.pop(tag)
    try:
        return decode(content, **details)
    except MalformedValueError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise MalformedValueError(f"{tag} does not hold what it should ({error})") from error


# Numbers and text


def _same(value: Any) -> Any:
    return value


def _int_to_json(value: int) -> Any:
    if -_EXACT_IN_DOUBLES < value < _EXACT_IN_DOUBLES:
        return value
    return {"$int": str(value) if value.bit_length() < _DECIMAL_BITS else hex(value)}


def _int_from_json(text: str) -> int:
    return int(text, 16 if "x" in text else 10)


def _float_to_json(value: float) -> Any:
    if value - value == 0:  # neither infinite nor NaN
        return value
    data = _DOUBLE.pack(value)
    return {"$float": _SPECIAL_FLOATS.get(data, data.hex())}


def _float_from_json(text: str) -> float:
    if text in _SPECIAL_FLOATS.values():
        return float(text)
    value: float = _DOUBLE.unpack(bytes.fromhex(text))[0]
    return value


def _str_to_json(value: str) -> Any:
    # Two escaped surrogates in a row would come back from JSON as one character.
    if not _SURROGATE.search(value):
        return value
    escaped = value.replace("\\", "\\\\").encode("utf-8", "backslashreplace")
    return {"$str": escaped.decode()}


def _str_from_json(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", text)


def _base64(value: bytes | bytearray) -> str:
    return base64.b64encode(value).decode()


def _bytes_from_json(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


# Containers


def _list_to_json(value: Any) -> list[Any]:
    return [to_json(item) for item in value]


def _set_to_json(value: Any) -> list[Any]:
    return _list_to_json(sorted(value, key=_CODEC.pack))


def _dict_to_json(value: dict[Any, Any]) -> Any:
    if all(type(key) is str and key[:1] != "$" and not _SURROGATE.search(key) for key in value):
        return {key: to_json(item) for key, item in value.items()}
    return {"$dict": [[to_json(key), to_json(item)] for key, item in value.items()]}


def _dict_from_json(pairs: list[list[Any]]) -> dict[Any, Any]:
    return {from_json(key): from_json(item) for key, item in pairs}


def _custom_to_json(value: CustomValue) -> Any:
    return {"$custom": to_json(value.name), "value": to_json(_CODEC.unpack(value.data))}


def _custom_from_json(name: Any, *, value: Any) -> CustomValue:
    return CustomValue(from_json(name), _CODEC.pack(from_json(value)))


# Time


def _clock_to_json(tag: str, value: datetime | time) -> dict[str, Any]:
    zone = _zone_to_json(value.tzinfo)
    fold = {"fold": 1} if value.fold else {}
    return {tag: value.isoformat(), **zone, **fold}


def _zone_to_json(zone: tzinfo | None) -> dict[str, Any]:
    if zone is None or zone is UTC:
        return {}
    if type(zone) is not timezone:
        return {"zone": _known_name(zone)}
    obj: dict[str, Any] = {}
    offset = zone.utcoffset(None)
    if offset.microseconds:  # Python 3.11 does not read all of these back from an ISO text
        obj["offset"] = _seconds(offset)
    name = name_of_offset(zone)
    if name is not None:
        obj["name"] = to_json(name)
    return obj


def _known_name(zone: tzinfo) -> str:
    name = name_of_zone(zone)
    if name is None:
        raise UnstorableValueError("value", f"a time zone of type {name_of(type(zone))}")
    return name


def _clock_from_json(value: Any, *, fold: int = 0, **zone: Any) -> Any:
    if zone:
        return value.replace(tzinfo=_zone_from_json(value.utcoffset(), **zone), fold=fold)
    return value.replace(fold=fold)


def _zone_from_json(
    found: timedelta, *, zone: str | None = None, offset: str | None = None, name: Any = None
) -> tzinfo:
    if zone is not None:
        return zone_named(zone)
    if offset is not None:
        found = _timedelta_from_json(offset)
    return timezone(found) if name is None else timezone(found, from_json(name))


def _seconds(value: timedelta) -> str:
    microseconds = value // _MICROSECOND
    seconds, rest = divmod(abs(microseconds), 10**6)
    return f"{'-' if microseconds < 0 else ''}{seconds}.{rest:06}"


def _timedelta_from_json(text: str) -> timedelta:
    found = _SECONDS.fullmatch(text)
    if found is None:
        raise ValueError("not seconds with six decimals")
    value = timedelta(seconds=int(found[2]), microseconds=int(found[3]))
    return -value if found[1] else value


# The rest


def _path_to_json(value: pathlib.PurePath) -> Any:
    return {"$path": to_json(str(value)), "flavour": type(value).__name__}


def _path_from_json(text: Any, *, flavour: str) -> pathlib.PurePath:
    if flavour not in _FLAVOURS:
        raise ValueError(f"unknown flavour {flavour!r}")
    path: pathlib.PurePath = getattr(pathlib, flavour)(from_json(text))
    return path


def _blob_ref_from_json(digest: str, *, size: int) -> BlobRef:
    return BlobRef(digest, size)


def _fraction_from_json(parts: list[Any]) -> Fraction:
    numerator, denominator = _items(parts)
    return Fraction(numerator, denominator)


_ENCODERS: dict[type, Callable[[Any], Any]] = {
    type(None): _same,
    bool: _same,
    int: _int_to_json,
    float: _float_to_json,
    str: _str_to_json,
    bytes: lambda value: {"$bytes": _base64(value)},
    bytearray: lambda value: {"$bytearray": _base64(value)},
    list: _list_to_json,
    tuple: lambda value: {"$tuple": _list_to_json(value)},
    set: lambda value: {"$set": _set_to_json(value)},
    frozenset: lambda value: {"$frozenset": _set_to_json(value)},
    dict: _dict_to_json,
    CustomValue: _custom_to_json,
    datetime: lambda value: _clock_to_json("$datetime", value),
    time: lambda value: _clock_to_json("$time", value),
    date: lambda value: {"$date": value.isoformat()},
    timedelta: lambda value: {"$timedelta": _seconds(value)},
    UUID: lambda value: {"$uuid": str(value)},
    Decimal: lambda value: {"$decimal": str(value).replace("e", "E")},
    Fraction: lambda value: {"$fraction": _list_to_json(value.as_integer_ratio())},
    BlobRef: lambda value: {"$blob": value.digest, "size": value.size},
    **dict.fromkeys((getattr(pathlib, flavour) for flavour in _FLAVOURS), _path_to_json),
}
_DECODERS: dict[str, Callable[..., Any]] = {
    "$int": _int_from_json,
    "$float": _float_from_json,
    "$str": _str_from_json,
    "$bytes": _bytes_from_json,
    "$bytearray": lambda text: bytearray(_bytes_from_json(text)),
    "$tuple": lambda items: tuple(_items(items)),
    "$set": lambda items: set(_items(items)),
    "$frozenset": lambda items: frozenset(_items(items)),
    "$dict": _dict_from_json,
    "$custom": _custom_from_json,
    "$datetime": lambda text, **zone: _clock_from_json(datetime.fromisoformat(text), **zone),
    "$time": lambda text, **zone: _clock_from_json(time.fromisoformat(text), **zone),
    "$date": date.fromisoformat,
    "$timedelta": _timedelta_from_json,
    "$uuid": UUID,
    "$decimal": Decimal,
    "$fraction": _fraction_from_json,
    "$blob": _blob_ref_from_json,
    "$path": _path_from_json,
}
