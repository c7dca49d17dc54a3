"""Values to bytes and back, exactly. Never guesses: a value without an exact form is refused.

The bytes are msgpack; `codec_types` has the table of the extension codes, which are frozen. Equal
values have equal bytes: sets are sorted, and a dict keeps the order of its keys.
"""

from __future__ import annotations

from tachograph.domain.errors import MalformedValueError, UnstorableValueError
from tachograph.infra import msgpack_plain as plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from tachograph.infra.codec_extensions import Extensions
    from tachograph.infra.msgpack_fast import FastCodec

    T = TypeVar("T")

PLAIN_BYTES = 128 * 1024
"""Plain Python spends on so many bytes the 10 ms that importing msgpack takes."""


class Codec:
    """Packs values to bytes and unpacks them. May be shared by threads.

    Exact, in type and value, are: None, bool, int, float, str, bytes, bytearray, list, tuple,
    set, frozenset, dict (with any of these as key that Python allows), datetime, date, time,
    timedelta, UUID, Decimal, Fraction, paths of pathlib, BlobRef, and registered custom types.
    A subclass of one of them is a custom type. A value may nest 64 levels deep and take 256 MiB
    (`msgpack_plain.MAX_DEPTH`, `MAX_PACKED_BYTES`); both ways refuse more.

    With `keep_custom`, a value of a custom type that is not registered unpacks to a
    `CustomValue`, which packs to the same bytes. After `plain_bytes` bytes the codec imports
    msgpack's C extension, which costs as much as starting Python and is then faster.
    """

    __slots__ = (
        "_by_name",
        "_by_type",
        "_extensions",
        "_fast",
        "_keep_custom",
        "_plain_bytes_left",
    )

    def __init__(self, *, keep_custom: bool = False, plain_bytes: int = PLAIN_BYTES) -> None:
        self._by_type: dict[type, tuple[str, Callable[[Any], object]]] = {}
        self._by_name: dict[str, tuple[type, Callable[[Any], object]]] = {}
        self._keep_custom = keep_custom
        self._extensions: Extensions | None = None
        self._fast: FastCodec | None = None
        self._plain_bytes_left = plain_bytes

    def register(
        self,
        kind: type[T],
        name: str,
        encode: Callable[[T], object],
        decode: Callable[[Any], T],
    ) -> None:
        """Store values of exactly this type as `name` and what `encode` gives.

        `name` is part of the stored bytes: it must never change. A registered encoder goes before
        the built-in one, as for datetime. Raises `ValueError` for a type that msgpack itself
        stores, as str, and for a name that another type has.
        """
        if kind in plain.NATIVE_TYPES:
            raise ValueError(
                f"{kind.__name__} is stored by msgpack itself and cannot be registered."
            )
        holder = self._by_name.get(name, (kind, decode))[0]
        if holder is not kind:
            raise ValueError(f"The name {name!r} is taken by {holder!r}: choose another.")
        self._by_type[kind] = name, encode
        self._by_name[name] = kind, decode

    def pack(self, value: Any, root: str = "value") -> bytes:
        """Return the bytes of a value.

        Raises `UnstorableValueError` with the place of the part that has no exact stored form,
        below `root`: `inputs.files[3].mtime`.
        """
        if self._fast is not None:
            data = self._fast.pack(value)
            if data is not None:
                return data
        return self._pack_plainly(value, root)

    def unpack(self, data: bytes) -> Any:
        """Return the value of bytes that `pack` gave.

        Raises `MalformedValueError` for other bytes, `UnregisteredTypeError` for a custom type
        that is not registered.
        """
        if self._fast is None:
            self._count(len(data))
        if self._fast is not None:
            value = self._fast.unpack(data)
            if value is not plain.UNDECIDED:
                return value
        return self._unpack_plainly(data)

    def _pack_plainly(self, value: object, root: str) -> bytes:
        out = bytearray()
        try:
            plain.write(value, out, 0, self._encode)
            plain.check_size(len(out))
        except plain.RefusedError as refused:
            raise _explain(value, root, refused) from None
        self._count(len(out))
        return bytes(out)

    def _unpack_plainly(self, data: bytes) -> object:
        if len(data) > plain.MAX_PACKED_BYTES:
            raise MalformedValueError(f"{len(data)} bytes are more than a value may have")
        return plain.read_whole(bytes(data), 0, self._decode)

    def _encode(self, value: object, depth: int) -> tuple[int, bytes]:
        def pack(part: object, levels: int) -> bytes:
            if levels and depth >= plain.MAX_DEPTH:
                raise plain.TooDeepError
            out = bytearray()
            plain.write(part, out, depth + levels, self._encode)
            return bytes(out)

        return self._load_extensions().encode(value, pack)

    def _decode(self, code: int, payload: bytes, depth: int) -> object:
        def unpack(part: bytes) -> object:
            return plain.read_whole(part, depth, self._decode)

        return self._load_extensions().decode(code, payload, unpack)

    def _count(self, size: int) -> None:
        self._plain_bytes_left -= size
        if self._fast is None and self._plain_bytes_left < 0:
            from tachograph.infra.msgpack_fast import fast_codec

            self._fast = fast_codec(self._load_extensions())
            self._plain_bytes_left = PLAIN_BYTES

    def _load_extensions(self) -> Extensions:
        if self._extensions is None:
            from tachograph.infra.codec_extensions import Extensions

            self._extensions = Extensions(
                self._by_type, self._by_name, keep_custom=self._keep_custom
            )
        return self._extensions


def _explain(value: object, root: str, refused: plain.RefusedError) -> UnstorableValueError:
    from tachograph.infra.codec_places import find_cycle, place_of

    if isinstance(refused, plain.TooDeepError):
        cycle = find_cycle(value)
        if cycle is not None:
            steps, name = cycle
            return UnstorableValueError(place_of(root, steps), f"a {name} that contains itself")
    return UnstorableValueError(place_of(root, refused.steps), refused.kind)
