"""Ids of jobs: UUIDs of version 7 (RFC 9562), each greater than the one before it in a process."""

from __future__ import annotations

import os
from _thread import allocate_lock  # threading costs a short command 3 ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_COUNTER_BITS = 12
_RANDOM_BITS = 62


class JobIds:
    """Makes ids. May be shared by threads."""

    def __init__(
        self,
        now_us: Callable[[], int],
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._now_us = now_us
        self._random_bytes = random_bytes
        self._lock = allocate_lock()
        self._last = 0

    def __call__(self) -> str:
        """Return a new id as text.

        Its first 48 bits are milliseconds since 1970, the next ones the fraction of that: ids
        sort by time, which keeps the pages that the log writes side by side.
        """
        now_us = max(0, self._now_us())
        with self._lock:
            # Milliseconds and a 12-bit fraction of one (RFC 9562, section 6.2, method 3).
            stamp = (now_us // 1_000 << _COUNTER_BITS) | (now_us % 1_000) * 4096 // 1_000
            self._last = stamp = max(stamp, self._last + 1)
        tail = int.from_bytes(self._random_bytes(8), "big") & ((1 << _RANDOM_BITS) - 1)
        milliseconds, fraction = stamp >> _COUNTER_BITS & (1 << 48) - 1, stamp & 0xFFF
        number = milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | tail
        text = f"{number:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
