"""Whether everything in a store is whole: events, what they refer to, what is derived from them.

Reports every problem it finds and repairs nothing.
"""

from __future__ import annotations

from struct import error as StructError  # noqa: N812
from typing import TYPE_CHECKING, Any

from tachograph.domain import event_types
from tachograph.domain.blobref import BlobRef
from tachograph.domain.errors import BodyLostError, InvalidAnchorError, StoreError, TachographError
from tachograph.domain.records import GENESIS_DIGEST, Head, Problem
from tachograph.domain.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    from tachograph.domain.records import Record, SnapshotRecord, StreamId
    from tachograph.ports import Blobs, Codec, EventLog, Progress

    class VerifiableLog(EventLog, Protocol):
        """A log that can check its own chain."""

        def verify(
            self,
            progress: Progress | None = None,
            *,
            expected_head: Head | None = None,
            contiguous: bool = False,
        ) -> Iterator[Problem]:
            """Yield everything wrong with the chain, the index and the versions."""
            ...

    class VerifiableBlobs(Blobs, Protocol):
        """Payloads that can be checked."""

        def exists(self, ref: BlobRef) -> bool:
            """Say whether a payload is there, by its name and size alone."""
            ...

        def verify(self) -> Iterator[tuple[BlobRef, str]]:
            """Read every payload; yield those that are damaged, and how."""
            ...


CHUNK = 1000
ERASURE = "run.bodies-erased"
ARCHIVING = "run.bodies-archived"
UNREADABLE = (TachographError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What decoding bytes that are no event raises."""


def verify(
    log: VerifiableLog,
    codec: Codec,
    blobs: VerifiableBlobs,
    snapshots: Iterable[SnapshotRecord],
    *,
    anchor: Head | None = None,
    progress: Progress | None = None,
) -> Iterator[Problem]:
    """Yield every problem of a store whose log can be opened; none when all is well.

    `anchor` is a position and its digest that were noted elsewhere: only it tells that the end
    of the log was cut off, or that the whole chain was made anew. `codec` should keep custom
    types that it does not know. `progress` gets positions.
    """
    yield from guarded(log.verify(progress, expected_head=anchor, contiguous=True))
    wanted: dict[BlobRef, int] = {}
    yield from guarded(_check_events(log, codec, wanted, progress))
    yield from _check_blobs(blobs, wanted)
    yield from guarded(_check_snapshots(log, codec, snapshots))


def parse_anchor(text: str) -> Head:
    """Return the head that `POSITION:DIGEST` names. Raises InvalidAnchorError.

    >>> parse_anchor("3:" + "ab" * 32).position
    3
    """
    position, _, digest = text.partition(":")
    try:
        head = Head(int(position), bytes.fromhex(digest))
    except ValueError as error:
        raise InvalidAnchorError(text) from error
    if len(head.digest) != len(GENESIS_DIGEST) or not position.isdecimal():
        raise InvalidAnchorError(text)
    return head


def references(codec: Codec, packed: bytes) -> list[BlobRef] | None:
    """Return the payloads that an event's body or a payload refers to; None if it is unreadable."""
    try:
        return _references(codec.unpack(packed))
    except UNREADABLE:
        return None


def references_of(codec: Codec, record: Record) -> list[BlobRef] | None:
    """Return the payloads that an event refers to, none where its body was erased.

    None where nobody can tell: it is lost with its archive, or unreadable.
    """
    try:
        return [] if record.absent else references(codec, record.body)
    except BodyLostError:
        return None


def _references(value: Any) -> list[BlobRef]:
    found: list[BlobRef] = []
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, BlobRef):
            found.append(part)
        elif isinstance(part, dict):
            waiting.extend(part.values())
            waiting.extend(key for key in part if not isinstance(key, str))
        elif isinstance(part, list | tuple | set | frozenset):
            waiting.extend(part)
    return found


def reason(error: Exception) -> str:
    """Return what happened, without the place and the advice that a StoreError has for people."""
    return str(error.args[1] if isinstance(error, StoreError) and len(error.args) > 1 else error)


def guarded(problems: Iterator[Problem]) -> Iterator[Problem]:
    """Pass problems on, and make one of what keeps the rest from being read."""
    try:
        yield from problems
    except (*UNREADABLE, StructError) as error:
        yield Problem("unreadable", 0, reason(error))


def _check_events(
    log: EventLog, codec: Codec, wanted: dict[BlobRef, int], progress: Progress | None
) -> Iterator[Problem]:
    """Check that every event can be read, and collect the payloads they need."""
    end = log.head().position
    after = 0
    lost: dict[tuple[str, str, str], list[Record]] = {}
    gone = Gone()
    while records := log.read(after=after, limit=CHUNK):
        for record in records:
            if record.absent:
                gone.note(record, None)
                continue
            try:
                fields = codec.unpack(record.body)
            except BodyLostError as error:
                lost.setdefault((str(record.stream), *error.args[:2]), []).append(record)
                gone.note(record, None)
                continue
            except UNREADABLE as error:
                fields = None
                if event_types.is_ours(record.topic):
                    yield _unreadable(record, error)
            for ref in _references(fields):
                wanted.setdefault(ref, record.position)
            gone.note(record, fields)
            if fields is not None and event_types.is_ours(record.topic):
                yield from _check_fields(record, fields)
        after = records[-1].position
        if progress is not None:
            progress(after, max(end, after))
    for (stream, path, problem), records in lost.items():
        versions = f"versions {records[0].version} to {records[-1].version}"
        what = f"{len(records)} bodies of {stream} ({versions}) are lost: {path} {problem}"
        yield Problem("archive", records[0].position, what)
    yield from gone.problems(log)


