"""All events there are, by topic. Loads those of a kind only once one of their topics is met."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tachograph.domain.event import Event

    Fields = dict[str, Any]

RUN = "run."
QUEUE = "queue."
REPAIR = "repair."
PREFIXES = (RUN, QUEUE, REPAIR)
"""What our topics begin with; all others belong to other applications in the same log."""


def is_ours(topic: str) -> bool:
    """Say whether a topic is one of Tachograph's, of whatever version of it.

    >>> is_ours("run.created"), is_ours("queue.of-tomorrow"), is_ours("billing.paid")
    (True, True, False)
    """
    return topic.startswith(PREFIXES)


def find(topic: str) -> type[Event] | None:
    """Return the event of a topic; None when this version knows none.

    >>> find("run.blocked").__name__, find("run.of-tomorrow"), find("billing.paid")
    ('RunBlocked', None, None)
    """
    return _registry(topic).get(topic)


def upcast(topic: str, fields: Fields) -> Fields:
    """Bring stored fields to today's version of their event, in place, and return them.

    Raises KeyError for an unknown topic, and for a version that only a newer Tachograph knows.
    """
    if topic.startswith(RUN):
        from tachograph.domain.events import upcast as of_kind
    elif topic.startswith(QUEUE):
        from tachograph.domain.queue_events import upcast as of_kind
    elif topic.startswith(REPAIR):
        from tachograph.domain.repair_events import upcast as of_kind
    else:
        raise KeyError(topic)
    return of_kind(topic, fields)


def all_types() -> dict[str, type[Event]]:
    """Return every event by its topic: of runs, of queues, of repairs."""
    return {topic: kind for prefix in PREFIXES for topic, kind in _registry(prefix).items()}


def _registry(topic: str) -> Mapping[str, type[Event]]:
    if topic.startswith(RUN):
        from tachograph.domain.events import EVENT_TYPES

        return EVENT_TYPES
    if topic.startswith(QUEUE):
        from tachograph.domain.queue_events import QUEUE_EVENTS

        return QUEUE_EVENTS
    if topic.startswith(REPAIR):
        from tachograph.domain.repair_events import REPAIR_EVENTS

        return REPAIR_EVENTS
    return {}
