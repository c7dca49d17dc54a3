"""What the use cases need from the outside. Storage, clocks and processes implement it in infra.

These ports are an inner seam of Tachograph and may change in any release.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any, Protocol

    from tachograph.domain.blobref import BlobRef
    from tachograph.domain.liveness import Lease
    from tachograph.domain.records import Head, NewRecord, Record, SnapshotRecord, StreamId
else:

    class Protocol:
        """Stand in for typing.Protocol, whose import a light command cannot afford."""


class EventLog(Protocol):
    """The append-only log: streams of versions, all in one order of positions."""

    def append(
        self, records: Sequence[NewRecord], *, snapshot: SnapshotRecord | None = None
    ) -> list[int]:
        """Append all records or none, and return their positions once they are durable.

        Raises VersionConflictError when a version of a stream is taken.
        """
        ...

    def head(self) -> Head:
        """Return the end of the log."""
        ...

    def stream_version(self, stream: StreamId) -> int:
        """Return the highest version of a stream, 0 when it has none."""
        ...

    def read_stream(
        self,
        stream: StreamId,
        *,
        after: int | None = 0,
        up_to: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[Record]:
        """Return events of a stream with `after` < version <= `up_to`."""
        ...

    def read(
        self,
        *,
        after: int = 0,
        up_to: int | None = None,
        limit: int = 1000,
        reverse: bool = False,
        topics: Collection[str] = (),
    ) -> list[Record]:
        """Return events with `after` < position <= `up_to`, newest first when `reverse`."""
        ...

    def snapshot(self, stream: StreamId, *, up_to: int | None = None) -> SnapshotRecord | None:
        """Return the latest snapshot of a stream, none newer than version `up_to`."""
        ...

    def last_transaction(self) -> int:
        """Return a number that changes with every write, by any process."""
        ...


class Codec(Protocol):
    """Values to bytes and back, exactly."""

    def pack(self, value: Any, root: str = "value") -> bytes:
        """Return the bytes of a value. Raises UnstorableValueError, naming its place."""
        ...

    def unpack(self, data: bytes) -> Any:
        """Return the value of packed bytes."""
        ...


class Blobs(Protocol):
    """Content-addressed payloads that are too large for an event."""

    def put(self, data: bytes) -> BlobRef:
        """Store a payload; durable on return."""
        ...

    def get(self, ref: BlobRef) -> bytes:
        """Return a payload. Raises BlobMissingError."""
        ...


class Presence(Protocol):
    """Leases and heartbeats: who is here now. Worth nothing after a reboot."""

    def beat(self, stream: StreamId, epoch: int, note: Mapping[str, Any] | None = None) -> None:
        """Renew the lease of an attempt."""
        ...

    def lease(self, stream: StreamId) -> Lease | None:
        """Return the lease on a run, fresh or not."""
        ...


class Redactor(Protocol):
    """Knows secret values and takes them out of what is about to be stored (G13)."""

    def touches(self, packed: bytes) -> bool:
        """Say quickly whether packed bytes may hold a secret."""
        ...

    def redact(self, value: Any) -> Any:
        """Return the value with every secret replaced."""
        ...


class Progress(Protocol):
    """Shows how far long work is."""

    def __call__(self, done: int, total: int | None) -> None:
        """Take the work done so far and the whole, where it is known."""
        ...
