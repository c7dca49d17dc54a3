"""A log as lines that restore it elsewhere, to the same digest of its last event.

Writes to a store only what has been checked to the last line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.copies import CopiedBlob, CopiedRecord, CopiedTracking, Heading
from tachograph.domain.errors import (
    BlobMissingError,
    ImportRefusedError,
    OtherEventsError,
    RunNotFoundError,
)
from tachograph.domain.records import GENESIS_DIGEST, Head, _Fields
from tachograph.verifying import references

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Protocol

    from tachograph.domain.blobref import BlobRef
    from tachograph.domain.records import Record
    from tachograph.ports import Blobs, Codec, EventLog, Progress

    Copy = Heading | CopiedRecord | CopiedBlob | CopiedTracking

    class Records(Protocol):
        """The records of a log as they are copied out of it and into it."""

        def copied(self, record: Record) -> CopiedRecord:
            """Return a record with what its digest needs."""
            ...

        def trackings(self) -> list[CopiedTracking]:
            """Return how far other logs were processed."""
            ...

        def restore(
            self,
            head: Head,
            end: Head,
            records: Callable[[], Iterable[CopiedRecord]],
            trackings: Iterable[CopiedTracking] = (),
        ) -> None:
            """Append copies after `head` that lead to `end`, all or none. Durable on return."""
            ...


CHUNK = 1000


class Exported(_Fields):
    """What an export holds: events up to `head`, payloads, and what the store has lost.

    `missing` counts the payloads that were lost, `lost` the bodies that archives have lost.
    """

    __slots__ = ("blobs", "events", "head", "lost", "missing")

    def __init__(self, head: Head) -> None:
        self.head = head
        self.events = 0
        self.blobs = 0
        self.missing = 0
        self.lost = 0


class Imported(_Fields):
    """What an import did: `events` are new, `known` were there already.

    `missing` payloads and `lost` bodies of events were lost when the file was written.
    """

    __slots__ = ("blobs", "events", "head", "known", "lost", "missing")

    def __init__(self, head: Head, events: int, known: int, found: Checked) -> None:
        self.head = head
        self.events = events
        self.known = known
        self.blobs = found.blobs
        self.missing = found.missing
        self.lost = found.lost


def export(
    log: EventLog,
    records: Records,
    codec: Codec,
    blobs: Blobs,
    write: Callable[[Copy], object],
    *,
    run_id: str | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write everything up to the present head of the log, or one run of it.

    A payload that the store has lost is written without its data, and counted; so is a body that
    an archive has lost, which stays known as lost. Raises RunNotFoundError before anything is
    written.
    """
    done = Exported(log.head())
    if run_id is not None and not log.stream_version(run_id):
        raise RunNotFoundError(run_id, "")
    write(Heading(done.head, run_id))
    seen: set[BlobRef] = set()
    for record in _records(log, done.head, run_id):
        copy = records.copied(record)
        done.lost += copy.archive is not None
        gone = copy.body_digest is not None
        for ref in () if gone else references(codec, copy.record.body) or ():
            if ref not in seen:
                seen.add(ref)
                blob = _blob(blobs, ref)
                write(blob)
                done.blobs += 1
                done.missing += blob.data is None
        write(copy)
        done.events += 1
        if progress is not None and done.events % CHUNK == 0:
            progress(done.events, None if run_id else done.head.position)
    for tracking in records.trackings() if run_id is None else ():
        write(tracking)
    return done


class Source:
    """An export file: `lines` opens it from its start each time, `name` is for errors."""

    def __init__(
        self, name: str, lines: Callable[[], Iterable[str]], parse: Callable[[str], Copy]
    ) -> None:
        self.name = name
        self._lines = lines
        self._parse = parse

    def copies(self) -> Iterator[tuple[int, Copy]]:
        """Yield each line's number and content, checked by itself. Raises ImportRefusedError."""
        for number, text in enumerate(self._lines(), 1):
            try:
                yield number, self._parse(text)
            except ValueError as error:
                raise ImportRefusedError(self.name, number, str(error)) from error


class Checked:
    """What a whole export file holds, all of it in order."""

    __slots__ = ("at_digest", "blobs", "end", "heading", "lost", "missing", "trackings")

    def __init__(self) -> None:
        self.heading: Heading | None = None
        self.end = Head(0, GENESIS_DIGEST)
        self.at_digest = GENESIS_DIGEST
        """Digest at the position that was asked for."""
        self.trackings: list[CopiedTracking] = []
        self.blobs = 0
        self.missing = 0
        self.lost = 0


