"""Run one command as a child: pass its output through, keep the tail, forward signals.

The terminal's own signals reach a child in the foreground directly; they are forwarded only to
one that the terminal does not know. Nothing here knows what a run is.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import time
from typing import TYPE_CHECKING

from tachograph.domain.ended import Ended
from tachograph.infra.gated import Gated
from tachograph.infra.passing_on import PassingOn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

CHUNK = 65_536
"""Bytes read at a time: the size of a pipe on Linux."""
PATIENCE_SECONDS = 3_600.0
"""Waited at most in one piece."""
LOOK_SECONDS = 0.02
GRACE_SECONDS = 10.0
"""Between the polite and the final signal after a timeout."""
FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
BY_TERMINAL = ("SIGINT", "SIGHUP", "SIGQUIT", "SIGWINCH")
"""Signals that a terminal sends to its whole foreground group, the child included."""


def run_child(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    tail_bytes: int,
    capture_stderr: bool = True,
    timeout_seconds: float | None = None,
    on_started: Callable[[int], None] | None = None,
    on_output: Callable[[bytes], None] | None = None,
) -> Ended:
    """Run a command to its end. Raises OSError when it cannot be run at all.

    `on_started` is told its pid. The command runs after it has returned, and never when it
    raises, which is raised here too. A signal may have ended the process by then. `on_output` is
    given everything that the command writes, as it comes.

    What it writes is passed on at once, byte for byte. A descendant that outlives the command
    may keep its streams; what it writes later is not waited for. After `timeout_seconds` the
    command and its descendants are sent SIGTERM, and 10 seconds later SIGKILL. So they are when
    anything is raised here while the command runs: it is never left without a keeper. Raises
    ValueError for a time limit that is not finite, and then nothing is run.
    """
    if timeout_seconds is not None and not math.isfinite(timeout_seconds):
        raise ValueError(f"{timeout_seconds} is no time limit")
    shared = in_foreground()
    tail = Tail(tail_bytes, on_output)
    with (
        _Wakeup() as wakeup,
        _Pipes(capture_stderr) as pipes,
        PassingOn(FORWARDED, noted=BY_TERMINAL if shared else ()) as forwarding,
    ):
        # A group of its own can be signalled as a whole.
        gated = Gated(argv, environment, streams=pipes.theirs, own_group=not shared)
        pipes.close_theirs()
        child = _Child(gated.pid, shared=shared)
        forwarding.attach(child.forward)
        _open_gate(gated, on_started)
        started = time.monotonic()
        try:
            child.limit(timeout_seconds)
            code = os.waitstatus_to_exitcode(_wait(child, pipes, wakeup, tail))
        except BaseException:
            child.stop()
            raise
        return Ended(
            code if code >= 0 else None,
            -code if code < 0 else None,
            time.monotonic() - started,
            bytes(tail),
            tail.total,
            timed_out=child.timed_out,
            asked=tuple(forwarding.received),
        )


def _open_gate(gated: Gated, on_started: Callable[[int], None] | None) -> None:
    try:
        if on_started is not None:
            on_started(gated.pid)
    except BaseException:
        gated.give_up()
        raise
    gated.let_go()


class Tail:
    """The last bytes of a stream.

    >>> tail = Tail(4)
    >>> tail.add(b"abc"); tail.add(b"def")
    >>> bytes(tail), tail.total
    (b'cdef', 6)
    """

    def __init__(self, limit: int, on_output: Callable[[bytes], None] | None = None) -> None:
        self.total = 0
        self._limit = limit
        self._on_output = on_output
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Take more of the stream."""
        if data and self._on_output is not None:
            self._on_output(data)
        self.total += len(data)
        self._kept += data
        surplus = len(self._kept) - self._limit
        if surplus > self._limit or surplus > CHUNK:  # rarely, so that a long stream is not copied
            del self._kept[:surplus]

    def __bytes__(self) -> bytes:
        return bytes(self._kept[max(0, len(self._kept) - self._limit) :])


def _wait(child: _Child, pipes: _Pipes, wakeup: _Wakeup, tail: Tail) -> int:
    """Pass output on until the child has ended, and return its wait status."""
    while True:
        pipes.pump(tail, wakeup.descriptor, child.patience())
        wakeup.clear()
        pid, status = os.waitpid(child.pid, os.WNOHANG)
        if pid:
            child.reaped = True
            while pipes.pump(tail, None, 0):
                pass
            return status
        child.check_time()


