"""How an error ends a command: a line on stderr and an exit code. Hides no traceback for good."""

from __future__ import annotations

import os
import sys

from tachograph.cli.exit_codes import BROKEN_PIPE, INTERRUPTED, of_error
from tachograph.domain.errors import TachographError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DEBUG = "TACHO_DEBUG"
"""Set to 1 to see tracebacks."""


def report(error: BaseException, *, as_json: bool) -> int:
    """Print an error as one line, or as a JSON object, and return the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    code = of_error(error)
    if isinstance(error, BrokenPipeError):
        _close_broken_streams()
        return BROKEN_PIPE
    if os.environ.get(DEBUG, "0") not in ("", "0"):
        import traceback

        traceback.print_exception(error)
    say(type(error).__name__, message(error), code, as_json=as_json)
    return code


def say(name: str, text: str, code: int, *, as_json: bool) -> None:
    """Print an error on stderr."""
    if as_json:
        from tachograph.cli.output import to_json

        text = to_json({"error": name, "message": text, "exitCode": code})
    elif code != INTERRUPTED:
        text = f"tacho: {text}"
    try:
        sys.stdout.flush()
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except BrokenPipeError:
        _close_broken_streams()


def fail_eval(argv: Sequence[str], code: int) -> None:
    """Print shell code that fails, so that `eval "$(tacho … --export)"` does not seem to work."""
    words = argv[: argv.index("--")] if "--" in argv else argv
    if "--export" in words:
        sys.stdout.write(f"(exit {code})\n")


def message(error: BaseException) -> str:
    """Return what to tell a person about an error."""
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted."
    if isinstance(error, TachographError):
        return str(error)
    if isinstance(error, FileNotFoundError) and _folder_is_gone():
        return (
            "The current folder was deleted, and this counts from it. Change to another one (cd); "
            "what only needs a store works with an absolute --store or TACHO_STORE."
        )
    text = " ".join(str(error).split())
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, OSError):
        return what
    return f"{what} (unexpected; set {DEBUG}=1 to see where)"


def _folder_is_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  # pathlib costs 10 ms
    except FileNotFoundError:
        return True
    return False


def _close_broken_streams() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not complain at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
