"""Large values go to the blob store before the event that refers to them is recorded."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.domain.blobref import BlobRef
    from tachograph.packing import Packing
    from tachograph.ports import Blobs

INLINE_BYTES = 16 * 1024
"""Packed values up to this size stay in their event."""

_SMALL = (type(None), bool, int, float)


class Payloads:
    """Stores values inline or as blobs, and loads them back."""

    def __init__(
        self,
        packing: Packing,
        blobs: Callable[[], Blobs],
        *,
        inline_bytes: int = INLINE_BYTES,
    ) -> None:
        self._packing = packing
        self._blobs = blobs
        self._inline_bytes = inline_bytes

    def store(self, value: Any, root: str) -> Any:
        """Return what an event may hold: the value itself, or a reference to its durable blob.

        Raises UnstorableValueError, naming the place below `root`, before anything is written.
        """
        if isinstance(value, _SMALL):
            return value
        data = self._packing.pack(value, root)
        if len(data) <= self._inline_bytes:
            return value
        return self._blobs().put(data)

    def store_apart(self, value: Any, root: str) -> BlobRef:
        """Return a reference to the durable blob of a value, however small it is."""
        return self._blobs().put(self._packing.pack(value, root))

    def load(self, stored: Any) -> Any:
        """Return the value that `store` was given. Raises BlobMissingError."""
        from tachograph.domain.blobref import BlobRef

        if isinstance(stored, BlobRef):
            return self._packing.unpack(self._blobs().get(stored))
        return stored

    def redacted(self, value: Any) -> Any:
        """Return a value without its secrets, for what is kept outside the log (G13)."""
        return self._packing.redacted(value)

    def digest(self, value: Any, root: str) -> str:
        """Return the BLAKE2b-128 of a value's packed form, in hex: what "the same" means."""
        try:
            from _blake2 import blake2b
        except ImportError:  # another interpreter than CPython
            from hashlib import blake2b
        return blake2b(self._packing.pack(value, root), digest_size=16).hexdigest()
