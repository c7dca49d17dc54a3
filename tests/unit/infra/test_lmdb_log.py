"""What only the log on disk can do: shared commits, other processes, damage, and its proof."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import lmdb
import pytest
from other_process import OtherProcess, run

from tachograph.domain.errors import (
    StoreCorruptError,
    StoredNameError,
    StoreFormatError,
    StoreFullError,
    StoreNotFoundError,
    StoreReadOnlyError,
    VersionConflictError,
)
from tachograph.domain.records import GENESIS_DIGEST, Head, NewRecord, Problem
from tachograph.infra import layout, lmdb_mapping, lmdb_reading, lmdb_verify
from tachograph.infra.lmdb_environment import Environment, open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.lmdb_tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tachograph.infra.lmdb_environment import Database


MIB = 2**20
RECORDS, INDEX, TYPES, STREAMS = (
    b"events.records",
    b"events.index",
    b"events.types",
    b"events.streams",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def environment(folder: Path) -> Iterator[Environment]:
    environment = open_environment(folder, map_size=MIB)
    yield environment
    environment.close()


@pytest.fixture
def log(environment: Environment) -> LMDBLog:
    return LMDBLog(environment)


def new(stream: str, version: int, body: bytes = b"", topic: str = "run.created") -> NewRecord:
    return NewRecord(stream, version, topic, 0, body)


def fill(log: LMDBLog, count: int = 6) -> None:
    """Records of two streams in turn, with two types."""
    for number in range(1, count + 1):
        stream, version = ("a", "b")[number % 2], (number + 1) // 2
        log.append([new(stream, version, b"body %d" % number, f"topic-{number % 2}")])


def problems(log: LMDBLog, **options: object) -> list[tuple[str, int]]:
    return [(each.kind, each.position) for each in log.verify(**options)]  # type: ignore[arg-type]


def appending(log: LMDBLog, *records: NewRecord) -> Callable[[], object]:
    """Return a call that appends records."""
    return lambda: log.append(records)


class TestGroupCommit:
    def pile_up(
        self, environment: Environment, calls: list[Callable[[], object]]
    ) -> tuple[int, list[BaseException]]:
        """Let threads call while the write lock is held; return the commits they then needed."""
        errors: list[BaseException] = []

        def catch(call: Callable[[], object]) -> None:
            try:
                call()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=catch, args=(call,)) for call in calls]
        with environment.write():
            threads[0].start()
            while len(environment._gate._inside) < 2:  # until it waits for the write lock
                pass
            for thread in threads[1:]:
                thread.start()
            while len(environment.group._queue) < len(calls) - 1:
                pass
        before = environment.last_transaction()
        for thread in threads:
            thread.join()
        return environment.last_transaction() - before, errors

    def test_waiting_threads_share_a_commit(self, environment: Environment, log: LMDBLog) -> None:
        calls = [appending(log, new(f"s{n}", 1, topic=f"t{n}")) for n in range(9)]

        commits, errors = self.pile_up(environment, calls)

        assert (commits, errors) == (2, [])
        assert [record.position for record in log.read()] == list(range(1, 10))
        assert problems(log) == []

    def test_a_conflict_fails_only_its_own_request(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        log.append([new("a", 1)])
        calls = [
            appending(log, new("first", 1)),
            appending(log, new("x", 1, topic="x"), new("y", 1, topic="y")),
            appending(log, new("z", 1, topic="z"), new("a", 1)),
            appending(log, new("w", 1, topic="z")),
        ]

        commits, errors = self.pile_up(environment, calls)

        assert (commits, [type(error) for error in errors]) == (2, [VersionConflictError])
        assert sorted(str(record.stream) for record in log.read()) == ["a", "first", "w", "x", "y"]
        assert problems(log) == []

    def test_two_writers_of_a_version_in_one_commit_conflict(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        """The second must see what the first has written, though it is not committed yet."""
        calls = [appending(log, new("first", 1))]
        calls += [appending(log, new("a", 1)) for _ in range(3)]

        commits, errors = self.pile_up(environment, calls)

        assert (commits, [type(each) for each in errors]) == (2, [VersionConflictError] * 2)
        assert log.stream_version("a") == 1

    def test_two_logs_of_one_environment_share_commits(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        same, other = LMDBLog(environment), LMDBLog(environment, "other")
        calls = [
            appending(each, new(f"s{n}", 1, topic=f"t{n % 3}"))
            for n, each in enumerate([log, log, same, other, same, log, other])
        ]

        commits, errors = self.pile_up(environment, calls)

        assert (commits, errors) == (2, [])
        assert (log.head().position, other.head().position) == (5, 2)
        assert problems(log) == problems(other) == []
        assert log.read() == same.read()

    def test_a_map_that_grows_within_a_commit_writes_everything_once(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        calls = [appending(log, new(f"s{n}", 1, b"x" * 400_000, f"t{n}")) for n in range(8)]

        commits, errors = self.pile_up(environment, calls)

        assert (commits, errors) == (2, [])
        assert environment.map_size > 3 * MIB
        assert sorted(str(record.stream) for record in log.read()) == [f"s{n}" for n in range(8)]
        assert problems(log) == []

    def test_what_a_failed_commit_was_to_write_is_forgotten(
        self, environment: Environment, log: LMDBLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Caches of types and streams know only what was committed."""
        monkeypatch.setattr(lmdb_mapping, "MAX_MAP_SIZE", MIB)
        with pytest.raises(StoreFullError):
            log.append([new("s", 1, b"x" * 2 * MIB, "t")])

        assert log.append([new("s", 1, b"small", "t")]) == [1]
        fresh = LMDBLog(environment)
        assert [(each.stream, each.topic) for each in fresh.read()] == [("s", "t")]
        assert problems(fresh) == []


