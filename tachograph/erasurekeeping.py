"""Build what destroys the bodies of runs: what bootstrap is to recording.

No light command imports it. One process at a time erases in a store, from the first look to the
last file: what was begun is noted before, and the note goes when nothing is left.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph import artifact_trees, erasing, run_archive_keeping, storing
from tachograph.bodykeeping import executing, open_log, surplus
from tachograph.bootstrap import open_store
from tachograph.domain.errors import (
    BodyLostError,
    ErasureNoRoomError,
    ErasurePendingError,
    ErasureUnfinishedError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreNotFoundError,
    TachographError,
)
from tachograph.domain.records import Problem
from tachograph.infra import (
    body_archive_writing,
    lmdb_files,
    lmdb_rewriting,
    remains,
    store_folder,
)
from tachograph.infra.blobs import Blobs
from tachograph.infra.body_archives import BodyArchives, DamagedError
from tachograph.infra.codec import Codec
from tachograph.infra.erasing_marks import mark, pending, sole
from tachograph.infra.layout import name_key
from tachograph.infra.lmdb_errors import translate
from tachograph.infra.presence import Presence
from tachograph.infra.store_files import StoreFiles
from tachograph.offload_plans import stream
from tachograph.verifying import ERASURE, reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tachograph.bootstrap import Services
    from tachograph.erasing import Erasure
    from tachograph.ports import EventLog, Progress

__all__ = ["pending"]


def plan_erasure(services: Services, run_id: str, progress: Progress | None = None) -> Erasure:
    """Return what erasing a run of an open store would destroy."""
    store = services.folder
    found = erasing.plan(
        services.repository,
        Codec(keep_custom=True),
        services.blobs,
        run_id,
        live_owner=services.live_owner,
        progress=progress,
    )
    holding, damaged = run_archive_keeping.look(store, {run_id})
    bodies, damaged_bodies = _body_archives(store, run_id)
    found.files = list(remains.files_of(store, {run_id}, _known(services.log)))
    found.archived_in = [*bodies, *holding]
    found.unreadable = [*damaged_bodies, *damaged]
    named = [*found.outside, *_recorded_archives(services, run_id)]
    found.outside = [
        path for path in dict.fromkeys(named) if not _is_reached(store, path, found, damaged)
    ]
    return found


def erase(store: str, run_id: str, reason: str, *, actor: str) -> Erasure:
    """Erase a run of a store that this process does not have open; return what was destroyed.

    The bodies leave the log in one commit; then every file that may still hold their bytes is
    written anew or removed. Killed in between, the same call does the rest, and so does
    `finish_erasing`. Of a run that was erased before, what is left or was put back goes.

    Raises StoreBusyError, before anything is done, while another process erases or has the store
    open. When the log says that it is erased and files are left, ErasureNoRoomError,
    StoreBusyError or ErasureUnfinishedError says so.
    """
    with sole(store):
        finished = _finish(store, actor)
        with StoreFiles(store).alone():
            pass
        with _opened(store, actor) as services:
            planned = plan_erasure(services, run_id)
            planned.finished = finished
            if run_id in finished:
                return planned
            mark(store, [run_id])
            if not planned.was_erased:
                try:
                    erasing.erase(
                        services.repository, services.log, services.actor, planned, reason
                    )
                except TachographError:
                    mark(store, [])
                    raise
        _finish(store, actor)
    return planned


def finish_erasing(store: str, *, actor: str) -> list[str]:
    """Destroy what is left of the runs that were being erased, and return their ids.

    Does nothing when there are none; doing it again does no harm. Raises what `erase` raises.
    """
    with sole(store):
        return _finish(store, actor)


def refuse_copies(store: str) -> None:
    """Refuse to copy a store in which something is erased in part. Raises ErasurePendingError."""
    waiting = pending(store)
    if waiting:
        raise ErasurePendingError(store, waiting[0])


def problems(store: str, log: EventLog) -> Iterator[Problem]:
    """Yield what is in a store of runs that the log says were erased: it was put back.

    Of an erasing that is under way, or was killed, nothing is said: the store knows of it.
    """
    waiting = set(pending(store))
    for path, stream_id, bodies in surplus(store, log):
        if stream_id not in waiting:
            yield _surplus(stream_id, f"{bodies} bodies are in {path}")
    erased = erased_runs(log) - waiting
    if not erased:
        return
    for path, run_id in remains.files_of(store, erased, _known(log)).items():
        yield _surplus(run_id, f"{path} is there")
    for path, held in run_archive_keeping.look(store, erased)[0].items():
        for run_id in held:
            yield _surplus(run_id, f"it is in {path}")


def erased_runs(log: EventLog) -> set[str]:
    """Return the runs that the log says were erased."""
    found: set[str] = set()
    after = 0
    while records := log.read(after=after, topics=(ERASURE,)):
        found |= {str(record.stream) for record in records if not record.absent}
        after = records[-1].position
    return found


def _surplus(run_id: str, what: str) -> Problem:
    return Problem("surplus", 0, f"{run_id} was erased, and {what}")


def _known(log: EventLog) -> remains.Known:
    return lambda text: bool(text) and log.stream_version(text) > 0


def _is_reached(store: str, path: str, found: Erasure, damaged: Collection[str]) -> bool:
    """Say whether a recorded file is in the store and goes, or is named there already."""
    real = remains.real(path)
    named = (*found.files, *found.archived_in, *damaged)
    return remains.is_inside(store, real) and any(
        real == each or real.startswith(f"{each}/") for each in named
    )


def _recorded_archives(services: Services, run_id: str) -> list[str]:
    """Return where the log says that archives of a run are."""
    found = []
    for record in stream(services.repository, run_id):
        if record.topic == "run.archived" and not record.absent:
            with suppress(BodyLostError):
                found.append(str(services.repository.fields(record)["location"]))
    return found


def _body_archives(store: str, run_id: str) -> tuple[list[str], list[str]]:
    """Return the archives that hold bodies of a run, and those that cannot be read."""
    files = BodyArchives(store_folder.archive_folder(store))
    holding, damaged = [], []
    for number in files.numbers():
        try:
            if name_key(run_id) in files.sections(number):
                holding.append(files.path(number))
        except (DamagedError, OSError):
            damaged.append(files.path(number))
    return holding, damaged


def _finish(store: str, actor: str) -> list[str]:
    waiting = pending(store)
    if not waiting:
        return []
    with _opened(store, actor) as services:
        erased = [run_id for run_id in waiting if _is_erased(services, run_id)]
    if erased:
        try:
            _destroy(store, erased, actor)
        except (StoreCorruptError, StoreNotFoundError):
            raise  # says itself what to do first
        except (OSError, StoreError) as error:
            raise _unfinished(store, ", ".join(erased), error) from error
    mark(store, [])
    return erased


def _destroy(store: str, run_ids: Sequence[str], actor: str) -> None:
    """Destroy every byte that is left of runs whose bodies the log has dropped."""
    with _opened(store, actor) as services:
        execute = executing(services)
        for run_id in run_ids:
            run_archive_keeping.leave(services, run_id, execute)
            artifact_trees.forget(services, run_id)
        named = remains.files_of(store, run_ids, _known(services.log))
    files = StoreFiles(store)
    with files.alone():
        for path in (*named, *remains.half_written(store)):
            remains.remove(path)
        _rewrite_bodies(store, run_ids)
        _forget_presence(store, run_ids)
        bodies = BodyArchives(store_folder.archive_folder(store))
        storing.compact(
            files,
            Blobs(store_folder.blob_folder(store)),
            Codec(keep_custom=True),
            open_log=lambda folder: open_log(folder, bodies),
            alone=True,
        )


def _unfinished(store: str, run_ids: str, error: OSError | StoreError) -> StoreError:
    """Return the error that says what is done already, and how to do the rest."""
    known = error if isinstance(error, StoreError) else translate(error, store)
    if isinstance(known, StoreFullError):
        return ErasureNoRoomError(store, reason(known), run_ids)
    if isinstance(known, StoreBusyError):
        more = f"the log says already that {run_ids} is erased; the same command does the rest"
        return StoreBusyError(store, f"{reason(known)}, and {more}")
    return ErasureUnfinishedError(store, reason(known), run_ids)


@contextmanager
def _opened(store: str, actor: str) -> Iterator[Services]:
    services = open_store(store, actor=actor)
    try:
        yield services
    finally:
        services.close()


def _is_erased(services: Services, run_id: str) -> bool:
    try:
        run = services.repository.get(run_id)
    except BodyLostError:
        return False
    return run is not None and run.bodies == "erased"


def _rewrite_bodies(store: str, run_ids: Collection[str]) -> None:
    """Write the archives of bodies anew without these runs.

    One that cannot be read for damage is left: it may hold the only copy of other runs' bodies.
    """
    files = BodyArchives(store_folder.archive_folder(store))
    keys = {name_key(run_id) for run_id in run_ids}
    for number in files.numbers():
        with suppress(DamagedError):
            body_archive_writing.write_without(files, number, keys)


def _forget_presence(store: str, run_ids: Sequence[str]) -> None:
    """Remove the leases of these runs, and the bytes that they had."""
    folder = Path(store_folder.presence_folder(store))
    presence = Presence(str(folder))
    for run_id in run_ids:
        presence.clear(run_id)
    presence.close()
    for path in folder.iterdir() if folder.is_dir() else ():
        if not path.is_dir():
            continue
        if path != Path(presence.path) or not (path / "data.mdb").exists():
            shutil.rmtree(path, ignore_errors=True)  # of an earlier boot, or damaged
            continue
        try:
            lock = lmdb_files.lock_out(str(path))
        except BlockingIOError as error:
            raise StoreBusyError(store, "another process has its presence open") from error
        try:
            lmdb_rewriting.rewrite(str(path))
        finally:
            lmdb_files.release(lock)
