"""Build the repairs of the queues of an open store: view, limits, archives. Decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph import looking
from tachograph.domain.queue_selection import RESTORE, RESTORE_RULE
from tachograph.domain.repair_errors import DISABLED, FROZEN, denied
from tachograph.domain.repair_policy import AGENT, OPERATOR, SWEEP
from tachograph.queue_archivekeeping import pruner_of
from tachograph.queuekeeping import queues_of
from tachograph.queues import choosing
from tachograph.queues.gatekeeping import Gatekeeper
from tachograph.queues.repairing import Repairing, Unlimited
from tachograph.queues.repository import QueueRepository
from tachograph.queues.sweeping import Sweeper

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.domain.repair_policy import RepairPolicy
    from tachograph.looking import Report
    from tachograph.queue_plans import QueuePlans
    from tachograph.queues.repairing import Gate, Look, Permit

    Fields = dict[str, Any]


def gatekeeper_of(services: Services, plans: QueuePlans) -> Gatekeeper:
    """Return the gate of all repairs of a store."""
    return Gatekeeper(services.log, services.packing, services.actor, plans.repair)


def gate_of(
    services: Services,
    plans: QueuePlans,
    actor_kind: str = OPERATOR,
    *,
    force: bool = False,
    run: str | None = None,
    baseline: Fields | None = None,
) -> Gate:
    """Return the gate for somebody; `run` and `baseline` are of a maintenance cycle.

    To restore has no limits, so that what was wrong can be undone at once; but it is refused
    while repairs are frozen, and to agents that may repair nothing.
    """
    keeper = gatekeeper_of(services, plans)

    def gate(action: str, reason: str, selection: Fields) -> Permit:
        if action == RESTORE:
            return _restoring(plans.repair, actor_kind)
        return keeper.gate(
            action,
            actor_kind,
            reason,
            force=force,
            selection=selection,
            run=run,
            baseline=baseline,
        )

    return gate


def _restoring(policy: RepairPolicy, actor_kind: str) -> Permit:
    if policy.frozen:
        raise denied(RESTORE, FROZEN, None)
    if actor_kind == AGENT and not policy.enabled:
        raise denied(RESTORE, DISABLED, None)
    return Unlimited()


def look_of(services: Services, report: Report | None = None) -> Look:
    """Return what answers questions from the view of queues, caught up."""
    return lambda question: looking.ask(services, lambda view: question(view.queues), report=report)


def repairing_of(
    services: Services, plans: QueuePlans, gate: Gate, report: Report | None = None
) -> Repairing:
    """Return the repairs of the queues of an open store."""
    queueing = queues_of(services, plans.plan)
    return Repairing(queueing, look_of(services, report), gate, pruner_of(services, queueing))


def sweeper_of(
    services: Services, plans: QueuePlans, gate: Gate, report: Report | None = None
) -> Sweeper:
    """Return what sweeps the queues of an open store."""
    queueing = queues_of(services, plans.plan)
    keeper = gatekeeper_of(services, plans)
    pruner = pruner_of(services, queueing)
    look = look_of(services, report)
    return Sweeper(queueing, look, gate, pruner, lambda: keeper.get(SWEEP).last)


def full_ids_of(
    services: Services, texts: Sequence[str], report: Report | None = None
) -> list[str]:
    """Return the ids of jobs that are meant: each a whole id, or the unique beginning of one.

    Raises JobNotFoundError and AmbiguousJobError.
    """
    repository = QueueRepository(services.log, services.packing)
    found: list[str] = look_of(services, report)(
        lambda view: choosing.full_ids(view, repository.get, texts)
    )
    return found


def ids_of_repair(services: Services, repair: str) -> list[str]:
    """Return the jobs that are still cancelled or pruned because of a repair."""
    repository = QueueRepository(services.log, services.packing)
    ids = choosing.ids_of_repair(repository, repair)
    return choosing.restorable(repository.get, ids, RESTORE_RULE.takes)
