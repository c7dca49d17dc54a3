"""Pass the signals that this process gets on to a child, and remember them. Sends none itself."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from types import FrameType, TracebackType
    from typing import Any, Self


class PassingOn:
    """A `with` block in which signals are handed to a child, those before its start included.

    `names` are passed on; of these, `noted` are only remembered, since the terminal sends them
    to the child as well. In other threads than the main one Python delivers no signals, and
    nothing is passed on.
    """

    def __init__(self, names: Sequence[str], *, noted: Collection[str] = ()) -> None:
        self.received: list[str] = []
        """Names of the signals that came, in order."""
        self._names = names
        self._noted = noted
        self._send: Callable[[int], None] | None = None
        self._early: list[int] = []
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for name in self._names:
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

    def attach(self, send: Callable[[int], None]) -> None:
        """Hand signals on by `send` from now on, and first those that came before."""
        self._send = send
        while self._early:
            send(self._early.pop(0))

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        self.received.append(name)
        if name in self._noted:
            return
        if self._send is None:
            self._early.append(number)
        else:
            self._send(number)
