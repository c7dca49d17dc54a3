"""Run a command in a thread of a worker: input in, output kept, all it has started ended in time.

The command waits behind a shell that reads one word from its stdin first: not one instruction of it
runs before the caller has recorded who does the work. It becomes the command by exec, so the pid
stays the same; what follows the word is the command's own input. Knows no job, and no run.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from tachograph.domain.ended import Ended
from tachograph.infra.adapter_child import GO, MARK, find_program
from tachograph.infra.child import CHUNK, Tail
from tachograph.infra.descendants import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

GRACE_SECONDS = 10.0
"""Between the polite and the final signal."""
LOOK_SECONDS, BLIND_LOOK_SECONDS = 1.0, 0.05
"""How often the process is looked at, where the system tells its end, and where it does not."""
TAIL_BYTES, STDOUT_BYTES = 16_384, 65_536
"""Of all output, to be recorded; of stdout alone, whose last line may be a result."""
_GATE = 'read -r word && [ "$word" = go ] && exec "$@"'


class JobChild:
    """One command, to be run once. `stop` may be called by any thread, and before `run`."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        stdin: bytes = b"",
        folder: str | None = None,
        timeout_seconds: float | None = None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._argv = argv
        self._environment = environment
        self._input = GO + stdin
        self._folder = folder
        self._timeout_seconds = timeout_seconds
        self._grace_seconds = grace_seconds
        self._asked: list[str] = []
        self._lock = threading.Lock()
        self._waker: int | None = None
        self._tail = Tail(TAIL_BYTES)
        self._stdout = Tail(STDOUT_BYTES)

    @property
    def stdout(self) -> bytes:
        """The last bytes that it wrote to its stdout."""
        return bytes(self._stdout)

    def stop(self, *, at_once: bool) -> None:
        """End it and all it has started: politely first, unless `at_once`."""
        with self._lock:
            name = "SIGKILL" if at_once else "SIGTERM"
            if name not in self._asked:
                self._asked.append(name)
            if self._waker is not None:
                os.write(self._waker, b"!")

    def run(self, on_started: Callable[[int], None]) -> Ended:
        """Run it to its end. Raises OSError, with nothing started, when it cannot be run.

        `on_started` gets the pid; the command runs after it has returned, and never when it
        raises. After the time limit the command and all its descendants are sent SIGTERM, and the
        grace later SIGKILL. What a command leaves running is ended too unless it ended well.
        """
        program = find_program(self._argv[0], self._environment, self._folder)
        with contextlib.ExitStack() as opened:
            woken = self._open_waker(opened)
            mark = f"{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}"
            child = subprocess.Popen(
                ["/bin/sh", "-c", _GATE, "sh", program, *self._argv[1:]],
                env={**self._environment, MARK: mark},
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            for stream in (child.stdin, child.stdout, child.stderr):
                opened.callback(_close, stream)
            _begin(child, on_started)
            started = time.monotonic()
            family = Family(child.pid, f"{MARK}={mark}")
            watch = _Watch(child, family, self._limit(started), self._grace_seconds, self._asked)
            try:
                self._pump(child, watch, woken, opened)
                watch.clean_up()
            except BaseException:  # it is never left without a keeper
                family.kill()
                child.wait()
                raise
            code = child.wait()  # not earlier: until now its pid was no other's
        return Ended(
            code if code >= 0 else None,
            -code if code < 0 else None,
            time.monotonic() - started,
            bytes(self._tail),
            self._tail.total,
            timed_out=watch.timed_out,
            asked=tuple(self._asked),
        )

    def _limit(self, started: float) -> float | None:
        return None if self._timeout_seconds is None else started + self._timeout_seconds

    def _open_waker(self, opened: contextlib.ExitStack) -> int:
        woken, waker = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(waker, False)
        opened.callback(os.close, woken)

        def close() -> None:
            with self._lock:
                self._waker = None
            os.close(waker)

        opened.callback(close)
        with self._lock:
            self._waker = waker
        return woken

    def _pump(
        self,
        child: subprocess.Popen[bytes],
        watch: _Watch,
        woken: int,
        opened: contextlib.ExitStack,
    ) -> None:
        """Pass input and output on until the command has ended."""
        selector = opened.enter_context(selectors.DefaultSelector())
        selector.register(woken, selectors.EVENT_READ)
        look = BLIND_LOOK_SECONDS
        end = _pidfd(child.pid)
        if end is not None:
            opened.callback(os.close, end)
            selector.register(end, selectors.EVENT_READ)
            look = LOOK_SECONDS
        self._register(selector, child)
        while not watch.has_ended():
            for key, _ in selector.select(watch.patience(look)):
                self._pass_on(selector, key)
            watch.act()
        while self._drain(selector):
            pass

    def _register(self, selector: selectors.BaseSelector, child: subprocess.Popen[bytes]) -> None:
        both, one = [self._tail, self._stdout], [self._tail]
        for stream, tails in ((child.stdout, both), (child.stderr, one)):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, tails)
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
            selector.register(child.stdin, selectors.EVENT_WRITE, "input")

    def _pass_on(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> bool:
        if key.data == "input":
            self._feed(selector, key)
        elif key.data is not None:
            return self._take(selector, key)
        else:
            with contextlib.suppress(BlockingIOError, OSError):
                os.read(key.fd, 512)  # a word to look at what was asked; of a process, nothing
        return False

    def _feed(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        try:
            self._input = self._input[os.write(key.fd, self._input[:CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it reads no more
            self._input = b""
        if not self._input:
            selector.unregister(key.fileobj)
            _close(key.fileobj)

    def _take(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> bool:
        try:
            data = os.read(key.fd, CHUNK)
        except BlockingIOError:
            return False
        for tail in key.data:
            tail.add(data)
        if not data:
            selector.unregister(key.fileobj)
        return bool(data)

    def _drain(self, selector: selectors.BaseSelector) -> bool:
        """Take what was written before the end; what a descendant writes later is not awaited."""
        took = False
        for key, _ in selector.select(0):
            if isinstance(key.data, list):
                took |= self._take(selector, key)
        return took


class _Watch:
    """Looks after one process, and stops it where it has to be stopped."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        family: Family,
        limit: float | None,
        grace_seconds: float,
        asked: Sequence[str],
    ) -> None:
        self.timed_out = False
        self._child = child
        self._family = family
        self._limit = limit
        self._grace_seconds = grace_seconds
        self._asked = asked
        self._kill_at: float | None = None

    def has_ended(self) -> bool:
        """Say whether the process has ended, without reaping it."""
        if hasattr(os, "waitid"):
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._child.pid, options) is not None
        import psutil

        return psutil.Process(self._child.pid).status() == psutil.STATUS_ZOMBIE

    def patience(self, most: float) -> float:
        """Return the seconds to wait until something is to be done."""
        until = self._limit if self._kill_at is None else self._kill_at
        return most if until is None else max(0.0, min(most, until - time.monotonic()))

    def act(self) -> None:
        """Stop it when its time is up, or somebody wants that."""
        now = time.monotonic()
        if "SIGKILL" in self._asked or (self._kill_at is not None and now >= self._kill_at):
            self._family.collect()
            self._family.kill()
            self._kill_at = now + self._grace_seconds
            return
        late = self._limit is not None and now >= self._limit
        if self._kill_at is None and (late or self._asked):
            self.timed_out = late and not self._asked
            self._ask()

    def clean_up(self) -> None:
        """End what a command has left running that did not end well."""
        if self._kill_at is None and self._ended_well():
            return
        if self._family.living():
            if self._kill_at is None:
                self._ask()
            self._family.wait(max(0.0, (self._kill_at or 0.0) - time.monotonic()))
            self._family.kill()

    def _ask(self) -> None:
        self._kill_at = time.monotonic() + self._grace_seconds
        self._family.collect()
        self._family.signal(signal.SIGTERM)
        self._family.signal(signal.SIGCONT)  # who is stopped could not be polite

    def _ended_well(self) -> bool:
        if not hasattr(os, "waitid"):
            return True  # not known before it is reaped
        ended = os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return ended is not None and (ended.si_code, ended.si_status) == (os.CLD_EXITED, 0)


def _begin(child: subprocess.Popen[bytes], on_started: Callable[[int], None]) -> None:
    """Let the caller note who it is; where that fails, the command never runs."""
    try:
        on_started(child.pid)
    except BaseException:
        _close(child.stdin)
        child.wait()
        raise


def _pidfd(pid: int) -> int | None:
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):  # a kernel may lack it
            return os.pidfd_open(pid)
    return None


def _close(stream: object) -> None:
    close = getattr(stream, "close", None)
    if close is not None:
        with contextlib.suppress(OSError):
            close()
