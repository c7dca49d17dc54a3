"""A job that a worker holds while it is at work: who may stop it, and whether it is still ours."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Protocol

    from tachograph.queues.queueing import Leased
    from tachograph.session import Session

    class Stop(Protocol):
        """Ends what does the work, and all it has started."""

        def __call__(self, *, at_once: bool) -> None:
            """Ask it to end, or end it at once."""
            ...


class Hold:
    """One leased job in one slot of a worker. Threads share it."""

    def __init__(self, leased: Leased, slot: int, since: float) -> None:
        self.job = leased.job
        self._leased = leased
        self.slot = slot
        self.since = since
        """When it was taken, by the worker's own clock."""
        self.session: Session | None = None
        """The attempt at the job's run, once there is one."""
        self.lost = False
        """Whether the lease was given to another one: then no end is recorded."""
        self.asked = False
        """Whether the worker wants it to end."""
        self.ending = False
        """Whether its end is being recorded."""
        self._stop: Stop | None = None
        self._at_once = False
        self._lock = threading.Lock()

    @property
    def payload(self) -> Any:
        """What the job was enqueued with. Raises BlobMissingError and BodyLostError."""
        return self._leased.payload

    def attach(self, stop: Stop) -> None:
        """Let `stop` end what does the work; called now if that was asked already."""
        with self._lock:
            self._stop = stop
            asked, at_once = self.asked or self.lost, self._at_once
        if asked:
            stop(at_once=at_once)

    def detach(self) -> None:
        """Forget what did the work: it has ended."""
        with self._lock:
            self._stop = None

    def stop(self, *, at_once: bool = False) -> bool:
        """Ask what does the work to end; False when it cannot be asked, as a Python function."""
        with self._lock:
            self.asked = True
            self._at_once |= at_once
            stop = self._stop
        if stop is not None:
            stop(at_once=at_once)
        return stop is not None

    def lose(self) -> None:
        """Take note that the job is another one's; a process is killed, a run's attempt ended."""
        with self._lock:
            self.lost = self._at_once = True
            stop = self._stop
        if stop is not None:
            stop(at_once=True)
