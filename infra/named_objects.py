"""Import what a file or a command names: a module, or `module:name`. Runs nothing else."""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os
import sys

from tachograph.domain.handler_errors import CodeNotFoundError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load(name: str, folder: str | None = None) -> Any:
    """Return the module of this name, or what `module:name` is in one.

    Modules of `folder` (the current one without it) are found too, after all that is installed.
    Raises CodeNotFoundError, whatever the import of the module raised.
    """
    place = os.path.abspath(folder or os.curdir)
    if place not in sys.path:
        sys.path.append(place)  # last: it stands in for nothing installed
    module, _, path = name.partition(":")
    try:
        __import__(module)
        found: Any = sys.modules[module]
        for part in path.split(".") if path else ():
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # code of the project: it may raise anything
        raise CodeNotFoundError(name, _told(error, module), place) from error
    return found


def _told(error: Exception | SystemExit, module: str) -> str:
    if isinstance(error, ModuleNotFoundError | ValueError) and module.endswith(".py"):
        return f"write the module's name, {module.removesuffix('.py').replace(os.sep, '.')}"
    if isinstance(error, SystemExit):
        return f"it ended the program, with {error.code}, while it was loaded"
    if isinstance(error, ImportError | AttributeError):
        return str(error)
    return f"{type(error).__name__}: {error}"
