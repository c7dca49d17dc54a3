"""Call a Python function as a maintenance step, and tell what it returns: by an exit code, or more.

Opens no store: where an outcome is recorded comes in as a function.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
import traceback
from typing import TYPE_CHECKING

from tachograph.domain.errors import TachographError
from tachograph.domain.outcome import is_outcome, traits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

GROUP = "tachograph.maintenance"
"""Entry points that a step can name."""
FAILED, UNUSABLE, HIGHEST = 1, 127, 255


def returned_key(epoch: int) -> str:
    """Return the key of the recorded step that says which outcome a step's function returned.

    >>> returned_key(2)
    'returned:2'
    """
    return f"returned:{epoch}"


class StepJobError(Exception):
    """There is no such function."""


def call(argv: Sequence[str], report: Callable[[str], None] = lambda _outcome: None) -> int:
    """Call the function that the only argument names, and return the exit code.

    Returning None means success, a whole number is the exit code. One of the seven outcomes is
    reported, since exit codes cannot tell all of them apart, and ends with its exit code. An
    exception ends with 1 and its traceback on stderr, and so does a report that fails.
    """
    if len(argv) != 1:
        sys.stderr.write("usage: python -m tachograph.step_main module:function\n")
        return 2
    try:
        function = find(argv[0])
    except StepJobError as error:
        sys.stderr.write(f"tacho: {error}\n")
        return UNUSABLE
    try:
        result = function()
        if inspect.isawaitable(result):
            result = asyncio.run(_awaited(result))
    except Exception:  # noqa: BLE001  # whatever it raises, the step failed
        traceback.print_exc()
        return FAILED
    code = code_of(result)
    if isinstance(result, str) and is_outcome(result):
        try:
            report(result)
        except (TachographError, OSError) as error:
            sys.stderr.write(f"tacho: that the step is {result!r} was not recorded: {error}\n")
            return code or FAILED  # by its exit code alone it would pass for a success
    return code


def code_of(result: Any) -> int:
    """Return the exit code for what a function returned.

    >>> code_of(None), code_of(3), code_of("partial")
    (0, 3, 75)
    """
    if result is None or result is True:
        return 0
    if isinstance(result, str) and is_outcome(result):
        return traits(result).exit_code
    if isinstance(result, int) and not isinstance(result, bool):
        return result if 0 <= result <= HIGHEST else FAILED
    sys.stderr.write(f"tacho: the step returned {result!r}, which says nothing of how it went\n")
    return FAILED


def find(name: str) -> Callable[[], Any]:
    """Return the function that an entry point, or `module:function`, names.

    Raises StepJobError. Modules are found in the working folder too.
    """
    from importlib.metadata import entry_points

    sys.path.append(os.getcwd())  # noqa: PTH109  # last: it stands in for nothing installed
    try:
        for point in entry_points(group=GROUP, name=name):
            loaded: Callable[[], Any] = point.load()
            return loaded
        module, _, path = name.partition(":")
        if not path:
            raise StepJobError(
                f"there is no step {name!r}: write module:function, or name an entry point of "
                f"the group {GROUP}"
            )
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise StepJobError(f"the step {name!r} cannot be loaded: {error}") from error
    if not callable(found):
        raise StepJobError(f"{name} is no function")
    function: Callable[[], Any] = found
    return function


async def _awaited(result: Any) -> Any:
    return await result
