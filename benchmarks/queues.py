"""Queues: jobs in, jobs out, beside three queues on SQLite; and what very many jobs cost.

Every commit of every side is synced. Each round gives every side the same work in turn.
"""

from __future__ import annotations

import itertools
import statistics
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import installed
import queue_stores
import whole_workers
from commands import CommandError, Commands
from harness import (
    LOWER,
    Figure,
    Pair,
    absent,
    contest,
    in_milliseconds,
    latencies,
    per_second,
    rounds,
    single_contest,
    timed,
)
from own_queue import OwnQueue
from peers.sqlite_queues import PEERS
from queue_process import OWN, opened, payload
from queue_stores import FEW, MANY
from queue_workers import Crew, acknowledged_and_lost, taken_and_lost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from harness import Bench, Measure, Round

    from tachograph.queues.queueing import Leased

PER_ROUND = 50
WORKERS = 4
DRAINED = 600
THREADS, EACH = 16, 25
BULK = 500
TOGETHER = 16
"""Jobs that a worker with so many slots ends and takes in one commit."""
SIDES = (OWN, *PEERS)


def figures(bench: Bench) -> Iterator[Figure]:
    """Yield what is measured of queues."""
    bench.say("killing processes at each queue")
    surviving, told = _surviving(bench.folder)
    yield from _enqueueing(bench, surviving, told)
    yield from _working(bench, surviving)
    yield _whole(bench)
    bench.say("opening a large store")
    jobs = bench.size(MANY, MANY // 50)
    small = queue_stores.store(bench.folder, FEW, bench.say)
    large = queue_stores.store(bench.folder, jobs, bench.say)
    yield _leasing(small, large, jobs, bench.seconds(6))
    yield _status(bench, small, large, jobs)


# What survives.


def _surviving(folder: Path) -> tuple[list[str], str]:
    """Return the peers that lose no acknowledged job to a `kill -9`, and what was found."""
    surviving, words = [], []
    for name in SIDES:
        acknowledged, lost = acknowledged_and_lost(name, folder / f"{name}-killed")
        gone = taken_and_lost(name, folder / f"{name}-taken")
        taken = "is lost" if gone else "is done by another one"
        words.append(
            f"{name}: {lost} of {acknowledged:,} acknowledged jobs lost by a kill -9 while it "
            f"enqueues; a job whose worker is killed {taken}"
        )
        if not lost and name != OWN:
            surviving.append(name)
    return surviving, "; ".join(words)


def _compared(
    name: str, measured: list[Round], surviving: list[str], target: float | None, note: str = ""
) -> Iterator[Figure]:
    """Yield a figure for each peer; the target holds for the fastest one that survives."""
    fastest = max(surviving, key=lambda peer: statistics.median(each[peer] for each in measured))
    for peer in PEERS:
        pairs = [Pair(each[OWN], each[peer]) for each in measured]
        aimed = target if peer == fastest else None
        yield Figure(name, peer, "/s", pairs, target=aimed, note=note if peer == fastest else "")


# Jobs in.


def _enqueueing(bench: Bench, surviving: list[str], told: str) -> Iterator[Figure]:
    """Yield jobs enqueued per second, one by one."""
    measured = single_contest(
        {name: _enqueuer(opened(name, _folder(bench, f"{name}-in"))) for name in SIDES},
        per_round=PER_ROUND,
        seconds=bench.seconds(12),
    )
    rates = [{name: 1 / seconds for name, seconds in each.items()} for each in measured]
    yield from _compared("enqueue, one by one", rates, surviving, 1.0, told)

    queues = {name: opened(name, _folder(bench, f"{name}-together")) for name in SIDES}
    together = contest(
        {name: per_second(THREADS * EACH, _together(queue)) for name, queue in queues.items()},
        seconds=bench.seconds(10),
    )
    yield from _compared(f"enqueue, {THREADS} threads", together, surviving, None)
    many = contest(
        {
            OWN: per_second(BULK, lambda: queues[OWN].put_many(map(payload, range(BULK)))),
            **{name: per_second(EACH, _several(queues[name])) for name in PEERS},
        },
        seconds=bench.seconds(6),
    )
    yield from _compared(f"enqueue, {BULK} at once; peers one by one", many, surviving, None)


def _enqueuer(queue: Any) -> Measure:
    numbers = itertools.count()
    return lambda: timed(lambda: queue.put(payload(next(numbers))))


def _several(queue: Any) -> Callable[[], None]:
    def work() -> None:
        for number in range(EACH):
            queue.put(payload(number))

    return work


def _together(queue: Any) -> Callable[[], None]:
    def work() -> None:
        threads = [threading.Thread(target=_several(queue)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return work


# Jobs out.


def _working(bench: Bench, surviving: list[str]) -> Iterator[Figure]:
    """Yield jobs that four worker processes do per second; all were enqueued before."""
    with ExitStack() as stack:
        floors = {name: _Floor(name, bench, stack) for name in SIDES}
        measures = {name: floor.drain for name, floor in floors.items()}
        together = _Floor(OWN, bench, stack, TOGETHER)
        measured = contest({**measures, "together": together.drain}, seconds=bench.seconds(30))
    name = f"enqueued jobs done by {WORKERS} processes"
    yield from _compared(name, measured, surviving, 2.0)
    several = [{**each, OWN: each["together"]} for each in measured]
    yield from _compared(f"{name}, {TOGETHER} a commit", several, surviving, None)


def _whole(bench: Bench) -> Figure:
    """Yield jobs per second of workers as people start them."""
    ours = whole_workers.Own(_folder(bench, "whole-own"))
    peer = whole_workers.Huey(_folder(bench, "whole-huey"))
    pairs = rounds(ours.rate, peer.rate, seconds=bench.seconds(20))
    note = "each job of Tachograph is a run too: created, judged, finished; huey deletes it first"
    name = f"{whole_workers.WORKERS} whole workers, jobs that do nothing"
    return Figure(name, "huey_consumer", "/s", pairs, note=note)


class _Floor:
    """A queue and the workers at it."""

    def __init__(self, name: str, bench: Bench, stack: ExitStack, at_once: int = 1) -> None:
        folder = _folder(bench, f"{name}-out-{at_once}")
        self._queue = opened(name, folder)
        self._crew = stack.enter_context(Crew(name, folder, WORKERS))
        self._at_once = at_once
        self._name = name

    def drain(self) -> float:
        """Enqueue jobs, then measure how many the workers do per second."""
        for number in range(DRAINED):
            self._queue.put(payload(number))
        done, seconds = self._crew.drain(self._at_once)
        if sorted(done) != list(range(DRAINED)):
            raise RuntimeError(f"{self._name}: {len(done)} of {DRAINED} jobs were done, or others")
        return DRAINED / seconds


def _folder(bench: Bench, name: str) -> Path:
    folder = bench.folder / name
    folder.mkdir()
    return folder


# Very many jobs.


def _leasing(small: Path, large: Path, jobs: int, seconds: float) -> Figure:
    """Return the time of one lease in a large store."""
    few, many = OwnQueue(small), OwnQueue(large)
    pairs = latencies(_leaser(many), _leaser(few), per_round=PER_ROUND, seconds=seconds)
    for queue in (few, many):
        queue.close()
    name = f"a lease, {jobs:,} jobs in the store"
    return Figure(name, f"with {FEW}", "ms", in_milliseconds(pairs), relation=LOWER, target=1.5)


def _leaser(queue: OwnQueue) -> Measure:
    """Return a measure of one lease; the job is put back, which is not measured."""

    def measure() -> float:
        taken: list[Leased] = []
        seconds = timed(lambda: taken.extend(queue.lease()))
        queue.release(taken)
        return seconds

    return measure


def _status(bench: Bench, small: Path, large: Path, jobs: int) -> Figure:
    """Return the time of `tacho queue status` as a whole process."""
    environment = installed.environment()
    few, many = (Commands(environment, folder / "store") for folder in (small, large))
    words = ("queue", "status")
    name, peer = f"tacho queue status, {jobs:,} jobs", f"with {FEW}"
    try:
        pairs = latencies(
            lambda: many.seconds("tacho", *words),
            lambda: few.seconds("tacho", *words),
            per_round=5,
            seconds=bench.seconds(15),
        )
    except CommandError as error:
        return absent(name, peer, str(error), relation=LOWER, target=1.5)
    return Figure(name, peer, "ms", in_milliseconds(pairs), relation=LOWER, target=1.5)