class TestOtherProcesses:
    SCRIPT = """
log = LMDBLog(open_environment(folder))
while (line := hear()):
    stream, version, topic = line.split()
    say(*log.append([new(stream, int(version), b"", topic)]))
"""

    def test_processes_that_write_in_turn_continue_one_chain(
        self, folder: Path, log: LMDBLog
    ) -> None:
        """What one has cached, the other may have outdated."""
        with OtherProcess(self.SCRIPT, folder) as other:
            assert log.append([new("a", 1, topic="t1")]) == [1]
            assert other.ask("b 1 t2") == "2"
            assert log.append([new("b", 2, topic="t2"), new("c", 1, topic="t3")]) == [3, 4]
            assert other.ask("c 2 t3") == "5"
            assert other.ask("d 1 t4") == "6"
            assert log.append([new("d", 2, topic="t4")]) == [7]

        assert [each.topic for each in log.read()] == ["t1", "t2", "t2", "t3", "t3", "t4", "t4"]
        assert problems(log, contiguous=True) == []

    def test_a_conflict_with_another_process_is_seen(self, folder: Path, log: LMDBLog) -> None:
        with OtherProcess(self.SCRIPT, folder) as other:
            log.append([new("a", 1)])
            other.ask("a 2 t")

            with pytest.raises(VersionConflictError):
                log.append([new("a", 2)])

    def test_a_poller_sees_the_writes_of_another_process(self, folder: Path, log: LMDBLog) -> None:
        with OtherProcess(self.SCRIPT, folder) as other:
            before = log.last_transaction()
            other.ask("a 1 t")

            assert log.last_transaction() > before

    def test_writers_of_two_processes_at_once_lose_nothing(
        self, folder: Path, log: LMDBLog
    ) -> None:
        script = """
log = LMDBLog(open_environment(folder))
say("ready"); hear()
for version in range(1, 101):
    log.append([new(f"p{os.getpid()}", version, b"x" * 2000)])
say("done")
"""
        with OtherProcess(script, folder) as one, OtherProcess(script, folder) as two:
            assert (one.hear(), two.hear()) == ("ready", "ready")
            one.say("go")
            two.say("go")
            assert (one.hear(), two.hear()) == ("done", "done")

        assert log.head().position == 200
        assert problems(log, contiguous=True) == []

    def test_a_reader_of_an_unwritten_store_is_empty(self, folder: Path) -> None:
        open_environment(folder).close()
        environment = open_environment(folder, readonly=True)
        log = LMDBLog(environment)

        assert (log.read(), log.read_stream("a"), log.head()) == ([], [], Head(0, GENESIS_DIGEST))
        assert (log.stream_version("a"), log.snapshot("a"), log.max_tracking("a")) == (
            0,
            None,
            None,
        )
        assert problems(log) == []
        assert problems(log, expected_head=Head(3, b"x" * 32)) == [("cut-off", 0)]
        with pytest.raises(StoreNotFoundError):
            log.append([new("a", 1)])
        with pytest.raises(StoreReadOnlyError):
            log.create()
        environment.close()

    def test_a_reader_of_a_written_store_may_not_append(self, folder: Path, log: LMDBLog) -> None:
        script = """
log = LMDBLog(open_environment(folder, readonly=True))
say(len(log.read()))
try:
    log.append([new("b", 1)])
except StoreReadOnlyError as error:
    say(type(error).__name__)
"""
        log.append([new("a", 1)])

        assert run(script, folder) == "1\nStoreReadOnlyError"

    def test_a_log_is_not_made_unless_wanted(self, environment: Environment) -> None:
        log = LMDBLog(environment, "other", create=False)
        with pytest.raises(StoreNotFoundError, match="other"):
            log.append([new("a", 1)])

        log.create()

        assert log.append([new("a", 1)]) == [1]


