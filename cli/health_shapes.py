"""The JSON of the commands of health and repair limits, as models; see `shapes`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Moment, Shape

Status = Literal["healthy", "degraded", "unhealthy"]


class Penalty(Shape):
    """What a broken rule cost."""

    rule: str = Field(description="See docs/health.md.")
    scope: str | None = Field(description="The queue whose own score it costs; null: the domain's.")
    value: float
    threshold: float
    points: float
    at_least: Status = Field(description="The status it makes, whatever the score.")
    text: str


class Domain(Shape):
    """`maintenance diagnose --domain`, and each domain of the whole."""

    name: str
    weight: float
    score: float = Field(ge=0, le=1)
    status: Status
    facts: dict[str, Any]
    error: str | None = Field(description="Why its facts could not be collected.")
    penalties: list[Penalty]


class Composite(Shape):
    """All domains together."""

    score: float = Field(ge=0, le=1)
    status: Status = Field(description="That of the worst domain.")


class Health(Shape):
    """`maintenance diagnose`."""

    timestamp: Moment
    composite: Composite
    domains: list[Domain]


class Recommendation(Shape):
    """A repair that a diagnosis asks for."""

    domain: str
    action: str
    trigger: str


class Executed(Shape):
    """What became of a recommended repair."""

    action: str
    success: bool
    affected: int
    message: str
    denied: str | None = Field(description="The rule of the gate that denied it.")
    repair: str | None = Field(description="Its name in the log; null when it was not begun.")


class Judged(Shape):
    """A repair, of this cycle or an earlier one, whose effect was seen."""

    action: str
    repair: str
    improved: bool | None = Field(description="Null: it could not be seen.")
    evidence: dict[str, Any]


class Care(Shape):
    """One line of `maintenance worker`: a cycle."""

    run: str
    mode: Literal["execute", "observe"]
    report: Health
    recommendations: list[Recommendation]
    executed: list[Executed]
    judged: list[Judged]
    reset: list[str] = Field(description="Actions against which nothing is held any more.")
    after: Health | None = Field(description="Null when no repair was begun.")
    delta: float = Field(description="By how much the composite score has risen.")


class LastRepair(Shape):
    """The newest repair of an action; what it came to is null while it goes on."""

    repair: str
    at: Moment
    actor_kind: Literal["operator", "agent", "daemon"]
    reason: str
    forced: str | None = Field(description="The rule that a person overruled.")
    success: bool | None
    affected: int | None
    message: str | None


class RepairEvent(Shape):
    """An event of the repairs of an action."""

    event: str
    at: Moment
    by: str
    text: str


class Action(Shape):
    """What is known of a repair action."""

    action: str
    allowed: bool = Field(description="Whether the maintenance worker may do it now.")
    rule: str | None
    remaining_seconds: float | None
    explanation: str
    halted: bool
    halted_at: Moment | None
    strikes: int
    useless_repairs: list[str]
    unjudged: list[str] = Field(description="Repairs whose effect is still to be seen.")
    unfinished: list[str] = Field(description="Repairs that nothing says to have ended.")
    repairs: int
    last_repair: LastRepair | None
    cooldown_seconds: float
    hourly_budget: int
    halt_after: int
    events: list[RepairEvent]


class Explained(Shape):
    """`maintenance explain-action`."""

    actions: list[Action]


class Lifted(Shape):
    """`maintenance lift-halt`."""

    action: str
    lifted: bool = Field(description="False when it was not halted.")
    reason: str


HEALTH: dict[str, TypeAdapter[Any]] = {
    "maintenance-diagnose": TypeAdapter(Health | Domain),
    "maintenance-worker": TypeAdapter(Care),
    "maintenance-explain-action": TypeAdapter(Explained),
    "maintenance-lift-halt": TypeAdapter(Lifted),
}
