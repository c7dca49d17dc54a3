"""Build what imports of other tools' job runs need: what bootstrap is to recording."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tachograph.domain.errors import VersionConflictError
from tachograph.domain.event import Cause
from tachograph.domain.ids import InvalidIdError, check_run_id
from tachograph.import_desk import OVERTAKEN, TRIES, UNREADABLE, Desk, Row
from tachograph.importing import Family, refuse
from tachograph.importing_checkpoints import named, take_checkpoint
from tachograph.importing_orchestrators import summary_fault, take_orchestrator
from tachograph.infra import clock, job_run_files, removing
from tachograph.infra.codec import Codec
from tachograph.infra.host import this_host
from tachograph.infra.memory_log import MemoryLog
from tachograph.job_run_records import record_of
from tachograph.packing import Packing
from tachograph.payloads import Payloads
from tachograph.pruning_checkpoints import (
    Stale,
    is_fingerprint,
    newest,
    note_removal,
    note_without_run,
)
from tachograph.record_files import Problem, Unusable, usable
from tachograph.record_times import check_start
from tachograph.runs import RunRepository

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from tachograph.bootstrap import Services
    from tachograph.domain.run import Run
    from tachograph.importing_checkpoints import Expected
    from tachograph.infra.job_run_files import Found
    from tachograph.job_run_records import JobRunRecord
    from tachograph.ports import Progress

ACTOR = "import"
"""Who the events of imports say caused them."""


def desk(services: Services | None, *, apply: bool, actor: str = ACTOR) -> Desk:
    """Return what an import works with; for a preview without a store, a blank one in memory."""
    by = Cause(clock.now_us(), actor, this_host(), os.getpid())
    if services is not None:
        return Desk(services.repository, services.payloads, by, apply=apply)
    packing = Packing(Codec(keep_custom=True))
    return Desk(RunRepository(MemoryLog(), packing), Payloads(packing, _no_blobs), by, apply=False)


def import_trees(
    services: Services | None,
    roots: Sequence[str],
    *,
    apply: bool,
    progress: Progress | None = None,
) -> list[Row]:
    """Take over the job runs and orchestrator runs below folders, and say what came of each.

    Every run is one append; a killed import is repeated, and goes on where it was. Several may be
    at work on one tree: what another one records first is in the store already for this one.
    """
    working = desk(services, apply=apply)
    places = [place for root in roots for place in job_run_files.find(root)]
    done = 0

    def told(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, len(places))

    rows = [
        Row(
            "folder",
            place.path,
            UNREADABLE,
            [Problem(place.path, f"it cannot be read: {place.problem}")],
        )
        for place in places
        if place.kind == job_run_files.UNREADABLE
    ]
    for base, folders in _families(places).items():
        rows += _import_family(working, base, folders)
        told(len(folders))
    for place in places:
        if place.kind == job_run_files.ORCHESTRATOR:
            rows.append(_import_orchestrator(working, place.path))
            told(1)
    return rows


def _families(places: Iterable[Found]) -> dict[str, list[str]]:
    """Return the folders of job runs by the id that their executions share."""
    families: dict[str, list[str]] = defaultdict(list)
    for place in places:
        if place.kind == job_run_files.JOB:
            families[Path(place.path).name.partition("~")[0]].append(place.path)
    return families


def _import_family(working: Desk, base: str, folders: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    records = []
    for folder in folders:
        files = job_run_files.read_folder(folder)
        record, problems = record_of(folder, Path(folder).name, files, working.latest_us)
        if record is None:
            rows.append(Row("job", folder, UNREADABLE, problems))
        else:
            records.append((record, problems))
    if records and not _can_be_id(base):
        said = f"{base!r}, the id that its executions share, cannot be a run id"
        return rows + [
            Row("job", record.folder, UNREADABLE, [*problems, Problem(record.folder, said)])
            for record, problems in records
        ]
    records.sort(key=lambda pair: pair[0].begins_us)
    return rows + take_family(working, base, records)


def take_family(
    working: Desk, base: str, records: Sequence[tuple[JobRunRecord, Sequence[Problem]]]
) -> list[Row]:
    """Take over the records of one job-run id, the oldest first, and say what came of each.

    Told anew when another writer was first with one of its runs: what that one recorded is known
    then, and what was appended here before that stays so.
    """
    rows: list[Row] = []
    settled: dict[int, Row] = {}
    overtaken: list[str] = []
    for _ in range(TRIES):
        family = Family(working, base)
        for record, _problems in records:
            record.batch_times_us.clear()
        rows = [family.take(record, problems) for record, problems in records]
        overtaken = family.save(rows)
        for place, row in enumerate(rows):
            if place not in settled and not set(row.runs) & set(overtaken):
                settled[place] = row
        if not overtaken:
            break
    for run_id in overtaken:
        refuse(rows, run_id, OVERTAKEN)
    return [settled.get(place, row) for place, row in enumerate(rows)]


def _can_be_id(text: str) -> bool:
    try:
        check_run_id(text)
    except InvalidIdError:
        return False
    return True


def _import_orchestrator(working: Desk, path: str) -> Row:
    file = job_run_files.read(path)
    if file is None:  # gone since it was listed
        return Row("orchestrator", path, UNREADABLE, [Problem(path, "it is gone")])
    try:
        summary = usable(file, summary_fault)
        check_start(summary["startedAt"], working.latest_us)
    except Unusable as error:
        return Row("orchestrator", path, UNREADABLE, [Problem(path, str(error))])
    row = Row("orchestrator", path, UNREADABLE, [Problem(path, OVERTAKEN)])
    return _unless_overtaken(lambda: take_orchestrator(working, path, file.sha256, summary), row)


_T = TypeVar("_T")


def _unless_overtaken(take: Callable[[], _T], otherwise: _T) -> _T:
    """Take something over, anew when another writer was first; `otherwise` when one always is."""
    for _ in range(TRIES):
        with suppress(VersionConflictError):
            return take()
    return otherwise


def _no_blobs() -> Any:
    raise AssertionError("a preview stores nothing")


def import_checkpoints(
    services: Services | None, paths: Sequence[str], expected: Expected, *, apply: bool
) -> list[Row]:
    """Take over checkpoint files that jobs kept by themselves, and say what came of each."""
    working = desk(services, apply=apply)
    live_owner = _nobody if services is None else services.live_owner
    rows = []
    for path in map(os.path.abspath, paths):
        file = job_run_files.read(path, follow_links=True)  # it was named, not found
        if file is None:
            rows.append(
                Row("checkpoint", path, UNREADABLE, [Problem(path, "there is no such file")])
            )
            continue
        modified_us = job_run_files.modified_us(path)
        name = Path(path).name
        take = partial(take_checkpoint, working, file, name, modified_us, expected, live_owner)
        overtaken = Row("checkpoint", path, UNREADABLE, [Problem(path, OVERTAKEN)])
        rows.append(_unless_overtaken(take, overtaken))
    return rows


def find_stale(
    services: Services | None, folder: str, *, keep: Collection[str], before_us: int | None
) -> list[Stale]:
    """Return the legacy checkpoint files of a folder that nothing goes on from any more."""
    found = []
    for path in job_run_files.names_in(str(Path(folder).absolute())):
        said = named(Path(path).name)
        if said is None or said[1] is None or not is_fingerprint(said[1]) or said[1] in keep:
            continue
        modified_us = job_run_files.modified_us(path)
        if before_us is not None and modified_us >= before_us:
            continue
        file = job_run_files.read(path)
        if file is None:
            continue
        run = None if services is None else newest(services.repository, said[0], said[1])
        found.append(
            Stale(
                path,
                len(file.data or b""),
                file.sha256,
                said[1],
                modified_us,
                run,
                f"it cannot be read: {file.problem}" if file.data is None else None,
            )
        )
    return found


def prune(
    services: Services, folder: str, stale: Sequence[Stale], *, reason: str | None = None
) -> None:
    """Remove stale files, each recorded before it goes; `why` says of each why it stayed.

    Those of no run are recorded in one of their own.
    """
    going = [file for file in stale if file.why is None]
    alone = [file for file in going if file.run_id is None]
    for file in going:
        if file.run_id is not None:
            note_removal(services.session(file.run_id, 0), file, reason)
    if alone:
        working = desk(services, apply=True, actor=services.actor.name)
        note = partial(note_without_run, working, folder, alone, reason)
        noted = _unless_overtaken(note, None)
        for file in alone:
            file.run_id, file.why = noted, None if noted else OVERTAKEN
    for file in going:
        if file.why is None:
            file.why = removing.remove(file.path, file.size, file.sha256)


def _nobody(_run: Run) -> None:
    return None
