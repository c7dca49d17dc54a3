"""What the world saw of the jobs of a soak, and what of that must never be. Starts nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import NamedTuple

BEGIN, EFFECT, END = "begin", "effect", "end"


class Seen(NamedTuple):
    """Something that a handler did."""

    time_ns: int
    pid: int
    what: str
    job: int
    attempt: int


class World:
    """Everything that handlers did, and when workers were killed."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.begun: set[int] = set()
        """Jobs that were begun at least once."""
        self.killed_ns: dict[int, int] = {}
        """When a process was killed: it did nothing after that."""

    def hear(self, line: str) -> None:
        """Keep a line of a handler."""
        time_ns, pid, what, job, attempt = line.split()
        self.seen.append(Seen(int(time_ns), int(pid), what, int(job), int(attempt)))
        self.begun.add(int(job))

    def times(self, what: str) -> Counter[int]:
        """Return how often each job did something."""
        return Counter(each.job for each in self.seen if each.what == what)

    def overlaps(self) -> list[str]:
        """Return the jobs that two processes were at, at the same time.

        An attempt that was cut off by a kill lasted until the kill at most.
        """
        spans: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        ends = {(each.job, each.pid, each.attempt): each for each in self.seen if each.what == END}
        for each in self.seen:
            if each.what == BEGIN:
                end = ends.get((each.job, each.pid, each.attempt))
                until_ns = self.killed_ns.get(each.pid) if end is None else end.time_ns
                spans[each.job].append((each.time_ns, until_ns or each.time_ns))
        return [
            f"job {job} was done twice at once"
            for job, found in spans.items()
            if any(later[0] < earlier[1] for earlier, later in pairwise(sorted(found)))
        ]


def held_at_once(history: list[tuple[str, int]]) -> bool:
    """Say whether a job was leased while it was leased, by the topics and epochs of its events."""
    holder = 0
    for topic, epoch in history:
        if topic == "queue.job-leased":
            if holder or epoch < 1:
                return True
            holder = epoch
        elif topic in {"queue.job-completed", "queue.job-failed", "queue.job-released"}:
            if epoch != holder:
                return True
            holder = 0
    return False
