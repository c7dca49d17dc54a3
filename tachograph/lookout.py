"""Build what watching needs: the surroundings of a watchdog on an open store.

Like bootstrap it knows both sides. A tick that finds nothing imports nothing heavy.
"""

from __future__ import annotations

from tachograph import projecting
from tachograph.domain.errors import StoreFullError, StoreReadOnlyError
from tachograph.domain.owner import Owner
from tachograph.infra import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.domain.ages import Moment
    from tachograph.domain.liveness import Liveness
    from tachograph.domain.run import Run
    from tachograph.planning import Planner
    from tachograph.resuming import Dispatcher
    from tachograph.session import Session

STOP_SECONDS = 10.0
"""How long a silent owner may take to end before it is killed."""


class Lookout:
    """What a watchdog sees of a store and its machine."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def ask(self, question: Callable[[Any], Any]) -> Any:
        """Catch the views up, and answer a question from them."""
        services = self._services
        try:
            return projecting.ask(services.log, services.codec, services.views(), question)
        except (StoreReadOnlyError, StoreFullError):
            from tachograph.infra.memory_views import MemoryViews

            views = MemoryViews(services.codec)
            return projecting.ask(services.log, services.codec, views, question)

    def load(self, run_id: str) -> Run | None:
        """Return a run as it is now."""
        return self._services.repository.get(run_id)

    def session(self, run_id: str) -> Session:
        """Return a session that belongs to no attempt."""
        return self._services.session(run_id, 0)

    def liveness(self, run: Run) -> Liveness:
        """Judge the attempt of a run."""
        return self._services.liveness(run)

    def sharing(self, run: Run) -> list[str]:
        """Return the other runs that count on a process which would be stopped with a run."""

        def question(view: Any) -> list[str]:
            found = [view.counting_on(process) for process in run.own_processes]
            return [str(view.card_at(created)["id"]) for each in found for created in each]

        return [other for other in dict.fromkeys(self.ask(question)) if other != run.id]

    def process_state(self, process: dict[str, Any]) -> str:
        """Say whether a process is alive, gone or unknown, by itself alone."""
        return self._services.process_state(process)

    def expired(self) -> list[str]:
        """Return the runs whose lease has ended."""
        return [str(stream) for stream in self._services.presence.expired(clock.boottime_us())]

    def settle(self, run_id: str) -> None:
        """Take a run off that list until it beats again."""
        self._services.presence.settle(run_id)

    def now(self) -> Moment:
        """Return what the clocks show."""
        return clock.moment()

    def moments(self) -> list[Moment]:
        """Return what they showed earlier in this boot."""
        return self._services.presence.moments()

    def note_moment(self, moment: Moment) -> None:
        """Keep what they show, and free what killed readers hold of the log."""
        self._services.presence.note_moment(moment)
        self._services.environment.clear_stale_readers()

    def stop(self, run: Run) -> str | None:
        """End the processes of a run for good; return what is wrong when that fails."""
        from tachograph.infra.stopping import stop

        processes = [Owner.from_fields(process) for process in run.own_processes]
        if not processes:
            return "no process works for it alone"
        stopped = stop(
            processes[-1],
            processes[0] if len(processes) > 1 else None,
            here=self._services.observer,
            grace_seconds=STOP_SECONDS,
            kill=True,
        )
        if stopped.ended:
            return None
        return stopped.reason or f"still there: {', '.join(map(str, stopped.left))}"

    def planner(self) -> Planner:
        """Return what makes plans."""
        return self._services.planner

    def dispatcher(self) -> Dispatcher:
        """Return what resumes runs."""
        return self._services.dispatcher
