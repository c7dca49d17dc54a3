"""Say of which runs the bodies can leave the log, and read the events of a run. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.errors import BodyLostError
from tachograph.domain.records import ArchivedRecord, Record, _Fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tachograph.domain.run import Run
    from tachograph.runs import RunRepository

ARCHIVED = "run.bodies-archived"
ALREADY = "they are in an archive already"
PAGE = 500
"""Events in memory at a time."""


class Offload(_Fields):
    """What becomes of the bodies of a run: `why` says why they stay, None when they go.

    `events` is the number of bodies in the log, `bytes` their size; `up_to` the run's version.
    `begun` says that the run was archived before, perhaps by a process that was killed.
    """

    __slots__ = ("begun", "bytes", "events", "run_id", "status", "up_to", "why")

    def __init__(
        self, run_id: str, status: str, why: str | None, *, events: int = 0, size: int = 0
    ) -> None:
        self.run_id = run_id
        self.status = status
        self.why = why
        self.events = events
        self.bytes = size
        self.up_to = 0
        self.begun = False


def plan(repository: RunRepository, runs: Iterable[tuple[str, str]]) -> list[Offload]:
    """Return what archiving would do to runs, given by id and status. Changes nothing."""
    return [_plan(repository, run_id, status) for run_id, status in runs]


def _plan(repository: RunRepository, run_id: str, status: str) -> Offload:
    if is_archived(repository, run_id):
        return Offload(run_id, status, ALREADY)
    try:
        run = repository.get(run_id)
    except BodyLostError as error:
        return Offload(run_id, status, str(error).rstrip("."))
    why = "there is no such run" if run is None else _why_it_stays(repository, run, status)
    found = Offload(run_id, status, why)
    if run is None or why is not None:
        return found
    found.up_to = run.version
    found.begun = run.bodies is not None
    last = None
    for record in inline(repository, run_id, run.version):
        found.events += 1
        found.bytes += len(record.body)
        last = record
    if last is None or (found.events == 1 and last.topic == ARCHIVED):
        found.why = ALREADY
    return found


def is_archived(repository: RunRepository, run_id: str) -> bool:
    """Say, at a glance, whether all of a run went to archives and nothing was recorded since.

    Bodies are replaced in the order of their versions, so the last one tells of all.
    """
    newest = repository.log.read_stream(run_id, limit=2, reverse=True)
    return (
        len(newest) == 2 and newest[0].topic == ARCHIVED and isinstance(newest[1], ArchivedRecord)
    )


def _why_it_stays(repository: RunRepository, run: Run, status: str) -> str | None:
    if run.bodies == "erased":
        return f"they were erased {run.reason}"
    if not run.finished:
        return f"the run is unfinished ({status})"
    try:
        parent = None if run.parent is None else repository.get(run.parent)
    except BodyLostError:  # only of finished runs can bodies be lost
        parent = None
    if parent is not None and not parent.finished:
        return f"its orchestrator run {parent.id} is unfinished"
    return None


def inline(repository: RunRepository, run_id: str, up_to: int) -> Iterator[Record]:
    """Yield the events of a run, up to a version, whose bodies are in the log."""
    for record in stream(repository, run_id, up_to):
        if type(record) is Record and not record.absent:
            yield record


def stream(repository: RunRepository, run_id: str, up_to: int | None = None) -> Iterator[Record]:
    """Yield the events of a run up to a version."""
    after = 0
    while records := repository.log.read_stream(run_id, after=after, up_to=up_to, limit=PAGE):
        yield from records
        after = records[-1].version
