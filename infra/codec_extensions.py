"""What msgpack has no form for: built-in types by `codec_types`, and custom types by name.

Holds no registry of its own: a codec lends its.
"""

from __future__ import annotations

from tachograph.domain.errors import MalformedValueError, UnregisteredTypeError
from tachograph.infra.codec_types import CUSTOM, decode_type, encode_type
from tachograph.infra.msgpack_plain import RefusedError, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.infra.codec_types import Pack, Unpack

_PAIR = b"\x92"
"""Head of a packed list of two."""


class CustomValue:
    """A value of a custom type as it is stored: `data` is the packed form that its encoder gave.

    A codec with `keep_custom` unpacks to it, so that events can be copied without their types.
    """

    __slots__ = ("data", "name")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data

    def __eq__(self, other: object) -> bool:
        if type(other) is not CustomValue:
            return NotImplemented
        return self.name == other.name and self.data == other.data

    def __hash__(self) -> int:
        return hash((self.name, self.data))

    def __repr__(self) -> str:
        return f"CustomValue({self.name!r}, {self.data!r})"


class Extensions:
    """Turns values into extension codes with payloads, and back."""

    __slots__ = ("_by_name", "_by_type", "_keep_custom")

    def __init__(
        self,
        by_type: dict[type, tuple[str, Callable[[Any], object]]],
        by_name: dict[str, tuple[type, Callable[[Any], object]]],
        *,
        keep_custom: bool,
    ) -> None:
        self._by_type = by_type
        self._by_name = by_name
        self._keep_custom = keep_custom

    @property
    def customised(self) -> bool:
        """Whether a custom type is registered."""
        return bool(self._by_type)

    def encode(self, value: object, pack: Pack) -> tuple[int, bytes]:
        """Return the code and payload of a value. `pack` packs a part of it.

        Raises `RefusedError` when its type has no exact stored form.
        """
        custom = self._by_type.get(type(value))
        if custom is not None:
            name, encode = custom
            return CUSTOM, _encode_custom(name, encode(value), pack)
        if type(value) is CustomValue:
            return CUSTOM, _PAIR + pack(value.name, 0) + value.data
        return encode_type(value, pack)

    def decode(self, code: int, payload: bytes, unpack: Unpack) -> object:
        """Return the value of a code and payload. `unpack` unpacks a part of it.

        Raises `MalformedValueError` when they belong to no value, `UnregisteredTypeError` when
        to one of a custom type that is not registered.
        """
        if code != CUSTOM:
            return decode_type(code, payload, unpack)
        name, encoded = _decode_custom(payload, unpack)
        if name in self._by_name:
            return self._restore(name, encoded)
        if self._keep_custom:
            return CustomValue(name, payload[_end_of_name(payload, unpack) :])
        raise UnregisteredTypeError(name)

    def _restore(self, name: str, encoded: object) -> object:
        try:
            return self._by_name[name][1](encoded)
        except Exception as error:
            reason = f"the decoder of the custom type {name!r} failed ({error!r})"
            raise MalformedValueError(reason) from error


def _encode_custom(name: str, encoded: object, pack: Pack) -> bytes:
    try:
        return pack([name, encoded], 0)
    except RefusedError as refused:
        refused.steps[-1:] = [f"<{name}>"]
        raise


def _decode_custom(payload: bytes, unpack: Unpack) -> tuple[str, object]:
    match unpack(payload):
        case [str() as name, encoded] if payload.startswith(_PAIR):
            return name, encoded
    raise MalformedValueError(f"extension {CUSTOM} does not hold a name and a value")


def _end_of_name(payload: bytes, unpack: Unpack) -> int:
    def decode(code: int, part: bytes, _depth: int) -> object:
        return decode_type(code, part, unpack)

    return read(payload, len(_PAIR), 0, decode)[1]
