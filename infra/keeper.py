"""Do work in a child that outlives this process, so that a kill of the one does not end the other.

This process only waits, passes signals on, and ends as the child did. Knows no run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING

from tachograph.infra.child import BY_TERMINAL, FORWARDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType
    from typing import Any, NoReturn


def possible() -> bool:
    """Say whether there can be a keeper: a fork copies no thread, and would leave locks held."""
    return hasattr(os, "fork") and threading.active_count() == 1


def keep(work: Callable[[], int], *, shared: bool) -> int:
    """Do work in a child and return its exit code, or minus the signal that killed it.

    `shared` says that this process is in the foreground group of a terminal: then the child stays
    in that group, and what the terminal sends to the group is not passed on a second time.
    Otherwise it gets a group of its own, so that who kills this group does not kill it, and every
    signal is passed on. The child ends with `work`, and never returns from here.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # the exit code would be lost
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Until both know what to do with a signal it waits; none is lost, and none kills one alone.
    numbers = [getattr(signal, name) for name in FORWARDED]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        pid = os.fork()
        if not pid:
            _be_the_keeper(work, mask, shared=shared)
        passing = _Passing(pid, shared=shared)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        return _wait(pid, passing)
    finally:
        passing.end()


def _be_the_keeper(work: Callable[[], int], mask: Iterable[int], *, shared: bool) -> NoReturn:
    """Work, and end without what the other process has asked to be done at its exit."""
    code = 1
    try:
        if not shared:
            os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        code = work()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001  # nothing may get out into the other process's code
        with contextlib.suppress(BaseException):
            traceback.print_exc()
            sys.stderr.flush()
        code = code or 1
    finally:
        os._exit(code & 0xFF)


def _wait(pid: int, passing: _Passing) -> int:
    """Wait for the end of a child; signals are passed on only while its pid is its own."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        passing.end()
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


class _Passing:
    """Passes the signals that this process gets to one other."""

    def __init__(self, pid: int, *, shared: bool) -> None:
        self._pid = pid
        self._former: dict[int, Any] = {}
        for name in FORWARDED:
            number = getattr(signal, name)
            # What this process was told to ignore (nohup) the other ignores as well.
            if signal.getsignal(number) is not signal.SIG_IGN:
                known = shared and name in BY_TERMINAL
                handler = self._ignore if known else self._pass_on
                self._former[number] = signal.signal(number, handler)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _ignore(self, _number: int, _frame: FrameType | None) -> None:
        """Do nothing: unlike SIG_IGN, a handler does not reach programs that are started."""

    def end(self) -> None:
        """Let the signals do what they did before."""
        while self._former:
            signal.signal(*self._former.popitem())
