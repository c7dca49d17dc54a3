"""Stop the processes of a run: ask, wait, kill on request. Signals no process but the recorded one.

A pid alone names nobody: it is used again. A process is taken for the recorded one when boot,
pid namespace and start time agree, and is then held (see `holding`), so that no later process
with its pid is ever hit.
"""

from __future__ import annotations

import os

from tachograph.domain.liveness import UNSEEN
from tachograph.domain.owner import UNOWNED
from tachograph.domain.records import _Fields
from tachograph.infra.holding import children_of, hold, is_in_group, ourselves, wait
from tachograph.infra.processes import process_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

    from tachograph.domain.liveness import Observer
    from tachograph.domain.owner import Owner
    from tachograph.infra.holding import Held


KILL_ROUNDS = 5
"""Searches for processes that were forked while their parents were killed."""
KILLED_SECONDS = 5.0
"""How long a killed process may take to go: one in the middle of a disk access lingers."""


class Stopped(_Fields):
    """What came of it.

    `asked` and `killed` are the pids that were sent SIGTERM and SIGKILL, `left` those that still
    live. `ended` says that none of the recorded processes and of what they had started lives.
    `reason` says why a process was left alone, None when none was.
    """

    __slots__ = ("asked", "ended", "killed", "left", "reason")

    def __init__(
        self,
        asked: Sequence[int] = (),
        killed: Sequence[int] = (),
        left: Sequence[int] = (),
        *,
        ended: bool = False,
        reason: str | None = None,
    ) -> None:
        self.asked = list(asked)
        self.killed = list(killed)
        self.left = list(left)
        self.ended = ended
        self.reason = reason


def stop(
    owner: Owner, worker: Owner | None, *, here: Observer, grace_seconds: float, kill: bool
) -> Stopped:
    """Ask the worker and then the owner to end, and wait for that up to the grace.

    Each is sent SIGTERM with the process group that it leads; the owner once the worker has
    ended, or half the grace is over, so that it may still say what became of the worker. With
    `kill`, what is left after the grace is sent SIGKILL: they, and whatever descended from them.
    A process of another boot, host or container is left alone, and so are this process and those
    that it descends from.
    """
    with _Crew() as crew:
        for process in _distinct(worker, owner):
            crew.take(process, here)
        if crew.leaders:
            crew.ask(grace_seconds)
            if kill:
                crew.kill()
        left = [each.pid for each in crew.living()]
        return Stopped(
            crew.asked,
            crew.killed,
            left,
            ended=not left and not crew.unclear,
            reason="; ".join(crew.reasons) or None,
        )


def _distinct(worker: Owner | None, owner: Owner) -> list[Owner]:
    if worker is None or (worker.pid, worker.started) == (owner.pid, owner.started):
        return [owner]
    return [worker, owner]


def _gone(process: Owner, here: Observer) -> str | None:
    """Return how it is known that a recorded process does not live any more, None when it may."""
    if process.boot_id is not None and here.boot_id not in (None, process.boot_id):
        if process.host == here.host:
            return f"{process} ran before this machine was restarted"
    elif _is_visible(process, here):
        started = process_start(process.pid or 0)
        if started not in (process.started, UNSEEN):
            return f"process {process.pid} has ended"
    return None


def _refusal(process: Owner, here: Observer) -> str | None:
    """Return why a process is not to be signalled, None when it is certainly the recorded one."""
    if process.kind == UNOWNED:
        return "no process stands for the run"
    if process.pid is None or process.started is None or process.boot_id is None:
        return f"{process} was recorded without what tells it from others"
    if here.boot_id is None:
        return f"{process} cannot be told from others: this machine does not say which boot it is"
    if process.boot_id != here.boot_id:
        return f"{process} is on another machine, or ran before this one was started"
    if process.pid_namespace != here.pid_namespace:
        return f"{process} is in another container"
    if process_start(process.pid) != process.started:
        return f"process {process.pid} may not be looked at"
    return None


def _is_visible(process: Owner, here: Observer) -> bool:
    """Whether the pid means here what it meant where it was recorded."""
    return (
        process.kind != UNOWNED
        and None not in (process.pid, process.started, process.boot_id)
        and (process.boot_id, process.pid_namespace) == (here.boot_id, here.pid_namespace)
    )


