"""Records of the log as they pass between use cases and storage. No behaviour beyond comparison."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    StreamId = str | UUID

GENESIS_DIGEST = bytes(32)
"""What stands for "the digest of the previous record" in the first record."""


class _Fields:
    """Compare and show a record by its slots (dataclasses cost 20 ms at the start of a command)."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__slots__))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({shown})"


class NewRecord(_Fields):
    """An event about to be written: it has a version in its stream, no position yet."""

    __slots__ = ("body", "stream", "time_us", "topic", "version")

    def __init__(
        self, stream: StreamId, version: int, topic: str, time_us: int, body: bytes
    ) -> None:
        self.stream = stream
        self.version = version
        self.topic = topic
        self.time_us = time_us
        self.body = body


class Record(_Fields):
    """An event that was written.

    `position` is its place in the whole log (1-based, without gaps), `version` its place in
    its stream, `time_us` microseconds since 1970 in UTC. `digest` chains it to
    `previous_digest`. `absent` says that the body was erased; `body` is then empty.
    """

    __slots__ = (
        "absent",
        "body",
        "digest",
        "position",
        "previous_digest",
        "stream",
        "time_us",
        "topic",
        "version",
    )

    def __init__(
        self,
        position: int,
        stream: StreamId,
        version: int,
        topic: str,
        time_us: int,
        body: bytes,
        digest: bytes,
        previous_digest: bytes,
        absent: bool = False,
    ) -> None:
        self.position = position
        self.stream = stream
        self.version = version
        self.topic = topic
        self.time_us = time_us
        self.body = body
        self.digest = digest
        self.previous_digest = previous_digest
        self.absent = absent

    def with_body(self, body: bytes, *, absent: bool = False) -> Record:
        """Return the same record, its body held in memory, or gone."""
        return Record(
            self.position,
            self.stream,
            self.version,
            self.topic,
            self.time_us,
            body,
            self.digest,
            self.previous_digest,
            absent,
        )


class ArchivedRecord(Record):
    """A record whose body is in an archive, and is read from there whenever it is asked for.

    It equals the record that it was before. `archive` is the number of the archive; `body`
    raises BodyLostError when the archive cannot give it back.
    """

    __slots__ = ("_fetch", "archive")

    def __init__(self, record: Record, archive: int, fetch: Callable[[], bytes]) -> None:
        self.position = record.position
        self.stream = record.stream
        self.version = record.version
        self.topic = record.topic
        self.time_us = record.time_us
        self.digest = record.digest
        self.previous_digest = record.previous_digest
        self.absent = False
        self.archive = archive
        self._fetch = fetch

    @property
    def body(self) -> bytes:  # type: ignore[override]
        """The body, compared with its digest."""
        return self._fetch()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in Record.__slots__)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in Record.__slots__))


class Head(_Fields):
    """The end of the log: the last position (0 when empty) and its digest."""

    __slots__ = ("digest", "position")

    def __init__(self, position: int, digest: bytes) -> None:
        self.position = position
        self.digest = digest


class SnapshotRecord(_Fields):
    """The packed state of a stream at a version: derived data, never part of the chain."""

    __slots__ = ("body", "stream", "version")

    def __init__(self, stream: StreamId, version: int, body: bytes) -> None:
        self.stream = stream
        self.version = version
        self.body = body


class Problem(_Fields):
    """Something wrong with the log: what kind, at which position (0: not of one record), details.

    Kinds: `missing`, `changed`, `moved`, `added`, `unreadable` records; an `index` entry without
    its record; an unknown `type` or `stream`; a `gap` in the versions of a stream; a wrong
    `count`; a `cut-off` tail; another chain than the `anchor` says, or a wrong `signature` of one;
    bodies that an `archive` has lost, that are `lost` without one, or that were `erased` without
    record; a `surplus` of what was erased; a line of an `anchor-file` that is none; a damaged
    `page` of the file, which leaves all records `unchecked`.
    """

    __slots__ = ("detail", "kind", "position")

    def __init__(self, kind: str, position: int, detail: str) -> None:
        self.kind = kind
        self.position = position
        self.detail = detail
