"""What a job declares about its recovery, made complete: the command, the folder, the files."""

from __future__ import annotations

import os
import sys

from tachograph.domain.errors import InvalidValueError
from tachograph.domain.recovery import CODE, INPUT, Recovery
from tachograph.planning import trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import NoReturn

SCRIPT = "script"
MODULE = "m"
CODE_GIVEN = "c"
"""What Python runs: a file (or folder, or archive), or what comes after `-m` or `-c`."""
_FLEETING = ("/dev/", "/proc/")
"""Files that hold something else, or nothing, for the next process that opens them."""


def by_this_command(*, auto_resume: bool) -> Recovery:
    """Return the recovery of a program that goes on when it is started once more, as it was.

    Raises InvalidValueError for one that cannot be, such as one that Python read from stdin.
    """
    words, script, folder = _as_started()
    return Recovery(
        command=words,
        working_folder=folder,
        auto_resume=auto_resume,
        traces=[trace(script, CODE)] if script and os.path.isfile(script) else [],  # noqa: PTH113
    )


def traced(recovery: Recovery, *, code: Iterable[str] = (), inputs: Iterable[str] = ()) -> Recovery:
    """Return a recovery that knows how files are now, so that a plan can say what has changed.

    Raises OSError when one cannot be read.
    """
    traces = [trace(path, CODE) for path in code] + [trace(path, INPUT) for path in inputs]
    return recovery.changed(traces=[*recovery.traces, *traces])


def _as_started() -> tuple[list[str], str, str]:
    """Return the words, the path of the script ("" without one), and the folder of the start."""
    words = [sys.executable, *sys.orig_argv[1:]]
    main_file = str(getattr(sys.modules.get("__main__"), "__file__", None) or "")
    what, place = _what_is_run(sys.orig_argv)
    if not what:
        _refuse("Python read this program from its standard input")
    if "--multiprocessing-fork" in words:
        _refuse("multiprocessing has started this process")
    if what != CODE_GIVEN and not main_file:
        _refuse("this is an interactive session")
    if what != SCRIPT:
        return words, "", _known(_folder_of_module(main_file))
    folder = _known(_folder_of_start(words[place], main_file))
    script = words[place] = os.path.join(folder, words[place])  # noqa: PTH118
    if script.startswith(_FLEETING) or not (os.path.isfile(script) or os.path.isdir(script)):  # noqa: PTH112, PTH113
        _refuse(f"there is no file {script} to be read again")
    return words, script, folder


def _what_is_run(argv: Sequence[str]) -> tuple[str, int]:
    """Return what Python was told to run, and the place of the word that says so.

    "" stands for standard input, or nothing.

    >>> _what_is_run(["python", "-X", "utf8", "job.py", "-c"])
    ('script', 3)
    >>> _what_is_run(["python", "-um", "job"])[0], _what_is_run(["python", "-"])[0]
    ('m', '')
    """
    place = 1
    while place < len(argv) and argv[place] != "-":
        word = argv[place]
        if word[:1] != "-":
            return SCRIPT, place
        place += 1
        if word in ("--check-hash-based-pycs", "--"):
            place += word != "--"
            continue
        for number, letter in enumerate(word[1:], 2):
            if letter in (MODULE, CODE_GIVEN):
                return letter, place
            if letter in "WX":  # its value is the rest of the word, or else the next one
                place += number == len(word)
                break
    return "", place


def _folder_of_start(script: str, main_file: str) -> str | None:
    """Return the folder that a relative script counts from: Python noted its absolute path."""
    for ending in (script, os.path.join(script, "__main__.py")):  # noqa: PTH118
        if not os.path.isabs(script) and main_file.endswith(os.sep + ending):  # noqa: PTH117
            return main_file[: -len(ending) - 1] or os.sep
    return _FIRST_FOLDER


def _folder_of_module(main_file: str) -> str | None:
    """Return the folder that `-m` found a module in, which comes first on Python's path."""
    first = sys.path[0] if sys.path and not sys.flags.safe_path else ""
    return first if first and main_file.startswith(first + os.sep) else _FIRST_FOLDER


def _known(folder: str | None) -> str:
    if folder is None:
        _refuse("the folder that it was started in was deleted")
    return folder


def _refuse(why: str) -> NoReturn:
    advice = "say what does, with recovery=Recovery(command=[…], auto_resume=True)"
    told = f"nothing can start it again, since {why}; {advice}"
    raise InvalidValueError("auto_resume", True, told)  # noqa: FBT003


def _current_folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return None


_FIRST_FOLDER = _current_folder()
"""Where the program was when it imported this: where it was started, or as near as is known."""
