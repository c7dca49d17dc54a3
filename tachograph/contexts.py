"""`with` and `async with` over one implementation, and the recording the code runs under."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from tachograph.recording import Recording

_current: ContextVar[Recording | None] = ContextVar("tachograph_recording", default=None)


def current() -> Recording | None:
    """Return the recording that the calling code runs under, or None."""
    return _current.get()


class Context:
    """`with` and `async with` over one pair of methods, `_enter` and `_leave`."""

    def _enter(self) -> None:
        raise NotImplementedError

    def _leave(self, error: BaseException | None) -> None:
        raise NotImplementedError

    def _bind(self) -> None:
        """Set context variables; runs in the caller's own context."""

    def _unbind(self) -> None:
        """Undo `_bind`."""

    def __enter__(self) -> Self:
        self._enter()
        self._bind()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._unbind()
        self._leave(error)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._enter)
        self._bind()
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._unbind()
        await asyncio.to_thread(self._leave, error)
