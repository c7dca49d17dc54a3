"""What runs beside a recording: the heartbeat, and the log handler that notes warnings."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING

from tachograph.domain.errors import TachographError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Keeper(Protocol):
        """Something that goes on beside a recording."""

        def start(self) -> None:
            """Begin."""
            ...

        def stop(self) -> None:
            """Stop, and return when nothing of it goes on any more."""
            ...


MAX_WARNINGS = 200
"""Warnings noted per attempt; one more note then says that the rest was left out."""


class Heartbeat:
    """Renews the lease of an attempt from a daemon thread."""

    def __init__(self, beat: Callable[[], None], seconds: float) -> None:
        self._beat = beat
        self._seconds = seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tachograph-heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for a beat that is under way."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            # A lease is a hint: a full disk must not end the job that it speaks for.
            with contextlib.suppress(TachographError, OSError):
                self._beat()


class WarningNotes(logging.Handler):
    """Notes what the job logs at WARNING and above in the run's history."""

    def __init__(self, note: Callable[..., Any]) -> None:
        super().__init__(logging.WARNING)
        self._note = note
        self._noted = 0
        self._busy = threading.local()

    def start(self) -> None:
        """Listen to the root logger."""
        logging.getLogger().addHandler(self)

    def stop(self) -> None:
        """Stop listening."""
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Note one record; what recording it logs in turn is left alone."""
        if getattr(self._busy, "now", False) or self._noted > MAX_WARNINGS:
            return
        self._busy.now = True
        try:
            self._noted += 1
            if self._noted > MAX_WARNINGS:
                self._note("further warnings of this attempt are not noted", level="warning")
                return
            level = "error" if record.levelno >= logging.ERROR else "warning"
            self._note(record.getMessage() or "(no text)", level=level, source=record.name)
        except TachographError:
            self.handleError(record)
        finally:
            self._busy.now = False
