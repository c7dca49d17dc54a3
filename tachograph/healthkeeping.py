"""Build what looks after health: diagnostics of an open store, the gate, maintenance cycles.

Like bootstrap it knows both sides. No light command imports it.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from tachograph import looking, projecting, reading
from tachograph.domain import repair_policy as actions
from tachograph.domain.bodies import ERASED
from tachograph.domain.errors import StoreFullError, StoreReadOnlyError
from tachograph.domain.health import WEIGHTS
from tachograph.domain.queued_job import LEASED
from tachograph.health import acting, fates
from tachograph.health.caring import Carer
from tachograph.health.diagnosing import Domain
from tachograph.health.judging import Judging
from tachograph.health.keeping_diary import COMMAND, RunDiary
from tachograph.health.other_domains import (
    RING,
    provider_domain,
    provider_facts,
    run_domain,
    storage_domain,
    storage_facts,
    view_domain,
)
from tachograph.health.queue_domain import queue_domain
from tachograph.health.queue_facts import queue_facts
from tachograph.infra import store_room
from tachograph.infra.store_files import StoreFiles
from tachograph.portions import ProjectionStoppedError
from tachograph.queue_repairkeeping import gatekeeper_of, repairing_of, sweeper_of
from tachograph.queuekeeping import lost, queues_of
from tachograph.recording import Recording
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import EntryPoint
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.health.caring import Action, CareReport
    from tachograph.health.diagnosing import Diagnosis
    from tachograph.projections.views import ViewReader
    from tachograph.queue_plans import QueuePlans
    from tachograph.queues.gatekeeping import Permit
    from tachograph.queues.queueing import Queueing
    from tachograph.queues.repairing import Repairing
    from tachograph.session import Session

    Facts = dict[str, Any]

GROUP = "tachograph.health"
"""Entry points of other packages: each is called with the store's folder, and returns a
`tachograph.health.diagnosing.Diagnosis`."""
MOST_READ = 200_000
"""Events, the newest, among which answers of providers are looked for."""
DAY_US = 86_400_000_000
OVERDUE_US = 10 * 60 * 1_000_000
"""How long a run may be due without anybody looking at it: a watchdog comes every minute."""
MOST_COMPARED = 100_000
"""Events up to which a cycle compares the views with the log: that takes some seconds."""
MOST_LISTED = 10
"""Ids that a fact names."""


class HealthKeeping:
    """The health of an open store, by what a project declares."""

    def __init__(self, services: Services, plans: QueuePlans, *, check_views: bool = False) -> None:
        self.services = services
        self.plans = plans
        self.gatekeeper = gatekeeper_of(services, plans)
        self.queueing: Queueing = queues_of(services, plans.plan)
        self._check_views = check_views

    # Diagnosis.

    def domains(self) -> list[Diagnosis]:
        """Return every domain: those of Tachograph, then those of other packages."""
        own: list[Diagnosis] = [
            queue_domain(self.queue_facts, self.plans.thresholds),
            storage_domain(self.storage_facts),
            view_domain(self.view_facts),
            run_domain(self.run_facts),
            provider_domain(self.provider_facts),
        ]
        taken = {domain.name for domain in own}
        return [*own, *_registered(self.services.folder, taken)]

    def queue_facts(self) -> Facts:
        """Return the facts about the queues."""
        now_us = self.services.actor.now_us()
        plans = self.plans

        def question(view: ViewReader) -> Facts:
            return queue_facts(view.queues, plans.plan, plans.thresholds, now_us, self._is_lost)

        return looking.ask(self.services, question, report=_ignore)

    def _is_lost(self, job: QueuedJob) -> bool:
        return lost(self.services, job) is not None

    def storage_facts(self) -> Facts:
        """Return the facts about the store's files."""
        files = StoreFiles(self.services.folder)
        environment = self.services.environment
        return storage_facts(
            files.sizes(),
            free_bytes=files.free_bytes(),
            pages=store_room.pages(environment),
            stale_readers=store_room.stale_readers(environment),
            most_bytes=store_room.most_bytes(),
        )

    def view_facts(self) -> Facts:
        """Return the facts about the views; whether they differ only where that is asked for."""
        checked = StoredViews(self.services)
        stopped = checked.stopped()
        lag = checked.lag()
        names = [name for name, lack in lag.items() if lack] if stopped is not None else []
        differences = checked.differences() if self._check_views and stopped is None else None
        return {
            "lag": lag,
            "stoppedViews": 0 if stopped is None else max(1, len(names)),
            "stopped": stopped,
            "differences": differences,
        }

    def run_facts(self) -> Facts:
        """Return the facts about runs that are not finished."""
        judge = looking.judge_of(self.services)
        due_us = self.services.actor.now_us() - OVERDUE_US

        def question(view: ViewReader) -> Facts:
            open_runs = reading.list_runs(view, judge, statuses=reading.OPEN_STATUSES)
            statuses = [run["status"] for run in open_runs]
            needing = reading.list_runs(view, judge, needing=True)
            cut_off = [run["id"] for run in open_runs if run["status"] == reading.INTERRUPTED]
            return {
                "open": len(open_runs),
                "running": statuses.count(reading.RUNNING),
                "waiting": statuses.count(reading.WAITING),
                "blocked": statuses.count(reading.BLOCKED),
                "interrupted": len(cut_off),
                "interruptedRuns": cut_off[:MOST_LISTED],
                "needingPerson": len(needing),
                "needingRuns": [run["id"] for run in needing][:MOST_LISTED],
                "overdue": sum(1 for _ in view.due(due_us)),
            }

        return looking.ask(self.services, question, report=_ignore)

    def provider_facts(self) -> Facts:
        """Return what became of the newest answers."""
        services = self.services
        after = max(0, services.log.head().position - MOST_READ)
        records = services.log.read(
            after=after, limit=RING, reverse=True, topics=("run.answer-received",)
        )
        told = (services.repository.fields(record) for record in records)
        answers = [fields for fields in told if ERASED not in fields]
        return provider_facts(answers, services.actor.now_us(), DAY_US)

    # Maintenance.

    def carer(self) -> Carer:
        """Return what does maintenance cycles."""
        return Carer(
            self.domains,
            self.gatekeeper,
            self.actions(),
            Judging(self.gatekeeper, self.fate, self.services.actor.now_us),
            self.services.actor.now_us,
        )

    def actions(self) -> dict[str, Action]:
        """Return what does each repair action."""
        queueing, services, plans = self.queueing, self.services, self.plans

        def repairing(permit: Permit) -> Repairing:
            return repairing_of(services, plans, acting.held(permit))

        return {
            actions.REQUEUE: lambda permit: acting.requeue_dead(repairing(permit), permit),
            actions.CANCEL: lambda permit: acting.cancel_obsolete(repairing(permit), permit),
            actions.PRUNE: lambda permit: acting.prune_terminal(repairing(permit), permit),
            actions.SWEEP: lambda permit: acting.sweep(
                sweeper_of(services, plans, acting.held(permit)), permit
            ),
            actions.RELEASE: lambda permit: acting.release_stale(queueing, permit),
            actions.CHECK_VIEWS: lambda permit: acting.check_views(StoredViews(services), permit),
            actions.CLEAR_READERS: lambda permit: acting.clear_readers(
                services.environment.clear_stale_readers, permit
            ),
        }

    def fate(self, action: str, job_id: str, kept: Facts) -> str:
        """Return what became of a job since a repair."""
        history = self.queueing.repository.history(job_id)
        told = [(record.topic, fields) for record, fields in history]
        return fates.fate(action, told, kept, lost_now=lambda: self._has_lost(job_id))

    def _has_lost(self, job_id: str) -> bool:
        """Say whether a job has a holder, and that one is lost."""
        job = self.queueing.repository.get(job_id)
        return job is not None and job.status == LEASED and self._is_lost(job)

    def care(self, mode: str) -> CareReport:
        """Do one maintenance cycle, as a run.

        Raises RunOwnedError while another process, or thread, does one. A cycle whose process was
        killed is cancelled by the next one.
        """
        services = self.services
        if services.log.head().position <= MOST_COMPARED:
            self._check_views = True
        recording = Recording(
            self._start, lambda: services.settings.heartbeat_seconds, log_warnings=False
        )
        with recording:
            return self.carer().cycle(RunDiary(recording), mode)

    def _start(self) -> Session:
        services = self.services
        want = Start(COMMAND, {}, title="Maintenance cycle")
        session = services.starter.start(want, services.owner())
        if session.epoch == 1:
            return session
        why = "its process ended before the cycle was over"
        session.execute(lambda run, cause: run.cancel(cause, why))
        return services.starter.start(want, services.owner())


