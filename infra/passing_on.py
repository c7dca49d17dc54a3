"""Pass the signals that this process gets to the group of a child. Sends none of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from types import FrameType, TracebackType
    from typing import Any, Self

PASSED_ON = ("SIGTERM", "SIGINT", "SIGHUP")


class PassingOn:
    """Passes the signals that this process gets to a child's group, and remembers their names."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # the end would be lost
                self._former[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for name in PASSED_ON:
                number = getattr(signal, name)
                # What this process was told to ignore (nohup) its child ignores as well.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._former[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def attach(self, child: subprocess.Popen[bytes]) -> None:
        """Pass on to a child that has just started, earlier signals included."""
        self._child = child
        while self._early:
            self._pass_on(child, self._early.pop(0))

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self.received.append(signal.Signals(number).name)
        if self._child is None:
            self._early.append(number)
        else:
            self._pass_on(self._child, number)

    def _pass_on(self, child: subprocess.Popen[bytes], number: int) -> None:
        if child.returncode is None:  # it is not reaped, so its pid is no other's
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)
