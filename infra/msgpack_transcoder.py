"""The codec as a transcoder of the `eventsourcing` library. Adds no form of its own.

Name it in the environment of an application:
`TRANSCODER_TOPIC=tachograph.infra.msgpack_transcoder:MsgpackTranscoder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eventsourcing.persistence import Transcoder, TranscodingNotRegisteredError

from tachograph.domain.errors import UnregisteredTypeError, UnstorableValueError
from tachograph.infra.codec import Codec

if TYPE_CHECKING:
    from eventsourcing.persistence import Transcoding


class NotStorableError(UnstorableValueError, TranscodingNotRegisteredError):
    """A value has no exact stored form, and its type has no transcoding."""


class NotReadableError(UnregisteredTypeError, TranscodingNotRegisteredError):
    """Bytes hold a value of a type whose transcoding is not registered."""


class MsgpackTranscoder(Transcoder):
    """Encodes objects with a `Codec`: exactly, or not at all.

    UUID, Decimal, datetime, tuple and the other types of `Codec` need no transcoding; a
    registered one goes before the built-in form.
    """

    def __init__(self) -> None:
        self._codec = Codec()

    def register(self, transcoding: Transcoding) -> None:
        """Use a transcoding for its type. Raises `ValueError` when another type has its name."""
        self._codec.register(
            transcoding.type, transcoding.name, transcoding.encode, transcoding.decode
        )

    def encode(self, obj: Any) -> bytes:
        """Return the bytes of an object.

        Raises `NotStorableError`, a `TypeError`, with the place of the part that has no form.
        """
        try:
            return self._codec.pack(obj)
        except UnstorableValueError as error:
            raise NotStorableError(*error.args) from None

    def decode(self, data: bytes) -> Any:
        """Return the object of bytes that `encode` gave.

        Raises `NotReadableError` when a transcoding is missing, `MalformedValueError` for bytes
        that hold no object.
        """
        try:
            return self._codec.unpack(data)
        except UnregisteredTypeError as error:
            raise NotReadableError(*error.args) from error
