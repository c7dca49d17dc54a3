"""A reference to a payload kept outside the log. It never holds or reads the payload itself."""

from __future__ import annotations

_HEX = "0123456789abcdef"


class BlobRef:
    """Name a payload by the BLAKE2b-256 of its bytes.

    `digest` is 64 lower-case hexadecimal characters, `size` the length of the payload in bytes.
    Raises `ValueError` for anything else.
    """

    __slots__ = ("digest", "size")

    def __init__(self, digest: str, size: int) -> None:
        if len(digest) != 64 or digest.strip(_HEX):
            raise ValueError(f"A blob digest is 64 lower-case hex characters, not {digest!r}.")
        if not 0 <= size < 1 << 64:
            raise ValueError(f"A blob size is a number of bytes from 0 to 2**64 - 1, not {size!r}.")
        self.digest = digest
        self.size = size

    def __eq__(self, other: object) -> bool:
        if type(other) is not BlobRef:
            return NotImplemented
        return self.digest == other.digest and self.size == other.size

    def __hash__(self) -> int:
        return hash((self.digest, self.size))

    def __repr__(self) -> str:
        return f"BlobRef(digest={self.digest!r}, size={self.size})"
