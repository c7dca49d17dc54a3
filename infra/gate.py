"""A gate that transactions pass, and that whoever moves their memory can close. Knows no LMDB."""

from __future__ import annotations

from _thread import allocate_lock, get_ident  # threading costs a short command 3 ms
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Lock


class Gate:
    """Count the threads inside; let one thread keep all others out.

    A thread that is inside may enter again even while the gate closes: the closer waits for it.
    """

    __slots__ = ("_closed_by", "_inside", "_lock", "_waiting")

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._waiting: list[Lock] = []
        self._inside: dict[int, int] = {}
        self._closed_by = 0

    def enter(self) -> None:
        """Go in, after waiting for the gate to be open."""
        thread = get_ident()
        with self._lock:
            while self._closed_by not in (0, thread) and thread not in self._inside:
                self._wait(None)
            self._inside[thread] = self._inside.get(thread, 0) + 1

    def leave(self) -> None:
        """Go out, once for each time of going in."""
        thread = get_ident()
        with self._lock:
            left = self._inside[thread] - 1
            if left:
                self._inside[thread] = left
            else:
                del self._inside[thread]
            if self._waiting:
                self._wake()

    def is_inside(self) -> bool:
        """Tell whether this thread is inside: then it must not close the gate."""
        return get_ident() in self._inside

    def close(self, seconds: float | None = None) -> bool:
        """Keep others out and wait until nobody is inside, or until the time is over.

        Returns False if the time was over: the gate is as it was.
        """
        end = None if seconds is None else monotonic() + seconds
        with self._lock:
            while self._closed_by:
                if not self._wait(end):
                    return False
            self._closed_by = get_ident()
            while self._inside:
                if not self._wait(end):
                    self._open()
                    return False
            return True

    def open(self) -> None:
        """Let the others in again, if this thread closed the gate."""
        with self._lock:
            if self._closed_by == get_ident():
                self._open()

    def _open(self) -> None:
        self._closed_by = 0
        self._wake()

    def _wait(self, end: float | None) -> bool:
        """Give up the lock until `_wake`; return False when the time is over."""
        left = -1 if end is None else end - monotonic()
        if end is not None and left <= 0:
            return False
        waiter = allocate_lock()
        waiter.acquire()
        self._waiting.append(waiter)
        self._lock.release()
        try:
            waiter.acquire(timeout=left)
        finally:
            self._lock.acquire()
        return True

    def _wake(self) -> None:
        for waiter in self._waiting:
            waiter.release()
        self._waiting.clear()
