"""Pack values for storage with secrets taken out: nothing else turns a job's values into bytes."""

from __future__ import annotations

from tachograph.domain.errors import SecretLeftError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.ports import Codec, Redactor


class Packing:
    """A codec that never stores a known secret (G13)."""

    def __init__(self, codec: Codec, redactor: Redactor | None = None) -> None:
        self._codec = codec
        self._redactor = redactor

    def hide(self, redactor: Redactor | None) -> None:
        """Take out what this redactor knows, from now on."""
        self._redactor = redactor

    def pack(self, value: Any, root: str) -> bytes:
        """Return the bytes of a value without its secrets.

        Raises UnstorableValueError naming the place below `root`, and SecretLeftError when a
        secret sits where it cannot be taken out, such as inside a custom type.
        """
        data = self._codec.pack(value, root)
        if self._redactor is None or not self._redactor.touches(data):
            return data
        data = self._codec.pack(self._redactor.redact(value), root)
        if self._redactor.touches(data):
            raise SecretLeftError(root or "the event")
        return data

    def unpack(self, data: bytes) -> Any:
        """Return the value of packed bytes."""
        return self._codec.unpack(data)

    def redacted(self, value: Any) -> Any:
        """Return a value without its secrets, for what is stored elsewhere."""
        return value if self._redactor is None else self._redactor.redact(value)
