"""The msgpack format in plain Python: it starts at once and refuses exactly. Never imports msgpack.

Importing the msgpack package costs as much as starting Python does, so a command that packs one
event uses these functions. They also are the definition: `msgpack_fast` may answer only where it
gives the same bytes and the same values.
"""

from __future__ import annotations

from struct import Struct

from tachograph.domain.errors import MalformedValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Encode = Callable[[object, int], tuple[int, bytes]]
    """Gives the extension code and payload of a value that stands `int` levels deep."""
    Decode = Callable[[int, bytes, int], object]
    """Gives the value of an extension code and payload that stand `int` levels deep."""
    Writer = Callable[[Any, bytearray, int, Encode], None]
    Reader = Callable[[int, bytes, int, int, Decode], tuple[object, int]]

MAX_DEPTH = 64
"""How many containers (list, tuple, set, dict, custom value) may stand inside each other.

A level takes up to eleven frames of Python's stack, which has 1000.
"""

MAX_PACKED_BYTES = 256 * 1024 * 1024
"""How long a packed value may be. LMDB and msgpack end at 4 GiB; larger payloads are blobs."""

UNDECIDED = object()
"""Answer of `msgpack_fast` that leaves the decision to this module."""

_ENDS_EARLY = "they end too early"
_FLOAT = Struct(">d")
_FLOAT32 = Struct(">f")


