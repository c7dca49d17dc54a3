"""Build what the upkeep of a store needs. Like bootstrap: the only other place that knows both
the use cases and infra. Nothing runs at import, and no light command imports it.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph import exporting, storing, verifying
from tachograph.bootstrap import find
from tachograph.domain.copies import CopiedBlob, CopiedRecord, CopiedTracking, Heading
from tachograph.domain.errors import StoreCorruptError, StoreNotFoundError
from tachograph.domain.records import Problem
from tachograph.infra import store_folder, store_lines
from tachograph.infra.blobs import Blobs
from tachograph.infra.codec import Codec
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.store_files import StoreFiles
from tachograph.infra.store_records import StoreRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tachograph.bootstrap import Services
    from tachograph.domain.records import Head
    from tachograph.exporting import Copy, Exported, Imported
    from tachograph.ports import Progress
    from tachograph.storing import Backup, Compaction, Measures


def files(services: Services) -> StoreFiles:
    """Return the files of an open store."""
    return StoreFiles(services.folder)


def measure(services: Services) -> Measures:
    """Count and measure what is in a store."""
    return storing.measure(services.log, services.blobs, files(services))


def counts(services: Services) -> dict[str, int]:
    """Return how many streams, event types and snapshots there are."""
    return StoreRecords(services.environment).counts()


def verify(
    store: str, *, anchor: Head | None = None, progress: Progress | None = None
) -> Iterator[Problem]:
    """Yield every problem of the store in a folder. It must not be open in this process.

    Where pages of the log are damaged, nothing else is looked at: opening it could kill this
    process. Raises StoreNotFoundError and StoreFormatError.
    """
    try:
        damage = StoreFiles(store).damage()
    except StoreCorruptError as error:
        damage = [str(error.args[1])]
    for text in damage:
        yield Problem("page", 0, text)
    if not damage:
        yield from _verify(store, anchor, progress)


def backup(services: Services, target: str, progress: Progress | None = None) -> Backup:
    """Copy an open store to a new folder, and verify the copy."""
    return storing.backup(
        files(services),
        services.blobs,
        target,
        verify=verify,
        open_log=lambda folder: _open_log(store_folder.log_folder(folder)),
        progress=progress,
    )


def compact(store: str, *, dry_run: bool = False) -> Compaction:
    """Make a store smaller. It must not be open in this process."""
    blobs = Blobs(store_folder.blob_folder(store))
    return storing.compact(
        StoreFiles(store), blobs, _reading_codec(), open_log=_open_log, dry_run=dry_run
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


def line(copy: Copy) -> dict[str, object]:
    """Return a part of an export as the JSON object of its line."""
    if isinstance(copy, CopiedRecord):
        return store_lines.event(copy)
    if isinstance(copy, CopiedBlob):
        return store_lines.blob(copy)
    if isinstance(copy, CopiedTracking):
        return store_lines.tracking(copy)
    assert isinstance(copy, Heading)
    return store_lines.heading(copy)


def _verify(
    store: str, anchor: Head | None, progress: Progress | None
) -> Iterator[Problem]:
    environment = open_environment(store_folder.log_folder(store), create=False, readonly=True)
    try:
        yield from verifying.verify(
            LMDBLog(environment),
            _reading_codec(),
            Blobs(store_folder.blob_folder(store)),
            StoreRecords(environment).snapshots(),
            anchor=anchor,
            progress=progress,
        )
    finally:
        environment.close()


def _reading_codec() -> Codec:
    """Return a codec that reads values of custom types that nobody registered here."""
    return Codec(keep_custom=True)


@contextmanager
def _open_log(folder: str) -> Iterator[LMDBLog]:
    environment = open_environment(folder, create=False, readonly=True)
    try:
        yield LMDBLog(environment)
    finally:
        environment.close()


def _lines(path: str) -> Iterable[str]:
    with Path(path).open(encoding="utf-8", newline="\n") as file:
        yield from file
