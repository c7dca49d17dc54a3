"""What a run was at any of its events, and whether what is stored about it still agrees.

Reads the events alone; it never writes, and never trusts a snapshot or a view.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from tachograph.domain.changes import Change, changes
from tachograph.domain.errors import ReplayDivergedError
from tachograph.domain.records import SnapshotRecord, _Fields
from tachograph.domain.run import Run
from tachograph.projections import run_cards, run_summaries
from tachograph.projections.folding import PREFIX
from tachograph.verifying import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    from tachograph.domain.records import Record
    from tachograph.ports import Progress
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]

    class StoredViews(Protocol):
        """What the views say about one run."""

        def summary(self, run_id: str) -> Fields | None:
            """Return the stored summary of a run, or None."""
            ...

        def card_at(self, created_position: int) -> Fields:
            """Return the stored card of the run created at a position."""
            ...


CHUNK = 1000
"""Events read at a time."""
_EVERY_EVENT = ("version", "updated_us")
"""What every event changes: saying so each time would hide the rest."""
_OF_ALL_RUNS = ("latest_us", "created_latest_us")
"""What a summary takes from the events of other runs: one stream cannot replay it."""


class Moment(_Fields):
    """A run right after one of its events.

    `position` is the event's place in the log, `version` its place in the run, `time_us` its
    time in microseconds since 1970 in UTC, `by` who caused it (actor, host, pid, epoch),
    `changes` what it changed. `run` is the state, and goes on to change: read it at once.
    """

    __slots__ = ("by", "changes", "position", "run", "time_us", "topic", "version")

    def __init__(
        self, record: Record, by: list[str | int], run: Run, changed: tuple[Change, ...]
    ) -> None:
        self.version = record.version
        self.position = record.position
        self.topic = record.topic
        self.time_us = record.time_us
        self.by = by
        self.run = run
        self.changes = changed


class Agreement(_Fields):
    """What a strict replay has compared, all of it equal."""

    __slots__ = ("events", "snapshots", "views")

    def __init__(self, events: int, snapshots: int, views: int) -> None:
        self.events = events
        self.snapshots = snapshots
        self.views = views


def states(
    repository: RunRepository,
    run_id: str,
    *,
    up_to_version: int | None = None,
    at_us: int | None = None,
) -> Iterator[Moment]:
    """Yield the run after each of its events, from the first on.

    Ends with version `up_to_version`, and before the first event that was recorded later than
    `at_us`. Raises UnknownEventTypeError.
    """
    run = Run()
    before: Fields = _plain(run)
    for record in _records(repository, run_id, up_to_version):
        if at_us is not None and record.time_us > at_us:
            return
        fields = repository.fields(record)
        run.evolve(record.topic, fields)
        after = _plain(run)
        changed = tuple(changes(before, after, without=_EVERY_EVENT))
        before = after
        yield Moment(record, fields.get("by", []), run, changed)


def strict(repository: RunRepository, run_id: str, views: StoredViews) -> Agreement:
    """Replay a run and compare it with its stored snapshots, summary and card.

    The views must have been caught up. Raises ReplayDivergedError for the first event at which
    something stored differs from what the events say.
    """
    run, summary = Run(), run_summaries.new_summary(run_id)
    snapshots = dict(_snapshots(repository, run_id))
    for record in _records(repository, run_id, None):
        fields = repository.fields(record)
        run_summaries.apply(summary, record.topic, fields, record.position)
        run.evolve(record.topic, fields)
        if record.version in snapshots:
            for change in changes(snapshots[record.version], _plain(run)):
                raise _diverged(run_id, record.version, "snapshot", change)
    stored = views.summary(run_id)
    _compare(repository, run_id, "summary", stored, summary)
    card = views.card_at(summary["created_position"])
    _compare(repository, run_id, "card", card, run_cards.card(summary))
    return Agreement(run.version, len(snapshots), 2)


def mend_snapshots(
    repository: RunRepository,
    snapshots: Iterable[SnapshotRecord],
    progress: Progress | None = None,
) -> int:
    """Write every snapshot anew that is not what the events say; return how many those were."""
    versions: dict[str, set[int]] = {}
    for snapshot in snapshots:
        versions.setdefault(str(snapshot.stream), set()).add(snapshot.version)
    mended = 0
    for done, (run_id, wanted) in enumerate(versions.items(), 1):
        mended += _mend(repository, run_id, wanted)
        if progress is not None:
            progress(done, len(versions))
    return mended


def _mend(repository: RunRepository, run_id: str, wanted: set[int]) -> int:
    run, mended = Run(), 0
    for record in _records(repository, run_id, max(wanted)):
        if not record.topic.startswith(PREFIX):
            return mended  # of another application
        run.evolve(record.topic, repository.fields(record))
        if record.version in wanted:
            stored = repository.log.snapshot(run_id, up_to=record.version)
            known = None if stored is None else _state_of(repository, stored)
            if known is None or any(changes(known, _plain(run))):
                body = repository.packing.pack(run.to_snapshot(), "")
                snapshot = SnapshotRecord(run_id, record.version, body)
                repository.log.append([], snapshot=snapshot)
                mended += 1
    return mended


def _records(repository: RunRepository, run_id: str, up_to: int | None) -> Iterator[Record]:
    after = 0
    while records := repository.log.read_stream(run_id, after=after, up_to=up_to, limit=CHUNK):
        yield from records
        after = records[-1].version


def _snapshots(repository: RunRepository, run_id: str) -> Iterator[tuple[int, Fields]]:
    """Yield the state in every snapshot that a load would use, latest first."""
    up_to: int | None = None
    while snapshot := repository.log.snapshot(run_id, up_to=up_to):
        state = _state_of(repository, snapshot)
        if state is not None:
            yield snapshot.version, state
        up_to = snapshot.version - 1


def _state_of(repository: RunRepository, snapshot: SnapshotRecord) -> Fields | None:
    """Return the state in a snapshot, None when a load would not use it."""
    run = Run()
    try:
        usable = run.restore(repository.packing.unpack(snapshot.body))
    except UNREADABLE:
        return None
    return _plain(run) if usable else None


def _compare(
    repository: RunRepository, run_id: str, what: str, stored: Fields | None, replayed: Fields
) -> None:
    if stored is None:
        raise ReplayDivergedError(run_id, 1, what, "all of it", None, "the events")
    for change in changes(stored, replayed, without=_OF_ALL_RUNS):
        version = _first_difference(repository, run_id, what, stored, change.path)
        raise _diverged(run_id, version, what, change)


def _first_difference(
    repository: RunRepository, run_id: str, what: str, stored: Fields, path: str
) -> int:
    """Return the version after the last event at which `path` still was as it is stored.

    Where it never was so, the last event that changed it.
    """
    summary = run_summaries.new_summary(run_id)
    agreed, found = False, 0
    was: Change | None = None
    for record in _records(repository, run_id, None):
        run_summaries.apply(summary, record.topic, repository.fields(record), record.position)
        now = summary if what == "summary" else run_cards.card(summary)
        change = next(
            (c for c in changes(stored, now) if f"{path}.".startswith(f"{c.path}.")), None
        )
        if change is None:
            agreed = True
        elif was is None or (not agreed and change != was):
            found = record.version
        was = deepcopy(change)
    return found


def _diverged(run_id: str, version: int, what: str, change: Change) -> ReplayDivergedError:
    return ReplayDivergedError(run_id, version, what, change.path, change.old, change.new)


def _plain(run: Run) -> Fields:
    """Return a copy of the state that later events do not change, with phases by name."""
    fields = run.to_snapshot()
    fields["phases"] = {phase["name"]: phase for phase in fields["phases"]}
    return {name: _copy(value) for name, value in fields.items()}


def _copy(value: Any) -> Any:
    """Copy the containers, not the leaves: those never change, and stay the same object."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
