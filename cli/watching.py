"""`tacho watchdog run --interval`: look again and again; resumes go on in the background."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tachograph.cli.asked import Asked
from tachograph.cli.opening import open_store
from tachograph.cli.watch_anchor import keep
from tachograph.cli.watch_lines import Messenger
from tachograph.cli.watchdog_run import keep_files
from tachograph.lookout import Lookout
from tachograph.signals import Report
from tachograph.watching import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.watching import Orders


def forever(params: Params, orders: Orders, seconds: float, out: Output) -> int:
    """Look every so many seconds until SIGINT or SIGTERM; return the exit code.

    Adapters that are at work then go on by themselves: the next watchdog adopts what they did.
    A look that fails is told, and the next one is made all the same.
    """
    services = open_store(out, read_only=params.dry_run)
    crew = Background(params.jobs)
    watchdog = Watchdog(Lookout(services), orders, crew.spawn)
    messenger = Messenger(services, params, out)
    report = Report(services.actor.now_us())
    with Asked() as stopped:
        out.note(f"Looking every {seconds:g} s; Ctrl-C ends it.")
        while not stopped.is_set():
            report.checked_us = services.actor.now_us()
            messenger.begin()
            try:
                watchdog.tick(report)
                messenger.tell(watchdog.count(report).take(), whole=False)
                keep_files(services, params, out)
                keep(services, params, out)
            except Exception as error:  # noqa: BLE001  # the next look may go better
                messenger.failed(error)
                out.warn(f"{type(error).__name__}: {error}")
            out.flush()
            stopped.wait(seconds)
        messenger.tell(report.take(), whole=False)
    return 0


class Background:
    """Runs at most so many resumes at once, in threads that nobody waits for at the end."""

    def __init__(self, size: int) -> None:
        self._room = threading.Semaphore(size)
        self._busy: set[str] = set()

    def spawn(self, run_id: str, work: Callable[[], None]) -> bool:
        """Begin a resume, unless this process is at it already; False when there is no room."""
        if run_id in self._busy:
            return True
        if not self._room.acquire(blocking=False):
            return False
        self._busy.add(run_id)
        thread = threading.Thread(
            target=self._work, args=(run_id, work), name=f"resume {run_id}", daemon=True
        )
        thread.start()
        return True

    def _work(self, run_id: str, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            self._room.release()
            self._busy.discard(run_id)
