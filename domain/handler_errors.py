"""What is refused about the code that does the work of jobs, one class per outcome."""

from __future__ import annotations

from tachograph.domain.queue_errors import QueueError


class CodeNotFoundError(QueueError, LookupError):
    """A module, function or model that was named cannot be loaded."""

    template = (
        "{0!r} cannot be loaded: {1}. Modules are looked for in {2} and on Python's path; write "
        "module:name for what is in one."
    )


class HandlerUnusableError(QueueError, ValueError):
    """What is named or declared as a handler of jobs cannot be one."""

    template = "{0} is no handler of jobs: {1}."


class HandlerTakenError(QueueError, ValueError):
    """Two handlers are given for one type of job."""

    template = (
        "{0!r} jobs of {1} have a handler already, {2}: {3} cannot be another one. Give one of "
        "them another type, or one queue."
    )
