"""Bring a whole tree of artifact files up to the log. Removes nothing that no rule names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain import retention
from tachograph.domain.artifact_places import SUMMARY, place_of
from tachograph.domain.errors import ArtifactsTakenError, TachographError
from tachograph.domain.events import EVENT_TYPES
from tachograph.domain.ids import InvalidIdError
from tachograph.event_files import CHUNK
from tachograph.laying_out import RECENT, REMOVED
from tachograph.maintenance_runs import names_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tachograph.domain.run import Run
    from tachograph.laying_out import Layout
    from tachograph.ports import EventLog, Progress
    from tachograph.tree_marks import Mark

    Wrong = list[tuple[str, str]]

SILENT = (REMOVED, "run.bodies-archived")
"""Events that show in no file of their run."""
SHOWN = frozenset(EVENT_TYPES).difference(SILENT)
"""Events that may show in the files of their run."""
MOST_DUE = 1_000
"""Runs that could not be written that a mark names; with more of them it stays where it is."""


def catch_up(
    layout: Layout, now_us: int, progress: Progress | None = None, *, thorough: bool = False
) -> Wrong:
    """Bring the files of all runs up to the log, and return what is wrong with which run.

    Looks at the runs of which something was recorded since the last time, at those that could
    not be written then, and at all of a day whose folder was deleted; what is wrong as before is
    not told again. `thorough` looks at every run, compares every file whole, and tells all that
    is wrong. What retention has let go stays gone until its run goes on.
    """
    head = layout.repository.log.head().position
    if not head:
        return []
    mark = layout.marks.load()
    lost = layout.marks.lost(mark)
    if not (thorough or lost or mark.due) and mark.position == head:
        return []
    told, before = dict(mark.due), mark.position
    mark.days -= lost
    mark.due = {}
    wrong: Wrong = []
    due = _due(layout, 0 if thorough else before, head, [*told], lost)
    for number, run_id in enumerate(due, 1):
        try:
            mark.days |= _bring_up(layout, run_id, now_us, thorough=thorough)
        except ArtifactsTakenError as error:  # it is another's as long as that one is there
            wrong.append((run_id, str(error)))
        except TachographError as error:
            wrong.append((run_id, str(error)))
            mark.due[run_id] = str(error)
        if progress is not None:
            progress(number, len(due))
    _save(layout, mark, before, head)
    return wrong if thorough else [each for each in wrong if told.get(each[0]) != each[1]]


def _save(layout: Layout, mark: Mark, before: int, head: int) -> None:
    """Say how far the tree is now: no further than before with more runs due than can be named."""
    few = len(mark.due) <= MOST_DUE
    mark.position = head if few else before
    mark.due = dict(list(mark.due.items())[:MOST_DUE])
    if mark.position:
        with layout.folder.locked():
            layout.marks.save(mark)


def _due(layout: Layout, after: int, head: int, again: Iterable[str], lost: set[str]) -> list[str]:
    """Return the runs to look at, in the order in which something was recorded of them."""
    log = layout.repository.log
    found = dict.fromkeys([*_changed(log, after, head), *again])
    if lost and after:
        for run_id in _changed(log, 0, after):
            run = None if run_id in found else layout.repository.get(run_id)
            if run is not None and _days(run) & lost:
                found[run_id] = None
    return list(found)


def _changed(log: EventLog, position: int, head: int) -> list[str]:
    found: dict[str, None] = {}
    while records := log.read(after=position, up_to=head, limit=CHUNK, topics=SHOWN):
        for record in records:
            found[str(record.stream)] = None
        position = records[-1].position
    return list(found)


def _bring_up(layout: Layout, run_id: str, now_us: int, *, thorough: bool) -> set[str]:
    """Write the files of a run that are kept, and return the days that they are in."""
    run = layout.repository.get(run_id)
    if run is None or retention.rule_for(run, SUMMARY, now_us) is not None or _let_go(layout, run):
        return set()
    layout.refresh(run_id, thorough=thorough)
    return _days(run)


def _days(run: Run) -> set[str]:
    try:
        return {name.partition("/")[0] for name in names_of(run).values()}
    except InvalidIdError:  # it has no files: none could be named after it
        return set()


def _let_go(layout: Layout, run: Run) -> bool:
    """Say whether the summary went by a rule, and nothing has happened in the run since."""
    path = layout.folder.path(place_of(run).files[SUMMARY])
    for record in layout.repository.log.read_stream(run.id, limit=RECENT, reverse=True):
        if record.topic not in SILENT:
            return False
        fields = layout.repository.fields(record) if record.topic == REMOVED else {}
        rule = retention.BY_ID.get(fields.get("rule", ""))
        if rule is not None and rule.after_us and path in fields["paths"]:
            return True
    return False
