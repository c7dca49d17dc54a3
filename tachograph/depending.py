"""Which runs a run waits for, and whether it would wait for itself. Changes nothing."""

from __future__ import annotations

from tachograph.domain import errors
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tachograph.domain.run import Run

    Load = Callable[[str], Run | None]

MOST_RUNS = 10_000
"""Runs that the search for a cycle looks at."""


class Waiting(_Fields):
    """What a run waits for.

    `runs` have not ended well yet, `never` are those that can no more, being cancelled or
    expired. `cycle` leads from the run back to itself, empty when it does not.
    """

    __slots__ = ("cycle", "never", "runs")

    def __init__(self, runs: Sequence[str], never: Sequence[str], cycle: Sequence[str]) -> None:
        self.runs = list(runs)
        self.never = list(never)
        self.cycle = list(cycle)


def waiting(load: Load, run: Run) -> Waiting:
    """Return what a run waits for, as of now."""
    runs, never = [], []
    for name in run.depends_on:
        other = load(name)
        if other is not None and other.ended is not None:
            never.append(name)
        elif other is None or not other.finished:
            runs.append(name)
    return Waiting(runs, never, find_cycle(load, run.id, run.depends_on) if runs else [])


def check(load: Load, run_id: str, wanted: Sequence[str]) -> None:
    """Refuse to wait for runs that do not exist, or that wait for this one.

    Raises RunNotFoundError or DependencyCycleError.
    """
    for name in wanted:
        if name != run_id and load(name) is None:
            raise errors.RunNotFoundError(name, "")
    cycle = find_cycle(load, run_id, wanted)
    if cycle:
        raise errors.DependencyCycleError(run_id, cycle[1], " → ".join(cycle))


def find_cycle(load: Load, run_id: str, wanted: Sequence[str]) -> list[str]:
    """Return the way from a run back to itself, empty when there is none."""
    came_from = dict.fromkeys(wanted, run_id)
    open_ones = list(came_from)
    while open_ones and len(came_from) < MOST_RUNS:
        name = open_ones.pop()
        if name == run_id:
            return _way(came_from, run_id)
        other = load(name)
        if other is None or other.finished:
            continue
        for further in other.depends_on:
            if further not in came_from:
                came_from[further] = name
                open_ones.append(further)
    return []


def _way(came_from: dict[str, str], run_id: str) -> list[str]:
    way = [run_id]
    while len(way) == 1 or way[-1] != run_id:
        way.append(came_from[way[-1]])
    return way[::-1]
