"""The event log on LMDB: the truth. Never changes or removes what it has acknowledged.

A body may leave it, to an archive or for good: its digest stays, and with it the chain.
"""

from __future__ import annotations

from itertools import islice

from tachograph.domain.errors import (
    StoreCorruptError,
    StoreNotFoundError,
    StoreReadOnlyError,
)
from tachograph.domain.records import GENESIS_DIGEST, Head, Problem, SnapshotRecord
from tachograph.infra.layout import (
    MAX_VERSION,
    U64,
    pack_position,
    pack_version_key,
    stream_key,
)
from tachograph.infra.lmdb_append import Append, highest_version
from tachograph.infra.lmdb_reading import between, build, window
from tachograph.infra.lmdb_tables import Tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from tachograph.domain.records import NewRecord, Record, StreamId
    from tachograph.infra.body_archives import BodyArchives
    from tachograph.infra.lmdb_environment import Environment


class LMDBLog:
    """An append-only log of records in numbered streams, in an LMDB environment.

    Several logs live in one environment under different names. All methods may be called from
    any thread; what they return are copies that outlive the transaction.
    """

    __slots__ = ("_environment", "_tables")

    def __init__(
        self,
        environment: Environment,
        name: str = "events",
        *,
        create: bool = True,
        bodies: BodyArchives | None = None,
    ) -> None:
        """Open a log, making it in an environment that may be written unless `create` is false.

        One that does not exist is empty, and takes no records. `bodies` are the archives with
        what was moved out of it, those beside its folder by default.
        """
        self._environment = environment
        self._tables = Tables(environment, name, bodies)
        self._tables.open(create=create)

    @property
    def tables(self) -> Tables:
        """Its databases, for what is kept beside them in the same commits."""
        return self._tables

    def create(self) -> None:
        """Make the log, unless it exists."""
        if not self._tables.open():
            raise StoreReadOnlyError(self._environment.folder, "it is open for reading only")

    def append(
        self,
        records: Sequence[NewRecord],
        *,
        snapshot: SnapshotRecord | None = None,
        tracking: tuple[str, int] | None = None,
    ) -> list[int]:
        """Append records, all or none, and return their positions. Durable on return.

        Threads that append at the same time share a commit; a refusal concerns one of them.

        Raises VersionConflictError if another writer recorded one of the versions first,
        TrackingConflictError if the tracked position was already processed,
        RecordOutOfRangeError if a part of a record does not fit, StoreFullError if there is no
        room, StoreReadOnlyError if the log is open for reading. Nothing of it is then written.
        """
        if not records and snapshot is None and tracking is None:
            return []
        if not self._tables.open(create=False):
            raise StoreNotFoundError(f"{self._environment.folder} (log {self._tables.name!r})")
        request = Append(self._tables, records, snapshot, tracking)
        self._environment.group.submit(request)
        return request.positions

    def head(self) -> Head:
        """Return the last position and its digest: keep it elsewhere as an anchor."""
        if not self._tables.open(create=False):
            return Head(0, GENESIS_DIGEST)
        with self._environment.read() as txn:
            return Head(*self._tables.find_head(txn))

    def stream_version(self, stream: StreamId) -> int:
        """Return the highest version of a stream, 0 if it has none."""
        if not self._tables.open(create=False):
            return 0
        with self._environment.read() as txn:
            return highest_version(txn, self._tables, stream_key(stream)[0])

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
        if not self._tables.open(create=False):
            return []
        key = stream_key(stream)[0]
        lower = pack_version_key(key, 0 if after is None else after + 1)
        upper = pack_version_key(key, MAX_VERSION if up_to is None else up_to)
        with self._environment.read() as txn:
            found = between(
                txn.cursor(db=self._tables[self._tables.index]), lower, upper, reverse=reverse
            )
            positions = [position for _, position in islice(found, limit)]
            pairs = txn.cursor(db=self._tables[self._tables.records]).getmulti(positions)
            if len(pairs) < len(positions):
                raise StoreCorruptError(self._environment.folder, f"records of {stream} are lost")
            return build(txn, self._tables, pairs)

    def read(
        self,
        *,
        after: int = 0,
        up_to: int | None = None,
        limit: int | None = 1000,
        reverse: bool = False,
        topics: Collection[str] = (),
    ) -> list[Record]:
        """Return records by position, those after one and up to one; `reverse`: newest first.

        With `topics` only records of these types, and `limit` counts only these.
        """
        if not self._tables.open(create=False):
            return []
        last = MAX_VERSION if up_to is None else up_to
        if topics:
            return self._scan(after, last, limit, reverse, topics)
        lower, upper = pack_position(after + 1), pack_position(last)
        with self._environment.read() as txn:
            cursor = txn.cursor(db=self._tables[self._tables.records])
            return build(
                txn,
                self._tables,
                list(islice(between(cursor, lower, upper, reverse=reverse), limit)),
            )

    def snapshot(self, stream: StreamId, *, up_to: int | None = None) -> SnapshotRecord | None:
        """Return the latest snapshot of a stream, or the latest not after a version."""
        if not self._tables.open(create=False):
            return None
        key = stream_key(stream)[0]
        lower = pack_version_key(key, 0)
        upper = pack_version_key(key, MAX_VERSION if up_to is None else up_to)
        with self._environment.read() as txn:
            cursor = txn.cursor(db=self._tables[self._tables.snapshots])
            for place, body in between(cursor, lower, upper, reverse=True):
                return SnapshotRecord(stream, U64.unpack_from(place, 16)[0], body)
        return None

    def max_tracking(self, name: str) -> int | None:
        """Return the highest position of a named log that was processed, None if none was."""
        if not self._tables.open(create=False):
            return None
        with self._environment.read() as txn:
            return self._tables.tracking.read(txn, name)

    def last_transaction(self) -> int:
        """Return a number that rises with every commit to the store, by any process."""
        return self._environment.last_transaction()

    def verify(
        self,
        progress: Callable[[int, int], None] | None = None,
        *,
        expected_head: Head | None = None,
        contiguous: bool = False,
    ) -> Iterator[Problem]:
        """Yield every problem of the log, in constant memory; nothing if it is whole.

        `progress` is called with the number of records checked and to check. `expected_head` is
        a head kept elsewhere: without it, nobody can tell that a tail was cut off together with
        its traces. With `contiguous`, a gap in the versions of a stream is a problem.
        """
        from tachograph.infra.lmdb_verify import Verification

        if self._tables.open(create=False):
            yield from Verification(self._tables, expected_head, contiguous).run(progress)
        elif expected_head is not None and expected_head.position:
            yield Problem("cut-off", 0, "the log is empty")

    def move_bodies(self, positions: Sequence[int], archive: int) -> int:
        """Put digests in the place of bodies that an archive holds; return how many those were.

        All or none, durable on return; bodies that left the log before are passed over. Ask for
        some hundreds at a time: other threads share the commit, other processes wait for it.
        The archive must be on disk, whole. Raises StoreCorruptError for a record that is lost.
        """
        from tachograph.infra.lmdb_bodies import Move

        if not positions or not self._tables.open(create=False):
            return 0
        request = Move(self._tables, positions, archive)
        self._environment.group.submit(request)
        return request.moved

    def erase(self, record: NewRecord) -> int:
        """Append a record and drop all bodies of its stream before it, and its snapshots.

        One commit: killed at any instant, all of it happened or nothing. Digests stay. Returns
        the record's position. The bytes may still be on free pages of the file: only writing it
        anew destroys them. Raises VersionConflictError.
        """
        from tachograph.infra.lmdb_bodies import Erase

        if not self._tables.open(create=False):
            raise StoreNotFoundError(f"{self._environment.folder} (log {self._tables.name!r})")
        return Erase(self._tables, record).commit(self._environment)

    def archives(self) -> dict[int, int]:
        """Return the numbers of the archives that hold bodies, and how many; reads all headers."""
        from tachograph.infra.lmdb_bodies import archives

        return archives(self._tables) if self._tables.open(create=False) else {}

    def _scan(
        self, after: int, last: int, limit: int | None, reverse: bool, topics: Collection[str]
    ) -> list[Record]:
        """Read records of some types in many short transactions."""
        found: list[Record] = []
        while after < last and (limit is None or len(found) < limit):
            with self._environment.read_buffers() as txn:
                pairs, reached = window(
                    txn,
                    self._tables,
                    topics,
                    after=after,
                    last=last,
                    limit=None if limit is None else limit - len(found),
                    reverse=reverse,
                )
                found += build(txn, self._tables, pairs)
            after, last = (after, reached - 1) if reverse else (reached, last)
        return found
