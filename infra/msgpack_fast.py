"""The codec over msgpack's C extension, for long work. Gives the bytes of `msgpack_plain` or none.

The C packer is laxer than a codec must be: it stores a bytearray or memoryview as bytes, takes
its own `ExtType` and `Timestamp` from the caller, and nests deeper. So the types of a value are
looked over first. Whatever is unusual or refused is left to `msgpack_plain`, which decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgpack import (
    ExtType,
    Packer,
    Timestamp,
    unpackb,
)

from tachograph.domain.errors import MalformedValueError
from tachograph.infra.msgpack_plain import (
    MAX_DEPTH,
    MAX_PACKED_BYTES,
    NATIVE_TYPES,
    UNDECIDED,
    RefusedError,
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from tachograph.infra.codec_extensions import Extensions

_LEAVES = frozenset(NATIVE_TYPES - {list, dict})
_SEQUENCES = frozenset({list, tuple, set, frozenset})
_TRAPS = frozenset({bytearray, memoryview, ExtType, Timestamp})
_NOTHING: frozenset[type] = frozenset()

_OPENERS = bytes((*range(0x80, 0xA0), *range(0xC7, 0xCA), *range(0xD4, 0xD9), *range(0xDC, 0xE0)))
"""The bytes that begin a list, a dict or an extension: so many of them, so deep at most."""

_TIMESTAMPS = (b"\xd6\xff", b"\xd7\xff", b"\x04\xff", b"\x08\xff", b"\x0c\xff")
"""How heads of the extension -1 end, which msgpack reads by itself and this codec has not."""

_KEPT_PACKERS = 8
_KEPT_BYTES = 1024 * 1024

_DOUBTS = (OverflowError, RecursionError, RefusedError, TypeError, ValueError)


def fast_codec(extensions: Extensions) -> FastCodec | None:
    """Return the fast codec, or None where msgpack has no C extension."""
    compiled = Packer.__module__ == "msgpack._cmsgpack"
    return FastCodec(extensions) if compiled else None


class FastCodec:
    """Packs and unpacks most values; leaves the others to `msgpack_plain`.

    A `Packer` serves one caller at a time, and nested values need another one: the idle ones
    wait in a list, whose `append` and `pop` are atomic.
    """

    __slots__ = ("_extensions", "_idle")

    def __init__(self, extensions: Extensions) -> None:
        self._extensions = extensions
        self._idle: list[Packer] = []

    def pack(self, value: object) -> bytes | None:
        """Return the packed form, or None to leave the decision to `msgpack_plain`."""
        try:
            if not is_usual(value, 0, _TRAPS):
                return None
            data = self._pack(value)
        except _DOUBTS:
            return None
        if len(data) > MAX_PACKED_BYTES or (self._extensions.customised and may_be_deep(data)):
            return None
        return data

    def unpack(self, data: bytes) -> object:
        """Return the value, or `UNDECIDED` to leave the decision to `msgpack_plain`."""
        if type(data) is not bytes or len(data) > MAX_PACKED_BYTES:
            return UNDECIDED
        if b"\xff" in data and holds_timestamp(data):
            return UNDECIDED
        try:
            value = self._unpack(data)
        except MalformedValueError:
            raise
        except _DOUBTS:
            return UNDECIDED
        if may_be_deep(data) and not is_usual(value, 0, _NOTHING):
            return UNDECIDED
        return value

    def _pack(self, value: object) -> bytes:
        try:
            packer = self._idle.pop()
        except IndexError:
            packer = Packer(default=self._extend, strict_types=True)
        data: bytes = packer.pack(value)
        if len(self._idle) < _KEPT_PACKERS and len(data) < _KEPT_BYTES:
            self._idle.append(packer)
        return data

    def _extend(self, value: object) -> ExtType:
        return ExtType(*self._extensions.encode(value, self._pack_part))

    def _pack_part(self, part: object, _levels: int) -> bytes:
        if self._extensions.customised and not is_usual(part, 0, _TRAPS):
            raise RefusedError("a part of a custom value")
        return self._pack(part)

    def _unpack(self, data: bytes) -> object:
        return unpackb(data, ext_hook=self._restore, strict_map_key=False)

    def _restore(self, code: int, payload: bytes) -> object:
        return self._extensions.decode(code, payload, self._unpack)


def is_usual(value: Any, depth: int, unusual: frozenset[type]) -> bool:
    """Say whether a value `depth` levels deep holds no `unusual` type and nothing too deep."""
    kind = type(value)
    if kind is dict:
        return (
            depth < MAX_DEPTH
            and _are_usual(value, depth + 1, unusual)
            and _are_usual(value.values(), depth + 1, unusual)
        )
    if kind in _SEQUENCES:
        return depth < MAX_DEPTH and _are_usual(value, depth + 1, unusual)
    return kind not in unusual


def _are_usual(parts: Collection[Any], depth: int, unusual: frozenset[type]) -> bool:
    if not _LEAVES.issuperset(map(type, parts)):
        for part in parts:
            if type(part) not in _LEAVES and not is_usual(part, depth, unusual):
                return False
    return True


def may_be_deep(data: bytes) -> bool:
    """Say whether packed bytes could nest more than `MAX_DEPTH` levels."""
    size = len(data)
    return size > MAX_DEPTH and size - len(data.translate(None, _OPENERS)) > MAX_DEPTH


def holds_timestamp(data: bytes) -> bool:
    """Say whether packed bytes could hold the one extension that msgpack reads by itself."""
    return any(head in data for head in _TIMESTAMPS)
