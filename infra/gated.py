"""Start a program in a child that waits for a word first: not one instruction of it runs before.

The child is a fork, no shell: a shell changes the environment and the exit codes of what it runs.
Whoever is killed before the word leaves a pipe that ends, and a program that never began.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

GO = b"g"


class Gated:
    """A child that becomes a program when it is told to, and keeps its pid.

    `streams` says which of our descriptors become which of its own; everything else is as if the
    program were run from here, but that it does not ignore SIGPIPE as Python does. With
    `own_group` it leads a group of its own, from the beginning.

    To be made while no other thread runs: a fork copies none, and would leave locks held.
    Raises OSError, with nothing started, for a program that is not there or not executable.
    """

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        streams: Mapping[int, int],
        own_group: bool,
    ) -> None:
        program = find_program(argv[0], environment)
        self._name = argv[0]
        with contextlib.ExitStack() as opened:
            waiting, self._word = _pipe(opened)
            self._answer, answering = _pipe(opened)
            # A signal waits until both know what to do with it: none is lost, or taken by ours.
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                self.pid = os.fork()
                if not self.pid:
                    os.close(self._word)  # else it would wait for itself
                    ends = waiting, answering
                    _become(program, argv, environment, streams, ends, mask, own_group=own_group)
                if own_group:  # both say so, since either may be first
                    with contextlib.suppress(ProcessLookupError):  # killed meanwhile
                        os.setpgid(self.pid, self.pid)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            opened.pop_all()
        os.close(waiting)
        os.close(answering)

    def let_go(self) -> None:
        """Let the program run. Raises OSError, with the child reaped, when it cannot be."""
        with contextlib.suppress(BrokenPipeError):  # a signal was faster
            os.write(self._word, GO)
        os.close(self._word)
        wrong = os.read(self._answer, 16)  # the program has begun when this ends
        os.close(self._answer)
        if wrong:
            os.waitpid(self.pid, 0)
            raise _error(int(wrong), self._name)

    def give_up(self) -> None:
        """End the child; the program never runs."""
        os.close(self._word)
        os.close(self._answer)
        os.waitpid(self.pid, 0)


def find_program(name: str, environment: Mapping[str, str]) -> str:
    """Return the path of a program, as a shell finds it.

    Raises FileNotFoundError, PermissionError or another OSError, with its name.
    """
    if os.sep in name:
        _check(name, name)
        return name
    denied = None
    for folder in environment.get("PATH", os.defpath).split(os.pathsep) if name else ():
        path = os.path.join(folder, name)
        try:
            _check(path, name)
        except PermissionError as error:
            denied = error
        except OSError:
            continue
        else:
            return path
    raise denied or _error(errno.ENOENT, name)


def _check(path: str, name: str) -> None:
    try:
        found = os.stat(path)
    except OSError as error:
        raise _error(error.errno or errno.ENOENT, name) from error
    if not stat.S_ISREG(found.st_mode) or not os.access(path, os.X_OK):
        raise _error(errno.EACCES, name)


def _pipe(opened: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        opened.callback(os.close, end)
    return ends


def _become(
    program: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    streams: Mapping[int, int],
    ends: tuple[int, int],
    mask: set[int | signal.Signals],
    *,
    own_group: bool,
) -> NoReturn:
    """Wait for the word, in the child, and become the program; or say what is wrong, and end."""
    waiting, answering = ends
    try:
        if own_group:
            os.setpgid(0, 0)
        _take_no_signals()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for ours, its in streams.items():
            os.dup2(ours, its)
        if os.read(waiting, 1) == GO:
            os.execve(program, list(argv), environment)  # noqa: S606  # no shell is the point
    except BaseException as error:  # noqa: BLE001  # nothing may get out into the parent's code
        number = error.errno if isinstance(error, OSError) else None
        os.write(answering, b"%d" % (number or errno.EINVAL))
    finally:
        os._exit(1)


def _take_no_signals() -> None:
    """Let signals do what they do by default, where they called a function of the parent."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


def _error(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)
