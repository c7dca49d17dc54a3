"""Which runs have something of each other: forks and their sources, parents and the runs within.

Reads the log; changes nothing.
"""

from __future__ import annotations

from tachograph.domain.audit_state import FORK
from tachograph.domain.errors import BodyLostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.runs import RunRepository

    Fields = dict[str, Any]

PAGE = 1000
CREATED = "run.created"
ORIGIN = "run.origin-recorded"
FORKED, SOURCE, PARENT, WITHIN = "fork", "source", "parent", "within"
"""What a run is to another one: a fork of it, what it was forked from, its parent, a run within."""


def relatives(repository: RunRepository, run_id: str) -> dict[str, str]:
    """Return the runs that may repeat what a run has recorded, and what each is to it.

    Forks of forks count, and so do runs within runs within it. Of a run whose events are erased
    or lost nobody knows what it was forked from.
    """
    sources, parents = _sources(repository), _parents(repository)
    found: dict[str, str] = {}
    for links, up, down in ((sources, SOURCE, FORKED), (parents, PARENT, WITHIN)):
        found |= dict.fromkeys(_above(links, run_id), up)
        found |= dict.fromkeys(_below(links, run_id), down)
    found.pop(run_id, None)
    return found


def fork_family(repository: RunRepository, run_id: str) -> list[str]:
    """Return the runs that share some history with a run: its sources, and all of their forks."""
    sources = _sources(repository)
    roots = [run_id, *_above(sources, run_id)]
    family = dict.fromkeys([*roots, *_below(sources, roots[-1])])
    return [each for each in family if each != run_id]


def _above(links: dict[str, str], run_id: str) -> list[str]:
    """Return what a run comes from, the nearest first."""
    found: list[str] = []
    while (above := links.get(run_id)) is not None and above not in found:
        found.append(above)
        run_id = above
    return found


def _below(links: dict[str, str], run_id: str) -> list[str]:
    """Return what comes from a run, the nearest first."""
    below: dict[str, list[str]] = {}
    for lower, upper in links.items():
        below.setdefault(upper, []).append(lower)
    found: dict[str, None] = {}
    waiting = [run_id]
    while waiting:
        new = [each for each in below.get(waiting.pop(), ()) if each not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


def _sources(repository: RunRepository) -> dict[str, str]:
    """Return the source of every fork."""
    return {
        run_id: str(origin["run"])
        for run_id, fields in _events(repository, ORIGIN)
        if isinstance(origin := fields.get("origin"), dict) and origin.get("kind") == FORK
    }


def _parents(repository: RunRepository) -> dict[str, str]:
    """Return the parent of every run that has one."""
    return {
        run_id: str(fields["parent"])
        for run_id, fields in _events(repository, CREATED)
        if fields.get("parent") is not None
    }


def _events(repository: RunRepository, topic: str) -> Iterator[tuple[str, Fields]]:
    """Yield run and fields of each event of a type that can be read."""
    after = 0
    while records := repository.log.read(after=after, limit=PAGE, topics=(topic,)):
        for record in records:
            if record.absent or not isinstance(record.stream, str):
                continue
            try:
                yield record.stream, repository.fields(record)
            except BodyLostError:
                continue
        after = records[-1].position
