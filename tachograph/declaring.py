"""What a job declares about its recovery, made complete: the command, the folder, the files."""

from __future__ import annotations

import os
import sys

from tachograph.domain.recovery import CODE, INPUT, Recovery
from tachograph.planning import trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def this_command() -> list[str]:
    """Return the words that start this Python program once more, as it was started."""
    return [sys.executable, *sys.orig_argv[1:]]


def by_this_command(*, auto_resume: bool) -> Recovery:
    """Return the recovery of a program that goes on when it is started once more, from here."""
    script = sys.argv[0] if sys.argv else ""
    code = [script] if script and os.path.isfile(script) else []  # noqa: PTH113
    return Recovery(
        command=this_command(),
        working_folder=os.getcwd(),  # noqa: PTH109
        auto_resume=auto_resume,
        traces=[trace(path, CODE) for path in code],
    )


def traced(recovery: Recovery, *, code: Iterable[str] = (), inputs: Iterable[str] = ()) -> Recovery:
    """Return a recovery that knows how files are now, so that a plan can say what has changed.

    Raises OSError when one cannot be read.
    """
    traces = [trace(path, CODE) for path in code] + [trace(path, INPUT) for path in inputs]
    return recovery.changed(traces=[*recovery.traces, *traces])
