"""Which process a short command works for: the shell that called it. Signals none of them."""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os
import stat

from tachograph.infra.processes import PROC, parent_pid

FORKED = 0x40
"""PF_FORKNOEXEC of Linux: the process was forked and has run no program of its own since."""
_FLAGS_FIELD = 6


def calling_shell(proc: str = PROC) -> int | None:
    """Return the process that called this one, None when it is not visible.

    A shell forks itself for `$(…)`, and that copy ends with it. Such a copy writes to the same
    pipe as this process; the shell that reads the pipe is meant then. Told apart on Linux only.
    """
    caller = parent_pid()
    pipe = _pipe(f"{proc}/self/fd/1")
    while caller and pipe and _pipe(f"{proc}/{caller}/fd/1") == pipe:
        fields = _status(caller, proc)
        if len(fields) <= _FLAGS_FIELD or not int(fields[_FLAGS_FIELD]) & FORKED:
            break
        caller = int(fields[1])
    return caller or None


def _pipe(path: str) -> tuple[int, int] | None:
    """Return what tells a pipe from all others, None when the file is no pipe."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISFIFO(found.st_mode) else None


def _status(pid: int, proc: str) -> list[bytes]:
    """Return the fields of a process from its state on (proc(5)); none when it is gone."""
    try:
        with open(f"{proc}/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return []
    return text[text.rfind(b")") + 2 :].split()
