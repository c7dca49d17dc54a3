"""Measure two things side by side, so that what the machine does meanwhile hits both alike.

Nothing here knows what is measured, and nothing compares with a limit: a target is only shown.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Measure = Callable[[], float]
    """Does one portion of work and returns what it measured."""

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
    ours(), peer()
    pairs: list[Pair] = []
    end = time.perf_counter() + seconds
    while len(pairs) < FEWEST_ROUNDS or (time.perf_counter() < end and len(pairs) < MOST_ROUNDS):
        if len(pairs) % 2:
            second, first = peer(), ours()
        else:
            first, second = ours(), peer()
        pairs.append(Pair(first, second))
    return pairs


def latencies(ours: Measure, peer: Measure, *, per_round: int, seconds: float) -> list[Pair]:
    """Measure rounds of single operations, one of ours after one of the peer's; rates per second.

    A round's rate is that of its median operation. A disk stalls now and then for twenty times
    the length of a commit; by the median that hits neither side, by the sum it would hit one.
    """

    def one_round() -> Pair:
        times: tuple[list[float], list[float]] = ([], [])
        for number in range(per_round):
            if number % 2:
                times[1].append(peer())
                times[0].append(ours())
            else:
                times[0].append(ours())
                times[1].append(peer())
        return Pair(*(1 / statistics.median(each) for each in times))

    one_round()
    pairs: list[Pair] = []
    end = time.perf_counter() + seconds
    while len(pairs) < FEWEST_ROUNDS or (time.perf_counter() < end and len(pairs) < MOST_ROUNDS):
        pairs.append(one_round())
    return pairs


def per_second(count: int, work: Callable[[], object]) -> Measure:
    """Return a measure of how many operations per second some work does that does `count`."""
    return lambda: count / timed(work)


def milliseconds(work: Callable[[], object], repeat: int = 1) -> Measure:
    """Return a measure of the time of some work, from `repeat` repetitions."""

    def measure() -> float:
        return 1000 * timed(lambda: [work() for _ in range(repeat)]) / repeat

    return measure
