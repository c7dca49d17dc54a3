"""The threads of a worker: its slots, its heartbeat, its chores. Knows no job."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tachograph.queues.upkeep import LOOK_SECONDS, SWEEP_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.queues.working import Worker


class Crew:
    """Runs a worker in threads, which no exit of the program waits for."""

    def __init__(self, worker: Worker, concurrency: int = 1) -> None:
        self._worker = worker
        self._over = threading.Event()
        self._done = threading.Semaphore(0)
        self._left = concurrency
        self._side: list[threading.Thread] = []
        self.error: BaseException | None = None
        """What ended a slot that should have gone on."""

    def start(self, *, once: bool = False, drain: bool = False) -> None:
        """Begin to work."""
        self._beside("beats", self._worker.beat, self._worker.beat_seconds)
        self._beside("lookout", self._worker.upkeep.look_for_lost, LOOK_SECONDS)
        self._beside("sweeps", self._worker.upkeep.sweep, SWEEP_SECONDS, at_once=True)
        for slot in range(self._left):
            name = f"tachograph-slot-{slot + 1}"
            arguments = (slot, once, drain)
            threading.Thread(target=self._work, args=arguments, name=name, daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Wait so long for the slots; say whether all have ended."""
        while self._left and self._done.acquire(timeout=seconds):
            self._left -= 1
        return not self._left

    def close(self) -> None:
        """End heartbeat and chores, and return when nothing of them goes on any more."""
        self._over.set()
        for thread in self._side:
            thread.join()

    def _work(self, slot: int, once: bool, drain: bool) -> None:
        try:
            self._worker.work(slot, once=once, drain=drain)
        except BaseException as error:  # noqa: BLE001  # raised again where the crew is waited for
            self.error = self.error or error
            self._worker.stop()
        finally:
            self._done.release()

    def _beside(
        self, name: str, work: Callable[[], None], seconds: float, *, at_once: bool = False
    ) -> None:
        def run() -> None:
            pause = 0.0 if at_once else seconds
            while not self._over.wait(pause):
                pause = seconds
                try:
                    work()
                except Exception as error:  # noqa: BLE001  # the next time may go better
                    self._worker.complain(error)

        thread = threading.Thread(target=run, name=f"tachograph-{name}", daemon=True)
        self._side.append(thread)
        thread.start()
