"""Call a function as a resume adapter, under the contract that every adapter has.

The contract: arguments and variables in, one JSON object on stdout, all else on stderr. Opens no
store and decides nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import inspect
import json
import os
import sys
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

DONE, FAILED, UNUSABLE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: the function returned, it raised, it could not be called, Ctrl-C ended it."""


class Resume:
    """What a function that takes a run up again is told.

    `store`, `run_id` and `epoch` name the attempt to record for. `checkpoint` is the state that
    the last checkpoint saved, None without one. `timeout_seconds` is how long the function may
    take before it is stopped, None for as long as it wants.
    """

    __slots__ = ("checkpoint", "epoch", "run_id", "store", "timeout_seconds")

    def __init__(
        self,
        store: str | None,
        run_id: str,
        epoch: int | None,
        checkpoint: Any,
        timeout_seconds: float | None,
    ) -> None:
        self.store = store
        self.run_id = run_id
        self.epoch = epoch
        self.checkpoint = checkpoint
        self.timeout_seconds = timeout_seconds

    def __repr__(self) -> str:
        return f"Resume(run_id={self.run_id!r}, epoch={self.epoch!r})"


def call(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Call the function that the arguments name, print what it returns, return the exit code.

    What the function prints, and what programs print that it starts, goes to stderr.
    """
    options = _parse(argv)
    stdout = _take_stdout()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            code, result = _outcome(options, environment)
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)
    sys.stdout.write(result)
    sys.stdout.flush()
    return code


def checkpoint_of(environment: Mapping[str, str]) -> Any:
    """Return the checkpoint of TACHO_CHECKPOINT: JSON, or the file of JSON that `@path` names.

    Raises ValueError, naming the variable, for what is no JSON.
    """
    text = environment.get("TACHO_CHECKPOINT", "")
    if text.startswith("@"):
        with open(text[1:], encoding="utf-8") as file:  # noqa: PTH123
            text = file.read()
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"TACHO_CHECKPOINT is no JSON: {error}") from error


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tachograph.adapter_main", description=__doc__)
    parser.add_argument("function", metavar="MODULE:FUNCTION")
    parser.add_argument("--task-id")
    parser.add_argument("--timeout-seconds", type=float)
    return parser.parse_args(argv)


def _take_stdout() -> int:
    """Return a descriptor of stdout, and let everybody else's stdout be stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


class _UnusableError(Exception):
    """There is no such function."""


def _outcome(options: argparse.Namespace, environment: Mapping[str, str]) -> tuple[int, str]:
    """Return the exit code, and what to print."""
    try:
        function = _load(options.function)
    except _UnusableError as error:
        _say(f"Adapter {options.function} cannot be loaded: {error}.")
        return UNUSABLE, ""
    except ImportError as error:
        traceback.print_exc()
        _say(f"Adapter {options.function} cannot be loaded: {error}.")
        return UNUSABLE, ""
    try:
        result = function(_resume(options, environment))
        if inspect.isawaitable(result):
            result = asyncio.run(_awaited(result))
        return DONE, _reply(options.function, result)
    except SystemExit as stopped:
        return _code(stopped), ""
    except KeyboardInterrupt:
        return INTERRUPTED, ""
    except Exception:  # noqa: BLE001  # whatever it is, it is the end of the adapter
        traceback.print_exc()
        return FAILED, ""


def _load(name: str) -> Any:
    module, _, path = name.partition(":")
    if not module or not path:
        raise _UnusableError("write module:function")
    found = _import(module)
    for part in path.split("."):
        if not hasattr(found, part):
            raise _UnusableError(f"{module} has no {path}")
        found = getattr(found, part)
    if not callable(found):
        raise _UnusableError(f"it is no function but {type(found).__name__}")
    return found


def _import(module: str) -> Any:
    """Import a module of the current folder or of Python's path."""
    here = os.getcwd()  # noqa: PTH109
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise _UnusableError(
                f"there is no module {error.name} in {here} or on Python's path"
            ) from error
        raise  # something that it imports itself


def _resume(options: argparse.Namespace, environment: Mapping[str, str]) -> Resume:
    epoch = environment.get("TACHO_EPOCH", "")
    return Resume(
        environment.get("TACHO_STORE"),
        options.task_id or environment.get("TACHO_RUN_ID", ""),
        int(epoch) if epoch else None,
        checkpoint_of(environment),
        options.timeout_seconds,
    )


async def _awaited(result: Any) -> Any:
    return await result


def _reply(name: str, result: Any) -> str:
    """Return what a function returned as one line of JSON; nothing is an empty object."""
    if result is None:
        result = {}
    if not isinstance(result, dict):
        raise TypeError(f"{name} returned {type(result).__name__}; return a dict, or None")
    return json.dumps(result, default=_plain, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON: {value!r}")


def _code(stopped: SystemExit) -> int:
    """Return the exit code that Python would end with."""
    if stopped.code is None:
        return DONE
    if isinstance(stopped.code, int):
        return stopped.code & 0xFF
    _say(str(stopped.code))
    return FAILED


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
