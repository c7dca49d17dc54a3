"""Let threads wait for work: until a time, a word, or a write to the log by any process."""

from __future__ import annotations

import time
from threading import Condition
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_SECONDS = 0.05
"""After this time at most, what another process has written is seen."""


class LogSleeper:
    """Waits; `last_transaction` is asked at each look, and costs microseconds."""

    def __init__(self, last_transaction: Callable[[], int]) -> None:
        self._last_transaction = last_transaction
        self._condition = Condition()
        self._words = 0

    def mark(self) -> object:
        """Return the state that `wait` compares with."""
        return self._words, self._last_transaction()

    def wait(self, seconds: float, mark: object) -> None:
        """Return after this time, or once `wake` was called or anything written since the mark.

        It waits a little also where something was written before: a busy log is not looked at
        without a pause.
        """
        until = time.monotonic() + seconds
        words, transaction = cast("tuple[int, int]", mark)
        while (left := until - time.monotonic()) > 0:
            with self._condition:
                if self._words == words:
                    self._condition.wait(min(left, LOOK_SECONDS))
                if self._words != words:
                    return
            if self._last_transaction() != transaction:
                return

    def wake(self) -> None:
        """End every wait."""
        with self._condition:
            self._words += 1
            self._condition.notify_all()