class _Crew:
    """The processes of a run that are held, and what was done to them."""

    def __init__(self) -> None:
        self.leaders: list[Held] = []
        """The recorded processes, the worker first."""
        self.asked: list[int] = []
        self.killed: list[int] = []
        self.reasons: list[str] = []
        """Why recorded processes were left alone."""
        self.unclear = False
        """Whether one of those may still live."""
        self._ourselves = frozenset(ourselves())
        self._held: dict[int, Held] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for each in self._held.values():
            each.close()

    def take(self, process: Owner, here: Observer) -> None:
        """Hold a recorded process, or say why it is left alone."""
        gone = _gone(process, here)
        reason = gone or _refusal(process, here)
        if reason is None and process.pid in self._ourselves:
            reason = f"this command runs below process {process.pid}, which is left alone"
        if reason is None and process.pid is not None:
            held = hold(process.pid, process.started)
            if held is not None:
                self._held[held.pid] = held
                self.leaders.append(held)
                return
            gone = reason = f"process {process.pid} has ended"
        self.reasons.append(reason or "")
        self.unclear |= gone is None

    def ask(self, grace_seconds: float) -> None:
        """Send SIGTERM to each leader and its group, and wait until all have ended."""
        for leader in self.leaders:
            self._ask(leader)
            grace_seconds -= self.wait(grace_seconds, until=leader)

    def _ask(self, leader: Held) -> None:
        import signal

        group = [leader, *self._hold_group(leader)]
        self._hold_children(group)
        for each in group:
            if each.pid not in self.asked and not each.ended() and each.send(signal.SIGTERM):
                self.asked.append(each.pid)
                each.send(signal.SIGCONT)  # one that was stopped would never hear of it

    def kill(self) -> None:
        """Send SIGKILL to all that live, those included that are forked meanwhile."""
        import signal

        for _ in range(KILL_ROUNDS):
            for leader in self.leaders:
                self._hold_group(leader)
            self._hold_children(self.living())
            living = self.living()
            if not living:
                return
            for each in living:
                if each.send(signal.SIGKILL) and each.pid not in self.killed:
                    self.killed.append(each.pid)
            self.wait(KILLED_SECONDS)

    def living(self) -> list[Held]:
        """Return those that have not ended."""
        return [each for each in self._held.values() if not each.ended()]

    def wait(self, seconds: float, *, until: Held | None = None) -> float:
        """Wait until all have ended, or the time is up; return how long it took.

        Until the first of two leaders has ended, half the time is all that is waited.
        """
        import time

        start = time.monotonic()
        if until is None or until is self.leaders[-1]:
            wait(self.living(), seconds)
        else:
            wait([until], seconds / 2)
        return time.monotonic() - start

    def _hold_group(self, leader: Held) -> list[Held]:
        """Hold the other members of the group that a process leads, and return them.

        Never of our own group. A leader that has ended leads none: its pid may be used again.
        """
        if not is_in_group(leader.pid, leader.pid) or leader.pid == os.getpgrp() or leader.ended():
            return []
        from functools import partial

        import psutil

        return [
            held
            for pid in psutil.pids()
            if pid != leader.pid
            and is_in_group(pid, leader.pid)
            and (held := self._hold_if(pid, partial(is_in_group, pid, leader.pid)))
        ]

    def _hold_children(self, parents: Sequence[Held]) -> None:
        for parent in parents:
            children = children_of(parent.pid)
            if not parent.ended():  # else its pid may have been another one's by then
                for child in children:
                    self._hold_if(child.pid, child.is_running)

    def _hold_if(self, pid: int, is_meant: Callable[[], bool]) -> Held | None:
        """Hold a process unless it is one of ours; `is_meant` is asked while it is held."""
        if pid in self._ourselves:
            return None
        held = self._held.get(pid) or hold(pid, process_start(pid))
        if held is None:
            return None
        if not is_meant():
            if pid not in self._held:
                held.close()
            return None
        self._held[pid] = held
        return held
