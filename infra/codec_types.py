"""The stored forms of types that msgpack has no form for. No form here ever changes.

Each is a msgpack extension: a code and a payload. The codes are frozen: a code is never given to
another type, and its payload never gets another layout. Integers in payloads are big-endian;
"packed" is the msgpack form of a value, written by the same rules.

====  ==============  ==========================================================================
Code  Type            Payload
====  ==============  ==========================================================================
1     tuple           packed list of the items
2     set             packed list of the items, in the order of their packed bytes
3     frozenset       as set
4     int             two's complement, shortest; only below -2**63 and from 2**64
5     str             UTF-8 with surrogates passed through; only where strict UTF-8 fails
6     bytearray       the bytes
7     datetime        flags u8, year u16, month u8, day u8, hour u8, minute u8, second u8,
                      microsecond u32, zone
8     date            year u16, month u8, day u8
9     time            flags u8, hour u8, minute u8, second u8, microsecond u32, zone
10    timedelta       days i32, seconds u32, microseconds u32
11    UUID            the 16 bytes
12    Decimal         ASCII text, for example ``-1.50E+3``, ``sNaN``
13    Fraction        packed list: numerator, denominator
14    path            flavour u8 (0 PurePosixPath, 1 PureWindowsPath, 2 PosixPath, 3 WindowsPath),
                      text as in code 5
15    BlobRef         digest 32 bytes, size u64
16    custom type     packed list: name, what its encoder gave
====  ==============  ==========================================================================

Flags: bits 0 and 1 say what the zone is (0 nothing, 1 UTC, 2 fixed offset, 3 name of a time zone),
bit 2 that a fixed offset has a name, bit 3 is `fold`. Zone: nothing for 0 and 1; microseconds i64
then the name as in code 5 for 2; the name as UTF-8 for 3. `UUID.is_safe`, which takes no part in
equality, is not kept.
"""

from __future__ import annotations

import os
import struct

from tachograph.domain.blobref import BlobRef
from tachograph.domain.errors import MalformedValueError
from tachograph.infra.msgpack_plain import NATIVE_TYPES, RefusedError, head_of_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal
    from fractions import Fraction
    from pathlib import PurePath
    from typing import Any

    Pack = Callable[[object, int], bytes]
    """Packs a part of a value that stands `int` levels deeper: 0 for a list in its stead."""
    Unpack = Callable[[bytes], object]
    Encoder = Callable[[Any, Pack], bytes]
    Decoder = Callable[[bytes, Unpack], object]

TUPLE = 1
SET = 2
FROZENSET = 3
BIG_INT = 4
SURROGATE_TEXT = 5
BYTEARRAY = 6
DATETIME = 7
DATE = 8
TIME = 9
TIMEDELTA = 10
UUID_BYTES = 11
DECIMAL = 12
FRACTION = 13
PATH = 14
BLOB_REF = 15
CUSTOM = 16


_DECODE_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    struct.error,
    TypeError,
    ValueError,
)
"""What the constructors of the standard types raise for payloads that no encoder wrote."""


def encode_type(value: object, pack: Pack) -> tuple[int, bytes]:
    """Return the code and payload of a value. `pack` packs a part of it.

    Raises `RefusedError` when its type has no exact stored form.
    """
    kind = type(value)
    encoding = _ENCODERS.get(kind)
    if encoding is None:
        load = _LOAD_BY_MODULE.get(str(kind.__module__).partition(".")[0])
        if load is not None:
            load()
        encoding = _ENCODERS.get(kind)
    if encoding is None:
        raise RefusedError(_describe(kind))
    code, encode = encoding
    return code, encode(value, pack)


def decode_type(code: int, payload: bytes, unpack: Unpack) -> object:
    """Return the value of a code and payload. `unpack` unpacks a part of it.

    Raises `MalformedValueError` when there is no such code, or the payload does not fit it.
    """
    if code in _LOAD_BY_CODE and code not in _DECODERS:
        _LOAD_BY_CODE[code]()
    decode = _DECODERS.get(code)
    if decode is None:
        raise MalformedValueError(f"they hold the extension {code}, which this version has not")
    try:
        return decode(payload, unpack)
    except MalformedValueError:
        raise
    except _DECODE_ERRORS as error:
        raise MalformedValueError(f"extension {code} holds something else ({error})") from error


def encode_text(text: str) -> bytes:
    """Return the bytes of any text, also of one with surrogates."""
    return text.encode("utf-8", "surrogatepass")


def decode_text(data: bytes) -> str:
    """Return the text of bytes that `encode_text` gave."""
    return data.decode("utf-8", "surrogatepass")


def name_of(kind: type) -> str:
    """Return the name of a type as people look it up: `uuid.UUID`, but `int`."""
    module = str(kind.__module__)
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _describe(kind: type) -> str:
    for base in kind.__mro__[1:]:
        if base in NATIVE_TYPES or base in _ENCODERS:
            return f"a value of type {name_of(kind)} (a subclass of {name_of(base)})"
    return f"a value of type {name_of(kind)}"


# Builtin types


def _encode_tuple(value: tuple[object, ...], pack: Pack) -> bytes:
    return pack(list(value), 0)


def _encode_set(value: set[object] | frozenset[object], pack: Pack) -> bytes:
    if not value:
        return pack([], 0)
    try:
        parts = sorted(pack(item, 1) for item in value)
    except RefusedError as refused:
        refused.steps.append("[*]")
        raise
    return head_of_list(len(parts)) + b"".join(parts)


def _list(payload: bytes, unpack: Unpack) -> list[object]:
    items = unpack(payload)
    if type(items) is not list:
        raise ValueError("not a list")
    return items


