"""Run a resume adapter to its end, in a session of its own. Knows no run, and reads no output.

No instruction of the adapter runs before the caller has recorded who the worker is: a shell
waits behind a pipe for our word, and becomes the adapter by exec, so that the pid stays the same.
Whoever dies in between leaves a pipe that ends, and an adapter that never began.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from tachograph.domain.records import _Fields
from tachograph.infra.descendants import Family
from tachograph.infra.passing_on import PassingOn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

PASSED_ON = ("SIGTERM", "SIGINT", "SIGHUP")
GRACE_SECONDS = 10.0
"""Between the polite and the final signal."""
LOOK_SECONDS = 0.2
"""How often the sizes of the outputs are looked at."""
STDOUT_BYTES = 1 << 20
STDERR_BYTES = 1 << 26
MARK = "TACHO_DISPATCH"
"""Variable by which descendants are known that left both the session and their parent."""
GO = b"go\n"
# The pipe is the shell's stdin, so that nothing of it reaches the adapter. A shell drops
# variables whose names it could not write, such as exported functions of bash.
_GATE = 'read -r word && [ "$word" = go ] && exec "$@" </dev/null'


class AdapterEnd(_Fields):
    """How an adapter ended.

    `exit_code` is its own, None when the `signal` of that number killed it; `seconds` is how
    long it ran. `timed_out` says that its time was up, `too_large` which of "stdout" and
    "stderr" grew beyond its bound. `left_running` are the pids of descendants that live on, the
    oldest first. `asked` names the signals that this process got meanwhile and passed on.
    """

    __slots__ = (
        "asked",
        "exit_code",
        "left_running",
        "seconds",
        "signal",
        "timed_out",
        "too_large",
    )

    def __init__(
        self,
        exit_code: int | None,
        signal: int | None,
        seconds: float,
        *,
        timed_out: bool = False,
        too_large: str | None = None,
        left_running: tuple[int, ...] = (),
        asked: tuple[str, ...] = (),
    ) -> None:
        self.exit_code = exit_code
        self.signal = signal
        self.seconds = seconds
        self.timed_out = timed_out
        self.too_large = too_large
        self.left_running = left_running
        self.asked = asked


def run_adapter(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    folder: str | None,
    stdout_path: str,
    stderr_path: str,
    timeout_seconds: float | None,
    grace_seconds: float = GRACE_SECONDS,
    stdout_bytes: int = STDOUT_BYTES,
    stderr_bytes: int = STDERR_BYTES,
    on_started: Callable[[int], None],
) -> AdapterEnd:
    """Run an adapter to its end. Raises OSError, with nothing started, when it cannot be run.

    `on_started` gets the pid; the adapter runs after it has returned, and never when it raises.
    Output goes to two files, so that an adapter which outlives this process can go on writing.
    After `timeout_seconds`, or when an output is too large, the adapter and all its descendants
    are sent SIGTERM, and `grace_seconds` later SIGKILL. A descendant that outlives an adapter
    which ended well is reported and left alone; what a failed one leaves is ended too, since
    the next try must not work beside it. SIGTERM, SIGINT and SIGHUP to this process
    are passed on to the adapter's group, and the wait goes on (in the main thread only, where
    Python delivers signals).
    """
    program = find_program(argv[0], environment, folder)
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    outputs = [
        Output("stdout", stdout_path, stdout_bytes),
        Output("stderr", stderr_path, stderr_bytes),
    ]
    with _children_are_awaited(), PassingOn(PASSED_ON) as passing:
        command = ["/bin/sh", "-c", _GATE, "sh", program, *argv[1:]]
        child = _spawn(command, {**environment, MARK: mark}, folder, outputs)
        passing.attach(partial(_pass_on, child))
        _let_go(child, on_started)
        family = Family(child.pid, f"{MARK}={mark}")
        return _Watch(child, family, outputs, grace_seconds).until_it_ends(
            timeout_seconds, passing.received
        )


@contextlib.contextmanager
def _children_are_awaited() -> Iterator[None]:
    """Let the end of a child be seen, also where this process was told to ignore it."""
    in_main = threading.current_thread() is threading.main_thread()
    ignored = signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    if not (in_main and ignored):
        yield
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _pass_on(child: subprocess.Popen[bytes], number: int) -> None:
    if child.returncode is None:  # it is not reaped, so its pid is no other's
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)


def find_program(name: str, environment: Mapping[str, str], folder: str | None) -> str:
    """Return the absolute path of a program.

    Raises FileNotFoundError, NotADirectoryError or PermissionError, with its name.
    """
    base = os.path.abspath(folder or ".")
    if not os.path.isdir(base):
        raise _error(errno.ENOTDIR if os.path.exists(base) else errno.ENOENT, base)
    if os.sep not in name:
        path = environment.get("PATH", os.defpath)
        found = shutil.which(name, path=path)
        if found is None:
            raise _error(errno.ENOENT, name)
        return os.path.abspath(found)
    written = os.path.join(base, name)
    if shutil.which(written) is None:
        raise _error(errno.EACCES if os.path.exists(written) else errno.ENOENT, written)
    return written


def read_head(path: str, limit: int) -> bytes:
    """Return the first bytes of a file, never more than `limit`."""
    with open(path, "rb") as file:
        return file.read(limit)


class Output:
    """A file that a stream goes to, and how long it may become."""

    __slots__ = ("limit", "name", "path")

    def __init__(self, name: str, path: str, limit: int) -> None:
        self.name = name
        self.path = path
        self.limit = limit

    def open(self) -> int:
        """Return a descriptor of the empty file."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        return os.open(self.path, flags, 0o600)

    def exceeds(self, times: int = 1) -> bool:
        """Say whether it is longer than so many times its bound."""
        try:
            return os.stat(self.path).st_size > times * self.limit
        except FileNotFoundError:  # removed meanwhile: nothing grows that anybody could read
            return False


