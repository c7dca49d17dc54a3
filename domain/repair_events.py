"""Every event of the repairs of an action. Topics and fields are frozen: old logs stay readable."""

from __future__ import annotations

from tachograph.domain.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from tachograph.domain.repairs import Repairs

    Fields = dict[str, Any]

PREFIX = "repair."
"""What the topics of all these events begin with."""


class RepairEvent(Event):
    """A fact about the repairs of one action; its stream is `repairs.stream_of(action)`."""

    action: str

    def mutate(self, aggregate: Repairs | None) -> Repairs:  # type: ignore[override]
        """Apply this fact (the library's protocol); None makes a new aggregate."""
        if aggregate is None:
            from tachograph.domain.repairs import Repairs

            aggregate = Repairs(self.action)
        aggregate.evolve(type(self).TOPIC, self.__dict__)
        return aggregate


class RepairAllowed(RepairEvent):
    """The gate let a repair begin; it counts towards cooldown and budget from now on."""

    TOPIC: ClassVar[str] = "repair.allowed"
    repair: str
    """Name of this repair, `<action>~<number>`: events of jobs name it."""
    actor_kind: str
    """One of `repair_policy.ACTOR_KINDS`; who it was, is in `by`."""
    reason: str
    forced: str | None
    """The rule that a person overruled; None where none had to be."""
    selection: Any
    """What the repair was asked to take, as plain values."""
    run: str | None
    """Run of the maintenance cycle that it belongs to."""
    baseline: Any
    """Facts on which it was recommended; its effect is judged against them."""


class RepairStepDone(RepairEvent):
    """A part of a repair is done and durable."""

    TOPIC: ClassVar[str] = "repair.step-done"
    repair: str
    number: int
    """1 for the first part."""
    affected: int
    detail: Any


class RepairEnded(RepairEvent):
    """A repair came to its end, well or not."""

    TOPIC: ClassVar[str] = "repair.ended"
    repair: str
    success: bool
    affected: int
    message: str
    watched: list[str]
    """Ids of jobs by which its effect will be seen; empty where nothing has to be waited for."""


class RepairDenied(RepairEvent):
    """The gate let a repair not begin. Told once for each rule and kind of actor in an hour."""

    TOPIC: ClassVar[str] = "repair.denied"
    actor_kind: str
    reason: str
    rule: str
    """One of `repairs.RULES`."""
    remaining_us: int | None
    """After which time it can be tried again; None where time alone does not help."""
    run: str | None


class RepairJudged(RepairEvent):
    """The effect of a repair could be seen."""

    TOPIC: ClassVar[str] = "repair.judged"
    repair: str
    improved: bool | None
    """None: it could not be seen, and nothing is held against the action."""
    evidence: Any
    """What was seen: `text`, and numbers."""


class RepairHalted(RepairEvent):
    """The action did not help several times in a row: it is not done until the halt is lifted."""

    TOPIC: ClassVar[str] = "repair.halted"
    strikes: int
    repairs: list[str]
    """The repairs that did not help."""


class RepairHaltLifted(RepairEvent):
    """The action may be done again; what was held against it is forgotten."""

    TOPIC: ClassVar[str] = "repair.halt-lifted"
    code: str
    """One of `repairs.LIFTS`."""
    reason: str
    strikes: int
    """How many there were."""
    run: str | None


REPAIR_EVENTS: dict[str, type[RepairEvent]] = {
    cls.TOPIC: cls
    for cls in list(globals().values())
    if isinstance(cls, type) and issubclass(cls, RepairEvent) and cls is not RepairEvent
}
"""Every event of repairs by its topic."""


def upcast(topic: str, fields: Fields) -> Fields:
    """Bring stored fields to today's version of their event, in place, and return them.

    Raises KeyError for an unknown topic, and for a version that only a newer Tachograph knows.
    """
    stored = fields.pop("class_version", 1)
    if stored > REPAIR_EVENTS[topic].class_version:
        raise KeyError(f"{topic} version {stored}")
    return fields
