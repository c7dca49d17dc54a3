"""Build what the upkeep of a store needs: what bootstrap is to recording. Runs nothing at import.

No light command imports it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tachograph import anchoring, exporting, projecting, replaying, storing, verifying
from tachograph.bodykeeping import needed_archives, open_log
from tachograph.bodykeeping import problems as archive_problems
from tachograph.bootstrap import find
from tachograph.domain.copies import CopiedBlob, CopiedRecord, CopiedTracking, Heading
from tachograph.domain.errors import (
    StoreBusyError,
    StoreError,
    StoreNotFoundError,
    StoreReadOnlyError,
)
from tachograph.domain.queue_events import JobEnqueued
from tachograph.domain.records import Problem
from tachograph.erasurekeeping import problems as erasure_problems
from tachograph.erasurekeeping import refuse_copies
from tachograph.infra import settings, store_folder, store_lines
from tachograph.infra.blobs import Blobs
from tachograph.infra.body_archives import BodyArchives
from tachograph.infra.codec import Codec
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.store_files import StoreFiles, new_file
from tachograph.infra.store_records import StoreRecords
from tachograph.verifying import reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tachograph.anchoring import Anchor
    from tachograph.bootstrap import Services
    from tachograph.domain.records import Head, Record
    from tachograph.exporting import Copy, Exported, Imported
    from tachograph.infra.lmdb_queues import LMDBQueues
    from tachograph.ports import Progress
    from tachograph.projecting import Difference
    from tachograph.projections.views import ViewReader
    from tachograph.replaying import Agreement
    from tachograph.storing import Backup, Compaction


__all__ = ["new_file"]

_LINES: dict[type, Callable[[Any], dict[str, Any]]] = {
    Heading: store_lines.heading,
    CopiedRecord: store_lines.event,
    CopiedBlob: store_lines.blob,
    CopiedTracking: store_lines.tracking,
}


def files(services: Services) -> StoreFiles:
    """Return the files of an open store."""
    return StoreFiles(services.folder)


def find_existing(store: str | None) -> str:
    """Return the folder of the store to use. Raises StoreNotFoundError or StoreFormatError."""
    folder, _ = find(store)
    if not store_folder.is_store(folder):
        raise StoreNotFoundError(folder)
    store_folder.check_format(folder)
    return folder


def configuration(store: str | None) -> dict[str, Any]:
    """Return every setting with its value and where it comes from."""
    folder, origin = find(store)
    found = settings.resolve(folder, os.environ)
    return {
        "store": folder,
        "storeOrigin": origin,
        "settings": [
            {
                "name": name,
                "value": getattr(found, name),
                "origin": found.origins[name],
                "meaning": setting.meaning,
            }
            for name, setting in settings.SETTINGS.items()
        ],
    }


def paths(store: str | None) -> dict[str, dict[str, Any]]:
    """Return where the store and the configuration files are, or would be."""
    folder, origin = find(store)
    own = store_folder.config_file(folder)
    user = settings.user_file(os.environ)
    return {
        "store": {"path": folder, "exists": store_folder.is_store(folder), "origin": origin},
        "storeConfig": {"path": own, "exists": Path(own).is_file()},
        "userConfig": {"path": user, "exists": Path(user).is_file()},
    }


def describe(services: Services) -> dict[str, Any]:
    """Return what is in an open store, as `tacho store info --json` prints it."""
    measures = storing.measure(services.log, services.blobs, files(services))
    records = StoreRecords(services.environment)
    counts = records.counts()
    return {
        "store": services.folder,
        "origin": services.origin,
        "format": files(services).format(),
        "events": measures.head.position,
        "runs": measures.runs,
        "jobs": _jobs(services) if records.knows(JobEnqueued.TOPIC) else None,
        "streams": counts["streams"],
        "eventTypes": counts["types"],
        "snapshots": counts["snapshots"],
        "blobs": measures.blobs,
        "anchor": f"{measures.head.position}:{measures.head.digest.hex()}",
        "lastWriteUs": measures.last_write_us,
        "sizes": measures.sizes,
        "mapSize": services.environment.map_size,
        "readers": [
            {"pid": pid, "transaction": txn} for pid, txn in services.environment.readers()
        ],
    }


def _jobs(services: Services) -> dict[str, int]:
    """Return how many jobs of all queues are in which state."""
    from tachograph import looking
    from tachograph.domain.queued_job import PENDING
    from tachograph.infra.clock import now_us
    from tachograph.projections.queue_health import COUNTED, WAITING

    states = [PENDING if name == WAITING else name for name in COUNTED]

    def add(view: ViewReader) -> dict[str, int]:
        found = [view.queues.counts(name, now_us()) for name in view.queues.names()]
        return {name: sum(getattr(each, name) for each in found) for name in states}

    return looking.ask(services, add, report=lambda _stopped: None)


def verify(
    store: str,
    *,
    anchor: Head | None = None,
    anchors: Sequence[Anchor] = (),
    progress: Progress | None = None,
) -> Iterator[Problem]:
    """Yield every problem of the store in a folder. It must not be open in this process.

    Where pages of the log are damaged, nothing else is looked at: opening it could kill this
    process. Raises StoreNotFoundError and StoreFormatError.
    """
    try:
        damage = StoreFiles(store).damage()
        for text in damage:
            yield Problem("page", 0, text)
        if not damage:
            yield from _verify(store, anchor, anchors, progress)
    except (StoreBusyError, StoreNotFoundError, StoreReadOnlyError):
        raise
    except StoreError as error:  # a wrong map size looks like a lack of memory
        yield Problem("page", 0, f"the log cannot be opened: {reason(error)}")


def backup(services: Services, target: str, progress: Progress | None = None) -> Backup:
    """Copy an open store to a new folder, and verify the copy.

    Raises ErasurePendingError while something is erased in part, and keeps no copy then.
    """
    return storing.backup(
        files(services),
        services.blobs,
        target,
        verify=verify,
        open_log=lambda folder: open_log(store_folder.log_folder(folder)),
        archives=lambda: needed_archives(services.log),
        check=lambda: refuse_copies(services.folder),
        progress=progress,
    )


def compact(store: str, *, dry_run: bool = False) -> Compaction:
    """Make a store smaller. It must not be open in this process."""
    blobs = Blobs(store_folder.blob_folder(store))
    bodies = BodyArchives(store_folder.archive_folder(store))
    return storing.compact(
        StoreFiles(store),
        blobs,
        _reading_codec(),
        open_log=lambda folder: open_log(folder, bodies),
        dry_run=dry_run,
    )


def export(
    services: Services,
    write: Callable[[str], object],
    *,
    run_id: str | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write an open store, or one run of it, as lines."""
    return exporting.export(
        services.log,
        StoreRecords(services.environment),
        _reading_codec(),
        services.blobs,
        lambda copy: write(store_lines.to_text(line(copy)) + "\n"),
        run_id=run_id,
        progress=progress,
    )


