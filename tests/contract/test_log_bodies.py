"""What every event log promises about bodies that leave it, on LMDB and in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tachograph.domain.errors import BodyLostError, StoreCorruptError, VersionConflictError
from tachograph.domain.records import ArchivedRecord, NewRecord, Record, SnapshotRecord
from tachograph.infra import body_archive_writing
from tachograph.infra.body_archives import BodyArchives
from tachograph.infra.layout import stream_key
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.memory_log import MemoryLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Log = LMDBLog | MemoryLog


class Place:
    """A log, and where the bodies go that leave it."""

    def __init__(self, log: Log, archives: BodyArchives | None) -> None:
        self.log = log
        self.archives = archives
        self.kept: dict[tuple[int, int], bytes] = {}

    def archive(self, stream: str, number: int) -> list[int]:
        """Keep all bodies of a stream in an archive, and return their positions."""
        records = [each for each in self.log.read_stream(stream) if not each.absent]
        bodies = [(each.position, each.body) for each in records]
        if self.archives is not None:
            body_archive_writing.write(self.archives, number, [(stream_key(stream)[0], bodies)])
        self.kept.update({(number, position): body for position, body in bodies})
        return [position for position, _ in bodies]

    def lose(self, number: int) -> None:
        """Lose an archive."""
        self.kept = {key: body for key, body in self.kept.items() if key[0] != number}
        if self.archives is not None:
            body_archive_writing.remove(self.archives, number)
            self.archives.forget()

    def body(self, number: int, record: Record) -> bytes:
        """Return a body that the log in memory asks for."""
        try:
            return self.kept[number, record.position]
        except KeyError:
            raise BodyLostError(f"archive {number}", "is missing", "it") from None


@pytest.fixture(params=["lmdb", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty log of each kind."""
    if request.param == "memory":
        made = Place(MemoryLog(), None)
        made.log = MemoryLog(made.body)
        yield made
        return
    environment = open_environment(tmp_path / "log")
    archives = BodyArchives(str(tmp_path / "archive"))
    yield Place(LMDBLog(environment, bodies=archives), archives)
    environment.close()


def new(stream: str, version: int, body: bytes = b"body") -> NewRecord:
    return NewRecord(stream, version, "run.noted", 1_000_000 + version, body)


def fill(log: Log) -> None:
    """Two streams, interleaved."""
    log.append([new("a", 1, b"one"), new("b", 1, b"two")])
    log.append([new("a", 2, b""), new("b", 2, b"four"), new("a", 3, b"x" * 400_000)])


class TestMove:
    def test_every_read_answers_as_before(self, place: Place) -> None:
        fill(place.log)
        log = place.log
        before = (log.read(), log.read_stream("a"), log.read(reverse=True), log.read(after=2))
        head = log.head()

        assert log.move_bodies(place.archive("a", 5), 5) == 3
        assert (
            log.read(),
            log.read_stream("a"),
            log.read(reverse=True),
            log.read(after=2),
        ) == before
        assert log.head() == head
        assert list(log.verify()) == []

    def test_a_moved_body_says_where_it_is(self, place: Place) -> None:
        fill(place.log)
        place.log.move_bodies(place.archive("a", 5), 5)
        records = place.log.read_stream("a")

        assert all(isinstance(each, ArchivedRecord) for each in records)
        assert [each.archive for each in records if isinstance(each, ArchivedRecord)] == [5] * 3
        assert [each.absent for each in records] == [False] * 3
        assert place.log.archives() == {5: 3}

    def test_what_has_left_is_passed_over(self, place: Place) -> None:
        fill(place.log)
        positions = place.archive("a", 5)
        place.log.move_bodies(positions[:2], 5)

        assert place.log.move_bodies(positions, 7) == 1
        assert place.log.archives() == {5: 2, 7: 1}

    def test_no_positions_move_nothing(self, place: Place) -> None:
        assert place.log.move_bodies([], 5) == 0
        assert place.log.archives() == {}

    def test_a_position_without_a_record_moves_nothing(self, place: Place) -> None:
        fill(place.log)
        with pytest.raises(StoreCorruptError, match="record 9 is lost"):
            place.log.move_bodies([1, 9], 5)

        assert place.log.archives() == {}

    def test_appending_goes_on(self, place: Place) -> None:
        fill(place.log)
        place.log.move_bodies(place.archive("a", 5), 5)
        place.log.append([new("a", 4, b"more")])

        assert [each.body for each in place.log.read_stream("a", after=3)] == [b"more"]
        assert list(place.log.verify(contiguous=True)) == []

    def test_a_lost_archive_is_named_when_a_body_is_asked_for(self, place: Place) -> None:
        fill(place.log)
        place.log.move_bodies(place.archive("a", 5), 5)
        place.lose(5)
        first, other = place.log.read(limit=2)

        assert (other.stream, other.body) == ("b", b"two")
        assert first.version == 1
        with pytest.raises(BodyLostError, match="is missing"):
            _ = first.body

    def test_records_compare_by_what_they_hold(self, place: Place) -> None:
        fill(place.log)
        (before,) = place.log.read_stream("b", up_to=1)
        (other,) = place.log.read_stream("b", after=1)
        place.log.move_bodies(place.archive("b", 5), 5)
        (after,) = place.log.read_stream("b", up_to=1)

        assert before == after
        assert after == before
        assert hash(before) == hash(after)
        assert after != other
        assert after != "something else"


class TestErase:
    def test_bodies_are_gone_and_digests_stay(self, place: Place) -> None:
        fill(place.log)
        before = place.log.read()

        position = place.log.erase(new("a", 4, b"erased"))
        records = place.log.read_stream("a")

        assert position == 6
        assert [(each.absent, each.body) for each in records] == [(True, b"")] * 3 + [
            (False, b"erased")
        ]
        assert [each.digest for each in place.log.read(limit=5)] == [each.digest for each in before]
        assert [each.body for each in place.log.read_stream("b")] == [b"two", b"four"]
        assert list(place.log.verify(contiguous=True)) == []

    def test_archived_bodies_are_no_longer_looked_for(self, place: Place) -> None:
        fill(place.log)
        place.log.move_bodies(place.archive("a", 5), 5)
        place.log.erase(new("a", 4))

        assert place.log.archives() == {}
        assert [each.absent for each in place.log.read_stream("a")] == [True, True, True, False]

    def test_snapshots_of_the_stream_go(self, place: Place) -> None:
        fill(place.log)
        place.log.append([], snapshot=SnapshotRecord("a", 3, b"state"))
        place.log.append([], snapshot=SnapshotRecord("b", 2, b"other"))
        place.log.erase(new("a", 4))

        assert place.log.snapshot("a") is None
        assert place.log.snapshot("b") == SnapshotRecord("b", 2, b"other")

    def test_a_version_that_is_taken_erases_nothing(self, place: Place) -> None:
        fill(place.log)
        with pytest.raises(VersionConflictError):
            place.log.erase(new("a", 3))

        assert not any(each.absent for each in place.log.read())
        assert place.log.head().position == 5

    def test_what_was_erased_stays_so(self, place: Place) -> None:
        fill(place.log)
        place.log.erase(new("a", 4))

        assert place.log.move_bodies([1, 3, 5], 9) == 0
        assert place.log.archives() == {}
