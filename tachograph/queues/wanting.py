"""Check jobs that somebody wants to have done, before anything is opened or recorded for them."""

from __future__ import annotations

from tachograph.domain.errors import InvalidValueError
from tachograph.domain.event import Cause
from tachograph.domain.queued_job import QueuedJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.domain.queue_settings import QueuePlan, QueueSettings
    from tachograph.queues.enqueueing import Enqueue

    Validate = Callable[[QueueSettings, str, Any], None]

_NO_ID = "00000000-0000-0000-0000-000000000000"
_NOBODY = Cause(0, "", "", 0)


def check(plan: QueuePlan, want: Enqueue, validate: Validate) -> None:
    """Require a job that its queue can take.

    Raises UnknownQueueError, InvalidValueError, and what `validate` raises.
    """
    settings = plan.get(want.queue)
    QueuedJob.enqueue(
        _NOBODY,
        _NO_ID,
        want.queue,
        want.type,
        None,
        priority=want.priority,
        available_us=want.available_us,
        max_attempts=settings.max_attempts if want.max_attempts is None else want.max_attempts,
        key=want.key,
        key_window_us=want.key_window_us,
        concurrency_key=want.concurrency_key,
    )
    if (want.max_attempts or 0) > settings.max_attempts:
        advice = (
            f"queue {want.queue!r} allows {settings.max_attempts}: raise its max_attempts in "
            "tachograph.toml, or give fewer"
        )
        raise InvalidValueError("max attempts", want.max_attempts, advice)
    validate(settings, want.type, want.payload)
