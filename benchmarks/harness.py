"""Measure two things side by side, so that what the machine does meanwhile hits both alike.

Nothing here knows what is measured, and nothing compares with a limit: a target is only shown.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    Measure = Callable[[], float]
    """Does one portion of work and returns what it measured."""
    Round = dict[str, float]
    """What one round measured of each of several things."""

T = TypeVar("T")

HIGHER, LOWER = "≥", "≤"
MET, MISSED, SHOWN, ABSENT = "met", "missed", "-", "not measured"

FEWEST_ROUNDS = 3
MOST_ROUNDS = 60


@dataclass(frozen=True)
class Bench:
    """What a theme is given: where it may write, and how long it may take."""

    folder: Path
    """An empty folder of its own, on the file system of the checkout."""
    quick: bool = False

    def seconds(self, whole: float) -> float:
        """Return how long to measure when a whole run measures for `whole` seconds."""
        return whole / 4 if self.quick else whole

    def size(self, whole: int, quick: int) -> int:
        """Return how much to prepare."""
        return quick if self.quick else whole

    def say(self, text: str) -> None:
        """Tell the person who waits what happens."""
        print(f"   {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Pair:
    """What one round measured, in the same unit."""

    ours: float
    peer: float

    @property
    def ratio(self) -> float:
        """Ours divided by the peer's."""
        return self.ours / self.peer


@dataclass
class Figure:
    """One line of the table."""

    name: str
    peer: str
    """What it is compared with."""
    unit: str
    """`/s` where more is better, else `ms` or `MB`."""
    pairs: list[Pair]
    relation: str = HIGHER
    target: float | None = None
    """What the ratio's median is asked to be at least or at most; None: no target is set."""
    note: str = ""
    theme: str = field(default="", kw_only=True)

    @property
    def ratios(self) -> list[float]:
        """The ratio of every round, in rising order."""
        return sorted(pair.ratio for pair in self.pairs)

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios."""
        return statistics.median(self.ratios)

    @property
    def ours(self) -> float:
        """The median of what was measured of Tachograph."""
        return statistics.median(pair.ours for pair in self.pairs)

    @property
    def peers(self) -> float:
        """The median of what was measured of the peer."""
        return statistics.median(pair.peer for pair in self.pairs)

    @property
    def verdict(self) -> str:
        """Whether the median meets the target, where there is one."""
        if not self.pairs:
            return ABSENT
        if self.target is None:
            return SHOWN
        met = self.ratio >= self.target if self.relation == HIGHER else self.ratio <= self.target
        return MET if met else MISSED


def absent(name: str, peer: str, why: str, **options: object) -> Figure:
    """Return the line of a figure that could not be measured, with the reason."""
    return Figure(name, peer, "", [], note=why, **options)  # type: ignore[arg-type]


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds some work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def rounds(ours: Measure, peer: Measure, *, seconds: float) -> list[Pair]:
    """Measure in rounds A B, B A, A B, … until the time is over, after one that does not count."""
    _both(ours, peer, swapped=False)
    return _repeated(lambda swapped: _both(ours, peer, swapped=swapped), seconds)


def latencies(ours: Measure, peer: Measure, *, per_round: int, seconds: float) -> list[Pair]:
    """Measure in rounds of single operations, one of ours beside one of the peer's.

    Both give seconds, and a round's value is its median operation. A disk stalls now and then
    for twenty times the length of a commit; the median of a round leaves out whom it hit.
    """

    def one_round() -> Pair:
        times = [_both(ours, peer, swapped=number % 2 == 1) for number in range(per_round)]
        return Pair(
            statistics.median(pair.ours for pair in times),
            statistics.median(pair.peer for pair in times),
        )

    one_round()
    return _repeated(lambda _swapped: one_round(), seconds)


def contest(measures: dict[str, Measure], *, seconds: float) -> list[Round]:
    """Measure several things in turn, each round beginning with another one, after one in vain."""
    names = list(measures)

    def one_round() -> Round:
        names.append(names.pop(0))
        return {name: measures[name]() for name in names}

    one_round()
    return _repeated(lambda _swapped: one_round(), seconds)


def single_contest(measures: dict[str, Measure], *, per_round: int, seconds: float) -> list[Round]:
    """Measure single operations of several things, one of each in turn, as `latencies` does."""
    names = list(measures)

    def one_round() -> Round:
        times: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(per_round):
            names.append(names.pop(0))
            for name in names:
                times[name].append(measures[name]())
        return {name: statistics.median(each) for name, each in times.items()}

    one_round()
    return _repeated(lambda _swapped: one_round(), seconds)


def in_rates(pairs: list[Pair]) -> list[Pair]:
    """Turn seconds per operation into operations per second."""
    return [Pair(1 / pair.ours, 1 / pair.peer) for pair in pairs]


def in_milliseconds(pairs: list[Pair]) -> list[Pair]:
    """Turn seconds into milliseconds."""
    return [Pair(1000 * pair.ours, 1000 * pair.peer) for pair in pairs]


def per_second(count: int, work: Callable[[], object]) -> Measure:
    """Return a measure of how many operations per second some work does that does `count`."""
    return lambda: count / timed(work)


def milliseconds(work: Callable[[], object], repeat: int = 1) -> Measure:
    """Return a measure of the time of some work, from `repeat` repetitions."""

    def measure() -> float:
        return 1000 * timed(lambda: [work() for _ in range(repeat)]) / repeat

    return measure


def _both(ours: Measure, peer: Measure, *, swapped: bool) -> Pair:
    if swapped:
        second, first = peer(), ours()
    else:
        first, second = ours(), peer()
    return Pair(first, second)


def _repeated(measure: Callable[[bool], T], seconds: float) -> list[T]:
    found: list[T] = []
    end = time.perf_counter() + seconds
    while len(found) < FEWEST_ROUNDS or (time.perf_counter() < end and len(found) < MOST_ROUNDS):
        found.append(measure(len(found) % 2 == 1))
    return found
