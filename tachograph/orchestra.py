"""Build what an orchestrator run needs: its id, the guards, the locks, and how a step is run.

Like bootstrap it knows both sides. The environment of this process is never changed: what a run
tells its steps dies with them.
"""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING, TypeVar

from tachograph import projecting
from tachograph.bootstrap import joined, orchestrator
from tachograph.domain.errors import RunOwnedError, StoreFullError, StoreReadOnlyError
from tachograph.domain.liveness import ALIVE, GONE
from tachograph.infra import clock
from tachograph.projections.maintenance_guards import NEVER, standing
from tachograph.step_work import StepWork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any, Self

    from tachograph.bootstrap import Services
    from tachograph.domain.maintenance_plan import MaintenanceStep
    from tachograph.domain.run import Run
    from tachograph.orders import Bounds, Worked
    from tachograph.projections.maintenance_guards import Standing
    from tachograph.projections.views import ViewReader
    from tachograph.session import Session
    from tachograph.starting import Start

T = TypeVar("T")

COMMAND = "maintenance-"
"""What the commands of orchestrator runs begin with; the tier follows."""
STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")
_SLICE_SECONDS = 0.2


class Identity:
    """Which run an orchestrator is to be: its id, and the run that it is part of."""

    __slots__ = ("parent", "run_id")

    def __init__(self, run_id: str, parent: str | None) -> None:
        self.run_id = run_id
        self.parent = parent


def identity(services: Services, want: Start, label: str) -> Identity:
    """Return the id for an orchestrator run.

    That of the run which a resume has sent us for; else the one of HM_RUN_ID or
    HM_ORCHESTRATOR_RUN_ID, with the label (the tier) behind it where another run has that id,
    such as the one that started us; else a new one.
    """
    sent = joined()
    run = None if sent is None else services.repository.get(sent[0])
    if run is not None and run.command == want.command and run.dispatch is not None:
        return Identity(run.id, run.parent)
    named = orchestrator()
    if named is not None:
        for candidate in (named, f"{named}-{label}"):
            if _may_be(services, candidate, want):
                return Identity(candidate, None if candidate == named else named)
    return Identity(new_id(clock.now_us()), named)


def new_id(now_us: int) -> str:
    """Return a new id of an orchestrator run."""
    compact = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now_us // 1_000_000))
    return f"orch-{compact}-{random.randint(0, 999_999)}"


def _may_be(services: Services, run_id: str, want: Start) -> bool:
    """Say whether a run of this id is none yet, or ours to go on with."""
    run = services.repository.get(run_id)
    if run is None:
        return True
    digest = services.payloads.digest(dict(sorted(want.inputs.items())), "inputs")
    if run.command != want.command or run.inputs_digest != digest:
        return False
    owner = run.owner or {}
    alive = run.attempt_open and services.process_state(owner) == ALIVE
    return not alive or services.in_the_way(owner, services.owner()) is not None