class TestReading:
    def test_scans_go_through_the_log_in_windows(
        self, log: LMDBLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lmdb_reading, "WINDOW", 4)
        log.append([new("a", number, topic=f"t{number % 10}") for number in range(1, 41)])

        def found(**options: object) -> list[int]:
            return [each.position for each in log.read(topics=["t3"], **options)]  # type: ignore[arg-type]

        assert found() == [3, 13, 23, 33]
        assert found(limit=2) == [3, 13]
        assert found(after=3, up_to=32) == [13, 23]
        assert found(reverse=True) == [33, 23, 13, 3]
        assert found(reverse=True, limit=1) == [33]
        assert found(reverse=True, after=13, up_to=33) == [33, 23]
        assert found(reverse=True, after=33) == []

    def test_an_erased_body_reads_as_absent(self, environment: Environment, log: LMDBLog) -> None:
        fill(log)
        digests = [record.digest for record in log.read()]
        erase(environment, 3)

        third = log.read()[2]

        assert (third.absent, third.body) == (True, b"")
        assert [record.digest for record in log.read()] == digests
        assert log.read_stream("b", after=1, limit=1)[0].digest == digests[2]
        assert problems(log) == []

    def test_a_newer_format_is_refused(self, environment: Environment, log: LMDBLog) -> None:
        fill(log)
        change(environment, 2, lambda value: b"\x02" + value[1:])

        with pytest.raises(StoreFormatError) as caught:
            log.read()

        assert caught.value.args[1:] == (2, 1)

    @pytest.mark.parametrize("damage", [lambda value: b"\0" + value[1:], lambda value: value[:50]])
    def test_a_damaged_record_is_refused(
        self, environment: Environment, log: LMDBLog, damage: Callable[[bytes], bytes]
    ) -> None:
        fill(log)
        change(environment, 2, damage)

        with pytest.raises(StoreCorruptError):
            log.read()

    def test_a_type_without_a_name_is_refused(self, environment: Environment, log: LMDBLog) -> None:
        fill(log)
        delete(environment, TYPES, layout.U32.pack(2))

        with pytest.raises(StoreCorruptError, match="event type 2 has no name"):
            LMDBLog(environment).read()

    def test_a_stream_without_a_name_is_refused(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        fill(log)
        delete(environment, STREAMS, layout.name_key("a"))

        with pytest.raises(StoreCorruptError, match="has no name"):
            LMDBLog(environment).read()

    def test_a_lost_record_of_a_stream_is_not_passed_over(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        fill(log)
        delete(environment, RECORDS, layout.pack_position(3))

        with pytest.raises(StoreCorruptError, match="lost"):
            log.read_stream("b")

    def test_many_streams_do_not_fill_the_memory(
        self, environment: Environment, log: LMDBLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tachograph.infra.lmdb_tables.MAX_STREAMS", 10)
        for number in range(60):
            log.append([new(f"s{number}", 1)])

        assert len(log._tables.known_streams) <= 11
        assert [each.stream for each in log.read()] == [f"s{number}" for number in range(60)]


class TestNames:
    def test_another_text_with_the_same_key_is_refused(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        put(environment, STREAMS, layout.name_key("a"), b"somebody else")

        with pytest.raises(StoredNameError, match="somebody else"):
            log.append([new("a", 1)])

        assert log.read() == []

    def test_another_log_with_the_same_key_is_refused(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        other = layout.pack_position(1) + b"somebody else"
        put(environment, b"events.tracking", layout.name_key("up"), other)

        with pytest.raises(StoredNameError, match="somebody else"):
            log.append([], tracking=("up", 5))
        with pytest.raises(StoredNameError, match="somebody else"):
            log.max_tracking("up")

    def test_a_type_is_numbered_once(self, environment: Environment, log: LMDBLog) -> None:
        log.append([new("a", 1, topic="x"), new("a", 2, topic="y"), new("a", 3, topic="x")])
        LMDBLog(environment).append([new("a", 4, topic="y"), new("a", 5, topic="z")])

        with environment.read() as txn:
            rows = [
                (int.from_bytes(k, "big"), v) for k, v in txn.cursor(environment.databases[TYPES])
            ]

        assert rows == [(1, b"x"), (2, b"y"), (3, b"z")]


# Damage, done behind the back of the log.


def put(environment: Environment, database: bytes, key: bytes, value: bytes) -> None:
    environment.update(lambda txn: txn.put(key, value, db=environment.databases[database]))


def delete(environment: Environment, database: bytes, key: bytes) -> None:
    environment.update(lambda txn: txn.delete(key, db=environment.databases[database]))


def stored(environment: Environment, position: int) -> bytes:
    with environment.read() as txn:
        value = txn.get(layout.pack_position(position), db=environment.databases[RECORDS])
    assert value is not None
    return value


def change(environment: Environment, position: int, damage: Callable[[bytes], bytes]) -> None:
    value = damage(stored(environment, position))
    put(environment, RECORDS, layout.pack_position(position), value)


def erase(environment: Environment, position: int) -> None:
    """Put the digest of a body in its place, as archiving does."""

    def damage(value: bytes) -> bytes:
        flags = value[1] | layout.ABSENT
        digest = layout.digest_body(value[layout.BODY :])
        return value[:1] + bytes([flags]) + value[2 : layout.BODY] + digest

    change(environment, position, damage)


def entry(stream: str, version: int) -> bytes:
    return layout.pack_version_key(layout.name_key(stream), version)


class TestVerify:
    """G4. Stream `b` has records 1, 3, 5 and stream `a` 2, 4, 6."""

    @pytest.fixture(autouse=True)
    def _filled(self, log: LMDBLog) -> None:
        fill(log)

    @pytest.mark.parametrize("position", range(1, 7))
    @pytest.mark.parametrize("part", ["body", "version-byte", "time-byte", "stream"])
    def test_a_change_of_any_record_is_found(
        self, environment: Environment, log: LMDBLog, position: int, part: str
    ) -> None:
        at = {"body": 75, "version-byte": 31, "time-byte": 39, "stream": 9}[part]
        change(environment, position, lambda v: v[:at] + bytes([v[at] ^ 1]) + v[at + 1 :])

        assert ("changed", position) in problems(log)

    def test_a_changed_type_is_found(self, environment: Environment, log: LMDBLog) -> None:
        change(environment, 3, lambda v: v[:4] + layout.U32.pack(2) + v[8:])

        assert problems(log) == [("changed", 3)]

    def test_an_unknown_type_is_found(self, environment: Environment, log: LMDBLog) -> None:
        change(environment, 3, lambda v: v[:4] + layout.U32.pack(9) + v[8:])

        assert problems(log) == [("type", 3)]

    def test_a_renamed_type_is_found(self, environment: Environment, log: LMDBLog) -> None:
        put(environment, TYPES, layout.U32.pack(1), b"topic-x")

        assert problems(LMDBLog(environment)) == [("changed", 1), ("changed", 3), ("changed", 5)]

    def test_a_lost_type_is_found(self, environment: Environment, log: LMDBLog) -> None:
        delete(environment, TYPES, layout.U32.pack(1))

        assert problems(LMDBLog(environment)) == [
            ("type", 1),
            ("type", 3),
            ("type", 5),
            ("type", 0),
        ]

    def test_a_changed_link_is_found(self, environment: Environment, log: LMDBLog) -> None:
        change(environment, 4, lambda v: v[:40] + b"x" * 32 + v[72:])

        assert problems(log) == [("changed", 3), ("changed", 4)]

    def test_missing_records_are_found(self, environment: Environment, log: LMDBLog) -> None:
        for position in (2, 3):
            delete(environment, RECORDS, layout.pack_position(position))

        assert set(problems(log)) == {("count", 6), ("missing", 2), ("index", 2), ("index", 3)}

    def test_swapped_records_are_found(self, environment: Environment, log: LMDBLog) -> None:
        second, fourth = stored(environment, 2), stored(environment, 4)
        put(environment, RECORDS, layout.pack_position(2), fourth)
        put(environment, RECORDS, layout.pack_position(4), second)

        found = problems(log)

        assert {("moved", 2), ("moved", 4), ("changed", 1), ("changed", 2)} <= set(found)

    def test_an_added_record_is_found(self, environment: Environment, log: LMDBLog) -> None:
        """One that continues the chain as it should, but never went through the index."""
        head = log.head()
        packed = layout.Packed(new("a", 4, b"forged"))
        header = layout.pack_header(1, layout.TEXT, 0, 1, packed.key, 4, 0, head.digest)
        put(environment, RECORDS, layout.pack_position(7), header + b"forged")

        assert problems(log) == [("added", 7), ("count", 7), ("added", 7)]

    def test_a_lost_index_entry_is_found(self, environment: Environment, log: LMDBLog) -> None:
        delete(environment, INDEX, entry("a", 2))

        assert problems(log) == [("count", 6), ("added", 4)]

    def test_an_index_entry_without_a_record_is_found(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        put(environment, INDEX, entry("a", 9), layout.pack_position(9))
        put(environment, INDEX, entry("a", 8), layout.pack_position(2))

        assert set(problems(log)) == {("count", 6), ("index", 9), ("index", 2)}

    def test_an_index_entry_of_the_wrong_record_is_found(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        put(environment, INDEX, entry("a", 2), layout.pack_position(6))

        assert set(problems(log)) == {("moved", 4), ("index", 6)}

    @pytest.mark.parametrize("erased", [b"", b"x" * 31, b"x" * 33])
    def test_an_erased_body_needs_its_digest(
        self, environment: Environment, log: LMDBLog, erased: bytes
    ) -> None:
        change(environment, 3, lambda v: v[:1] + b"\x03" + v[2:72] + erased)

        assert ("unreadable", 3) in problems(log)

    def test_a_wrong_digest_of_an_erased_body_is_found(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        erase(environment, 3)
        change(environment, 3, lambda v: v[:72] + b"x" * 32)

        assert problems(log) == [("changed", 3)]

    @pytest.mark.parametrize("damage", [lambda v: v[:71], lambda v: b"\x07" + v[1:], lambda v: b""])
    def test_an_unreadable_record_is_found(
        self, environment: Environment, log: LMDBLog, damage: Callable[[bytes], bytes]
    ) -> None:
        change(environment, 3, damage)

        assert problems(log) == [("unreadable", 3)]

    def test_a_lost_stream_name_is_found(self, environment: Environment, log: LMDBLog) -> None:
        delete(environment, STREAMS, layout.name_key("a"))

        assert problems(log) == [("stream", 2), ("stream", 4), ("stream", 6)]

    def test_a_changed_stream_name_is_found(self, environment: Environment, log: LMDBLog) -> None:
        put(environment, STREAMS, layout.name_key("a"), b"A")

        assert problems(log) == [("stream", 2), ("stream", 4), ("stream", 6)]

    def test_a_text_that_is_said_to_be_a_uuid_is_found(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        change(environment, 3, lambda v: v[:1] + b"\0" + v[2:])

        assert problems(log) == [("stream", 3)]

    @pytest.mark.parametrize("count", [1, 3, 6])
    def test_a_cut_off_tail_is_found_by_what_it_left(
        self, environment: Environment, log: LMDBLog, count: int
    ) -> None:
        self.cut_off(environment, count)

        assert problems(log)[0] == ("cut-off", 6 - count)

    def test_a_cut_off_tail_is_found_by_an_anchor(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        """Whoever also adapts the head leaves no trace in the store itself."""
        anchor = log.head()
        previous = log.read(up_to=4)[-1].digest
        self.cut_off(environment, 2)
        environment.update(lambda txn: txn.put(b"events.head", layout.pack_head(4, previous)))

        assert problems(log) == []
        assert problems(log, expected_head=anchor) == [("cut-off", 4)]

    def test_a_rewritten_history_is_found_by_an_anchor(
        self, environment: Environment, log: LMDBLog, tmp_path: Path
    ) -> None:
        anchor = log.head()
        forged_environment = open_environment(tmp_path / "forged")
        forged = LMDBLog(forged_environment)
        for record in log.read():
            body = b"forged" if record.position == 4 else record.body
            forged.append(
                [NewRecord(record.stream, record.version, record.topic, record.time_us, body)]
            )

        assert problems(forged) == []
        assert problems(forged, expected_head=anchor) == [("anchor", 6)]
        forged_environment.close()

    def test_a_log_without_its_head_takes_no_more_records(
        self, environment: Environment, log: LMDBLog
    ) -> None:
        self.cut_off(environment, 1)

        with pytest.raises(StoreCorruptError, match="ends at record 5, its head is 6"):
            log.append([new("c", 1)])
        with pytest.raises(StoreCorruptError):
            log.head()

    @pytest.mark.parametrize("head", [b"", b"short"])
    def test_a_damaged_head_is_found(
        self, environment: Environment, log: LMDBLog, head: bytes
    ) -> None:
        environment.update(lambda txn: txn.put(b"events.head", head))

        assert problems(log) == [("added", 6)]
        with pytest.raises(StoreCorruptError):
            log.append([new("c", 1)])

    def test_everything_is_found_in_one_go(self, environment: Environment, log: LMDBLog) -> None:
        change(environment, 1, lambda v: v[:-1] + b"!")
        delete(environment, RECORDS, layout.pack_position(3))
        delete(environment, INDEX, entry("a", 2))
        change(environment, 5, lambda v: v[:50])

        assert {kind for kind, _ in problems(log)} == {
            "changed",
            "missing",
            "added",
            "unreadable",
            "count",
            "index",
        }

    @pytest.mark.parametrize(
        "key", [b"\0" * 9, b"\0" * 7 + b"\3\0", b"\0", b"\0" * 6 + b"\1", b"\xff" * 30, b"\xff"]
    )
    def test_a_key_that_is_no_position_is_found(
        self, environment: Environment, log: LMDBLog, key: bytes
    ) -> None:
        put(environment, RECORDS, key, stored(environment, 3))

        found = [kind for kind, _ in problems(log)]

        assert "count" in found
        assert "unreadable" in found

    def test_pages_that_only_liblmdb_finds_damaged_are_reported(
        self, log: LMDBLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = layout.digest_record

        def damaged(previous: bytes, position: int, *rest: Any) -> bytes:
            if position == 3:
                raise lmdb.CorruptedError("mdb_get")
            return real(previous, position, *rest)

        monkeypatch.setattr(lmdb_verify, "digest_record", damaged)

        assert problems(log) == [("unreadable", 3)]

    @pytest.mark.parametrize("database", ["records", "index", "types"])
    def test_a_database_that_cannot_be_read_is_reported(
        self, log: LMDBLog, environment: Environment, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        delete(environment, INDEX, entry("a", 2))  # so that the index is looked at
        wanted = f"events.{database}".encode()
        real = Tables.__getitem__

        def damaged(tables: Tables, name: bytes) -> Database:
            caller = sys._getframe(1).f_code.co_name
            if name == wanted and caller in ("_read_end", "_check_types", "_check_entries"):
                raise lmdb.CorruptedError("mdb_cursor_get")
            return real(tables, name)

        monkeypatch.setattr(Tables, "__getitem__", damaged)

        assert ("unreadable", 0) in problems(log)

    def test_a_long_log_is_checked_in_parts(
        self, environment: Environment, log: LMDBLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lmdb_verify, "CHUNK", 2)
        delete(environment, INDEX, entry("b", 2))
        put(environment, INDEX, entry("z", 1), layout.pack_position(99))
        seen: list[tuple[int, int]] = []

        found = [each.kind for each in log.verify(lambda *done: seen.append(done))]

        assert found == ["added", "index"]
        assert seen == [(2, 6), (4, 6), (6, 6)]

    def test_records_appended_meanwhile_do_no_harm(
        self, log: LMDBLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lmdb_verify, "CHUNK", 2)

        def append(*_: int) -> None:
            log.append([new(str(uuid4()), 1)])

        assert list(log.verify(append)) == []
        assert log.head().position == 9

    @staticmethod
    def cut_off(environment: Environment, count: int) -> None:
        for position in range(6, 6 - count, -1):
            value = stored(environment, position)
            header = layout.unpack_header(value)
            delete(environment, RECORDS, layout.pack_position(position))
            delete(environment, INDEX, layout.pack_version_key(header[4], header[5]))


def test_flipped_bits_are_found_and_do_not_kill_the_process(folder: Path) -> None:
    """Liblmdb ends the process when it meets some damaged pages: they are checked without it."""
    script = """
import random, shutil
from tachograph.infra.lmdb_verify import check_file
log = LMDBLog(environment := open_environment(folder))
for number in range(60):
    log.append([new(f"s{number % 7}", number, os.urandom(number * 40), f"t{number % 5}")])
head, records = log.head(), log.read()
streams = [log.read_stream(f"s{number}", after=None) for number in range(7)]
environment.close()
whole = open(f"{folder}/data.mdb", "rb").read()
found = wrong = 0
for seed in range(150):
    dice = random.Random(seed)
    damaged = bytearray(whole)
    place = dice.randrange(len(whole))
    if seed % 2:
        place -= place % 4096 - dice.randrange(64)  # headers of pages
    damaged[place] ^= 1 << dice.randrange(8)
    copy = f"{folder}-{seed}"
    os.mkdir(copy)
    open(f"{copy}/data.mdb", "wb").write(damaged)
    problems = check_file(copy)
    if not problems:
        try:
            environment = open_environment(copy)
            log = LMDBLog(environment)
            problems = list(log.verify(expected_head=head))
            if not problems:
                wrong += log.read() != records
                wrong += [log.read_stream(f"s{n}", after=None) for n in range(7)] != streams
            log.read()
            log.append([new("s1", 1000)])
        except StoreError as error:
            problems.append(error)
        environment.close()
    found += bool(problems)
    shutil.rmtree(copy)
say(found > 50, wrong)
"""

    assert run(script, folder) == "True 0"


def test_damaged_pages_are_reported_and_end_the_check(
    environment: Environment, log: LMDBLog, folder: Path
) -> None:
    fill(log, 60)
    data = folder / "data.mdb"
    with data.open("r+b") as file:
        for place in range(2 * 4096, data.stat().st_size, 4096):
            file.seek(place)
            file.write(b"\xff" * 16)

    kinds = [kind for kind, _ in problems(log)]

    assert kinds[-1] == "unchecked"
    assert set(kinds[:-1]) == {"page"}


def test_a_file_that_is_none_of_ours_is_reported(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(os.urandom(10_000))

    assert [each.kind for each in lmdb_verify.check_file(str(tmp_path))] == ["page"]


def test_pages_of_a_busy_store_are_checked_with_its_writers_waiting(
    environment: Environment, log: LMDBLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is written while it is read looks damaged."""
    fill(log)
    found = [[Problem("page", 0, "torn")]] * lmdb_verify.ATTEMPTS + [[]]
    seen: list[int] = []

    def check(_: str) -> list[Problem]:
        seen.append(environment._writer)
        if not environment._writer:
            log.append([new(str(uuid4()), 1)])
        return found.pop(0)

    monkeypatch.setattr(lmdb_verify, "check_file", check)

    assert lmdb_verify.check_pages(environment) == []
    assert [bool(writer) for writer in seen] == [False] * lmdb_verify.ATTEMPTS + [True]


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("cannot mount a small file system here")
    try:
        (disk / "ballast").write_bytes(b"x" * MIB)
        environment = open_environment(disk / "log")
        log = LMDBLog(environment)
        acknowledged = 0
        with pytest.raises(StoreFullError):
            while True:
                log.append([new("a", acknowledged + 1, b"x" * 10_000)])
                acknowledged += 1

        assert log.stream_version("a") == acknowledged > 50
        (disk / "ballast").unlink()
        log.append([new("a", acknowledged + 1, b"x" * 10_000)])
        assert problems(log, contiguous=True) == []
        environment.close()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize(
    "module",
    [
        "layout", "locks", "filesystems", "gate", "group_commit", "lmdb_append", "lmdb_blocks",
        "lmdb_environment", "lmdb_errors", "lmdb_files", "lmdb_log", "lmdb_mapping", "lmdb_pages",
        "lmdb_reading", "lmdb_tables", "lmdb_tracking", "lmdb_verify",
    ],
)  # fmt: skip
def test_a_light_module_imports_nothing_heavy(module: str) -> None:
    """Short commands are called in loops."""
    import tachograph

    paths = [str(Path(str(each.__file__)).parent.parent) for each in (tachograph, lmdb)]
    code = (
        f"import sys; sys.path += {paths!r}; before = set(sys.modules)\n"
        f"import tachograph.infra.{module}\n"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )

    allowed = {
        "__future__", "_blake2", "_operator", "_struct", "errno", "fcntl", "genericpath",
        "itertools", "lmdb", "os", "posixpath", "stat", "struct", "tachograph", "time",
        "_collections_abc", "_stat", "datetime", "_datetime", "math", "operator",
    }  # fmt: skip
    assert set(done.stdout.split()) - allowed == set()
