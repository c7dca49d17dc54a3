"""Destroy the bodies of a run for good, on a person's word; the proof that they were there stays.

What only this run refers to goes with it; what another one refers to stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.errors import (
    BlobMissingError,
    BodiesStayError,
    BodyLostError,
    RunNotFoundError,
    RunOwnedError,
)
from tachograph.domain.records import ArchivedRecord, _Fields
from tachograph.domain.run import Run
from tachograph.offload_plans import stream
from tachograph.relatives import relatives
from tachograph.runs import header_fields
from tachograph.verifying import ERASURE, references, references_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Protocol

    from tachograph.domain.blobref import BlobRef
    from tachograph.domain.records import NewRecord, Record
    from tachograph.ports import Blobs, Codec, EventLog, Progress
    from tachograph.runs import RunRepository
    from tachograph.session import Actor

    class ErasableLog(EventLog, Protocol):
        """A log that can forget the bodies of a stream."""

        def erase(self, record: NewRecord) -> int:
            """Append a record and drop all bodies of its stream before it, in one commit."""
            ...


CHUNK = 1000


class Erasure(_Fields):
    """What erasing a run destroys, or would.

    `records` and `bytes` count the bodies, `archives` are the numbers of the archives that hold
    some. `blobs` are payloads that only this run refers to, `shared` those that stay since others
    do, and `doubtful` those that stay since nobody can tell: the bodies of the `unread` streams
    are lost or damaged. Of a run that `was_erased` before, `records` and `blobs` are what went
    then: there is only to destroy what is left of it, or was put back.

    `files` in the store go, and `archived_in` are archives that are written anew. `outside` are
    files that it recorded and that nobody removes here. `unreadable` are archives in the store
    that are damaged: they may hold some of it, or the only copy of something else, and are left
    to a person. `related` are runs that may hold copies of its words, and what each is to it.
    """

    __slots__ = (
        "archived_in",
        "archives",
        "blob_bytes",
        "blobs",
        "bytes",
        "doubtful",
        "files",
        "finished",
        "outside",
        "records",
        "related",
        "run_id",
        "shared",
        "unread",
        "unreadable",
        "was_erased",
    )

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.was_erased = False
        self.records = 0
        self.bytes = 0
        self.archives: set[int] = set()
        self.blobs: list[str] = []
        self.blob_bytes = 0
        self.shared: list[str] = []
        self.doubtful: list[str] = []
        self.unread: list[str] = []
        self.files: list[str] = []
        self.archived_in: list[str] = []
        self.outside: list[str] = []
        self.unreadable: list[str] = []
        self.related: dict[str, str] = {}
        self.finished: list[str] = []
        """Runs whose erasing another process had begun, and that was finished now."""


def plan(
    repository: RunRepository,
    codec: Codec,
    blobs: Blobs,
    run_id: str,
    *,
    live_owner: Callable[[Run], str | None],
    progress: Progress | None = None,
) -> Erasure:
    """Return what erasing a run would destroy. Changes nothing.

    A run whose own bodies are lost can be erased too, and so can one that was erased before: what
    is left of it, or was put back, goes. Raises RunNotFoundError, BodiesStayError for a run that
    is unfinished, and RunOwnedError.
    """
    run = load(repository, run_id)
    if run.bodies == "erased":
        return _of_erased(repository, run_id)
    owner = live_owner(run)
    if owner is not None:
        raise RunOwnedError(run_id, owner)
    if not run.finished:
        advice = f"end it first with `tacho run cancel {run_id} --reason …`"
        raise BodiesStayError(run_id, f"it is unfinished; {advice}")
    found = Erasure(run_id)
    found.related = relatives(repository, run_id)
    mine = _own(repository, codec, blobs, run_id, found)
    others = _others(repository.log, codec, blobs, found, progress) if mine else {}
    alone = [ref for ref in mine if ref not in others]
    found.shared = [ref.digest for ref in mine if ref in others]
    if found.unread:
        found.doubtful = [ref.digest for ref in alone]
    else:
        found.blobs = [ref.digest for ref in alone]
        found.blob_bytes = sum(ref.size for ref in alone)
    found.outside = [artifact["path"] for artifact in run.artifacts.values()]
    return found


def load(repository: RunRepository, run_id: str) -> Run:
    """Return a run of which bodies may be lost: it had ended, or they were in the log.

    Raises RunNotFoundError.
    """
    try:
        run = repository.get(run_id)
    except BodyLostError:
        run = _load_what_is_left(repository, run_id)
    if run is None:
        raise RunNotFoundError(run_id, "")
    return run


def _load_what_is_left(repository: RunRepository, run_id: str) -> Run:
    run = Run()
    for record in stream(repository, run_id):
        try:
            fields = repository.fields(record)
        except BodyLostError:
            fields = header_fields(record)
        run.evolve(record.topic, fields)
    if not run.finished:  # only finished runs get into an archive
        run.ended = "unreadable"
    return run


def _of_erased(repository: RunRepository, run_id: str) -> Erasure:
    """Return what was destroyed when a run was erased."""
    found = Erasure(run_id)
    found.was_erased = True
    found.related = relatives(repository, run_id)
    for record in stream(repository, run_id):
        if record.topic == ERASURE and not record.absent:
            fields = repository.fields(record)
            found.records = fields["records"]
            found.blobs = list(fields["blobs"])
    return found


def erase(
    repository: RunRepository, log: ErasableLog, actor: Actor, planned: Erasure, reason: str
) -> int:
    """Record that a run is erased and drop its bodies from the log, in one commit.

    Returns the position of the record. Raises VersionConflictError when it went on meanwhile.
    """
    run = load(repository, planned.run_id)
    run.erase_bodies(actor.cause(), reason, records=planned.records, blobs=planned.blobs)
    (event,) = run.collect_events()
    return log.erase(repository.record_of(event))


def _own(
    repository: RunRepository, codec: Codec, blobs: Blobs, run_id: str, found: Erasure
) -> dict[BlobRef, None]:
    """Count what a run has, and return the payloads it refers to."""
    refs: dict[BlobRef, None] = {}
    for record in stream(repository, run_id):
        if record.absent:
            continue
        found.records += 1
        if isinstance(record, ArchivedRecord):
            found.archives.add(record.archive)
        try:
            body = record.body
        except BodyLostError:
            continue  # it is lost already: what it referred to, nobody knows
        found.bytes += len(body)
        _add(references(codec, body) or (), refs, codec, blobs)
    return refs


def _others(
    log: EventLog, codec: Codec, blobs: Blobs, planned: Erasure, progress: Progress | None
) -> dict[BlobRef, None]:
    """Return the payloads that all other streams refer to, and note those that are unread."""
    refs: dict[BlobRef, None] = {}
    unread: dict[str, None] = {}
    for record in _records(log, progress):
        if record.stream == planned.run_id:
            continue
        found = references_of(codec, record)
        if found is None:
            unread[str(record.stream)] = None
        _add(found or (), refs, codec, blobs)
    planned.unread = list(unread)
    return refs


def _records(log: EventLog, progress: Progress | None) -> Iterator[Record]:
    after, head = 0, log.head().position
    while records := log.read(after=after, limit=CHUNK):
        yield from records
        after = records[-1].position
        if progress is not None:
            progress(after, max(after, head))


def _add(found: Iterable[BlobRef], refs: dict[BlobRef, None], codec: Codec, blobs: Blobs) -> None:
    """Add payloads, with those that they refer to in turn."""
    waiting = [ref for ref in found if ref not in refs]
    while waiting:
        ref = waiting.pop()
        refs[ref] = None
        try:
            inner = references(codec, blobs.get(ref)) or []
        except BlobMissingError:
            continue
        waiting += [each for each in inner if each not in refs]