class StoredViews:
    """The views of a store, compared with its log."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def stopped(self) -> str | None:
        """Return why a view cannot go on; None when all can."""
        found: list[str] = []
        looking.ask(
            self._services, lambda _view: None, report=lambda error: found.append(str(error))
        )
        return found[0] if found else None

    def lag(self) -> dict[str, int]:
        """Return how many events each view lacks; nothing where no view can be stored."""
        if self._services.read_only:
            return {}
        return projecting.lag(self._services.log, self._services.views())

    def differences(self) -> int | None:
        """Return how many rows differ from the log; None where the views cannot be written."""
        services = self._services
        try:
            return len(projecting.check(services.log, services.codec, services.views()))
        except (StoreReadOnlyError, StoreFullError, ProjectionStoppedError):
            return None

    def wrong(self) -> tuple[int, str | None]:
        """Return how many rows differ from the log, and why a view cannot go on, or None."""
        stopped = self.stopped()
        return (0 if stopped is not None else self.differences() or 0), stopped

    def rebuild(self) -> None:
        """Make all views anew."""
        services = self._services
        projecting.rebuild(services.log, services.codec, services.views())


def _ignore(_error: ProjectionStoppedError) -> None:
    """Answer from what a stopped view has: the domain of the views tells that it stopped."""


def _registered(folder: str, taken: set[str]) -> Iterator[Diagnosis]:
    """Yield the domains of other packages; one that cannot be had is a domain that says so."""
    for entry in entry_points(group=GROUP):
        try:
            domain = entry.load()(folder)
            if domain.name in taken:
                raise ValueError(f"another domain is called {domain.name!r}")
            taken.add(domain.name)
        except Exception as error:  # noqa: BLE001  # code of whatever package
            domain = _broken(entry, error)
        yield domain


def _broken(entry: EntryPoint, error: Exception) -> Domain:
    def collect() -> Facts:
        raise RuntimeError(f"the entry point {entry.value} cannot be used: {error}")

    return Domain(entry.name, min(WEIGHTS.values()), collect)
