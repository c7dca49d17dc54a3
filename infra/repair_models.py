"""What `tachograph.toml` can say of repairs, as models. Imports pydantic; reads no file."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from tachograph.domain.queue_settings import DAY_US, SECOND_US
from tachograph.domain.repair_policy import (
    ACTIONS,
    HALT_AFTER,
    LONGEST_INTERVAL_US,
    MINUTE_US,
    MOST_PER_HOUR,
    SHORTEST_INTERVAL_US,
)
from tachograph.infra.model_parts import Span, Table, between


def _action(text: str) -> str:
    if text not in ACTIONS:
        near = get_close_matches(text, ACTIONS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no action {text!r}.{hint} There are {', '.join(ACTIONS)}")
    return text


Mode = Literal["execute", "observe"]
Action = Annotated[str, AfterValidator(_action)]
Cooldown = Annotated[Span, between(5 * SECOND_US, DAY_US, "a time from 5s to 1d")]
Interval = Annotated[
    Span, between(SHORTEST_INTERVAL_US, LONGEST_INTERVAL_US, "a time from 60s to 24h")
]


class ActionModel(Table):
    """How often an action may be done."""

    cooldown: Cooldown | None = Field(None, description="Not again within so long.")
    hourly_budget: int | None = Field(
        None, ge=1, le=MOST_PER_HOUR, description="Not more often within an hour."
    )


class RepairModel(Table):
    """Repairs of queues and views, by a person, a program or the maintenance worker."""

    enabled: bool = Field(
        default=True, description="Whether programs and the maintenance worker may repair."
    )
    frozen: bool = Field(default=False, description="Nobody may repair, people included.")
    mode: Mode = Field(
        "execute", description="Whether a cycle does what it recommends, or only records it."
    )
    interval: Interval = Field(30 * MINUTE_US, description="Time between maintenance cycles.")
    halt_after: int = Field(
        HALT_AFTER, ge=1, description="Runs of an action without improvement until it is halted."
    )
    actions: dict[Action, ActionModel] = Field({}, description="How often each may be done.")
