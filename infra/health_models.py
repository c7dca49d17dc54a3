"""What `tachograph.toml` can say of health, as models. Imports pydantic; reads no file."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from tachograph.domain.queue_thresholds import QueueThresholds
from tachograph.infra.model_parts import Limit, Table
from tachograph.infra.queue_models import QueueName

Queues = dict[QueueName, "QueueHealthModel"]
Dead = Annotated[int, Field(ge=0)]


class QueueHealthModel(Table):
    """When the health of a queue suffers; what is left out is as for all queues."""

    dead_warn: Dead | None = Field(None, description="More dead jobs cost points.")
    dead_fail: Dead | None = Field(None, description="So many dead jobs cost the most.")
    oldest_pending_warn: Limit | None = Field(None, description="A longer wait costs points.")
    oldest_pending_fail: Limit | None = Field(None, description="So long a wait costs the most.")
    oldest_dead_warn: Limit | None = Field(
        None, description="A job that has been dead for longer costs points."
    )

    def over(self, base: QueueThresholds) -> QueueThresholds:
        """Return the thresholds that this makes of others."""
        spans = ("oldest_pending_warn", "oldest_pending_fail", "oldest_dead_warn")
        given = {name: getattr(self, name) for name in ("dead_warn", "dead_fail")}
        given |= {f"{name}_seconds": _seconds(getattr(self, name)) for name in spans}
        return base.changed(**{name: each for name, each in given.items() if each is not None})


class HealthModel(QueueHealthModel):
    """When the health of queues suffers."""

    queues: Queues = Field({}, description="Of single queues.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        general = self.over(QueueThresholds())
        _check(general, "")
        for name, each in self.queues.items():
            _check(each.over(general), f"queues.{name}.")
        return self


def _check(found: QueueThresholds, where: str) -> None:
    if found.dead_fail <= found.dead_warn:
        raise ValueError(
            f"{where}dead_fail ({found.dead_fail}) has to be more than dead_warn "
            f"({found.dead_warn})"
        )
    warn, fail = found.oldest_pending_warn_seconds, found.oldest_pending_fail_seconds
    if fail <= warn:
        raise ValueError(
            f"{where}oldest_pending_fail ({fail:g}s) has to be longer than oldest_pending_warn "
            f"({warn:g}s)"
        )


def _seconds(span_us: int | None) -> int | float | None:
    """Return whole seconds as such: they are shown so."""
    if span_us is None:
        return None
    return span_us // 1_000_000 if span_us % 1_000_000 == 0 else span_us / 1_000_000
