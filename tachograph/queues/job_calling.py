"""Call a handler, and say what an exception of it means for its job. Records nothing."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING

from tachograph.domain.errors import EffectInDoubtError
from tachograph.domain.queue_errors import PayloadError, RetryLaterError, TerminalJobError
from tachograph.domain.records import _Fields
from tachograph.queues.handlers import JobContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tachograph.domain.queued_job import QueuedJob
    from tachograph.queues.handlers import Function
    from tachograph.recording import Recording

LATER, EXCEPTION, EXITED = "retry_later", "exception", "exited"
PAYLOAD, IN_DOUBT = "payload_refused", "effect_in_doubt"
"""Codes of failures that no further attempt can help, besides those of TerminalJobError."""


class Said(_Fields):
    """What an exception says about a job."""

    __slots__ = ("code", "error", "retry_seconds", "terminal")

    def __init__(
        self,
        error: str,
        code: str = EXCEPTION,
        *,
        terminal: bool = False,
        retry_seconds: float | None = None,
    ) -> None:
        self.error = error
        self.code = code
        self.terminal = terminal
        """Whether no further attempt can help."""
        self.retry_seconds = retry_seconds
        """How long to wait at least; None: as after any failure."""

    def to_fields(self) -> dict[str, Any]:
        """Return plain values, from which `from_fields` makes the same."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Said:
        """Return what `to_fields` was made of. Raises KeyError for other fields."""
        return cls(
            str(fields["error"]),
            str(fields["code"]),
            terminal=bool(fields["terminal"]),
            retry_seconds=fields["retry_seconds"],
        )


def said_by(error: BaseException) -> Said:
    """Return what an exception says.

    Only its class can say that no attempt helps, never its text.

    >>> said_by(ValueError("rate limit exceeded")).terminal
    False
    """
    text = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    if isinstance(error, TerminalJobError):
        return Said(text, error.code, terminal=True)
    if isinstance(error, PayloadError):
        return Said(text, PAYLOAD, terminal=True)
    if isinstance(error, EffectInDoubtError):  # only a person knows what to do about it
        return Said(text, IN_DOUBT, terminal=True)
    if isinstance(error, RetryLaterError):
        return Said(text, LATER, retry_seconds=_waiting(error.seconds))
    return Said(text, EXITED if isinstance(error, SystemExit) else EXCEPTION)


def _waiting(seconds: float | None) -> float | None:
    """Return a length of time that a handler named, None where it is none."""
    if seconds is None or not 0 <= seconds < 1e9:  # NaN is not, either
        return None
    return seconds


def context_of(
    job: QueuedJob,
    payload: Any,
    recording: Recording,
    beat: Callable[[], None],
    *,
    bound: int,
) -> JobContext:
    """Return what a handler is given; `bound` is that of its queue for attempts."""
    return JobContext(
        job.id,
        job.queue,
        job.type,
        payload,
        attempt=job.attempts,
        max_attempts=min(job.max_attempts, bound),
        run=recording,
        beat=beat,
    )


def call(function: Function, context: JobContext) -> Any:
    """Call a handler and return its result; a coroutine is run to its end."""
    result = function(context)
    if inspect.isawaitable(result):
        return asyncio.run(_awaited(result))
    return result


async def _awaited(result: Any) -> Any:
    return await result
