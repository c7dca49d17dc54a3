"""Go on with work in a process that nobody waits for. Knows no run."""

from __future__ import annotations

import os
import sys
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def in_background(work: Callable[[], None]) -> None:
    """Do work in a process of its own, in a session of its own; return at once.

    It outlives this process, its terminal, and the timer that called it. Whatever it prints goes
    to stderr, so that nobody who reads stdout waits for it. There must be no other threads. Where
    there is no fork the work is done here.
    """
    if not hasattr(os, "fork"):
        work()
        return
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    # The first child ends at once, so that the second one is no child of this process.
    if os.fork():
        os._exit(0)
    code = 1
    try:
        os.setsid()
        os.dup2(2, 1)
        work()
        sys.stdout.flush()
        code = 0
    except BaseException:  # noqa: BLE001  # nobody is above to report it
        traceback.print_exc()
    finally:
        os._exit(code)
