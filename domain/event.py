"""The shape of a stored fact. Works with the eventsourcing library without importing it.

The library asks three things of an event: `originator_id`, `originator_version` and `mutate()`.
Its own dataclasses answer them too, but importing them costs 50 ms, more than a whole shell
command may take; so events here are plain frozen objects with the same protocol.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, dataclass_transform

    from tachograph.domain.run import Run
else:

    def dataclass_transform(**_options: object):
        """Mark a base class for type checkers; at run time do nothing."""
        return lambda cls: cls


class Cause:
    """Who causes an event, and when.

    `time_us` is microseconds since 1970 in UTC, for display only: order comes from positions
    (G3). `epoch` is the attempt on whose behalf it happens; 0 means a person or tool outside
    any attempt.
    """

    __slots__ = ("actor", "epoch", "host", "pid", "time_us")

    def __init__(self, time_us: int, actor: str, host: str, pid: int, epoch: int = 0) -> None:
        self.time_us = time_us
        self.actor = actor
        self.host = host
        self.pid = pid
        self.epoch = epoch

    def by(self) -> list[str | int]:
        """Return the stored form: actor, host, pid, epoch."""
        return [self.actor, self.host, self.pid, self.epoch]


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=True)
class _Fields:
    """For type checkers only: the fields of a decorated class itself would not count."""


class Event(_Fields):
    """A fact, in the past tense. Frozen: a stored event never changes (G4)."""

    originator_id: str
    """Name of the event's stream: id of the run or job that it happened to, for example."""
    originator_version: int
    """Place in the stream, 1 for the first event."""
    time_us: int
    """When it was recorded, microseconds since 1970 in UTC; for display only."""
    by: list[str | int]
    """Who caused it: actor, host, pid, epoch."""

    TOPIC: ClassVar[str] = ""
    """Stored name of the event, frozen for ever."""
    class_version: ClassVar[int] = 1
    """Version of its fields; stored when it is above 1."""

    def __init__(self, **fields: Any) -> None:
        names = type(self).field_names()
        if fields.keys() != names.keys():
            odd = sorted(fields.keys() ^ names.keys())
            raise TypeError(f"{type(self).__name__} fields missing or unknown: {odd}")
        self.__dict__.update(fields)

    @classmethod
    def field_names(cls) -> dict[str, str]:
        """Return the fields of this event in order, with their annotations as text."""
        names = cls.__dict__.get("_field_names")
        if names is None:
            names = {}
            for base in reversed(cls.__mro__):
                names.update(_annotations(base))
            type.__setattr__(cls, "_field_names", names)
        result: dict[str, str] = names
        return result

    def mutate(self, aggregate: Run | None) -> Run:
        """Apply this fact to the aggregate (the library's protocol); None makes a new one."""
        if aggregate is None:
            from tachograph.domain.run import Run

            aggregate = Run()
        aggregate.evolve(type(self).TOPIC, self.__dict__)
        return aggregate

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot change")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot go")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # fields may hold lists

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({shown})"


def _annotations(cls: type) -> dict[str, str]:
    """Return a class's own annotations; they are texts, by the import at the top of each module."""
    # inspect.get_annotations would cost 11 ms of import.
    found: dict[str, str] = cls.__dict__.get("__annotations__", {})  # noqa: RUF063
    return {name: note for name, note in found.items() if "ClassVar" not in note}


COMMON = frozenset(Event.field_names())
"""Fields that every event has: its place, its time, and who caused it."""