class _Watch:
    """Waits for an adapter, and stops it where it has to be stopped."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        family: Family,
        outputs: Sequence[Output],
        grace_seconds: float,
    ) -> None:
        self._child = child
        self._family = family
        self._outputs = outputs
        self._grace_seconds = grace_seconds
        self._too_large: str | None = None

    def until_it_ends(self, timeout_seconds: float | None, asked: list[str]) -> AdapterEnd:
        """Wait, and return how it ended."""
        started = time.monotonic()
        deadline = None if timeout_seconds is None else started + timeout_seconds
        with _Alarm(self._child.pid) as alarm:
            ended = self._wait(alarm, deadline, 1)
            timed_out = not ended and self._too_large is None
            if not ended or (_has_failed(self._child.pid) and self._family.living()):
                self._stop(alarm)
        seconds = time.monotonic() - started
        left_running = tuple(process.pid for process in self._family.living())
        code = self._child.wait()  # not earlier: until now its pid was no other's
        self._look(1)
        return AdapterEnd(
            code if code >= 0 else None,
            -code if code < 0 else None,
            seconds,
            timed_out=timed_out,
            too_large=self._too_large,
            left_running=left_running,
            asked=tuple(asked),
        )

    def _wait(self, alarm: _Alarm, deadline: float | None, times: int) -> bool:
        """Wait for the end; False when time is up, or an output longer than so many bounds."""
        while not _has_ended(self._child.pid):
            if self._look(times):
                return False
            patience = LOOK_SECONDS
            if deadline is not None:
                patience = min(patience, deadline - time.monotonic())
                if patience <= 0:
                    return False
            alarm.wait(patience)
        return True

    def _look(self, times: int) -> bool:
        """Note the first output that is too long; say whether any is by that measure."""
        long = [output.name for output in self._outputs if output.exceeds(times)]
        if long and self._too_large is None:
            self._too_large = long[0]
        return bool(long)

    def _stop(self, alarm: _Alarm) -> None:
        """End the adapter and its descendants: politely first."""
        self._family.collect()
        self._family.signal(signal.SIGTERM)
        self._family.signal(signal.SIGCONT)  # who is stopped could not be polite
        deadline = time.monotonic() + self._grace_seconds
        # What goes on flooding the disk is given no grace.
        if self._wait(alarm, deadline, 2):
            self._family.wait(max(0.0, deadline - time.monotonic()))
        self._family.kill()


class _Alarm:
    """Lets the end of a child end a wait."""

    def __init__(self, pid: int) -> None:
        self._watched: list[int] = []
        if hasattr(os, "pidfd_open"):
            # A kernel may lack it; the end is then seen at the next look.
            with contextlib.suppress(OSError):
                self._watched.append(os.pidfd_open(pid))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        while self._watched:
            os.close(self._watched.pop())

    def wait(self, seconds: float) -> None:
        """Return at the end of the child, or after `seconds`."""
        select.select(self._watched, [], [], seconds)


def _spawn(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: str | None,
    outputs: Sequence[Output],
) -> subprocess.Popen[bytes]:
    """Start a command that waits behind its stdin, in a session of its own."""
    targets: list[int] = []
    try:
        for output in outputs:
            targets.append(output.open())  # noqa: PERF401  # what is open when one fails is closed
        return subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=targets[0],
            stderr=targets[1],
            start_new_session=True,
        )
    finally:
        for target in targets:
            os.close(target)


def _let_go(child: subprocess.Popen[bytes], on_started: Callable[[int], None]) -> None:
    """Give the word when `on_started` has returned; without it the child ends by itself."""
    assert child.stdin is not None  # noqa: S101  # it was asked for
    try:
        on_started(child.pid)
    except BaseException:
        child.stdin.close()
        child.wait()
        raise
    with contextlib.suppress(BrokenPipeError):  # a signal was faster
        os.write(child.stdin.fileno(), GO)
    child.stdin.close()


def _has_ended(pid: int) -> bool:
    """Say whether a child has ended, without reaping it."""
    if hasattr(os, "waitid"):
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, pid, options) is not None
    import psutil

    return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def _has_failed(pid: int) -> bool:
    """Say whether a child that has ended did so badly; it is not reaped by that."""
    if not hasattr(os, "waitid"):
        return False  # not known before it is reaped
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return ended is not None and (ended.si_code, ended.si_status) != (os.CLD_EXITED, 0)


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
