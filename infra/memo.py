"""Keep in memory what was used last, within a bound. Not safe between threads by itself."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Memo:
    """What was used last, up to so many bytes of it; at least one value."""

    __slots__ = ("_entries", "_most", "_size")

    def __init__(self, most: int) -> None:
        self._entries: dict[Any, tuple[int, Any]] = {}
        self._most = most
        self._size = 0

    def get(self, key: Any) -> Any:
        """Return a value, None for one that is not kept; the others go before it."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._entries[key] = entry
        return entry[1]

    def put(self, key: Any, value: Any, size: int) -> None:
        """Keep a value of so many bytes; those that were not used for longest go."""
        self._size += size - self._entries.pop(key, (0,))[0]
        self._entries[key] = size, value
        while self._size > self._most and len(self._entries) > 1:
            self._size -= self._entries.pop(next(iter(self._entries)))[0]

    def clear(self) -> None:
        """Keep nothing."""
        self._entries.clear()
        self._size = 0
