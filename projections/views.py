"""Which projections there are, and what a place for their views must offer. No I/O.

The ports here are an inner seam of Tachograph and may change in any release.
"""

from __future__ import annotations

from tachograph.domain import event_types
from tachograph.domain.records import _Fields
from tachograph.projections import (
    maintenance_guards,
    run_cards,
    run_summaries,
    timeline,
    watch_list,
)
from tachograph.projections.maintenance_guards import MaintenanceGuards
from tachograph.projections.run_summaries import RunSummaries
from tachograph.projections.timeline import Timelines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any, Protocol, TypeVar

    from tachograph.projections.folding import Projection
    from tachograph.projections.maintenance_guards import GuardsView, GuardsWriter
    from tachograph.projections.queue_health import QueueHealth, QueuesView, QueuesWriter
    from tachograph.projections.run_cards import RunCardsView
    from tachograph.projections.run_summaries import RunSummariesView
    from tachograph.projections.timeline import TimelineView
    from tachograph.projections.watch_list import WatchListView

    T = TypeVar("T")

    class ViewReader(RunCardsView, WatchListView, GuardsView, Protocol):
        """The content of all views as of one moment."""

        @property
        def queues(self) -> QueuesView:
            """The jobs and the state of all queues."""
            ...

        def summary(self, run_id: str) -> dict[str, Any] | None:
            """Return the summary of a run, or None. The caller may change what it gets."""
            ...

        def timeline(self, run_id: str, *, newest: int | None = None) -> list[dict[str, Any]]:
            """Return the entries of a run in order; only the `newest` so many when given."""
            ...

        def mark(self, name: str) -> Mark:
            """Return how far a view is."""
            ...

        def rows(self) -> Iterator[tuple[str, bytes, bytes]]:
            """Yield the whole content in order: table, key, bytes."""
            ...

    class ViewWriter(ViewReader, RunSummariesView, TimelineView, GuardsWriter, Protocol):
        """The content of all views within one transaction that changes them."""

        @property
        def queues(self) -> QueuesWriter:
            """The jobs and the state of all queues."""
            ...

        def put_mark(self, name: str, mark: Mark) -> None:
            """Keep how far a view is, in the same transaction as its content."""
            ...

    class Views(Protocol):
        """A place for the views."""

        def read(self) -> AbstractContextManager[ViewReader]:
            """Return a `with` block that sees all views as of one moment."""
            ...

        def update(self, work: Callable[[ViewWriter], T]) -> T:
            """Run `work` in one transaction: all of it is kept, or (when it raises) nothing.

            It may run again from the start when room has to be made.
            """
            ...

    class ViewStore(Views, Protocol):
        """Views that can be built anew beside the ones in use."""

        def rebuilding(self) -> AbstractContextManager[Views]:
            """Return a `with` block for an empty place that replaces this one at its end.

            When the block raises, or the process ends in it, everything stays as it was.
            """
            ...

        def scratch(self) -> AbstractContextManager[Views]:
            """Return a `with` block for an empty place that is thrown away at its end."""
            ...

        def discard(self) -> None:
            """Throw the content away: it is damaged, or of another log. The next use is empty."""
            ...


QUEUE_HEALTH = "queue_health"
_QUEUE_HEALTH_VERSION = 1
"""Stands here, since its module is loaded only once an event of a queue is met."""

VERSIONS = {
    # Cards and the watch list are cut from summaries, in the same transaction: they are one view
    # to the outside.
    run_summaries.NAME: f"{run_summaries.VERSION}.{run_cards.VERSION}.{watch_list.VERSION}",
    timeline.NAME: f"{timeline.VERSION}",
    maintenance_guards.NAME: f"{maintenance_guards.VERSION}",
    QUEUE_HEALTH: f"{_QUEUE_HEALTH_VERSION}",
}
"""Every view by its name, with the version of its content."""


def _queue_health(view: Any) -> QueueHealth:
    from tachograph.projections.queue_health import QueueHealth

    return QueueHealth(view.queues)


PROJECTIONS: dict[str, Callable[[Any], Projection]] = {
    run_summaries.NAME: RunSummaries,
    timeline.NAME: Timelines,
    maintenance_guards.NAME: MaintenanceGuards,
    QUEUE_HEALTH: _queue_health,
}
"""What folds events into each view, given all views."""

FAMILIES: dict[str, tuple[str, ...]] = {
    event_types.RUN: (run_summaries.NAME, timeline.NAME, maintenance_guards.NAME),
    event_types.QUEUE: (QUEUE_HEALTH,),
}
"""The views that are made of the events whose topics begin so."""


class Mark(_Fields):
    """How far a view is: the position of the last event folded, and that event's digest.

    The digest tells whether the log is still the one that the view was made from.
    """

    __slots__ = ("digest", "position")

    def __init__(self, position: int, digest: bytes) -> None:
        self.position = position
        self.digest = digest
