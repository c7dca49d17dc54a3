"""Hold a process so that a signal reaches it or nobody, and wait for its end. Starts none.

A pid is used again by later processes. On Linux a process is held by a descriptor; elsewhere
psutil compares its start time right before each signal.
"""
# psutil costs 50 ms at the start of a command, signal and its enums a few: only who stops pays.

from __future__ import annotations

import os
import sys

from tachograph.domain.liveness import UNSEEN
from tachograph.infra.processes import PROC, process_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    import psutil

    class Held(Protocol):
        """One process, never a later one with its pid."""

        pid: int

        def send(self, number: int) -> bool:
            """Signal it; False when it has ended or belongs to somebody else."""
            ...

        def ended(self) -> bool:
            """Say whether it has ended; one that waits to be reaped has."""
            ...

        def close(self) -> None:
            """Let go of it."""
            ...


class ByDescriptor:
    """A process held by a pidfd: signals reach it or nobody."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self.descriptor = descriptor

    def send(self, number: int) -> bool:
        """Signal it; False when it has ended or belongs to somebody else."""
        import signal

        try:
            signal.pidfd_send_signal(self.descriptor, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def ended(self) -> bool:
        """Say whether it has ended."""
        return bool(_poll([self], 0))

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)


class ByStartTime:
    """A process where there is no pidfd: psutil compares its start time before each signal."""

    def __init__(self, pid: int) -> None:
        import psutil

        self.pid = pid
        self.process = psutil.Process(pid)

    def send(self, number: int) -> bool:
        """Signal it; False when it has ended or belongs to somebody else."""
        import psutil

        try:
            self.process.send_signal(number)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False
        return True

    def ended(self) -> bool:
        """Say whether it has ended."""
        import psutil

        try:
            return not self.process.is_running() or self.process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    def close(self) -> None:
        """Do nothing: nothing is open."""


def hold(pid: int, started: int | None) -> Held | None:
    """Hold the process of this start time; None when there is none such."""
    if started is None or started == UNSEEN:
        return None
    held = _held(pid)
    # Looked at while it is held: if it is the one now, it was the one that was taken hold of.
    if held is not None and process_start(pid) != started:
        held.close()
        return None
    return held


def _held(pid: int) -> Held | None:
    open_descriptor = getattr(os, "pidfd_open", None)
    if open_descriptor is not None:
        try:
            return ByDescriptor(pid, open_descriptor(pid))
        except ProcessLookupError:
            return None
        except OSError:  # an old kernel, or a sandbox that forbids it
            pass
    import psutil

    try:
        return ByStartTime(pid)
    except psutil.NoSuchProcess:
        return None


def wait(held: Sequence[Held], seconds: float) -> None:
    """Wait until all have ended, or the time is up."""
    import time

    deadline = time.monotonic() + max(0.0, seconds)
    by_descriptor = [each for each in held if isinstance(each, ByDescriptor)]
    while by_descriptor and (left := deadline - time.monotonic()) > 0:
        gone = _poll(by_descriptor, left)
        by_descriptor = [each for each in by_descriptor if each.descriptor not in gone]
    by_start = [each for each in held if isinstance(each, ByStartTime)]
    while by_start and time.monotonic() < deadline:
        import psutil

        psutil.wait_procs([each.process for each in by_start], timeout=0.05)
        by_start = [each for each in by_start if not each.ended()]  # a zombie has ended, too


def _poll(held: Sequence[ByDescriptor], seconds: float) -> set[int]:
    """Return the descriptors of those that have ended, after waiting for one of them."""
    import select

    waiting = select.poll()
    for each in held:
        waiting.register(each.descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in waiting.poll(seconds * 1000)}


def ourselves() -> Iterator[int]:
    """Yield this process and those that it descends from."""
    pid: int | None = os.getpid()
    while pid:
        yield pid
        pid = _parent(pid)


def _parent(pid: int) -> int | None:
    if pid == os.getpid():
        return os.getppid()
    if sys.platform != "linux":
        import psutil

        try:
            return psutil.Process(pid).ppid()
        except psutil.Error:
            return None
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            status = file.read()
    except OSError:
        return None
    return int(status[status.rfind(b")") + 2 :].split()[1])


def children_of(pid: int) -> list[psutil.Process]:
    """Return all that descend from a process."""
    import psutil

    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def is_in_group(pid: int, group: int) -> bool:
    """Say whether a process is in a process group."""
    try:
        return os.getpgid(pid) == group
    except (ProcessLookupError, PermissionError):
        return False
