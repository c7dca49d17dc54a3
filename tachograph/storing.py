"""Measure a store, copy it to safety, make it smaller. Never changes an event."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from tachograph.domain.errors import BlobMissingError, StoreCorruptError
from tachograph.domain.records import Problem, _Fields
from tachograph.verifying import references, references_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import Protocol

    from tachograph.domain.blobref import BlobRef
    from tachograph.domain.records import Head
    from tachograph.ports import Blobs, Codec, EventLog, Progress
    from tachograph.verifying import VerifiableLog

    class StoredBlobs(Blobs, Protocol):
        """Payloads that can be listed."""

        def iter(self) -> Iterator[BlobRef]:
            """Yield every payload."""
            ...

        def clean(self) -> int:
            """Remove what killed writers left, and return how many files that were."""
            ...

    class Files(Protocol):
        """The files of a store."""

        def sizes(self) -> dict[str, int]:
            """Return the bytes of each part of the store."""
            ...

        def data_bytes(self, folder: str | None = None) -> int:
            """Return the size of the log's data file, or of the one in a folder."""
            ...

        def backup_at(self, target: str) -> AbstractContextManager[str]:
            """Give a new folder to fill, which is named `target` at the block's end."""
            ...

        def copy_log(self, target: str) -> None:
            """Copy the log as of one moment while others write, and the small files."""
            ...

        def copy_blob(self, ref: BlobRef, target: str) -> None:
            """Copy the file of a payload."""
            ...

        def copy_archive(self, number: int, target: str) -> None:
            """Copy an archive of bodies, unless it is gone."""
            ...

        def alone(self) -> AbstractContextManager[None]:
            """Keep all others from opening the log. Raises StoreBusyError."""
            ...

        def compact_copy(self) -> AbstractContextManager[str]:
            """Give a folder with a copy of the log that has no free pages."""
            ...

        def swap_in(self, folder: str) -> None:
            """Make the copy in a folder the log."""
            ...

        def drop_views(self) -> None:
            """Remove all views."""
            ...

        def remove_leftovers(self) -> None:
            """Remove what killed compactions left."""
            ...

        def remove_blob(self, ref: BlobRef) -> None:
            """Remove a payload."""
            ...

    OpenLog = Callable[[str], AbstractContextManager[VerifiableLog]]
    """Opens the log in a log folder for the length of a block."""
    Verify = Callable[[str], Iterable[Problem]]
    """Yields the problems of the store in a folder."""


CHUNK = 1000
RUN_CREATED = ("run.created",)


class Measures(_Fields):
    """What there is in a store, as of the events up to `head`.

    `sizes` are bytes by part; `last_write_us` is the time of the last event, None when empty.
    """

    __slots__ = ("blobs", "head", "last_write_us", "runs", "sizes")

    def __init__(
        self,
        head: Head,
        runs: int,
        blobs: int,
        sizes: dict[str, int],
        last_write_us: int | None,
    ) -> None:
        self.head = head
        self.runs = runs
        self.blobs = blobs
        self.sizes = sizes
        self.last_write_us = last_write_us


class Backup(_Fields):
    """A backup that was made: its head, its payloads, and what is wrong with it and the store."""

    __slots__ = ("blobs", "head", "problems")

    def __init__(self, head: Head, blobs: int, problems: list[Problem]) -> None:
        self.head = head
        self.blobs = blobs
        self.problems = problems


class Compaction(_Fields):
    """What a compaction did, or would do: sizes of the log in bytes, and payloads it removes."""

    __slots__ = ("after_bytes", "before_bytes", "blob_bytes", "blobs", "head")

    def __init__(
        self, head: Head, before_bytes: int, after_bytes: int, blobs: list[BlobRef]
    ) -> None:
        self.head = head
        self.before_bytes = before_bytes
        self.after_bytes = after_bytes
        self.blobs = len(blobs)
        self.blob_bytes = sum(ref.size for ref in blobs)


def measure(log: EventLog, blobs: StoredBlobs, files: Files) -> Measures:
    """Count and measure what is in a store."""
    head = log.head()
    last = log.read(limit=1, reverse=True)
    return Measures(
        head,
        sum(1 for _ in _created(log)),
        sum(1 for _ in blobs.iter()),
        files.sizes(),
        last[0].time_us if last else None,
    )


