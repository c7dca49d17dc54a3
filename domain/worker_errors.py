"""What is refused to a worker before it begins, one class per outcome."""

from __future__ import annotations

from tachograph.domain.queue_errors import QueueError


class NoHandlersError(QueueError):
    """Nothing is known that could do the jobs of these queues."""

    template = (
        "Nothing here does jobs of {0}. Give --handlers with a module whose functions are "
        'decorated with @tachograph.handler("type"), declare a handler or a command of a type in '
        "tachograph.toml ([queues.NAME.types.TYPE]), or let one command do all jobs with --exec."
    )


class NotStoppableError(QueueError, ValueError):
    """A handler has a time limit, and cannot be called in a process of its own."""

    template = (
        "The handler {0} of {1!r} jobs has a time limit, so it is called in a process of its own, "
        "which cannot import it by this name. Move it to the top level of a module."
    )
