"""The event log in memory, for tests of code that uses one. Behaves as the log on disk does.

Never writes to disk: everything is gone with the object.
"""

from __future__ import annotations

from bisect import bisect_right
from threading import RLock

from tachograph.domain.errors import (
    BodyLostError,
    StoreCorruptError,
    StoredNameError,
    TrackingConflictError,
    VersionConflictError,
)
from tachograph.domain.records import (
    GENESIS_DIGEST,
    ArchivedRecord,
    Head,
    Problem,
    Record,
    SnapshotRecord,
)
from tachograph.infra.layout import (
    Packed,
    check_position,
    check_version,
    digest_record,
    stream_key,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from tachograph.domain.records import NewRecord, StreamId


class MemoryLog:
    """An append-only log of records in numbered streams, without a disk.

    It has the same methods, refusals and digests as `LMDBLog` and passes the same tests.
    """

    def __init__(self, bodies: Callable[[int, Record], bytes] | None = None) -> None:
        """Make an empty log; `bodies` gives the body of a record that an archive holds."""
        self._bodies = bodies
        self._lock = RLock()
        self._records: list[Record] = []
        self._streams: dict[bytes, dict[int, Record]] = {}
        self._ids: dict[bytes, StreamId] = {}
        self._snapshots: dict[bytes, dict[int, bytes]] = {}
        self._tracking: dict[str, int] = {}
        self._commits = 0

    def append(
        self,
        records: Sequence[NewRecord],
        *,
        snapshot: SnapshotRecord | None = None,
        tracking: tuple[str, int] | None = None,
    ) -> list[int]:
        """Append records, all or none, and return their positions.

        Raises VersionConflictError if a version exists, TrackingConflictError if the tracked
        position was already processed, RecordOutOfRangeError if a part of a record does not fit.
        """
        if not records and snapshot is None and tracking is None:
            return []
        packed = [Packed(record) for record in records]
        with self._lock:
            self._check(packed, snapshot, tracking)
            positions = [self._add(each) for each in packed]
            if snapshot is not None:
                key = self._know(snapshot.stream)
                self._snapshots.setdefault(key, {})[snapshot.version] = snapshot.body
            if tracking is not None:
                self._tracking[tracking[0]] = tracking[1]
            self._commits += 1
        return positions

    def head(self) -> Head:
        """Return the last position and its digest."""
        with self._lock:
            if not self._records:
                return Head(0, GENESIS_DIGEST)
            return Head(len(self._records), self._records[-1].digest)

    def stream_version(self, stream: StreamId) -> int:
        """Return the highest version of a stream, 0 if it has none."""
        with self._lock:
            return max(self._streams.get(stream_key(stream)[0], {}), default=0)

    def read_stream(
        self,
        stream: StreamId,
        *,
        after: int | None = 0,
        up_to: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[Record]:
        """Return records of a stream by version, those after one (None: all) and up to one."""
        with self._lock:
            found = self._streams.get(stream_key(stream)[0], {})
            versions = [
                version
                for version in sorted(found, reverse=reverse)
                if (after is None or version > after) and (up_to is None or version <= up_to)
            ]
            return [found[version] for version in versions[:limit]]

    def read(
        self,
        *,
        after: int = 0,
        up_to: int | None = None,
        limit: int | None = 1000,
        reverse: bool = False,
        topics: Collection[str] = (),
    ) -> list[Record]:
        """Return records by position, those after one and up to one; `reverse`: newest first."""
        with self._lock:
            found = self._records[after:up_to]
        if reverse:
            found.reverse()
        if topics:
            found = [record for record in found if record.topic in topics]
        return found[:limit]

    def snapshot(self, stream: StreamId, *, up_to: int | None = None) -> SnapshotRecord | None:
        """Return the latest snapshot of a stream, or the latest not after a version."""
        with self._lock:
            found = self._snapshots.get(stream_key(stream)[0], {})
            versions = sorted(found)
            if up_to is not None:
                del versions[bisect_right(versions, up_to) :]
            if not versions:
                return None
            return SnapshotRecord(stream, versions[-1], found[versions[-1]])

    def max_tracking(self, name: str) -> int | None:
        """Return the highest position of a named log that was processed, None if none was."""
        with self._lock:
            return self._tracking.get(name)

    def last_transaction(self) -> int:
        """Return a number that rises with every append."""
        return self._commits

    def verify(
        self,
        progress: Callable[[int, int], None] | None = None,
        *,
        expected_head: Head | None = None,
        contiguous: bool = False,
    ) -> Iterator[Problem]:
        """Yield every problem of the log: without a disk, only what the anchor or gaps show."""
        for record in self.read(limit=None):
            stream = self._streams[stream_key(record.stream)[0]]
            if contiguous and record.version > 1 and record.version - 1 not in stream:
                what = f"version {record.version - 1} of its stream does not come before it"
                yield Problem("gap", record.position, what)
            anchored = expected_head is not None and expected_head.position == record.position
            if anchored and expected_head != Head(record.position, record.digest):
                what = "the log up to here is not the one that was anchored"
                yield Problem("anchor", record.position, what)
            if progress is not None:
                progress(record.position, len(self._records))
        if expected_head is not None and expected_head.position > len(self._records):
            what = f"the log had {expected_head.position} records when it was anchored"
            yield Problem("cut-off", len(self._records), what)

    def move_bodies(self, positions: Sequence[int], archive: int) -> int:
        """Drop bodies that an archive holds from now on; return how many those were.

        Raises StoreCorruptError for a position that has no record.
        """
        with self._lock:
            for position in positions:
                if not 0 < position <= len(self._records):
                    raise StoreCorruptError("memory", f"record {position} is lost")
            moved = [self._records[position - 1] for position in positions]
            here = [each for each in moved if not each.absent and type(each) is Record]
            for record in here:
                self._replace(self._archived(record, archive))
            self._commits += bool(positions)
            return len(here)

    def erase(self, record: NewRecord) -> int:
        """Append a record and drop all bodies of its stream before it, and its snapshots."""
        with self._lock:
            (position,) = self.append([record])
            key = stream_key(record.stream)[0]
            for each in list(self._streams[key].values()):
                if each.position != position:
                    self._replace(each.with_body(b"", absent=True))
            self._snapshots.pop(key, None)
            return position

    def archives(self) -> dict[int, int]:
        """Return the numbers of the archives that hold bodies, and how many."""
        found: dict[int, int] = {}
        for record in self.read(limit=None):
            if isinstance(record, ArchivedRecord):
                found[record.archive] = found.get(record.archive, 0) + 1
        return found

    def _archived(self, record: Record, archive: int) -> ArchivedRecord:
        def fetch() -> bytes:
            if self._bodies is None:
                what = f"version {record.version} of {record.stream!r}"
                raise BodyLostError(f"archive {archive}", "is missing", what)
            return self._bodies(archive, record)

        return ArchivedRecord(record, archive, fetch)

    def _replace(self, record: Record) -> None:
        self._records[record.position - 1] = record
        self._streams[stream_key(record.stream)[0]][record.version] = record

    def _check(
        self,
        packed: list[Packed],
        snapshot: SnapshotRecord | None,
        tracking: tuple[str, int] | None,
    ) -> None:
        new: set[tuple[bytes, int]] = set()
        for each in packed:
            stream, version = each.record.stream, each.record.version
            known = self._ids.get(each.key, stream)
            if known != stream:
                raise StoredNameError(stream, known)
            if version in self._streams.get(each.key, ()) or (each.key, version) in new:
                raise VersionConflictError(stream, version, self.stream_version(stream))
            new.add((each.key, version))
        if snapshot is not None:
            check_version(snapshot.stream, snapshot.version)
        if tracking is not None:
            check_position(*tracking)
            recorded = self._tracking.get(tracking[0])
            if recorded is not None and tracking[1] <= recorded:
                raise TrackingConflictError(*tracking, recorded)

    def _know(self, stream: StreamId) -> bytes:
        key = stream_key(stream)[0]
        self._ids[key] = stream
        return key

    def _add(self, packed: Packed) -> int:
        record = packed.record
        previous = self.head()
        position = previous.position + 1
        digest = digest_record(
            previous.digest,
            position,
            packed.key,
            record.version,
            record.time_us,
            packed.topic,
            packed.body_digest,
        )
        added = Record(
            position,
            record.stream,
            record.version,
            record.topic,
            record.time_us,
            bytes(record.body),
            digest,
            previous.digest,
        )
        self._records.append(added)
        self._streams.setdefault(self._know(record.stream), {})[record.version] = added
        return position
