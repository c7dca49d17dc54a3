"""The databases of one log and what they say about types and streams. Never writes by itself."""

from __future__ import annotations

from tachograph.domain.errors import StoreCorruptError
from tachograph.infra.layout import (
    TEXT,
    U32,
    U64,
    decode_text,
    encode_text,
    unpack_head,
    with_length,
)
from tachograph.infra.lmdb_tracking import LMDBTracking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    import lmdb

    from tachograph.domain.records import StreamId
    from tachograph.infra.body_archives import BodyArchives
    from tachograph.infra.lmdb_environment import Database, Environment, Transaction

MAX_STREAMS = 100_000


class Tables:
    """The databases of a log in an environment, by name, and lookups in them.

    Types and streams are cached. The caches hold committed facts only, which never change, so
    other processes cannot outdate them; what is not there is looked up in the transaction.
    """

    __slots__ = (
        "_bodies",
        "_open",
        "environment",
        "head",
        "index",
        "known_streams",
        "name",
        "numbers",
        "records",
        "snapshots",
        "streams",
        "topics",
        "tracking",
        "types",
    )

    def __init__(
        self, environment: Environment, name: str, bodies: BodyArchives | None = None
    ) -> None:
        self.environment = environment
        self.name = name
        self._bodies = bodies
        self.records = encode_text(f"{name}.records")
        """Position -> header and body."""
        self.index = encode_text(f"{name}.index")
        """Stream and version -> position."""
        self.types = encode_text(f"{name}.types")
        """Number -> topic."""
        self.streams = encode_text(f"{name}.streams")
        """Stream key -> text of its id."""
        self.snapshots = encode_text(f"{name}.snapshots")
        """Stream and version -> packed state."""
        self.head = encode_text(f"{name}.head")
        """Not a database but a key beside them, on a page that every commit writes anyway."""
        self.tracking = LMDBTracking(environment, name)
        self.numbers: dict[str, int] = {}
        """Topic -> number, as far as known."""
        self.topics: dict[int, tuple[str, bytes]] = {}
        """Number -> topic, and its bytes as the digest covers them, as far as known."""
        self.known_streams: dict[bytes, StreamId] = {}
        """Stream key -> id, as far as known."""
        self._open = False

    @property
    def bodies(self) -> BodyArchives:
        """Where the bodies are that were moved out of the log; most logs have all of theirs."""
        if self._bodies is None:
            from tachograph.infra.body_archives import BodyArchives

            self._bodies = BodyArchives.beside(self.environment.folder)
        return self._bodies

    def open(self, *, create: bool = True) -> bool:
        """Find the databases, or make them; return False if there are none and none may be made."""
        if not self._open:
            self._open = self.environment.open_databases(
                self.records,
                self.index,
                self.types,
                self.streams,
                self.snapshots,
                self.tracking.database,
                create=create,
            )
        return self._open

    def __getitem__(self, name: bytes) -> Database:
        """Return the handle of a database: a new one after a fork."""
        return self.environment.databases[name]

    def find_head(self, txn: Transaction) -> tuple[int, bytes]:
        """Return the last position and its digest, 0 and the genesis digest of an empty log.

        Raises StoreCorruptError when the records end elsewhere: nothing may be appended then.
        """
        cursor = txn.cursor(db=self[self.records])
        last: int = U64.unpack(cursor.key())[0] if cursor.last() else 0
        position, digest = unpack_head(txn.get(self.head))
        if position != last:
            what = f"the log ends at record {last}, its head is {position}"
            raise StoreCorruptError(self.environment.folder, what)
        return last, digest

    def topic(self, txn: lmdb.Transaction, number: int) -> tuple[str, bytes]:
        """Return what `find_topic` does, and remember it. For read transactions only."""
        known = self.topics.get(number)
        if known is None:
            known = self.find_topic(txn, number)
            self.learn_topics({known[0]: number})
        return known

    def find_topic(self, txn: lmdb.Transaction, number: int) -> tuple[str, bytes]:
        """Return the topic of a number, and its bytes as the digest covers them."""
        known = self.topics.get(number)
        if known is not None:
            return known
        value = txn.get(U32.pack(number), db=self[self.types])
        if value is None:
            self._refuse(f"event type {number} has no name", self.types)
        return decode_text(bytes(value)), with_length(bytes(value))

    def find_number(self, txn: lmdb.Transaction, topic: str) -> int | None:
        """Return the number of a topic, None if it has none yet."""
        known = self.numbers.get(topic)
        if known is None:
            for key, value in txn.cursor(db=self[self.types]):
                if decode_text(bytes(value)) == topic:
                    return int(U32.unpack(key)[0])
        return known

    def stream(self, txn: lmdb.Transaction, key: bytes, flags: int) -> StreamId:
        """Return the id that a stream key stands for. For read transactions only."""
        known = self.known_streams.get(key)
        if known is None:
            known = self.find_text(txn, key) if flags & TEXT else _uuid(key)
            if known is None:
                self._refuse(f"stream {key.hex()} has no name", self.streams)
            self.learn_streams({key: known})
        return known

    def find_text(self, txn: lmdb.Transaction, key: bytes) -> str | None:
        """Return the text of a stream key, None if it has none."""
        value = txn.get(key, db=self[self.streams])
        return None if value is None else decode_text(bytes(value))

    def learn_topics(self, topics: dict[str, int]) -> None:
        """Remember types that are committed."""
        for topic, number in topics.items():
            self.topics[number] = topic, with_length(encode_text(topic))
            self.numbers[topic] = number

    def learn_streams(self, streams: dict[bytes, StreamId]) -> None:
        """Remember streams that are committed."""
        if len(self.known_streams) > MAX_STREAMS:
            self.known_streams = {}
        self.known_streams.update(streams)

    def _refuse(self, what: str, database: bytes) -> NoReturn:
        raise StoreCorruptError(self.environment.folder, f"{what} in {decode_text(database)}")


def _uuid(key: bytes) -> StreamId:
    from uuid import UUID

    return UUID(bytes=key)
