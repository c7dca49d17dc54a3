"""A gate that transactions pass, and that whoever moves their memory can close. Knows no LMDB."""

from __future__ import annotations

from threading import Condition, Lock, get_ident


class Gate:
    """Count the threads inside; let one thread keep all others out.

    A thread that is inside may enter again even while the gate closes: the closer waits for it.
    """

    __slots__ = ("_changed", "_closed_by", "_inside", "_lock")

    def __init__(self) -> None:
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._inside: dict[int, int] = {}
        self._closed_by = 0

    def enter(self) -> None:
        """Go in, after waiting for the gate to be open."""
        thread = get_ident()
        with self._lock:
            while self._closed_by not in (0, thread) and thread not in self._inside:
                self._changed.wait()
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
            if self._closed_by:
                self._changed.notify_all()

    def is_inside(self) -> bool:
        """Tell whether this thread is inside: then it must not close the gate."""
        return get_ident() in self._inside

    def close(self, seconds: float | None = None) -> bool:
        """Keep others out and wait until nobody is inside, or until the time is over.

        Returns False if the time was over: the gate is as it was.
        """
        with self._lock:
            if not self._changed.wait_for(lambda: not self._closed_by, seconds):
                return False
            self._closed_by = get_ident()
            if self._changed.wait_for(lambda: not self._inside, seconds):
                return True
            self._open(get_ident())
            return False

    def open(self) -> None:
        """Let the others in again, if this thread closed the gate."""
        with self._lock:
            self._open(get_ident())

    def _open(self, thread: int) -> None:
        if self._closed_by == thread:
            self._closed_by = 0
            self._changed.notify_all()
