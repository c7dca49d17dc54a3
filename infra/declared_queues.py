"""Make plain objects of what `tachograph.toml` declares of queues, health and repair.

Decides nothing about them.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from tachograph.domain.errors import PlanError
from tachograph.domain.queue_settings import Backoff, JobType, QueuePlan, QueueSettings, Rate
from tachograph.domain.queue_thresholds import HealthThresholds, QueueThresholds
from tachograph.domain.repair_policy import DEFAULT_LIMITS, ActionLimits, RepairPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tachograph.infra.health_models import HealthModel
    from tachograph.infra.queue_models import JobTypeModel, QueueModel
    from tachograph.infra.repair_models import ActionModel, RepairModel


def queue_plan(models: Mapping[str, QueueModel]) -> QueuePlan:
    """Return the queues that are declared, the default ones where none is."""
    return QueuePlan({name: _queue(name, model) for name, model in models.items()})


def thresholds(model: HealthModel, plan: QueuePlan) -> HealthThresholds:
    """Return what is declared of health. Raises PlanError for a queue that is not declared."""
    general = model.over(QueueThresholds())
    for name in model.queues:
        if name not in plan.queues:
            near = difflib.get_close_matches(name, plan.queues, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise PlanError(f"health.queues: {name!r} is no queue.{hint}")
    return HealthThresholds(general, {name: m.over(general) for name, m in model.queues.items()})


def repair_policy(model: RepairModel) -> RepairPolicy:
    """Return what is declared of repairs."""
    return RepairPolicy(
        enabled=model.enabled,
        frozen=model.frozen,
        mode=model.mode,
        interval_us=model.interval,
        limits={name: _limits(name, each) for name, each in model.actions.items()},
        halt_after=model.halt_after,
    )


def _limits(action: str, model: ActionModel) -> ActionLimits:
    usual = DEFAULT_LIMITS[action]
    return ActionLimits(
        usual.cooldown_us if model.cooldown is None else model.cooldown,
        usual.hourly_budget if model.hourly_budget is None else model.hourly_budget,
    )


def _queue(name: str, model: QueueModel) -> QueueSettings:
    return QueueSettings(
        name,
        max_attempts=model.max_attempts,
        lease_seconds=model.lease / 1_000_000,
        poll_seconds=model.poll / 1_000_000,
        concurrency=model.concurrency,
        per_key=model.per_key,
        rate=None if model.rate is None else Rate(*model.rate),
        backoff=Backoff(model.backoff.base, model.backoff.cap, model.backoff.jitter),
        completed_kept_us=model.keep_completed,
        dead_kept_us=model.keep_dead,
        types={kind: _type(kind, each) for kind, each in model.types.items()},
    )


def _type(name: str, model: JobTypeModel) -> JobType:
    return JobType(
        name,
        model=model.model,
        handler=model.handler,
        command=model.command,
        timeout_seconds=None if model.timeout is None else model.timeout / 1_000_000,
        max_attempts=model.max_attempts,
    )
