"""Whether somebody has asked a command that goes on and on to stop. Stops nothing itself."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

STOPS = (signal.SIGINT, signal.SIGTERM)


class Asked:
    """A `with` block that gives an event which the first SIGINT or SIGTERM sets.

    A second one changes nothing; with `twice`, it does what it did before the block: it ends the
    process at once.
    """

    def __init__(self, *, twice: bool = False) -> None:
        self._asked = threading.Event()
        self._twice = twice
        self._former: dict[int, object] = {}

    def __enter__(self) -> threading.Event:
        for number in STOPS:
            self._former[number] = signal.signal(number, self._ask)
        return self._asked

    def __exit__(self, *_error: object) -> None:
        self._restore()

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self._asked.set()
        if self._twice:
            self._restore()

    def _restore(self) -> None:
        while self._former:
            number, handler = self._former.popitem()
            signal.signal(number, handler)  # type: ignore[arg-type]  # what it gave us