class Stopping:
    """A `with` block in which a signal to stop is noted, and what is under way is let finish."""

    def __init__(self) -> None:
        self.received: str | None = None
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for name in STOPPING:
            number = getattr(signal, name)
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._former[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.received = self.received or signal.Signals(number).name


class Orchestra:
    """What an orchestrator sees of a store and its machine. Satisfies Surroundings.

    `services` is None where there is no store, and `session` where nothing is run.
    """

    def __init__(
        self,
        services: Services | None,
        session: Session | None,
        stopping: Stopping,
        say: Callable[[str], None],
    ) -> None:
        self._services = services
        self._session = session
        self._stopping = stopping
        self._tell = say
        self._beaten = time.monotonic()

    def now_us(self) -> int:
        """Return the wall time."""
        return clock.now_us()

    def monotonic(self) -> float:
        """Return seconds of a clock that nobody sets."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait, and renew the lease; a signal that asks to stop ends it."""
        until = time.monotonic() + seconds
        while self._stopping.received is None:
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _SLICE_SECONDS))
            self._beat()

    def interrupted(self) -> str | None:
        """Return the name of the signal that asks to stop."""
        return self._stopping.received

    def gate_open(self, step: MaintenanceStep) -> bool:
        """Say whether a step is switched on, here and now."""
        return step.gate.is_open(os.environ)

    def standing(self, step: str, *, once: bool) -> Standing:
        """Return when a step did its work, by the log as it is now."""
        if self._services is None:
            return NEVER
        return _ask(self._services, lambda view: standing(view, step, once=once))

    def holder(self, step: str, started: int | None) -> str | None:
        """Describe another live orchestrator run that is at this step."""
        if self._services is None or self._session is None:
            return None
        services, own = self._services, self._session.run_id
        before = None if started is None else _position(services, own, started)
        for run_id in _ask(services, _open_orchestrators):
            run = None if run_id == own else services.repository.get(run_id)
            if run is not None and _is_at(services, run, step, before):
                return _described(run, step, clock.now_us())
        return None

    def say(self, step: str, words: str) -> None:
        """Tell a person what a step is doing: the words are part of the interface."""
        self._tell(f"maintenance-orchestrator: {step} — {words}")

    def work(self, step: MaintenanceStep, bounds: Bounds) -> Worked:
        """Run a step as a run of its own that belongs to the orchestrator's.

        Raises RunOwnedError while a process is at it that a killed orchestrator has left behind.
        """
        assert self._services is not None and self._session is not None  # noqa: S101
        for run_id in _ask(self._services, lambda view: _open_runs_of(view, step.name)):
            run = self._services.repository.get(run_id)
            living = None if run is None else self._services.live_owner(run)
            if living is not None:
                raise RunOwnedError(run_id, living)
        return StepWork(self._services, self._session, step, bounds, self.say).run()

    def _beat(self) -> None:
        if self._session is None or self._services is None:
            return
        if time.monotonic() - self._beaten >= self._services.settings.heartbeat_seconds:
            self._beaten = time.monotonic()
            self._session.beat()


def _open_orchestrators(view: ViewReader) -> list[str]:
    return [card["id"] for card in view.open_cards() if card["command"].startswith(COMMAND)]


def _open_runs_of(view: ViewReader, step: str) -> list[str]:
    """Return the open runs of a step, whichever orchestrator has started them."""
    cards = [card for card in view.open_cards() if card["command"] == step and card["parent"]]
    parents = [view.summary(card["parent"]) or {"command": ""} for card in cards]
    return [
        card["id"]
        for card, parent in zip(cards, parents, strict=True)
        if parent["command"].startswith(COMMAND)
    ]


def _is_at(services: Services, run: Run, step: str, before: int | None) -> bool:
    """Say whether a run is at a step, by the log, and alive (G7)."""
    known = run.maintenance_steps.get(step)
    if known is None or known["status"] is not None or not run.attempt_open:
        return False
    if before is not None and _position(services, run.id, known["version"]) > before:
        return False
    return services.liveness(run).state != GONE


def _position(services: Services, run_id: str, version: int) -> int:
    (record,) = services.log.read_stream(run_id, after=version - 1, up_to=version)
    return record.position


def _described(run: Run, step: str, now_us: int) -> str:
    owner = run.owner or {}
    held = max(0, now_us - run.maintenance_steps[step]["started_us"]) // 1_000_000
    return f"pid={owner.get('pid', '?')} host={owner.get('host', '?')} held={held}s run={run.id}"


def _ask(services: Services, question: Callable[[ViewReader], T]) -> T:
    """Catch the views up, and answer a question from them."""
    log, codec = services.log, services.codec
    try:
        return projecting.ask(log, codec, services.views(), question)
    except (StoreReadOnlyError, StoreFullError):
        from tachograph.infra.memory_views import MemoryViews

        return projecting.ask(log, codec, MemoryViews(codec), question)


def standings(services: Services | None, steps: list[MaintenanceStep]) -> Iterator[Standing]:
    """Yield when each step did its work, by the log as it is now."""
    if services is None:
        yield from (NEVER for _ in steps)
        return

    def question(view: ViewReader) -> list[Standing]:
        return [standing(view, step.name, once=step.once) for step in steps]

    yield from _ask(services, question)
