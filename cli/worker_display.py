"""`tacho queue worker --watch`: what is at work, live at a terminal. Writes to stderr only."""

from __future__ import annotations

import time
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tachograph.cli.queue_lines import block
from tachograph.cli.tables import shown
from tachograph.cli.worker_lines import text_of
from tachograph.domain.errors import TachographError
from tachograph.infra.clock import iso, now_us
from tachograph.queues.told import SERIOUS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rich.console import RenderableType

    from tachograph.queues.holds import Hold
    from tachograph.queues.told import Told
    from tachograph.queues.working import Worker

LAST = 8
"""Lines of what happened that are shown."""
REFRESH_SECONDS = 0.25
HEALTH_SECONDS = 2.0
COLOURS = {"failed": "yellow"}
"""Of lines about what is serious; red without."""
"""Between questions how the queues are."""


class Watch:
    """A live display. Threads share it."""

    def __init__(self, ask: Callable[[], dict[str, Any]], console: Console | None = None) -> None:
        self._ask = ask
        self._asked = -HEALTH_SECONDS
        self._health: list[str] = []
        self._console = console or Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._lines: deque[Text] = deque(maxlen=LAST)
        self._lock = Lock()
        self._shown = 0.0
        self._live.start()

    def tell(self, told: Told) -> None:
        """Show that something happened."""
        line = Text(f"{iso(now_us(), digits=0)} {text_of(told)}", no_wrap=True)
        if told.event in SERIOUS:
            line.stylize(COLOURS.get(told.event, "red"))
        with self._lock:
            self._lines.append(line)

    def refresh(self, worker: Worker) -> None:
        """Show how the worker is, a few times a second."""
        now = time.monotonic()
        if now - self._shown >= REFRESH_SECONDS:
            self._shown = now
            self._live.update(self.picture(worker), refresh=True)

    def close(self) -> None:
        """Leave what happened last on the screen."""
        self._live.stop()
        with self._lock:
            for line in self._lines:
                self._console.print(line)

    def picture(self, worker: Worker) -> RenderableType:
        """Return what is shown."""
        table = Table("slot", "job", "type", "attempt", "age", "doing", expand=True)
        for hold in worker.holds:
            table.add_row(*map(Text, row(hold, worker.age(hold))))
        if not worker.holds:
            table.add_row("", "idle" if not worker.stopping else "stopping", *[""] * 4)
        with self._lock:
            lines = list(self._lines)
        return Group(table, Text(counts(worker)), *map(Text, self._how_they_are()), *lines)

    def _how_they_are(self) -> list[str]:
        now = time.monotonic()
        if now - self._asked >= HEALTH_SECONDS:
            self._asked = now
            try:
                self._health = list(block(self._ask(), width=self._console.width))
            except (TachographError, OSError) as error:  # it is no reason to stop
                self._health = [f"{type(error).__name__}: {error}"]
        return self._health


def row(hold: Hold, age: float) -> tuple[str, ...]:
    """Return the cells of a job at work."""
    job = hold.job
    return (
        str(hold.slot + 1),
        job.id,
        f"{job.queue}/{job.type}",
        f"{job.attempts}/{job.max_attempts}",
        f"{age:.0f}s",
        shown(doing(hold)),
    )


def doing(hold: Hold) -> str:
    """Return the phase that a job's run is in, and how far it is."""
    if hold.session is None:
        return ""
    try:
        run = hold.session.run
    except (TachographError, OSError):  # it is shown at the next look
        return ""
    parts = [name for name, phase in run.phases.items() if phase.status == "running"][-1:]
    if run.progress is not None:
        total = run.progress.get("total")
        of = "" if total is None else f"/{total}"
        parts.append(f"{run.progress['completed']}{of} {run.progress.get('unit', '')}".strip())
    return ", ".join(parts)


def counts(worker: Worker) -> str:
    """Return how many jobs this worker has done."""
    tally = worker.tally
    return f"done here: {tally.completed} completed, {tally.failed} failed, {tally.dead} dead"
