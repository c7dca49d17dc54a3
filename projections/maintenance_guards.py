"""When each maintenance step did its work: what says whether it is due. No clock.

A guard is granted by the event that ended the step, and by nothing else: neither a file nor a
model's word. With the events of a run its guards go too.
"""

from __future__ import annotations

from tachograph.domain.records import _Fields
from tachograph.projections.folding import ERASED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    Fields = dict[str, Any]

    class GuardsView(Protocol):
        """Where the guards of steps are found."""

        def guards(self, step: str) -> Iterator[Guard]:
            """Yield the guards of a step, latest granted first."""
            ...

        def all_guards(self) -> Iterator[Guard]:
            """Yield every guard."""
            ...

    class GuardsWriter(GuardsView, Protocol):
        """Where they are kept."""

        def put_guard(self, guard: Guard) -> None:
            """Keep a guard."""
            ...

        def drop_guard(self, guard: Guard) -> None:
            """Drop a guard."""
            ...


NAME = "maintenance_guards"
VERSION = 1
"""Raised whenever the content changes for the same log: stored views are then rebuilt."""

ENDED = "run.maintenance-step-ended"
GONE = "run.bodies-erased"


class Guard(_Fields):
    """That a step did its work.

    `position` and `version` are the places of the event that says so, `run` the orchestrator run
    it is of, `once` says that the step is done for good, `cadence` that its guard interval began.
    """

    __slots__ = ("cadence", "once", "position", "run", "step", "time_us", "version")

    def __init__(
        self,
        step: str,
        position: int,
        run: str,
        version: int,
        time_us: int,
        *,
        cadence: bool,
        once: bool,
    ) -> None:
        self.step = step
        self.position = position
        self.run = run
        self.version = version
        self.time_us = time_us
        self.cadence = cadence
        self.once = once


class MaintenanceGuards:
    """Folds what became of maintenance steps into guards."""

    __slots__ = ("_granted", "_view")

    def __init__(self, view: GuardsWriter) -> None:
        self._view = view
        self._granted: list[Guard] = []

    def fold(self, topic: str, fields: Fields, position: int, stream: str) -> None:
        """Apply one event."""
        if topic == ENDED:
            self._ended(fields, position, stream)
        elif topic == GONE and ERASED not in fields:
            self._forget(stream, fields["up_to"])

    def flush(self) -> None:
        """Write the guards that were granted."""
        for guard in self._granted:
            self._view.put_guard(guard)
        self._granted = []

    def _ended(self, fields: Fields, position: int, stream: str) -> None:
        if ERASED in fields or not (fields["guard"] or fields["once"]):
            return
        self._granted.append(
            Guard(
                fields["step"],
                position,
                stream,
                fields["originator_version"],
                fields["time_us"],
                cadence=fields["guard"],
                once=fields["once"],
            )
        )

    def _forget(self, run: str, up_to: int) -> None:
        """Drop the guards of events whose bodies are gone: nothing in the log grants them now."""
        self.flush()
        for guard in list(self._view.all_guards()):
            if guard.run == run and guard.version <= up_to:
                self._view.drop_guard(guard)


class Standing(_Fields):
    """What is known of a step: when it last did its work, in which run, and whether for good."""

    __slots__ = ("done_run", "done_us", "once_done", "position")

    def __init__(
        self, done_us: int | None, done_run: str | None, position: int, *, once_done: bool
    ) -> None:
        self.done_us = done_us
        self.done_run = done_run
        self.position = position
        self.once_done = once_done


NEVER = Standing(None, None, 0, once_done=False)
"""Of a step that has never done its work."""


def standing(view: GuardsView, step: str, *, once: bool = False) -> Standing:
    """Return what is known of a step; with `once`, whether it was ever done for good."""
    newest, for_good = None, False
    for guard in view.guards(step):
        newest = newest or guard
        for_good = for_good or guard.once
        if for_good or not once:
            break
    if newest is None:
        return NEVER
    return Standing(newest.time_us, newest.run, newest.position, once_done=for_good)
