"""The work of `tacho queue worker`: build the worker, run it, stop it as signals ask."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from tachograph import looking
from tachograph.api import _codec
from tachograph.bootstrap import open_store
from tachograph.cli.options import UsageError
from tachograph.cli.worker_lines import Lines
from tachograph.infra.payload_models import checker
from tachograph.queue_plans import plan_of
from tachograph.queuekeeping import queues_of
from tachograph.queues.crew import Crew
from tachograph.queues.looking import health
from tachograph.queues.told import Told
from tachograph.queues.working import MAX_LOAD
from tachograph.workerkeeping import doing, sweep_of, worker_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, Protocol, Self

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.queue_plans import QueuePlans
    from tachograph.queues.working import Worker

    class Display(Protocol):
        """What shows the worker."""

        def tell(self, told: Told) -> None:
            """Show that something happened."""
            ...

        def refresh(self, worker: Worker) -> None:
            """Show how it is."""
            ...

        def close(self) -> None:
            """Show nothing more."""
            ...


ACTOR = "worker"
"""Who the events say caused them."""
LOOK_SECONDS = 0.1
"""Between looks for signals."""
STOP_SECONDS, AT_ONCE_SECONDS = 15.0, 5.0
"""What processes are given to end, politely and by force, before the worker ends without them."""


def work(params: Params, out: Output, *, grace_seconds: float, poll_seconds: float | None) -> int:
    """Run a worker and return the exit code."""
    services = open_store(out.store, create=True, actor=ACTOR, codec=_codec)
    out.keep(services)
    plans = plan_of(services, params.config)
    todo = doing(plans.plan, params.handlers, plans.folder, _command(params.exec))
    queues = todo.queues(plans.plan, params.queues)
    queueing = queues_of(services, plans.plan, validate=checker(plans.folder))
    display = _display(params, out, partial(_health, services, plans, queues))
    worker = worker_of(
        services,
        queueing,
        queues,
        todo,
        config=plans.path,
        max_load=_max_load(params),
        poll_seconds=poll_seconds,
        sweep=sweep_of(services, plans, display.tell),
        tell=display.tell,
    )
    started = time.monotonic()
    crew = Crew(worker, params.concurrency)
    try:
        with _Signals(worker) as signals:
            display.tell(Told("started", queue=", ".join(queues)))
            worker.begin()
            crew.start(once=params.once, drain=params.drain)
            left = _watch(worker, crew, display, signals, grace_seconds)
    finally:
        display.close()
    display.tell(Told("stopped", seconds=time.monotonic() - started))
    code = _report(worker, queues, left, params, out, time.monotonic() - started)
    if left:  # a thread that cannot be stopped may be using the store: nothing is closed
        _leave(code)
    crew.close()
    if crew.error is not None:
        raise crew.error
    return code


def _max_load(params: Params) -> float:
    """Return the bound on the load: who asks for what is there now does not wait for less."""
    if params.max_load is not None:
        return float(params.max_load)
    return 0.0 if params.once or params.drain else MAX_LOAD


def _command(text: str | None) -> list[str] | None:
    if text is None:
        return None
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--exec is {text!r}, which is no command: {error}.") from error
    if not words:
        raise UsageError("--exec is empty: give a command.")
    if shutil.which(words[0]) is None:  # else every job would die of it
        raise UsageError(f"--exec is {words[0]!r}, which is no program that can be run here.")
    return words


def _health(services: Services, plans: QueuePlans, queues: list[str]) -> dict[str, Any]:
    """Return how the queues are, as `tacho queue status` does."""
    now_us = services.actor.now_us()
    return looking.ask(
        services,
        lambda view: health(view.queues, plans.plan, plans.thresholds, now_us, queues),
    )


def _display(params: Params, out: Output, ask: Callable[[], dict[str, Any]]) -> Display:
    lines = Lines(out, as_json=params.log_format == "json")
    if not params.watch:
        return lines
    if not sys.stderr.isatty():
        out.note("tacho: --watch needs a terminal; lines are written instead.")
        return lines
    from tachograph.cli.worker_display import Watch

    return Watch(ask)


def _watch(
    worker: Worker, crew: Crew, display: Display, signals: _Signals, grace_seconds: float
) -> list[str]:
    """Wait for the end, hurried by signals; return the jobs whose handlers did not end."""
    end: float | None = None
    stops = 0
    while not crew.wait(LOOK_SECONDS):
        display.refresh(worker)
        now = time.monotonic()
        if signals.count and end is None:
            worker.stop()
            display.tell(Told("stopping", seconds=grace_seconds))
            end = now + grace_seconds
        if end is None or (now < end and signals.count <= max(1, stops)):
            continue
        if stops >= 2 or (stops == 1 and signals.count < 2):
            return [hold.job.id for hold in worker.holds]
        stops = 2 if signals.count > 1 else 1
        if not worker.stop_jobs(at_once=stops == 2):
            return [hold.job.id for hold in worker.holds]
        end = now + (AT_ONCE_SECONDS if stops == 2 else STOP_SECONDS)
    return []


def _report(
    worker: Worker,
    queues: list[str],
    left: list[str],
    params: Params,
    out: Output,
    seconds: float,
) -> int:
    tally = worker.tally
    if left:
        out.warn(
            f"tacho: {len(left)} handlers did not end in time. Their jobs are free for other "
            "workers as soon as this process is gone, and go on at their last checkpoints: "
            + ", ".join(left)
        )
    if out.json:
        out.document(
            {
                "queues": queues,
                "begun": tally.begun,
                "completed": tally.completed,
                "failed": tally.failed,
                "dead": tally.dead,
                "released": tally.released,
                "lost": tally.lost,
                "failing": sorted(tally.failing),
                "leftAtWork": left,
                "seconds": round(seconds, 3),
            }
        )
    elif params.once and not tally.begun:
        out.line(f"No job of {', '.join(queues)} is due that this worker can do.")
    else:
        out.line(_summary(worker))
    return 1 if left or ((params.once or params.drain) and tally.failing) else 0


def _summary(worker: Worker) -> str:
    tally = worker.tally
    parts = [f"{tally.completed} completed"]
    counted = [(tally.failed - tally.dead, "failed"), (tally.dead, "dead")]
    counted += [(tally.released, "released"), (tally.lost, "lost")]
    parts += [f"{number} {name}" for number, name in counted if number]
    jobs = "1 job" if tally.begun == 1 else f"{tally.begun} leases"
    return f"{jobs}: {', '.join(parts)}."


def _leave(code: int) -> None:
    """End the process without waiting for threads, and without closing what they use."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class _Signals:
    """Counts SIGTERM and SIGINT in its `with` block; from the first on, nothing is leased."""

    def __init__(self, worker: Worker) -> None:
        self.count = 0
        self._worker = worker
        self._former: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._former[number] = signal.signal(number, self._receive)
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # exit codes would be lost
            self._former[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what it gave us

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        self._worker.stopping = True  # no lock may be taken here, so nobody is woken yet
        self.count += 1
