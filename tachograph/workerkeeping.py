"""Build a worker of an open store: its handlers, clocks and sleep. Knows no rule of a queue."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

from tachograph.domain.repair_policy import DAEMON
from tachograph.domain.worker_errors import NoHandlersError
from tachograph.infra import named_objects
from tachograph.infra.log_sleeper import LogSleeper
from tachograph.job_surroundings import Around, name_of
from tachograph.queues.handlers import Handler, Handlers, collect, declared
from tachograph.queues.job_ends import Ends
from tachograph.queues.job_processes import Processes
from tachograph.queues.performing import Performer
from tachograph.queues.told import Told
from tachograph.queues.working import MAX_LOAD, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tachograph.bootstrap import Services
    from tachograph.domain.queue_settings import QueuePlan
    from tachograph.queue_plans import QueuePlans
    from tachograph.queues.queueing import Queueing


class Doing:
    """What does the work: handlers by queue and type, and a command for all the rest.

    Commands that the project declares are run in its `folder`, the one for the rest in ours.
    """

    def __init__(
        self, handlers: Handlers, command: Sequence[str] | None = None, *, folder: str = "."
    ) -> None:
        self.handlers = handlers
        self.folder = folder
        self._any = None if command is None else Handler("any", command=command)

    def find(self, queue: str, kind: str) -> Handler | None:
        """Return what does jobs of a type of a queue."""
        return self.handlers.find(queue, kind) or self._any

    def takes(self, queue: str) -> frozenset[str] | None:
        """Return the types of a queue that can be done, None for all."""
        return None if self._any is not None else self.handlers.types(queue)

    def folder_of(self, handler: Handler) -> str | None:
        """Return where the command of a handler is run, None for the current folder."""
        return None if handler is self._any else self.folder

    def queues(self, plan: QueuePlan, named: Sequence[str]) -> list[str]:
        """Return the queues to work on: those that are named, or those with anything to do.

        Raises UnknownQueueError, and NoHandlersError where nothing can be done.
        """
        wanted = list(dict.fromkeys(plan.get(name).name for name in named)) or list(plan.queues)
        able = [name for name in wanted if self.takes(name) is None or self.takes(name)]
        missing = [name for name in wanted if name not in able]
        if not able or (named and missing):
            raise NoHandlersError(", ".join(missing or wanted))
        return able


def doing(
    plan: QueuePlan, modules: Sequence[str], folder: str, command: Sequence[str] | None = None
) -> Doing:
    """Return what modules and the project declare as handlers; what a module says wins.

    Raises CodeNotFoundError, HandlerUnusableError, HandlerTakenError.
    """
    found = Handlers()
    for name in modules:
        for handler in collect(named_objects.load(name)):
            found.add(handler)
    found.add_missing(declared(plan, lambda name: named_objects.load(name, folder)))
    return Doing(found, command, folder=folder)


def worker_of(
    services: Services,
    queueing: Queueing,
    queues: Sequence[str],
    doing: Doing,
    *,
    config: str | None = None,
    max_load: float = MAX_LOAD,
    poll_seconds: float | None = None,
    sweep: Callable[[], None] = lambda: None,
    tell: Callable[[Told], None] = lambda _told: None,
) -> Worker:
    """Return a worker on these queues. Raises NotStoppableError.

    `config` is the project's file, which processes of handlers read as well.
    """
    check_stoppable(doing.handlers, queueing, queues)
    for part in ("presence", "observer", "leftovers", "blobs"):
        getattr(services, part)  # built here and now: threads that come first together would not
    ends = Ends(queueing, services.session)
    around = Around(services, queueing, doing.folder, doing.folder_of, config)
    performer = Performer(
        queueing,
        services.starter,
        services.repository,
        services.owner(),
        doing.find,
        ends,
        Processes(around, ends),
        around,
        services.policy,
    )
    return Worker(
        queueing,
        queues,
        services.owner(),
        performer.perform,
        takes=doing.takes,
        sleeper=LogSleeper(queueing.store.last_transaction),
        now=time.monotonic,
        random=random.random,
        load=load_per_processor,
        max_load=max_load,
        poll_seconds=poll_seconds,
        sweep=sweep,
        tell=tell,
    )


def sweep_of(
    services: Services, plans: QueuePlans, tell: Callable[[Told], None]
) -> Callable[[], None]:
    """Return what prunes jobs that were kept for long enough, where a sweep is due."""
    from tachograph.queue_repairkeeping import gate_of, sweeper_of

    def report(error: Exception) -> None:
        tell(Told("error", error=str(error)))

    sweeper = sweeper_of(services, plans, gate_of(services, plans, DAEMON), report)

    def sweep() -> None:
        swept = sweeper.sweep_if_due()
        if swept is not None and swept.total:
            tell(Told("swept", outcome=swept.message()))

    return sweep


def load_per_processor() -> float:
    """Return how many processes want to run, on average of a minute, for each processor."""
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):  # a system without: psutil measures by itself
        import psutil

        load = psutil.getloadavg()[0]
    return load / (os.cpu_count() or 1)


def check_stoppable(handlers: Handlers, queueing: Queueing, queues: Sequence[str]) -> None:
    """Require that handlers with a time limit can be imported. Raises NotStoppableError."""
    for queue in queues:
        for kind in handlers.types(queue):
            handler = handlers.find(queue, kind)
            declared = queueing.settings(queue).job_type(kind).timeout_seconds
            if handler is None or handler.function is None:
                continue
            if (handler.timeout_seconds or declared) is not None:
                name_of(handler)
