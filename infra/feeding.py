"""Whether somebody feeds this process data that is there only once. Reads none of it."""

from __future__ import annotations

import fcntl
import os
import select
import stat
import termios


def is_fed(descriptor: int) -> bool:
    """Say whether somebody's data comes in here, which cannot be read a second time.

    Nothing does from a terminal, from /dev/null, from a file at its end, or from a pipe that its
    writer has closed empty, as cron does.
    """
    try:
        found = os.fstat(descriptor)
    except OSError:  # it is closed
        return False
    if stat.S_ISREG(found.st_mode):
        return os.lseek(descriptor, 0, os.SEEK_CUR) < found.st_size
    if stat.S_ISFIFO(found.st_mode):
        return not _is_at_its_end(descriptor)
    return stat.S_ISSOCK(found.st_mode)


def _is_at_its_end(pipe: int) -> bool:
    """Say whether nobody can write to a pipe any more, and nothing is in it."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    ended = any(state & select.POLLHUP for _, state in poll.poll(0))
    return ended and not any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
