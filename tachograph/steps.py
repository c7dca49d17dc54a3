"""Functions whose results are recorded once per run and restored on resume."""

from __future__ import annotations

import functools
import hashlib
import inspect
from typing import TYPE_CHECKING, Any, TypeVar, overload

from tachograph.contexts import current
from tachograph.domain import ids
from tachograph.domain.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


@overload
def step(function: F) -> F: ...
@overload
def step(*, name: str) -> Callable[[F], F]: ...
def step(function: F | None = None, *, name: str | None = None) -> F | Callable[[F], F]:
    """Record a function as a step: its result is restored on resume instead of calling it.

    Works on plain and `async` functions. Outside a recording the function is simply called.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            recording = current()
            if recording is None:
                return function(*args, **kwargs)
            key = step_key(function, args, kwargs, name)
            if inspect.iscoroutinefunction(function):
                return recording.once_async(key, lambda: function(*args, **kwargs))
            return recording.once(key, lambda: function(*args, **kwargs))

        return call  # type: ignore[return-value]

    return decorate if function is None else decorate(function)


def step_key(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str | None = None,
) -> str:
    """Return what a step is known by: its name and the fingerprint of its arguments.

    Raises InvalidValueError for a lambda: all lambdas of a function are called the same, so one
    would be given another one's result.
    """
    known_as: str = name or getattr(function, "__qualname__", "") or repr(function)
    if known_as.endswith("<lambda>"):
        raise InvalidValueError("step", known_as, "a lambda has no name of its own, use a def")
    if not args and not kwargs:
        return known_as
    text = ids.compact_json([list(args), kwargs], sort_keys=True)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return f"{known_as}:{digest.hexdigest()}"