def check(source: Source, at_position: int = 0, progress: Progress | None = None) -> Checked:
    """Read an export file to its end. Raises ImportRefusedError for the first line amiss."""
    found = Checked()
    number = 0
    for number, copy in source.copies():
        wrong = _take(found, copy, at_position)
        if wrong:
            raise ImportRefusedError(source.name, number, wrong)
        if progress is not None and number % CHUNK == 0 and found.heading is not None:
            progress(found.end.position, found.heading.head.position)
    promised = found.heading.head if found.heading is not None else Head(-1, b"")
    if found.end != promised:
        wrong = f"is missing: the file should go on to position {promised.position}"
        raise ImportRefusedError(source.name, number + 1, wrong if number else "is missing")
    return found


def import_(
    source: Source,
    log: EventLog,
    records: Records,
    blobs: Blobs,
    *,
    store: str,
    progress: Progress | None = None,
) -> Imported:
    """Bring a store to the end of an export file; its events may be there in part already.

    The whole file is checked before the first write, and the events are written in one
    transaction: killed at any instant, all of them are there or none. Payloads that the store
    has lost are restored. Raises ImportRefusedError, OtherEventsError, or StoreBusyError when
    another process writes meanwhile.
    """
    head = log.head()
    found = check(source, head.position, progress)
    _refuse_other_events(log, head, found, store, source.name)
    for _, copy in source.copies() if found.blobs else ():
        if isinstance(copy, CopiedBlob) and copy.data is not None:
            blobs.put(copy.data)
    new = max(0, found.end.position - head.position)
    if new or found.trackings:
        end = found.end if new else head
        records.restore(head, end, lambda: _after(source, head.position), found.trackings)
    known = min(head.position, found.end.position)
    return Imported(log.head(), new, known, found)


def _take(found: Checked, copy: Copy, at_position: int) -> str | None:
    """Take one line in; return what is wrong with it there, if anything is."""
    if isinstance(copy, Heading):
        if found.heading is not None:
            return "is a second first line"
        if copy.run_id is not None:
            return f"says that the file holds run {copy.run_id} only, not a whole log"
        found.heading = copy
    elif found.heading is None:
        return "is not the first line of an export"
    elif isinstance(copy, CopiedRecord):
        record = copy.record
        if (record.position, record.previous_digest) != (
            found.end.position + 1,
            found.end.digest,
        ):
            return f"(position {record.position}) does not follow position {found.end.position}"
        found.end = Head(record.position, record.digest)
        found.lost += copy.archive is not None
        if record.position == at_position:
            found.at_digest = record.digest
    elif isinstance(copy, CopiedBlob):
        found.blobs += 1
        found.missing += copy.data is None
    else:
        found.trackings.append(copy)
    return None


def _refuse_other_events(log: EventLog, head: Head, found: Checked, store: str, name: str) -> None:
    end = found.end
    if head.position > end.position:
        ours = log.read(after=end.position - 1, up_to=end.position) if end.position else []
        same = not end.position or (bool(ours) and ours[0].digest == end.digest)
    else:
        same = found.at_digest == head.digest
    if not same:
        place = min(head.position, end.position)
        why = f"it holds other events: they differ at position {place} or before"
        raise OtherEventsError(store, name, why)


def _after(source: Source, position: int) -> Iterator[CopiedRecord]:
    for _, copy in source.copies():
        if isinstance(copy, CopiedRecord) and copy.record.position > position:
            yield copy


def _records(log: EventLog, head: Head, run_id: str | None) -> Iterator[Record]:
    after = 0
    while True:
        if run_id is None:
            records = log.read(after=after, up_to=head.position, limit=CHUNK)
        else:
            records = log.read_stream(run_id, after=after, limit=CHUNK)
        if not records:
            return
        yield from (record for record in records if record.position <= head.position)
        after = records[-1].position if run_id is None else records[-1].version


def _blob(blobs: Blobs, ref: BlobRef) -> CopiedBlob:
    try:
        return CopiedBlob(ref, blobs.get(ref))
    except BlobMissingError:
        return CopiedBlob(ref, None)