class RefusedError(Exception):
    """A value has no exact stored form; `steps` lead to it, the innermost first."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind
        self.steps: list[str] = []


class TooDeepError(RefusedError):
    """A value stands inside more than `MAX_DEPTH` others, perhaps inside itself."""

    def __init__(self) -> None:
        super().__init__(f"a value nested more than {MAX_DEPTH} levels deep")


def write(value: object, out: bytearray, depth: int, encode: Encode) -> None:
    """Append the packed form of `value`, which stands inside `depth` others, to `out`.

    Raises `RefusedError` for a value without an exact form.
    """
    writer = _WRITERS.get(type(value))
    if writer is None:
        _write_ext(out, *encode(value, depth))
    else:
        writer(value, out, depth, encode)


def read(data: bytes, at: int, depth: int, decode: Decode) -> tuple[object, int]:
    """Return the value whose packed form begins at `at`, and where that form ends.

    Raises `MalformedValueError`, or `IndexError` where the data end early.
    """
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    if byte < 0x90:
        return _read_dict(byte & 0x0F, data, at, depth, decode)
    if byte < 0xA0:
        return _read_list(byte & 0x0F, data, at, depth, decode)
    if byte < 0xC0:
        return _read_str(byte & 0x1F, data, at, depth, decode)
    if byte >= 0xE0:
        return byte - 0x100, at
    reader, width = _READERS[byte - 0xC0]
    end = _end(data, at, width)
    return reader(int.from_bytes(data[at:end]), data, end, depth, decode)


def read_whole(data: bytes, depth: int, decode: Decode) -> object:
    """Return the value whose packed form `data` is, no byte more and no byte less.

    Raises `MalformedValueError`.
    """
    try:
        value, end = read(data, 0, depth, decode)
    except IndexError:
        raise MalformedValueError(_ENDS_EARLY) from None
    if end != len(data):
        raise MalformedValueError(f"they go on after the value, from byte {end}")
    return value


def head_of_list(count: int) -> bytes:
    """Return what stands before so many packed items to make them a packed list."""
    out = bytearray()
    _write_count(out, count, 0, 0x90, 0xDC)
    return bytes(out)


def check_size(size: int) -> None:
    """Raise `RefusedError` when so many bytes are too many for one value."""
    if size > MAX_PACKED_BYTES:
        raise RefusedError(f"a value of {size} bytes or more (the bound is {MAX_PACKED_BYTES})")


# Writing. The shortest form is the only form, so that equal values have equal bytes.


def _write_none(_value: object, out: bytearray, _depth: int, _encode: Encode) -> None:
    out.append(0xC0)


def _write_bool(value: object, out: bytearray, _depth: int, _encode: Encode) -> None:
    out.append(0xC3 if value else 0xC2)


def _write_float(value: float, out: bytearray, _depth: int, _encode: Encode) -> None:
    out.append(0xCB)
    out += _FLOAT.pack(value)


def _write_int(value: int, out: bytearray, depth: int, encode: Encode) -> None:
    if -0x20 <= value < 0x80:
        out.append(value & 0xFF)
    elif 0 <= value < 1 << 64:
        power = (value > 0xFF) + (value > 0xFFFF) + (value > 0xFFFF_FFFF)
        out.append(0xCC + power)
        out += value.to_bytes(1 << power)
    elif -(1 << 63) <= value < 0:
        power = (value < -(1 << 7)) + (value < -(1 << 15)) + (value < -(1 << 31))
        out.append(0xD0 + power)
        out += value.to_bytes(1 << power, signed=True)
    else:
        _write_ext(out, *encode(value, depth))


def _write_str(value: str, out: bytearray, depth: int, encode: Encode) -> None:
    try:
        data = value.encode()
    except UnicodeEncodeError:  # surrogates: not text in any Unicode encoding
        _write_ext(out, *encode(value, depth))
        return
    size = len(data)
    if size < 0x20:
        out.append(0xA0 | size)
    else:
        _write_size(out, size, 0xD9, 0xDA, 0xDB)
    out += data


def _write_bytes(value: bytes, out: bytearray, _depth: int, _encode: Encode) -> None:
    _write_size(out, len(value), 0xC4, 0xC5, 0xC6)
    out += value


def _write_list(value: list[object], out: bytearray, depth: int, encode: Encode) -> None:
    _write_count(out, len(value), depth, 0x90, 0xDC)
    for index, item in enumerate(value):
        try:
            write(item, out, depth + 1, encode)
        except RefusedError as refused:
            refused.steps.append(f"[{index}]")
            raise
    check_size(len(out))


def _write_dict(value: dict[object, object], out: bytearray, depth: int, encode: Encode) -> None:
    _write_count(out, len(value), depth, 0x80, 0xDE)
    for index, (key, item) in enumerate(value.items()):
        inside = False
        try:
            write(key, out, depth + 1, encode)
            inside = True
            write(item, out, depth + 1, encode)
        except RefusedError as refused:
            refused.steps.append(_step_of(key) if inside else f".keys()[{index}]")
            raise
    check_size(len(out))


def _step_of(key: object) -> str:
    from tachograph.infra.codec_places import step_of

    return step_of(key)


def _write_ext(out: bytearray, code: int, payload: bytes) -> None:
    size = len(payload)
    if size in _FIXED_EXT:
        out.append(_FIXED_EXT[size])
    else:
        _write_size(out, size, 0xC7, 0xC8, 0xC9)
    out.append(code)
    out += payload


def _write_size(out: bytearray, size: int, short: int, middle: int, long: int) -> None:
    if size < 0x100:
        out.append(short)
        out.append(size)
    elif size < 0x10000:
        out.append(middle)
        out += size.to_bytes(2)
    else:
        check_size(size)
        out.append(long)
        out += size.to_bytes(4)


def _write_count(out: bytearray, count: int, depth: int, fixed: int, middle: int) -> None:
    if depth >= MAX_DEPTH:
        raise TooDeepError
    if count < 0x10:
        out.append(fixed | count)
    elif count < 0x10000:
        out.append(middle)
        out += count.to_bytes(2)
    else:
        check_size(count)
        out.append(middle + 1)
        out += count.to_bytes(4)


_FIXED_EXT = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}
_WRITERS: dict[type, Writer] = {
    str: _write_str,
    int: _write_int,
    type(None): _write_none,
    bool: _write_bool,
    float: _write_float,
    bytes: _write_bytes,
    list: _write_list,
    dict: _write_dict,
}

NATIVE_TYPES = frozenset(_WRITERS)
"""The types that msgpack itself has a form for."""


# Reading. Every function gets the number that stood in the head, and returns value and end.


def _end(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise MalformedValueError(_ENDS_EARLY)
    return at + size


def _read_list(
    count: int, data: bytes, at: int, depth: int, decode: Decode
) -> tuple[list[object], int]:
    _check_depth(depth)
    items = []
    for _ in range(count):
        item, at = read(data, at, depth + 1, decode)
        items.append(item)
    return items, at


def _read_dict(
    count: int, data: bytes, at: int, depth: int, decode: Decode
) -> tuple[dict[object, object], int]:
    _check_depth(depth)
    items: dict[object, object] = {}
    for _ in range(count):
        key, at = read(data, at, depth + 1, decode)
        item, at = read(data, at, depth + 1, decode)
        try:
            items[key] = item
        except TypeError:
            raise MalformedValueError(f"a {type(key).__name__} stands as a key") from None
    return items, at


def _check_depth(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise MalformedValueError(f"they nest more than {MAX_DEPTH} levels deep")


def _read_str(size: int, data: bytes, at: int, _depth: int, _decode: Decode) -> tuple[str, int]:
    end = _end(data, at, size)
    try:
        return data[at:end].decode(), end
    except UnicodeDecodeError as error:
        raise MalformedValueError(f"a text is not UTF-8 ({error.reason})") from None


def _read_bytes(size: int, data: bytes, at: int, _depth: int, _decode: Decode) -> tuple[bytes, int]:
    end = _end(data, at, size)
    return data[at:end], end


def _read_ext(size: int, data: bytes, at: int, depth: int, decode: Decode) -> tuple[object, int]:
    end = _end(data, at, size + 1)
    return decode(data[at], data[at + 1 : end], depth), end


def _read_uint(number: int, _data: bytes, at: int, _depth: int, _decode: Decode) -> tuple[int, int]:
    return number, at


def _read_float(
    _number: int, data: bytes, at: int, _depth: int, _decode: Decode
) -> tuple[float, int]:
    return _FLOAT.unpack_from(data, at - 8)[0], at


def _read_float32(
    _number: int, data: bytes, at: int, _depth: int, _decode: Decode
) -> tuple[float, int]:
    return _FLOAT32.unpack_from(data, at - 4)[0], at


def _read_never(
    _number: int, _data: bytes, _at: int, _depth: int, _decode: Decode
) -> tuple[object, int]:
    raise MalformedValueError("the byte 0xC1 begins no value")


def _constant(value: object) -> Reader:
    return lambda _number, _data, at, _depth, _decode: (value, at)


def _signed(bits: int) -> Reader:
    half, whole = 1 << bits - 1, 1 << bits
    return lambda number, _data, at, _depth, _decode: (
        number if number < half else number - whole,
        at,
    )


def _fixed_ext(size: int) -> Reader:
    return lambda _number, data, at, depth, decode: _read_ext(size, data, at, depth, decode)


_READERS: tuple[tuple[Reader, int], ...] = (
    (_constant(value=None), 0),  # 0xC0
    (_read_never, 0),
    (_constant(value=False), 0),
    (_constant(value=True), 0),
    *((_read_bytes, width) for width in (1, 2, 4)),  # 0xC4
    *((_read_ext, width) for width in (1, 2, 4)),  # 0xC7
    (_read_float32, 4),  # 0xCA: never written here
    (_read_float, 8),
    *((_read_uint, width) for width in (1, 2, 4, 8)),  # 0xCC
    *((_signed(bits), bits // 8) for bits in (8, 16, 32, 64)),  # 0xD0
    *((_fixed_ext(size), 0) for size in (1, 2, 4, 8, 16)),  # 0xD4
    *((_read_str, width) for width in (1, 2, 4)),  # 0xD9
    *((_read_list, width) for width in (2, 4)),  # 0xDC
    *((_read_dict, width) for width in (2, 4)),  # 0xDE
)
