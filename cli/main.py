"""The entry of `tacho`: understand the command line cheaply, run the command, end well.

Job scripts call it in loops, so it imports click only where the light parser gives up.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any, NoReturn


INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended; see `exit_codes`, which is not imported for it."""
GARBAGE_THRESHOLD = 100_000
"""Objects between collections: a short command makes fewer, and needs none."""
COMPLETING = "_TACHO_COMPLETE"
"""Set by the shell when it asks click for completions."""


def main() -> NoReturn:
    """Run `tacho` with this process's arguments and end the process."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    open_missing_streams()
    code = execute(sys.argv[1:])
    if code == INTERRUPTED:
        _die_interrupted()
    _leave(code)


def open_missing_streams() -> None:
    """Put /dev/null where stdin, stdout or stderr was closed, as with `>&-` or by a daemon.

    Else a file of the store would get the number of a stream, and be printed into.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is this one. Programs that are started get it as well.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def execute(argv: Sequence[str]) -> int:
    """Run a command line and return its exit code; every error is printed, none is raised."""
    code = _execute(argv)
    if code and "--export" in argv:
        from tachograph.cli.failing import fail_eval

        fail_eval(argv, code)
    return code


def _execute(argv: Sequence[str]) -> int:
    try:
        from tachograph.cli.light import parse

        call = None if COMPLETING in os.environ else parse(argv, os.environ)
        if call is not None:
            return invoke(call.module, call.values, call.everywhere)
        from tachograph.cli.app import run_app

        return run_app(argv)
    except BaseException as error:  # noqa: BLE001  # the last line of defence
        from tachograph.cli.failing import report

        return report(error, as_json="--json" in argv)


def invoke(module: ModuleType, values: dict[str, Any], everywhere: dict[str, Any]) -> int:
    """Run a command with its values and return its exit code. Raises what the command raises."""
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output, use_plain_streams

    use_plain_streams()
    out = Output(**everywhere)
    try:
        code = module.run(Params(values), out)
        flush()
        return code or 0
    finally:
        out.close()


def _leave(code: int) -> NoReturn:
    """End the process without taking its modules apart one by one, which costs 7 ms.

    What is durable is so already, what was open is closed, and what was asked to be done at
    exit is done.
    """
    import atexit

    atexit._run_exitfuncs()
    try:
        flush()
    except OSError:
        code = code or 1
    os._exit(code)


def _die_interrupted() -> None:
    """End by SIGINT, which shells show as 130: only then does a script with a loop end as well."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def flush() -> None:
    """Write out what is buffered, so that a broken pipe shows here and not at exit."""
    sys.stdout.flush()
    sys.stderr.flush()
