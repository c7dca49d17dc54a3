"""What every event log promises, on LMDB and in memory."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from tachograph.domain.errors import (
    RecordOutOfRangeError,
    TrackingConflictError,
    VersionConflictError,
)
from tachograph.domain.records import (
    GENESIS_DIGEST,
    Head,
    NewRecord,
    Problem,
    Record,
    SnapshotRecord,
)
from tachograph.infra.layout import MAX_BODY, MAX_VERSION, digest_record, stream_key, with_length
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.memory_log import MemoryLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Log = LMDBLog | MemoryLog

UUID_STREAM = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")


@pytest.fixture(params=["lmdb", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """An empty log of each kind."""
    if request.param == "memory":
        yield MemoryLog()
        return
    environment = open_environment(tmp_path / "log")
    yield LMDBLog(environment)
    environment.close()


def new(
    stream: str | UUID, version: int, topic: str = "run.created", body: bytes = b""
) -> NewRecord:
    return NewRecord(stream, version, topic, 1_000_000, body)


def fill(log: Log) -> None:
    """Six records of two streams, interleaved."""
    log.append([new("a", 1, "run.created", b"one")])
    log.append([new("b", 1, "run.created", b"two"), new("a", 2, "run.batch-completed", b"three")])
    log.append([new("a", 3, "run.batch-completed", b"four")])
    log.append([new("b", 2, "run.finished", b"five"), new("a", 4, "run.finished", b"six")])


def positions(records: list[Record]) -> list[int]:
    return [record.position for record in records]


class TestAppend:
    def test_positions_are_numbered_from_one_without_gaps(self, log: Log) -> None:
        """G3."""
        given = [log.append([new("a", 1)]), log.append([new("b", 1), new("a", 2)])]

        assert given == [[1], [2, 3]]

    def test_a_record_comes_back_as_it_was_given(self, log: Log) -> None:
        log.append([NewRecord("a", 1, "run.created", -5, b"\x00body")])

        (record,) = log.read()

        assert (record.position, record.stream, record.version) == (1, "a", 1)
        assert (record.topic, record.time_us, record.body) == ("run.created", -5, b"\x00body")
        assert not record.absent

    def test_nothing_is_appended_by_no_records(self, log: Log) -> None:
        assert log.append([]) == []
        assert log.head() == Head(0, GENESIS_DIGEST)

    def test_a_version_is_recorded_once(self, log: Log) -> None:
        log.append([new("a", 1), new("a", 2)])

        with pytest.raises(VersionConflictError) as caught:
            log.append([new("a", 2)])

        assert caught.value.args == ("a", 2, 2)

    def test_all_records_of_a_call_are_written_or_none(self, log: Log) -> None:
        """G2."""
        log.append([new("a", 1)])

        with pytest.raises(VersionConflictError):
            log.append([new("b", 1), new("a", 1)], tracking=("up", 7))

        assert positions(log.read()) == [1]
        assert log.stream_version("b") == 0
        assert log.max_tracking("up") is None

    def test_a_version_twice_in_one_call_is_a_conflict(self, log: Log) -> None:
        with pytest.raises(VersionConflictError):
            log.append([new("a", 1), new("b", 1), new("a", 1)])

        assert log.read() == []

    def test_a_topic_that_failed_to_be_written_is_written_later(self, log: Log) -> None:
        """What a refused call was to intern is not remembered."""
        log.append([new("a", 1)])
        with pytest.raises(VersionConflictError):
            log.append([new("z", 1, "new.topic"), new("a", 1)])

        log.append([new("z", 1, "new.topic")])

        assert [record.topic for record in log.read(after=1)] == ["new.topic"]

    @pytest.mark.parametrize("version", [-1, MAX_VERSION + 1, 2**64, True, 1.5, "1"])
    def test_a_version_out_of_range_is_refused(self, log: Log, version: int) -> None:
        with pytest.raises(RecordOutOfRangeError, match="version"):
            log.append([NewRecord("a", version, "t", 0, b"")])

    @pytest.mark.parametrize("time_us", [-(2**63) - 1, 2**63])
    def test_a_time_out_of_range_is_refused(self, log: Log, time_us: int) -> None:
        with pytest.raises(RecordOutOfRangeError, match="time"):
            log.append([NewRecord("a", 1, "t", time_us, b"")])

    def test_a_topic_that_is_too_long_is_refused(self, log: Log) -> None:
        with pytest.raises(RecordOutOfRangeError, match="topic"):
            log.append([new("a", 1, "t" * 65_536)])

    def test_a_body_that_is_too_long_is_refused(self, log: Log) -> None:
        class Long(bytes):
            def __len__(self) -> int:
                return MAX_BODY + 1

        with pytest.raises(RecordOutOfRangeError, match="body"):
            log.append([NewRecord("a", 1, "t", 0, Long())])

    def test_the_highest_version_has_a_place(self, log: Log) -> None:
        log.append([new("a", MAX_VERSION)])

        assert log.stream_version("a") == MAX_VERSION
        assert [record.version for record in log.read_stream("a")] == [MAX_VERSION]

    def test_one_of_many_racing_writers_of_a_version_wins(self, log: Log) -> None:
        start = threading.Barrier(8)

        def write(number: int) -> int:
            start.wait()
            try:
                log.append([new("a", 1, body=b"%d" % number), new(f"own-{number}", 1)])
            except VersionConflictError:
                return 0
            return 1

        with ThreadPoolExecutor(8) as pool:
            won = sum(pool.map(write, range(8)))

        assert won == 1
        assert positions(log.read()) == [1, 2]


class TestStreams:
    @pytest.mark.parametrize(
        "stream",
        ["run-1", "", "ü/€/🐢", "x" * 5000, "lone \udc80 surrogate", "\0", UUID_STREAM],
        ids=["plain", "empty", "unicode", "long", "surrogate", "nul", "uuid"],
    )
    def test_any_id_comes_back_as_it_was_given(self, log: Log, stream: str | UUID) -> None:
        log.append([new(stream, 1)])

        assert [record.stream for record in log.read()] == [stream]
        assert [record.stream for record in log.read_stream(stream)] == [stream]
        assert log.stream_version(stream) == 1

    def test_a_uuid_and_its_text_are_two_streams(self, log: Log) -> None:
        log.append([new(UUID_STREAM, 1), new(str(UUID_STREAM), 1)])

        assert positions(log.read_stream(UUID_STREAM)) == [1]
        assert positions(log.read_stream(str(UUID_STREAM))) == [2]

    def test_an_unknown_stream_is_empty(self, log: Log) -> None:
        fill(log)

        assert log.read_stream("c") == []
        assert log.stream_version("c") == 0

    @pytest.mark.parametrize(
        ("options", "versions"),
        [
            ({}, [1, 2, 3, 4]),
            ({"after": 2}, [3, 4]),
            ({"up_to": 2}, [1, 2]),
            ({"after": 1, "up_to": 3}, [2, 3]),
            ({"limit": 2}, [1, 2]),
            ({"limit": 0}, []),
            ({"reverse": True}, [4, 3, 2, 1]),
            ({"reverse": True, "limit": 1}, [4]),
            ({"reverse": True, "up_to": 3, "limit": 2}, [3, 2]),
            ({"reverse": True, "after": 3}, [4]),
            ({"after": 4}, []),
            ({"up_to": 0}, []),
        ],
    )
    def test_a_part_of_a_stream(
        self, log: Log, options: dict[str, int], versions: list[int]
    ) -> None:
        fill(log)

        found = log.read_stream("a", **options)  # type: ignore[arg-type]

        assert [record.version for record in found] == versions

    def test_version_zero_is_read_only_from_the_very_start(self, log: Log) -> None:
        """Other applications count from 0."""
        log.append([new("a", 0), new("a", 1)])

        assert [record.version for record in log.read_stream("a")] == [1]
        assert [record.version for record in log.read_stream("a", after=None)] == [0, 1]

    def test_versions_may_have_gaps(self, log: Log) -> None:
        log.append([new("a", 5), new("a", 2)])

        assert [record.version for record in log.read_stream("a")] == [2, 5]


class TestRead:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, [1, 2, 3, 4, 5, 6]),
            ({"after": 4}, [5, 6]),
            ({"up_to": 2}, [1, 2]),
            ({"after": 1, "up_to": 4}, [2, 3, 4]),
            ({"limit": 3}, [1, 2, 3]),
            ({"limit": 0}, []),
            ({"limit": None}, [1, 2, 3, 4, 5, 6]),
            ({"reverse": True, "limit": 2}, [6, 5]),
            ({"reverse": True, "up_to": 3}, [3, 2, 1]),
            ({"reverse": True, "after": 4}, [6, 5]),
            ({"reverse": True, "up_to": 100, "limit": 1}, [6]),
            ({"after": 6}, []),
            ({"after": 100}, []),
            ({"topics": ["run.created"]}, [1, 2]),
            ({"topics": ["run.created", "run.finished"]}, [1, 2, 5, 6]),
            ({"topics": ["run.created", "run.finished"], "limit": 3}, [1, 2, 5]),
            ({"topics": ["run.finished"], "reverse": True}, [6, 5]),
            ({"topics": ["run.created"], "reverse": True, "limit": 1}, [2]),
            ({"topics": ["run.batch-completed"], "after": 3}, [4]),
            ({"topics": ["run.batch-completed"], "up_to": 3}, [3]),
            ({"topics": ["run.finished"], "up_to": 5, "reverse": True}, [5]),
            ({"topics": ["run.created"], "after": 1, "reverse": True}, [2]),
            ({"topics": ["run.finished"], "after": 6, "reverse": True}, []),
            ({"topics": ["run.finished"], "after": 99, "reverse": True}, []),
            ({"topics": ["run.finished"], "after": 99}, []),
            ({"topics": ["unknown"]}, []),
            ({"topics": ["unknown", "run.created"]}, [1, 2]),
        ],
    )
    def test_a_part_of_the_log(
        self, log: Log, options: dict[str, int], expected: list[int]
    ) -> None:
        fill(log)

        assert positions(log.read(**options)) == expected  # type: ignore[arg-type]

    def test_an_empty_log(self, log: Log) -> None:
        assert log.read() == []
        assert log.read(reverse=True) == []
        assert log.read(topics=["run.created"]) == []
        assert log.read(topics=["run.created"], reverse=True) == []

    def test_bodies_are_bytes(self, log: Log) -> None:
        """Not memoryviews, which would die with their transaction."""
        fill(log)

        found = log.read() + log.read(topics=["run.created"]) + log.read_stream("a")

        assert {type(record.body) for record in found} == {bytes}
        assert {type(record.digest) for record in found} == {bytes}


class TestDigests:
    def test_each_digest_covers_the_record_and_the_one_before(self, log: Log) -> None:
        """G4. The layout is a promise: this test does not use `Packed`."""
        from hashlib import blake2b

        fill(log)

        previous = GENESIS_DIGEST
        for record in log.read():
            body = blake2b(record.body, digest_size=32).digest()
            topic = with_length(record.topic.encode())
            key = stream_key(record.stream)[0]
            expected = digest_record(
                previous, record.position, key, record.version, record.time_us, topic, body
            )

            assert (record.previous_digest, record.digest) == (previous, expected)
            previous = expected
        assert log.head() == Head(6, previous)

    def test_the_digest_of_a_record_is_the_same_however_it_is_read(self, log: Log) -> None:
        fill(log)
        digests = {record.position: record.digest for record in log.read()}

        others = [
            *log.read(reverse=True),
            *log.read(limit=2),
            *log.read(topics=["run.created"]),
            *log.read_stream("a"),
            *log.read_stream("b", reverse=True),
        ]

        assert all(record.digest == digests[record.position] for record in others)

    def test_the_same_records_have_the_same_head_in_every_kind_of_log(self, log: Log) -> None:
        fill(log)
        other = MemoryLog()
        other.append([new("unrelated", 1, "z"), new("unrelated", 2, "y")])
        fill(copy := MemoryLog())

        assert log.head() == copy.head()
        assert log.head() != other.head()


class TestSnapshots:
    def test_the_latest_snapshot_is_returned(self, log: Log) -> None:
        log.append([new("a", 1)], snapshot=SnapshotRecord("a", 1, b"first"))
        log.append([], snapshot=SnapshotRecord("a", 300, b"second"))

        assert log.snapshot("a") == SnapshotRecord("a", 300, b"second")
        assert log.snapshot("a", up_to=300) == SnapshotRecord("a", 300, b"second")
        assert log.snapshot("a", up_to=299) == SnapshotRecord("a", 1, b"first")
        assert log.snapshot("a", up_to=0) is None
        assert log.snapshot("b") is None

    def test_a_snapshot_can_be_replaced(self, log: Log) -> None:
        log.append([], snapshot=SnapshotRecord(UUID_STREAM, 1, b"old"))
        log.append([], snapshot=SnapshotRecord(UUID_STREAM, 1, b"new"))

        assert log.snapshot(UUID_STREAM) == SnapshotRecord(UUID_STREAM, 1, b"new")

    def test_a_snapshot_does_not_change_the_chain(self, log: Log) -> None:
        log.append([new("a", 1)])
        before = log.head()

        log.append([], snapshot=SnapshotRecord("a", 1, b"state"))

        assert log.head() == before

    def test_a_version_out_of_range_is_refused(self, log: Log) -> None:
        with pytest.raises(RecordOutOfRangeError):
            log.append([], snapshot=SnapshotRecord("a", -1, b""))

    def test_a_snapshot_is_not_written_with_a_refused_record(self, log: Log) -> None:
        log.append([new("a", 1)])

        with pytest.raises(VersionConflictError):
            log.append([new("a", 1)], snapshot=SnapshotRecord("a", 1, b"state"))

        assert log.snapshot("a") is None


class TestTracking:
    def test_the_highest_position_is_kept_for_each_name(self, log: Log) -> None:
        log.append([new("a", 1)], tracking=("up", 3))
        log.append([], tracking=("up", 5))
        log.append([], tracking=("other" * 200, 1))

        assert log.max_tracking("up") == 5
        assert log.max_tracking("other" * 200) == 1
        assert log.max_tracking("third") is None

    @pytest.mark.parametrize("position", [5, 4, 0])
    def test_a_position_is_processed_once(self, log: Log, position: int) -> None:
        log.append([], tracking=("up", 5))

        with pytest.raises(TrackingConflictError):
            log.append([new("a", 1)], tracking=("up", position))

        assert log.read() == []

    @pytest.mark.parametrize("position", [-1, MAX_VERSION + 1])
    def test_a_position_out_of_range_is_refused(self, log: Log, position: int) -> None:
        with pytest.raises(RecordOutOfRangeError):
            log.append([], tracking=("up", position))


class TestVerify:
    def test_a_whole_log_has_no_problems(self, log: Log) -> None:
        fill(log)
        seen: list[tuple[int, int]] = []

        problems = list(log.verify(lambda *done: seen.append(done), expected_head=log.head()))

        assert problems == []
        assert seen[-1] == (6, 6)

    def test_an_empty_log_has_no_problems(self, log: Log) -> None:
        assert list(log.verify()) == []
        assert list(log.verify(expected_head=log.head())) == []

    def test_an_anchor_beyond_the_end_shows_a_cut_off_tail(self, log: Log) -> None:
        fill(log)

        (problem,) = log.verify(expected_head=Head(9, b"x" * 32))

        assert (problem.kind, problem.position) == ("cut-off", 6)

    def test_an_anchor_of_another_log_does_not_fit(self, log: Log) -> None:
        fill(log)

        (problem,) = log.verify(expected_head=Head(4, b"x" * 32))

        assert (problem.kind, problem.position) == ("anchor", 4)

    def test_an_old_anchor_still_fits(self, log: Log) -> None:
        log.append([new("c", 1)])
        anchor = log.head()
        fill(log)

        assert list(log.verify(expected_head=anchor)) == []

    def test_a_gap_in_versions_is_a_problem_only_where_asked(self, log: Log) -> None:
        log.append([new("a", 1), new("a", 2), new("a", 4)])

        assert list(log.verify()) == []
        assert [(p.kind, p.position) for p in log.verify(contiguous=True)] == [("gap", 3)]


def test_last_transaction_rises_with_every_append(log: Log) -> None:
    seen = [log.last_transaction()]
    for version in (1, 2, 3):
        log.append([new("a", version)])
        seen.append(log.last_transaction())

    assert seen == sorted(set(seen))
    assert log.last_transaction() == seen[-1]


def test_a_problem_shows_its_parts() -> None:
    assert repr(Problem("gap", 3, "why")) == "Problem(detail='why', kind='gap', position=3)"
