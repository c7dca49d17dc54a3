"""Make our events known to the `eventsourcing` library by their topics. Imports the library."""

from __future__ import annotations

from eventsourcing.utils import register_topic

from tachograph.domain import event_types


def register_topics() -> None:
    """Register every event, so that the library finds it by its topic; harmless when repeated.

    Without it the library takes a topic such as `run.created` for the name of a module. Raises
    the library's TopicError when another application has taken one of our topics.
    """
    for topic, kind in event_types.all_types().items():
        register_topic(topic, kind)
