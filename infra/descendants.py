"""Find the processes that came from one, signal them, wait for them. Starts none.

A process belongs to the family when it is in the session of the first one, in its group, when
it descends from it, or when it carries its mark in the environment: each of these is lost in
some way that daemons use, hardly all of them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psutil

LOOK_SECONDS = 0.05
ROUNDS = 10
"""Searches for processes that were forked while others were stopped or killed."""
KILL_SECONDS = 2.0
"""How long a killed process may take to go: one in the middle of a disk access lingers."""


class Family:
    """The first process, which leads its session and group, and all that came from it.

    While the first one is not reaped its pid, and with it session and group, are no other's.
    """

    def __init__(self, leader: int, mark: str) -> None:
        self.leader = leader
        self._mark = os.fsencode(mark)
        self._known: dict[int, psutil.Process] = {}

    def collect(self) -> None:
        """Remember all that live now, also for when they have left by every other sign."""
        for process in self._search():
            self._known.setdefault(process.pid, process)

    def living(self) -> list[psutil.Process]:
        """Return those that live, the oldest first, without the leader."""
        self.collect()
        return sorted(filter(_lives, self._known.values()), key=_age)

    def signal(self, number: int) -> None:
        """Signal all that are known, and the group as a whole."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.leader, number)
        for process in self._known.values():
            if _outside(process.pid, self.leader):
                _send(process, number)

    def wait(self, seconds: float) -> None:
        """Wait until all that are known but the leader are gone, or the time is up."""
        deadline = time.monotonic() + seconds
        while any(map(_lives, self._known.values())) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)

    def kill(self) -> None:
        """End all that are left with SIGKILL, the leader included."""
        for _ in range(ROUNDS):
            self._freeze()
            self.signal(signal.SIGKILL)
            self.wait(KILL_SECONDS)
            if not self.living():
                return

    def _freeze(self) -> None:
        """Stop all, so that none forks while others are killed, and an orphan is overlooked."""
        for _ in range(ROUNDS):
            self.signal(signal.SIGSTOP)
            before = len(self._known)
            self.collect()
            if len(self._known) == before:
                return

    def _search(self) -> Iterator[psutil.Process]:
        import psutil

        parents = {pid: _parent(pid) for pid in psutil.pids()}
        found = {pid for pid in parents if self._belongs(pid)}
        found |= {pid for pid, process in self._known.items() if _lives(process)}
        new = found | {self.leader}
        while new:
            new = {pid for pid, parent in parents.items() if parent in new} - found
            found |= new
        for pid in found - {self.leader}:
            with contextlib.suppress(psutil.NoSuchProcess):
                yield psutil.Process(pid)

    def _belongs(self, pid: int) -> bool:
        if pid == os.getpid():
            return False
        try:
            if self.leader in (os.getsid(pid), os.getpgid(pid)):
                return True
        except (ProcessLookupError, PermissionError):
            return False
        return self._mark in _environment(pid)


def _parent(pid: int) -> int | None:
    import psutil

    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return None


def _environment(pid: int) -> list[bytes]:
    """Return the variables that a process was started with; none where that is not shown."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def _age(process: psutil.Process) -> tuple[float, int]:
    import psutil

    try:
        return process.create_time(), process.pid
    except psutil.Error:  # it has just ended
        return 0.0, process.pid


def _outside(pid: int, group: int) -> bool:
    try:
        return os.getpgid(pid) != group
    except (ProcessLookupError, PermissionError):
        return True


def _lives(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _send(process: psutil.Process, number: int) -> None:
    """Signal the very process that was found, never a later one with its pid."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        process.send_signal(number)
