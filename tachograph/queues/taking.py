"""Which jobs a worker may take now, and when to look again. Takes none, and records nothing."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tachograph.queues.pausing import SECOND_US, Pauses
from tachograph.queues.told import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tachograph.queues.ports import QueueIndex
    from tachograph.queues.queueing import Queueing

    Types = Collection[str] | None

OVERLOAD_SECONDS = 30.0
"""After a look at too much load, until the next one."""
SOON_US = 2 * SECOND_US
"""What is due within this time is part of what there is to do now: a job that stopped at its
budget, for one."""
_SAMPLE = 1_000


class Taking:
    """What may be taken from some queues. Threads share it.

    `takes(queue)` are the types that can be done here, None for all. `load` gives the load of each
    processor; with `max_load` 0 it does not matter.
    """

    def __init__(
        self,
        queueing: Queueing,
        queues: Sequence[str],
        takes: Callable[[str], Types],
        *,
        now: Callable[[], float],
        random: Callable[[], float],
        load: Callable[[], float],
        max_load: float,
        poll_seconds: float | None,
        tell: Callable[[Told], None],
    ) -> None:
        self.queues = list(queues)
        self.pauses = Pauses(lambda queue: queueing.settings(queue).backoff, now, random)
        self._queueing = queueing
        self._takes = takes
        self._now = now
        self._load = load
        self._max_load = max_load
        declared = [queueing.settings(name).poll_seconds for name in self.queues]
        self._poll = min(declared) if poll_seconds is None else poll_seconds
        self._tell = tell
        self._overloaded_until: float | None = None
        self._turns = itertools.count()
        self._seen: set[tuple[str, str]] = set()

    def rotated(self) -> list[str]:
        """Return the queues, each time another one first, so that none waits for the others."""
        first = next(self._turns) % len(self.queues)
        return self.queues[first:] + self.queues[:first]

    def saw(self, queue: str, kind: str) -> None:
        """Remember that there are jobs of a type."""
        self._seen.add((queue, kind))

    def forget(self) -> None:
        """Forget what keeps from taking jobs: failures, and the load."""
        self.pauses.clear()
        self._overloaded_until = None

    def is_allowed(self) -> bool:
        """Say whether the load allows to begin anything; it is looked at every 30 s at most."""
        now = self._now()
        if self._overloaded_until is not None and now < self._overloaded_until:
            return False
        load = self._load() if self._max_load else 0.0
        if load <= self._max_load:
            self._overloaded_until = None
            return True
        self._overloaded_until = now + OVERLOAD_SECONDS
        words = f"load {load:.2f} of each processor is above {self._max_load:g}"
        self._tell(Told("overloaded", seconds=OVERLOAD_SECONDS, error=words))
        return False

    def types(self) -> dict[str, Types]:
        """Return what may be taken from each queue; None for all types of it."""
        return {name: self._types(name) for name in self.queues}

    def _types(self, queue: str) -> Types:
        kinds = self._takes(queue)
        paused = self.pauses.of(queue)
        if not paused:
            return kinds
        return (self._waiting(queue) if kinds is None else set(kinds)) - paused

    def _waiting(self, queue: str) -> set[str]:
        """Return types of a queue, for who does all: those known, and those that wait first."""
        settings = self._queueing.settings(queue)

        def look(index: QueueIndex) -> set[str]:
            found = index.eligible(queue, None, self._queueing.now_us(), settings.per_key)
            return {job.type for job in itertools.islice(found, _SAMPLE)}

        known = {kind for of, kind in self._seen if of == queue}
        return known | set(settings.types) | self._queueing.store.look(look)

    # When there may be something.

    def patience(self) -> float:
        """Return the seconds after which to look again at the latest."""
        now = self._now()
        if self._overloaded_until is not None:
            return self._overloaded_until - now
        times = [self._poll]
        pause = self.pauses.next()
        if pause is not None:
            times.append(pause - now)
        now_us = self._queueing.now_us()
        next_us = self._queueing.next_us(self.queues)
        if next_us is not None and next_us > now_us:
            times.append((next_us - now_us) / SECOND_US)
        return max(0.0, min(times))

    def has_any(self) -> bool:
        """Say whether something could be taken now; the answer may be too good, never too bad."""
        if self._overloaded_until is not None:
            return False
        types = self.types()
        return self._queueing.store.look(lambda index: self._is_due(index, types, 0))

    def is_drained(self) -> bool:
        """Say whether nothing is left to do that is due, or waits for another attempt."""
        types = {name: self._takes(name) for name in self.queues}

        def look(index: QueueIndex) -> bool:
            return not self._is_due(index, types, SOON_US) and not self._is_failing(index, types)

        return self._queueing.store.look(look)

    def _is_due(self, index: QueueIndex, types: Mapping[str, Types], soon_us: int) -> bool:
        now_us = self._queueing.now_us()
        for name, kinds in types.items():
            per_key = self._queueing.settings(name).per_key
            if next(iter(index.eligible(name, kinds, now_us, per_key)), None) is not None:
                return True
        times = [index.next_us(name) for name in types]
        return any(time_us is not None and time_us <= now_us + soon_us for time_us in times)

    def _is_failing(self, index: QueueIndex, types: Mapping[str, Types]) -> bool:
        for name, kinds in types.items():
            if any(
                job.failing and (kinds is None or job.type in kinds) for job in index.tried(name)
            ):
                return True
        return False
