"""Find what a run names as its adapter: a function, an entry point or a program. Runs none."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from tachograph.domain.errors import AdapterNotFoundError, AdapterUnusableError
from tachograph.domain.records import _Fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec

GROUP = "tachograph.adapters"
"""Group of entry points that packages offer adapters in."""
FUNCTION = "function"
ENTRY_POINT = "entry_point"
EXECUTABLE = "executable"
RUNNER = "tachograph.adapter_main"
"""Module that calls an adapter which is a function."""

_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"


class AdapterCommand(_Fields):
    """An adapter that was found.

    `kind` is "function", "entry_point" or "executable", `name` what it was called by. `argv`
    runs it, still without the arguments of `arguments`. `code_path` is the file of its code,
    None where there is none to read, such as for a built-in module.
    """

    __slots__ = ("argv", "code_path", "kind", "name")

    def __init__(self, kind: str, name: str, argv: Sequence[str], code_path: str | None) -> None:
        self.kind = kind
        self.name = name
        self.argv = list(argv)
        self.code_path = code_path


def resolve(
    adapter: str,
    folder: str | None,
    environment: Mapping[str, str],
    *,
    python: str | None = None,
) -> AdapterCommand:
    """Return how to run an adapter; nothing of it is imported or run.

    A relative path counts from `folder`, the current one without it; `~` and `$VARS` are those
    of `environment`. `python` runs a `.py` file, this Python without it. Raises
    AdapterNotFoundError, and AdapterUnusableError for what is there but cannot be run.
    """
    if re.fullmatch(rf"{_NAME}:{_NAME}", adapter):
        return _function(FUNCTION, adapter, adapter, folder, environment)
    target = _entry_point(adapter) if re.fullmatch(r"[\w.-]+", adapter) else None
    if target is not None:
        return _function(ENTRY_POINT, adapter, target, folder, environment)
    return _program(adapter, folder, environment, python)


def arguments(run_id: str, timeout_seconds: float | None) -> list[str]:
    """Return the arguments that every adapter gets: whole seconds, since adapters may parse so.

    >>> arguments("job-1", 180.5)
    ['--task-id', 'job-1', '--timeout-seconds', '180']
    """
    given = ["--task-id", run_id]
    if timeout_seconds is None:
        return given
    return [*given, "--timeout-seconds", str(max(1, int(timeout_seconds)))]


def _function(
    kind: str, name: str, target: str, folder: str | None, environment: Mapping[str, str]
) -> AdapterCommand:
    module = target.partition(":")[0]
    bases = [os.path.abspath(folder or "."), *_python_path(environment), *sys.path]
    found, code_path = _locate(module, bases)
    if not found:
        raise AdapterNotFoundError(name, f"a module {module} in {bases[0]} and on Python's path")
    return AdapterCommand(kind, name, [sys.executable, "-P", "-m", RUNNER, target], code_path)


def _python_path(environment: Mapping[str, str]) -> list[str]:
    return [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part]


def _locate(module: str, bases: Sequence[str]) -> tuple[bool, str | None]:
    """Say whether a module is there, and return its file; imports no package on the way."""
    import importlib

    importlib.invalidate_caches()  # the file may be younger than what Python remembers
    places: Sequence[str] | None = list(bases)
    name = ""
    spec = None
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = _find_spec(name, places)
        if spec is None:
            return False, None
        places = spec.submodule_search_locations
        if places is None and name != module:
            return False, None
    origin = None if spec is None else spec.origin
    return True, origin if origin and os.path.isfile(origin) else None


def _find_spec(name: str, places: Sequence[str] | None) -> ModuleSpec | None:
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(name, places)
    top = "." not in name
    for finder in sys.meta_path:  # what is built in, and what was installed to be edited
        if spec is None:
            spec = finder.find_spec(name, None if top else places)
    return spec


def _entry_point(name: str) -> str | None:
    """Return the function behind an entry point, None when there is no such entry point."""
    from importlib.metadata import entry_points

    offered = entry_points(group=GROUP, name=name)
    found = {f"{point.module}:{point.attr or ''}" for point in offered}
    if len(found) > 1:
        raise AdapterUnusableError(name, f"several packages offer it: {', '.join(sorted(found))}")
    for target in found:
        if target.endswith(":"):
            raise AdapterUnusableError(name, f"its entry point {target[:-1]} names no function")
    return next(iter(found), None)


def _program(
    adapter: str, folder: str | None, environment: Mapping[str, str], python: str | None
) -> AdapterCommand:
    base = os.path.abspath(folder or ".")
    path = os.path.normpath(os.path.join(base, expand(adapter, environment)))
    if not os.path.isfile(path):
        if os.path.exists(path):
            raise AdapterUnusableError(adapter, f"{path} is no file")
        names = f"an entry point, and {path}" if os.sep not in adapter else path
        raise AdapterNotFoundError(adapter, names)
    if path.endswith(".py"):
        return AdapterCommand(EXECUTABLE, adapter, [python or sys.executable, path], path)
    if not os.access(path, os.X_OK):
        raise AdapterUnusableError(adapter, f"{path} is not executable; chmod +x would make it so")
    return AdapterCommand(EXECUTABLE, adapter, [path], path)


def expand(path: str, environment: Mapping[str, str]) -> str:
    """Return a path with `~` and `$VARS` replaced; a variable that is not set is left as it is.

    >>> expand("~/$TOOL/${TOOL}s/$NONE", {"HOME": "/home/ada", "TOOL": "hammer"})
    '/home/ada/hammer/hammers/$NONE'
    """
    path = re.sub(
        r"\$(?:(\w+)|\{(\w+)\})",
        lambda match: environment.get(match[1] or match[2], match[0]),
        path,
        flags=re.ASCII,
    )
    home = environment.get("HOME")
    if home and (path == "~" or path.startswith("~/")):
        return home + path[1:]
    return os.path.expanduser(path)
