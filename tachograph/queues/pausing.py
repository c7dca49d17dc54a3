"""How long one worker leaves a type of job alone that keeps failing. Records nothing, never sleeps.

Each job waits by itself after it failed; this keeps a worker from running through a whole queue
of jobs that fail for one common reason. One job that fails again and again pauses nothing but
itself: else it would hold up all others of its type.
"""

from __future__ import annotations

from threading import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tachograph.domain.queue_settings import Backoff

SECOND_US = 1_000_000
_MOST = 64
"""Failing jobs that are told apart: by then any pause is as long as it gets."""


class Pauses:
    """Which jobs failed in a row, by queue and type, and until when each is left alone.

    Threads share it. `now` gives seconds of a clock that is never set; `backoff` says how a queue
    waits.
    """

    def __init__(
        self,
        backoff: Callable[[str], Backoff],
        now: Callable[[], float],
        random: Callable[[], float],
    ) -> None:
        self._backoff = backoff
        self._now = now
        self._random = random
        self._failing: dict[tuple[str, str], set[str]] = {}
        self._until: dict[tuple[str, str], float] = {}
        self._lock = Lock()

    def failed(self, queue: str, kind: str, job_id: str) -> float:
        """Count a failure and return for how many seconds its type is left alone.

        The second job that fails in a row makes it the first wait of the backoff, each further
        one the next.
        """
        with self._lock:
            key = queue, kind
            failing = self._failing.setdefault(key, set())
            if len(failing) < _MOST:
                failing.add(job_id)
            delay_us = self._backoff(queue).delay_us(len(failing) - 1, self._random)
            self._until[key] = self._now() + delay_us / SECOND_US
            return delay_us / SECOND_US

    def reset(self, queue: str, kind: str) -> None:
        """Forget the failures of a type: a job of it did not fail, or is dead."""
        with self._lock:
            self._forget((queue, kind))

    def reset_idle(self, queues: Sequence[str]) -> None:
        """Forget the failures of what was asked for in these queues and had no job."""
        with self._lock:
            now = self._now()
            for key in [key for key, until in self._until.items() if until <= now]:
                if key[0] in queues:
                    self._forget(key)

    def clear(self) -> None:
        """Forget all failures."""
        with self._lock:
            self._failing.clear()
            self._until.clear()

    def of(self, queue: str) -> frozenset[str]:
        """Return the types of a queue that are left alone now."""
        with self._lock:
            now = self._now()
            places = [place for place, until in self._until.items() if until > now]
            return frozenset(kind for of, kind in places if of == queue)

    def next(self) -> float | None:
        """Return when the first of them ends, by the clock; None when there is none."""
        with self._lock:
            now = self._now()
            return min((until for until in self._until.values() if until > now), default=None)

    def _forget(self, key: tuple[str, str]) -> None:
        self._failing.pop(key, None)
        self._until.pop(key, None)