class Gone:
    """Bodies that are in neither the log nor an archive, and what the log says became of them.

    Only an event that says so, after them in their stream, makes them erased (G4). Events come by
    rising positions; of each stream some numbers are kept, until such an event comes.
    """

    def __init__(self) -> None:
        self._spans: dict[StreamId, list[list[int]]] = {}
        """First and last version of what is missing, by stream."""
        self._archived: dict[StreamId, int] = {}
        """The version up to which an event says that an archive holds them."""

    def note(self, record: Record, fields: Any) -> None:
        """Take an event in; `fields` is None where it cannot be read."""
        stream, version = record.stream, record.version
        if record.absent:
            spans = self._spans.setdefault(stream, [])
            if spans and spans[-1][1] == version - 1:
                spans[-1][1] = version
            else:
                spans.append([version, version])
        if record.topic not in (ERASURE, ARCHIVING) or stream not in self._spans:
            return
        said = fields.get("up_to") if isinstance(fields, dict) else None
        if record.topic == ARCHIVING:
            up_to = min(said, version - 1) if isinstance(said, int) else version - 1
            self._archived[stream] = max(self._archived.get(stream, 0), up_to)
        elif isinstance(said, int):
            up_to = min(said, version - 1)
            left = [[max(first, up_to + 1), last] for first, last in self._spans[stream]]
            self._spans[stream] = [span for span in left if span[0] <= span[1]]

    def problems(self, log: EventLog) -> Iterator[Problem]:
        """Yield a problem for all that is missing and was not erased."""
        for stream, spans in self._spans.items():
            archived = self._archived.get(stream, 0)
            for first, last in spans:
                if first <= archived:
                    why = "are lost: an archive held them, and their records do not say so"
                    yield _missing(log, "lost", stream, first, min(last, archived), why)
                if last > archived:
                    why = "were erased without record: no event says by whom, when and why"
                    yield _missing(log, "erased", stream, max(first, archived + 1), last, why)


def _missing(log: EventLog, kind: str, stream: Any, first: int, last: int, why: str) -> Problem:
    records = log.read_stream(stream, after=first - 1, limit=1)
    what = f"{last - first + 1} bodies of {stream} (versions {first} to {last}) {why}"
    return Problem(kind, records[0].position if records else 0, what)


def _check_fields(record: Record, fields: dict[str, Any]) -> Iterator[Problem]:
    kind = event_types.find(record.topic)
    if kind is None:
        detail = f"event type {record.topic!r} is not known: a newer Tachograph wrote it"
        yield Problem("type", record.position, detail)
        return
    try:
        fields["originator_id"] = str(record.stream)
        fields["originator_version"] = record.version
        kind(**event_types.upcast(record.topic, fields))
    except UNREADABLE as error:
        yield _unreadable(record, error)


def _unreadable(record: Record, error: Exception) -> Problem:
    what = f"{record.topic} of {record.stream}, version {record.version}"
    return Problem("unreadable", record.position, f"{what}, cannot be read: {error}")


def _check_blobs(blobs: VerifiableBlobs, wanted: dict[BlobRef, int]) -> Iterator[Problem]:
    damaged = dict(blobs.verify())
    for ref, position in wanted.items():
        if ref in damaged:
            yield Problem("payload", position, f"payload {ref.digest} is damaged: {damaged[ref]}")
        elif not blobs.exists(ref):
            yield Problem("payload", position, f"payload {ref.digest} is missing or cut short")


def _check_snapshots(
    log: EventLog, codec: Codec, snapshots: Iterable[SnapshotRecord]
) -> Iterator[Problem]:
    for snapshot in snapshots:
        what = f"the snapshot of {snapshot.stream} at version {snapshot.version}"
        stream = str(snapshot.stream)
        records = log.read_stream(stream, after=snapshot.version - 1, up_to=snapshot.version)
        if not records:
            yield Problem("snapshot", 0, f"{what} belongs to no event")
        elif event_types.is_ours(records[0].topic):
            try:
                _restore(records[0].topic, codec.unpack(snapshot.body))
            except UNREADABLE as error:
                yield Problem("snapshot", records[0].position, f"{what} cannot be read: {error}")


def _restore(topic: str, values: Any) -> None:
    """Restore a snapshot of what events of this topic happen to; jobs have none."""
    if topic.startswith(event_types.RUN):
        Run().restore(values)
    elif topic.startswith(event_types.REPAIR):
        from tachograph.domain.repairs import Repairs

        Repairs("").restore(values)