def import_file(services: Services, path: str, progress: Progress | None = None) -> Imported:
    """Bring an open store to the end of an export file."""
    return exporting.import_(
        exporting.Source(path, lambda: _lines(path), store_lines.parse),
        services.log,
        StoreRecords(services.environment),
        services.blobs,
        store=services.folder,
        progress=progress,
    )


def event_line(services: Services, record: Record) -> dict[str, Any]:
    """Return an event as the JSON object that an export has for it."""
    return store_lines.event(StoreRecords(services.environment).copied(record))


def rebuild(services: Services, progress: Progress | None = None) -> int:
    """Make all views anew from the log, and return the position they have reached."""
    return projecting.rebuild(services.log, _reading_codec(), services.views(), progress)


def check_views(services: Services, progress: Progress | None = None) -> list[Difference]:
    """Return where the views, and the index of the queues, are not what the log says."""
    views = services.views()
    found = projecting.check(services.log, _reading_codec(), views, progress)
    index = _queue_index(services)
    if index is not None:
        with views.scratch() as beside:
            rows = index.check(beside.path)
        found += [projecting.Difference("queue-index", *row) for row in rows]
    return found


def rebuild_queue_index(services: Services) -> bool:
    """Make the index of the queues anew from the log; False where there is none."""
    index = _queue_index(services)
    if index is not None:
        index.rebuild()
    return index is not None


def _queue_index(services: Services) -> LMDBQueues | None:
    from tachograph.queuekeeping import index_of

    return index_of(services)


def mend_snapshots(services: Services, progress: Progress | None = None) -> int:
    """Write every snapshot anew that is not what the events say; return how many those were."""
    snapshots = StoreRecords(services.environment).snapshots()
    return replaying.mend_snapshots(services.repository, snapshots, progress)


def replay_strictly(services: Services, run_id: str) -> Agreement:
    """Replay a run and compare it with everything that is stored about it."""
    return projecting.ask(
        services.log,
        _reading_codec(),
        services.views(),
        lambda views: replaying.strict(services.repository, run_id, views),
    )


def line(copy: Copy) -> dict[str, Any]:
    """Return a part of an export as the JSON object of its line."""
    return _LINES[type(copy)](copy)


def _verify(
    store: str, anchor: Head | None, anchors: Sequence[Anchor], progress: Progress | None
) -> Iterator[Problem]:
    environment = open_environment(store_folder.log_folder(store), create=False, readonly=True)
    try:
        records, log = StoreRecords(environment), LMDBLog(environment)
        yield from records.lost_databases()
        yield from verifying.verify(
            log,
            _reading_codec(),
            Blobs(store_folder.blob_folder(store)),
            records.snapshots(),
            anchor=anchor,
            progress=progress,
        )
        yield from verifying.guarded(archive_problems(store, log))
        yield from verifying.guarded(erasure_problems(store, log))
        yield from verifying.guarded(anchoring.check(log, anchors))
    finally:
        environment.close()


def _reading_codec() -> Codec:
    """Return a codec that reads values of custom types that nobody registered here."""
    return Codec(keep_custom=True)


def _lines(path: str) -> Iterable[str]:
    # What is no UTF-8 is no JSON either, and refused with the number of its line.
    with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        yield from file
