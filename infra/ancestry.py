"""The processes above this one, nearest first. Signals none of them, and changes nothing."""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os
import sys

from tachograph.domain.records import _Fields
from tachograph.infra.processes import PROC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
HOSTS = frozenset({"cron", "crond", "init", "launchd", "sshd", "systemd", "tini", "dumb-init"})
"""Programs that start work of all kinds and do none of it."""
MARKER = "OPENCLAW_SHELL"
"""Variable that OpenClaw sets for what it starts, and has not itself."""
MOST = 64
_PARENT, _SESSION, _STARTED = 1, 3, 19  # fields of stat after the name (proc(5))


class Process(_Fields):
    """A process: `started` tells it from a later one of the same pid, `words` is its command.

    `session` is its session, `marked` whether the marker of an agent is in its environment;
    both are None where they cannot be seen.
    """

    __slots__ = ("marked", "pid", "session", "started", "words")

    def __init__(
        self,
        pid: int,
        started: int,
        words: list[str],
        session: int | None = None,
        marked: bool | None = None,
    ) -> None:
        self.pid = pid
        self.started = started
        self.words = words
        self.session = session
        self.marked = marked

    @property
    def is_shell_for_others(self) -> bool:
        """Whether it is a shell that runs one command line, or that a person types into.

        >>> Process(1, 1, ["bash", "-lc", "make"]).is_shell_for_others
        True
        >>> Process(1, 1, ["/bin/bash", "-e", "job.sh"]).is_shell_for_others
        False
        """
        if not self.words or os.path.basename(self.words[0]).lstrip("-") not in SHELLS:
            return False
        for word in self.words[1:]:
            if word[:1] != "-":
                return False
            if word[:2] != "--" and "c" in word:
                return True
        return True

    @property
    def is_host(self) -> bool:
        """Whether it only starts what others ask for."""
        return not self.words or os.path.basename(self.words[0]) in HOSTS


def ancestors(pid: int | None = None, proc: str = PROC) -> list[Process]:
    """Return the processes above one, this one by default, nearest first."""
    look: Callable[[int], tuple[int, Process] | None]
    look = (lambda each: _look(each, proc)) if sys.platform == "linux" else _look_elsewhere
    seen = look(os.getpid() if pid is None else pid)
    found: list[Process] = []
    while seen is not None and seen[0] > 0 and len(found) < MOST:
        seen = look(seen[0])
        if seen is not None:
            found.append(seen[1])
    return found


def worker(above: list[Process], here: Process | None = None) -> Process | None:
    """Return the process that evidently works through the commands it gives; None if none does.

    Shells for one command line are passed over. What issues commands for many, each in a
    session of its own or with an agent's marker, is nobody's worker.
    """
    below = here
    for process in above:
        if process.is_shell_for_others:
            below = process
            continue
        if process.is_host or (below is not None and _starts_for_others(process, below)):
            return None
        return process
    return None


def _starts_for_others(process: Process, below: Process) -> bool:
    if below.marked and process.marked is False:
        return True
    return None not in (process.session, below.session) and process.session != below.session


def this_process(proc: str = PROC) -> Process | None:
    """Return this process as its ancestors see it."""
    seen = _look(os.getpid(), proc) if sys.platform == "linux" else _look_elsewhere(os.getpid())
    return None if seen is None else seen[1]


def _look(pid: int, proc: str) -> tuple[int, Process] | None:
    """Return a process and its parent's pid; None when it is gone, or may not be looked at."""
    status = _read(f"{proc}/{pid}/stat")
    fields = status[status.rfind(b")") + 2 :].split()
    if len(fields) <= _STARTED:
        return None
    words = [os.fsdecode(word) for word in _read(f"{proc}/{pid}/cmdline").split(b"\0")[:-1]]
    environment = _read(f"{proc}/{pid}/environ")
    marked = None
    if environment:
        name = f"{MARKER}=".encode()
        marked = any(entry.startswith(name) for entry in environment.split(b"\0"))
    process = Process(pid, int(fields[_STARTED]), words, int(fields[_SESSION]), marked)
    return int(fields[_PARENT]), process


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _look_elsewhere(pid: int) -> tuple[int, Process] | None:
    import psutil

    from tachograph.infra.processes import process_start

    try:
        process = psutil.Process(pid)
        parent, words = process.ppid(), process.cmdline()
    except psutil.Error:
        return None
    started = process_start(pid)
    return None if started is None else (parent, Process(pid, started, words))