class _Child:
    """The process, and who is signalled with it."""

    def __init__(self, pid: int, *, shared: bool) -> None:
        self.pid = pid
        self.timed_out = False
        self.reaped = False
        """Whether it has ended, and its pid may be another one's."""
        self._shared = shared
        self._deadline: float | None = None

    def limit(self, seconds: float | None) -> None:
        """Give it so much time from now on; None for as long as it wants."""
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def forward(self, number: int) -> None:
        """Send a signal on: to the child's group, or to the child alone where the group is ours."""
        try:
            if self._shared:
                os.kill(self.pid, number)
            else:
                os.killpg(self.pid, number)
        except ProcessLookupError:
            pass  # it has just ended

    def patience(self) -> float | None:
        """Return the seconds to wait at most; None when there is no limit to the time."""
        if self._deadline is None:
            return None
        # The system takes no time that is centuries away.
        return min(max(0.0, self._deadline - time.monotonic()), PATIENCE_SECONDS)

    def check_time(self) -> None:
        """Stop the child when its time is up: politely first."""
        if self._deadline is None or time.monotonic() < self._deadline:
            return
        number = signal.SIGKILL if self.timed_out else signal.SIGTERM
        self._deadline = None if self.timed_out else time.monotonic() + GRACE_SECONDS
        self.timed_out = True
        self._send_all(number)

    def stop(self) -> None:
        """End it and its descendants, politely first, and reap it."""
        for number, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, None)):
            if not self.reaped:
                self._send_all(number)
                self._reap(seconds)

    def _send_all(self, number: int) -> None:
        if self._shared:
            for pid in _descendants(self.pid):
                _kill(pid, number)
        self.forward(number)

    def _reap(self, seconds: float | None) -> None:
        """Wait for its end, so many seconds at most."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self.reaped:
            pid, _ = os.waitpid(self.pid, 0 if until is None else os.WNOHANG)
            self.reaped = bool(pid)
            if until is not None and not pid:
                if time.monotonic() >= until:
                    return
                time.sleep(LOOK_SECONDS)


class _Pipes:
    """The pipes that a child writes to, and where each is passed on."""

    def __init__(self, capture_stderr: bool) -> None:
        self.theirs: dict[int, int] = {}
        """The child's ends, and which of its streams each is to be."""
        self._targets: dict[int, int] = {}
        for target in (1, 2) if capture_stderr else (1,):
            ours, theirs = os.pipe()
            self._targets[ours] = target
            self.theirs[theirs] = target

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close_theirs()
        for ours in list(self._targets):
            self._close(ours)

    def close_theirs(self) -> None:
        """Close the child's ends, which it has by now."""
        while self.theirs:
            os.close(self.theirs.popitem()[0])

    def pump(self, tail: Tail, other: int | None, patience: float | None) -> bool:
        """Pass on what there is, after waiting for it or `other`; False when there was nothing."""
        watched = [*self._targets, *([] if other is None else [other])]
        ready, _, _ = select.select(watched, [], [], patience)
        passed = False
        for ours in ready:
            if ours != other:
                passed |= self._pass_on(ours, tail)
        return passed

    def _pass_on(self, ours: int, tail: Tail) -> bool:
        data = os.read(ours, CHUNK)
        tail.add(data)
        if not data or not _write_all(self._targets[ours], data):
            # After a broken pipe the child is to feel it too, as it would without us.
            self._close(ours)
        return bool(data)

    def _close(self, ours: int) -> None:
        del self._targets[ours]
        os.close(ours)


class _Wakeup:
    """Lets a signal end the wait for output."""

    def __init__(self) -> None:
        self.descriptor, self._writer = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._writer, False)

    def __enter__(self) -> Self:
        self._former = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._handler = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGCHLD, self._handler)
        signal.set_wakeup_fd(self._former)
        os.close(self.descriptor)
        os.close(self._writer)

    def clear(self) -> None:
        """Forget the signals that were seen."""
        try:
            while os.read(self.descriptor, 512):
                pass
        except BlockingIOError:
            pass


def in_foreground() -> bool:
    """Say whether this process is in the foreground group of its terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _descendants(pid: int) -> list[int]:
    import psutil

    try:
        return [process.pid for process in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _write_all(target: int, data: bytes) -> bool:
    """Write everything; False when the reader has gone away."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:  # somebody else set the shared terminal so
            select.select([], [target], [])
        except BrokenPipeError:
            return False
    return True