def backup(
    files: Files,
    blobs: StoredBlobs,
    target: str,
    *,
    verify: Verify,
    open_log: OpenLog,
    archives: Callable[[], Iterable[int]] = tuple,
    check: Callable[[], object] = tuple,
    progress: Progress | None = None,
) -> Backup:
    """Copy a store to a new folder while others write to it, and verify the copy.

    `archives` gives the numbers of the archives that hold bodies of the log. `check` is called
    first and last, and raises where no copy may be made.

    After this returns the copy is on disk. It is kept when it has problems, because the store
    has them too: say so. Raises StoreExistsError; nothing is left behind by an error.
    """
    check()
    with files.backup_at(target) as folder:
        files.copy_log(folder)  # first: whatever its events refer to is then there already
        copied = 0
        refs = list(blobs.iter())
        for copied, ref in enumerate(refs, 1):
            files.copy_blob(ref, folder)
            if progress is not None:
                progress(copied, len(refs))
        for number in archives():
            files.copy_archive(number, folder)
        problems = [_named(problem, folder, target) for problem in verify(folder)]
        with open_log(folder) as log:
            head = log.head()
        check()  # what began meanwhile may be in the copy
    return Backup(head, copied, problems)


def _named(problem: Problem, folder: str, target: str) -> Problem:
    """Return a problem that names the backup, and not the folder in which it was made."""
    return Problem(problem.kind, problem.position, problem.detail.replace(folder, target))


def compact(
    files: Files,
    blobs: StoredBlobs,
    codec: Codec,
    *,
    open_log: OpenLog,
    dry_run: bool = False,
    alone: bool = False,
) -> Compaction:
    """Give the log's free pages and payloads that no event needs back to the disk.

    The views are removed too; the next read makes them anew. Killed at any instant, the store
    is whole: the log is swapped by one renaming. A `dry_run` does all but the swap and the
    removals. This process must not have the store open. `alone` says that the caller keeps all
    others out already.

    Raises StoreBusyError while another process has it open, StoreCorruptError when the copy
    proves to be damaged; the store is then as it was.
    """
    if dry_run:
        return _compact(files, blobs, codec, open_log, dry_run=True)
    with nullcontext() if alone else files.alone():
        files.remove_leftovers()
        done = _compact(files, blobs, codec, open_log, dry_run=False)
        blobs.clean()
        return done


def _compact(
    files: Files,
    blobs: StoredBlobs,
    codec: Codec,
    open_log: OpenLog,
    *,
    dry_run: bool,
) -> Compaction:
    with files.compact_copy() as folder:
        with open_log(folder) as log:
            for problem in log.verify():
                raise StoreCorruptError(folder, f"{problem.kind}: {problem.detail}")
            head = log.head()
            unneeded = _unneeded(log, codec, blobs)
        sizes = files.data_bytes(), files.data_bytes(folder)
        if not dry_run:
            files.drop_views()
            files.swap_in(folder)
            for ref in unneeded:
                files.remove_blob(ref)
    return Compaction(head, *sizes, unneeded)


def _unneeded(log: EventLog, codec: Codec, blobs: StoredBlobs) -> list[BlobRef]:
    """Return the payloads that no event refers to, not even through another payload.

    Empty where an event cannot be read: nobody knows what it refers to.
    """
    needed: set[BlobRef] = set()
    after = 0
    while records := log.read(after=after, limit=CHUNK):
        for record in records:
            found = references_of(codec, record)
            if found is None:
                return []
            _add(found, needed, codec, blobs)
        after = records[-1].position
    return [ref for ref in blobs.iter() if ref not in needed]


def _add(found: Iterable[BlobRef], needed: set[BlobRef], codec: Codec, blobs: StoredBlobs) -> None:
    """Add payloads to those that are needed, with the payloads that they refer to in turn."""
    waiting = [ref for ref in found if ref not in needed]
    while waiting:
        ref = waiting.pop()
        needed.add(ref)
        try:
            inner = references(codec, blobs.get(ref)) or []
        except BlobMissingError:
            continue
        waiting += [ref for ref in inner if ref not in needed]


def _created(log: EventLog) -> Iterator[int]:
    """Yield the position of the first event of every run."""
    after = 0
    while records := log.read(after=after, limit=CHUNK, topics=RUN_CREATED):
        yield from (record.position for record in records)
        after = records[-1].position