def _encode_int(value: int, _pack: Pack) -> bytes:
    return value.to_bytes(_size_of_int(value), signed=True)


def _size_of_int(value: int) -> int:
    return (value + (value < 0)).bit_length() // 8 + 1


def _decode_int(payload: bytes, _unpack: Unpack) -> object:
    value = int.from_bytes(payload, signed=True)
    if -(1 << 63) <= value < 1 << 64 or _size_of_int(value) != len(payload):
        raise ValueError("not the shortest form")
    return value


def _decode_surrogate_text(payload: bytes, _unpack: Unpack) -> object:
    value = decode_text(payload)
    try:
        value.encode()
    except UnicodeEncodeError:
        return value
    raise ValueError("no surrogate")


def _decode_blob_ref(payload: bytes, _unpack: Unpack) -> object:
    if len(payload) != 40:
        raise ValueError(f"{len(payload)} bytes")
    return BlobRef(payload[:32].hex(), int.from_bytes(payload[32:]))


_ENCODERS: dict[type, tuple[int, Encoder]] = {
    tuple: (TUPLE, _encode_tuple),
    set: (SET, _encode_set),
    frozenset: (FROZENSET, _encode_set),
    int: (BIG_INT, _encode_int),
    str: (SURROGATE_TEXT, lambda value, _pack: encode_text(value)),
    bytearray: (BYTEARRAY, lambda value, _pack: bytes(value)),
    BlobRef: (
        BLOB_REF,
        lambda value, _pack: bytes.fromhex(value.digest) + value.size.to_bytes(8),
    ),
}
_DECODERS: dict[int, Decoder] = {
    TUPLE: lambda payload, unpack: tuple(_list(payload, unpack)),
    SET: lambda payload, unpack: set(_list(payload, unpack)),
    FROZENSET: lambda payload, unpack: frozenset(_list(payload, unpack)),
    BIG_INT: _decode_int,
    SURROGATE_TEXT: _decode_surrogate_text,
    BYTEARRAY: lambda payload, _unpack: bytearray(payload),
    BLOB_REF: _decode_blob_ref,
}


# Types of the standard library: their modules are imported when the first such value comes by.


def _load_times() -> None:
    from datetime import date, datetime, time, timedelta

    from tachograph.infra import codec_times as times

    _ENCODERS[datetime] = (DATETIME, times.encode_datetime)
    _ENCODERS[date] = (DATE, times.encode_date)
    _ENCODERS[time] = (TIME, times.encode_time)
    _ENCODERS[timedelta] = (TIMEDELTA, times.encode_timedelta)
    _DECODERS[DATETIME] = times.decode_datetime
    _DECODERS[DATE] = times.decode_date
    _DECODERS[TIME] = times.decode_time
    _DECODERS[TIMEDELTA] = times.decode_timedelta


def _load_uuid() -> None:
    from uuid import UUID

    _ENCODERS[UUID] = (UUID_BYTES, lambda value, _pack: value.bytes)
    _DECODERS[UUID_BYTES] = lambda payload, _unpack: UUID(bytes=payload)


def _load_decimal() -> None:
    from decimal import Decimal

    def text_of(value: Decimal) -> str:
        # The context may ask for a small "e"; nothing else of str() depends on it.
        return str(value).replace("e", "E")

    def decode(payload: bytes, _unpack: Unpack) -> object:
        text = payload.decode("ascii")
        value = Decimal(text)
        if text_of(value) != text:
            raise ValueError("not a number as it is written here")
        return value

    _ENCODERS[Decimal] = (DECIMAL, lambda value, _pack: text_of(value).encode())
    _DECODERS[DECIMAL] = decode


def _load_fraction() -> None:
    from fractions import Fraction

    def encode(value: Fraction, pack: Pack) -> bytes:
        return pack([value.numerator, value.denominator], 0)

    def decode(payload: bytes, unpack: Unpack) -> object:
        numerator, denominator = _list(payload, unpack)
        if type(numerator) is not int or type(denominator) is not int:
            raise ValueError("not two integers")
        value = Fraction(numerator, denominator)
        if value.denominator != denominator:
            raise ValueError("not reduced")
        return value

    _ENCODERS[Fraction] = (FRACTION, encode)
    _DECODERS[FRACTION] = decode


def _load_paths() -> None:
    from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath

    flavours = (PurePosixPath, PureWindowsPath, PosixPath, WindowsPath)

    def encode(value: PurePath, _pack: Pack) -> bytes:
        text = str(value)
        if type(value)(text) != value:
            raise RefusedError(f"the path {value!r}, which its text does not give back,")
        return bytes((flavours.index(type(value)),)) + encode_text(text)

    def decode(payload: bytes, _unpack: Unpack) -> object:
        flavour = payload[0]
        if flavour == (3 if os.name == "posix" else 2):
            flavour -= 2  # a path of the other system can be read here, but not opened
        return flavours[flavour](decode_text(payload[1:]))

    for flavour in flavours:
        _ENCODERS[flavour] = (PATH, encode)
    _DECODERS[PATH] = decode


_LOAD_BY_MODULE = {
    "datetime": _load_times,
    "uuid": _load_uuid,
    "decimal": _load_decimal,
    "fractions": _load_fraction,
    "pathlib": _load_paths,
}
_LOAD_BY_CODE = {
    **dict.fromkeys((DATETIME, DATE, TIME, TIMEDELTA), _load_times),
    UUID_BYTES: _load_uuid,
    DECIMAL: _load_decimal,
    FRACTION: _load_fraction,
    PATH: _load_paths,
}
