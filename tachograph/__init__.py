"""Tachograph: an event-sourced flight recorder for long-running jobs.

What a job needs is here: `record` starts or resumes a run, `step` records a function's result,
`current` returns the recording that the calling code runs under, `register_type` lets values of
your own types be recorded, `Recovery` says how a run may be continued, `Nothing` that there was
nothing to do. `queue` gives a queue of jobs, `handler` says which function does them, and gets a
`JobContext`. Every error is in `errors`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.api import record as record
    from tachograph.api import register_type as register_type
    from tachograph.contexts import current as current
    from tachograph.domain import errors as errors
    from tachograph.domain.nothing import Nothing as Nothing
    from tachograph.domain.recovery import Recovery as Recovery
    from tachograph.queue_api import Queue as Queue
    from tachograph.queue_api import queue as queue
    from tachograph.queues.handlers import JobContext as JobContext
    from tachograph.queues.handlers import handler as handler
    from tachograph.recording import Recording as Recording
    from tachograph.steps import step as step

__all__ = [
    "JobContext",
    "Nothing",
    "Queue",
    "Recording",
    "Recovery",
    "current",
    "errors",
    "handler",
    "queue",
    "record",
    "register_type",
    "step",
]

_HOMES = {
    "JobContext": "tachograph.queues.handlers",
    "Nothing": "tachograph.domain.nothing",
    "Queue": "tachograph.queue_api",
    "Recording": "tachograph.recording",
    "Recovery": "tachograph.domain.recovery",
    "handler": "tachograph.queues.handlers",
    "queue": "tachograph.queue_api",
    "record": "tachograph.api",
    "register_type": "tachograph.api",
    "current": "tachograph.contexts",
    "step": "tachograph.steps",
}


def __getattr__(name: str) -> object:
    """Import what is asked for: `import tachograph` alone costs nothing, commands rely on it."""
    if name not in __all__:
        raise AttributeError(f"module 'tachograph' has no attribute {name!r}")
    from importlib import import_module

    if name == "errors":
        return import_module("tachograph.domain.errors")
    return getattr(import_module(_HOMES[name]), name)
