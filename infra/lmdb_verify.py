"""Check a whole log against itself and an anchor. Never changes anything, never stops early."""

from __future__ import annotations

from itertools import islice

from tachograph.domain.errors import StoreCorruptError
from tachograph.domain.records import GENESIS_DIGEST, Problem
from tachograph.infra.layout import (
    ABSENT,
    ARCHIVED,
    BODY,
    DIGEST_SIZE,
    FLAGS,
    FORMAT,
    TEXT,
    U32,
    U64,
    digest_record,
    name_key,
    pack_position,
    pack_version_key,
    stored_body_digest,
    unpack_head,
    unpack_header,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tachograph.domain.records import Head
    from tachograph.infra.lmdb_environment import Environment, Transaction
    from tachograph.infra.lmdb_tables import Tables

CHUNK = 1000
"""Records checked in one read transaction."""
ATTEMPTS = 3
MAX_STREAMS = 100_000


def check_pages(environment: Environment) -> list[Problem]:
    """Check the pages of the data file without liblmdb, which trusts them.

    Writers go on meanwhile; only if they always do, they have to wait.
    """
    for _ in range(ATTEMPTS):
        before = environment.last_transaction()
        problems = check_file(environment.folder)
        if not problems or environment.last_transaction() == before:
            return problems
    with environment.write():
        return check_file(environment.folder)


def check_file(folder: str) -> list[Problem]:
    """Check the pages of a data file that nobody writes, without opening it in LMDB."""
    from lmdb.verify import VerifyError, verify

    try:
        findings = verify(folder)  # type: ignore[no-untyped-call]
        return [Problem("page", 0, finding) for finding in findings]
    except VerifyError as error:
        return [Problem("page", 0, str(error))]


class Verification:
    """One walk over a log, up to where it ended at the start of the walk."""

    __slots__ = (
        "_anchor",
        "_contiguous",
        "_digest",
        "_index_doubtful",
        "_named",
        "_position",
        "_tables",
    )

    def __init__(self, tables: Tables, anchor: Head | None, contiguous: bool) -> None:
        self._tables = tables
        self._anchor = anchor
        self._contiguous = contiguous
        self._index_doubtful = False
        self._named: set[tuple[bytes, int]] = set()
        """Streams whose names are known to be right, as many as fit."""
        self._position = 0
        """The last position that was looked at."""
        self._digest: bytes | None = GENESIS_DIGEST
        """Its digest, None after a problem that keeps it from being known."""

    def run(self, progress: Callable[[int, int], None] | None) -> Iterator[Problem]:
        """Yield the problems of the whole, then those of records by position, then of the rest.

        Damaged pages end the walk: liblmdb may end the process when it meets one.
        """
        damaged = check_pages(self._tables.environment)
        yield from damaged
        if damaged:
            yield Problem("unchecked", 0, "records are not looked at while pages are damaged")
            return
        last, head, problems = self._read_end()
        yield from problems
        while self._position < last:
            yield from self._check_chunk(last)
            if progress is not None:
                progress(self._position, last)
        yield from self._check_end(head)
        yield from self._check_types()
        if self._index_doubtful:
            yield from self._check_index()

    def _read_end(self) -> tuple[int, bytes | None, list[Problem]]:
        """Return the last position, the digest it should have, and what is wrong with both."""
        tables = self._tables
        try:
            with tables.environment.read() as txn:
                cursor = txn.cursor(db=tables[tables.records])
                position, digest = unpack_head(txn.get(tables.head))
                last = _number(cursor.key()) if cursor.last() else 0
                if len(cursor.key()) not in (0, U64.size):
                    last = position
                records = txn.stat(tables[tables.records])["entries"]
                entries = txn.stat(tables[tables.index])["entries"]
        except StoreCorruptError as error:
            return 0, None, [Problem("unreadable", 0, f"the end of the log: {error.args[1]}")]
        problems = []
        if position != last:
            kind = "cut-off" if position > last else "added"
            problems.append(Problem(kind, last, f"the log ended at record {position} before"))
        if records != last:
            problems.append(Problem("count", last, f"{records} records for {last} positions"))
        if entries != records:
            self._index_doubtful = True
            problems.append(Problem("count", last, f"{entries} index entries, {records} records"))
        return last, digest if position == last else None, problems

    def _check_chunk(self, last: int) -> list[Problem]:
        """Check the next records in one transaction; where that fails, one by one."""
        problems: list[Problem] = []
        tables = self._tables
        before, digest = self._position, self._digest
        try:
            with tables.environment.read() as txn:
                cursor = txn.cursor(db=tables[tables.records])
                after = pack_position(self._position + 1)
                found = cursor.set_range(after) if self._position else cursor.first()
                for key, value in islice(cursor.iternext(), CHUNK if found else 0):
                    if len(key) != U64.size:
                        problems.append(Problem("unreadable", 0, f"{key.hex()} is no position"))
                        continue
                    if _number(key) > last:
                        break
                    digest = self._digest
                    problems += self._check_record(txn, _number(key), value)
                    problems += self._check_entry(txn, _number(key), value)
                    self._position = _number(key)
        except StoreCorruptError:
            self._digest = digest
            return problems + self._check_singly(min(self._position + CHUNK, last))
        if self._position == before:  # a damaged key is in the way
            problems += self._check_singly(min(before + CHUNK, last))
        return problems

    def _check_singly(self, last: int) -> list[Problem]:
        """Check the next records in a transaction each: an error ends the use of one."""
        problems: list[Problem] = []
        for position in range(self._position + 1, last + 1):
            for check in (self._check_record, self._check_entry):
                try:
                    with self._tables.environment.read() as txn:
                        records = self._tables[self._tables.records]
                        value = txn.get(pack_position(position), db=records)
                        if value is None:
                            break
                        problems += check(txn, position, value)
                except StoreCorruptError as error:
                    problems.append(Problem("unreadable", position, str(error.args[1])))
                    self._digest = None
                    self._position = position
                    break
            else:
                self._position = position
        if self._position < last:
            what = f"no record up to {last}"
            problems.append(Problem("missing", self._position + 1, what))
            self._position, self._digest = last, None
        return problems

    def _check_record(self, txn: Transaction, position: int, value: bytes) -> Iterator[Problem]:
        """Check that a record is in its place, whole, and what its successor will say it is."""
        if position > self._position + 1:
            yield Problem("missing", self._position + 1, f"no record before {position}")
            self._digest = None
        before, self._digest = self._digest, None
        damage = _damage(value)
        if damage:
            yield Problem("unreadable", position, damage)
            return
        _, flags, _, number, key, version, time_us, previous = unpack_header(value)
        if before is not None and previous != before:
            what = f"it is not the record that {position} was chained to"
            yield Problem("changed", position - 1, what)
        yield from self._check_stream(txn, position, key, flags)
        try:
            topic = self._tables.find_topic(txn, number)[1]
        except StoreCorruptError as error:
            yield Problem("type", position, str(error.args[1]))
            return
        body = stored_body_digest(value)
        self._digest = digest_record(previous, position, key, version, time_us, topic, body)
        anchor = self._anchor
        if anchor is not None and anchor.position == position and anchor.digest != self._digest:
            yield Problem("anchor", position, "the log up to here is not the one that was anchored")

    def _check_stream(
        self, txn: Transaction, position: int, key: bytes, flags: int
    ) -> Iterator[Problem]:
        if (key, flags & TEXT) in self._named:
            return
        text = self._tables.find_text(txn, key)
        if not flags & TEXT and text is not None:
            yield Problem("stream", position, f"its stream should be {text!r}, not a UUID")
        elif flags & TEXT and text is None:
            yield Problem("stream", position, f"stream {key.hex()} has no name")
        elif text is not None and name_key(text) != key:
            yield Problem("stream", position, f"stream {key.hex()} has the wrong name {text!r}")
        elif len(self._named) < MAX_STREAMS:
            self._named.add((key, flags & TEXT))

    def _check_entry(self, txn: Transaction, position: int, value: bytes) -> Iterator[Problem]:
        """Check that the index knows a record by its stream and version."""
        if _damage(value):
            return
        _, _, _, _, key, version, _, _ = unpack_header(value)
        found = self._find_entry(txn, key, version)
        if found != position:
            self._index_doubtful = True
            if found is None:
                what = f"the index has no version {version} of stream {key.hex()}"
                yield Problem("added", position, what)
            else:
                what = f"the index has version {version} of stream {key.hex()} at {found}"
                yield Problem("moved", position, what)
        if self._contiguous and version > 1:
            before = self._find_entry(txn, key, version - 1)
            if before is None or before >= position:
                what = f"version {version - 1} of stream {key.hex()} does not come before it"
                yield Problem("gap", position, what)

    def _find_entry(self, txn: Transaction, key: bytes, version: int) -> int | None:
        entry = txn.get(pack_version_key(key, version), db=self._tables[self._tables.index])
        return None if entry is None else _number(entry)

    def _check_end(self, head: bytes | None) -> Iterator[Problem]:
        if None not in (head, self._digest) and head != self._digest:
            yield Problem("changed", self._position, "it is not the record that was written last")
        anchor = self._anchor
        if anchor is not None and anchor.position > self._position:
            what = f"the log had {anchor.position} records when it was anchored"
            yield Problem("cut-off", self._position, what)

    def _check_types(self) -> Iterator[Problem]:
        """Check that types are numbered from 1 and have different names."""
        tables = self._tables
        try:
            with tables.environment.read() as txn:
                rows = list(txn.cursor(db=tables[tables.types]))
        except StoreCorruptError as error:
            yield Problem("unreadable", 0, f"the event types: {error.args[1]}")
            return
        topics = {topic for _, topic in rows}
        if len(topics) < len(rows) or [key for key, _ in rows] != [
            U32.pack(number) for number in range(1, len(rows) + 1)
        ]:
            yield Problem("type", 0, "event types are missing or named twice")

    def _check_index(self) -> Iterator[Problem]:
        """Look for the record of every index entry."""
        after: bytes | None = b""
        while after is not None:
            try:
                problems, after = self._check_entries(after)
            except StoreCorruptError as error:
                problems, after = [Problem("unreadable", 0, f"the index: {error.args[1]}")], None
            yield from problems

    def _check_entries(self, after: bytes) -> tuple[list[Problem], bytes | None]:
        """Check the index entries after a key; return the last key, None at the end."""
        tables = self._tables
        problems = []
        key: bytes | None = None
        with tables.environment.read() as txn:
            cursor = txn.cursor(db=tables[tables.index])
            found = cursor.set_range(after + b"\0")
            for key, place in islice(cursor.iternext(), CHUNK if found else 0):
                value = txn.get(place, db=tables[tables.records])
                if value is None or _damage(value) or pack_version_key(*_owner(value)) != key:
                    what = (
                        f"the index has stream {key[:16].hex()}, version {_number(key[16:])} here"
                    )
                    problems.append(Problem("index", _number(place), what))
        return problems, key


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _owner(value: bytes) -> tuple[bytes, int]:
    header = unpack_header(value)
    return header[4], header[5]


def _damage(value: bytes) -> str:
    """Say why a stored record cannot be read, "" if it can."""
    if len(value) < BODY:
        return f"it has {len(value)} bytes, less than a header"
    if value[0] != FORMAT:
        return f"it has format {value[0]}, not {FORMAT}"
    if value[1] & ~FLAGS:
        return f"its flags are {value[1]:#010b}, and some of these bits mean nothing"
    if value[2] or value[3]:
        return "its reserved bytes are not 0"
    rest = DIGEST_SIZE + U64.size if value[1] & ARCHIVED else DIGEST_SIZE
    if value[1] & ABSENT and len(value) != BODY + rest:
        return "its body was archived or erased, but no digest stands in its place"
    if value[1] & ARCHIVED and not value[1] & ABSENT:
        return "its body is said to be here and in an archive"
    return ""
