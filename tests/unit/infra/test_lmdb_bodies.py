"""What verify says about records whose bodies are elsewhere, and what a scan of them finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tachograph.domain.records import NewRecord
from tachograph.infra import lmdb_bodies
from tachograph.infra.layout import (
    ABSENT,
    ARCHIVED,
    BODY,
    digest_body,
    pack_position,
    stored_archive,
    stored_body_digest,
    without_body,
)
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.lmdb_tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Raw:
    """A log of five records, and its bytes."""

    def __init__(self, folder: Path) -> None:
        self.environment = open_environment(str(folder))
        self.log = LMDBLog(self.environment)
        self.log.append([NewRecord("a", n, "t", 0, b"body %d" % n) for n in range(1, 6)])
        self.tables = Tables(self.environment, "events")
        self.tables.open()

    def value(self, position: int) -> bytes:
        with self.environment.read() as txn:
            found = txn.get(pack_position(position), db=self.tables[self.tables.records])
        assert found is not None
        return found

    def change(self, position: int, change: Callable[[bytes], bytes]) -> None:
        value = change(self.value(position))
        with self.environment.write() as txn:
            txn.put(pack_position(position), value, db=self.tables[self.tables.records])

    def problems(self) -> list[tuple[str, int]]:
        return [(each.kind, each.position) for each in self.log.verify()]


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Raw]:
    raw = Raw(tmp_path / "log")
    yield raw
    raw.environment.close()


def test_the_digest_takes_the_place_of_the_body(raw: Raw) -> None:
    before = raw.value(2)
    raw.log.move_bodies([2], 77)
    after = raw.value(2)

    assert after[2:BODY] == before[2:BODY]
    assert after[1] == before[1] | ABSENT | ARCHIVED
    assert after[BODY:] == digest_body(b"body 2") + (77).to_bytes(8, "big")
    assert stored_archive(after) == 77
    assert stored_archive(before) is None
    assert stored_body_digest(after) == stored_body_digest(before)


def test_an_erased_record_does_not_say_where_its_body_was(raw: Raw) -> None:
    archived = without_body(raw.value(2), 77)
    assert archived is not None
    erased = without_body(archived, None)

    assert erased == without_body(raw.value(2), None)
    assert erased is not None
    assert erased[BODY:] == digest_body(b"body 2")
    assert without_body(erased, None) is None
    assert without_body(erased, 5) is None
    assert without_body(archived, 5) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value[:1] + bytes([value[1] | ARCHIVED]) + value[2:],
        lambda value: value[:1] + bytes([value[1] | ABSENT]) + value[2:],
        lambda value: value[:-1],
        lambda value: value + b"x",
    ],
    ids=["archived and here", "absent without digest", "cut", "longer"],
)
def test_a_record_that_says_nonsense_about_its_body_is_found(
    raw: Raw, change: Callable[[bytes], bytes]
) -> None:
    raw.log.move_bodies([1, 5], 7)
    raw.change(2, change)

    assert ("unreadable", 2) in raw.problems() or ("changed", 2) in raw.problems()


@pytest.mark.parametrize("position", [1, 2])
@pytest.mark.parametrize(
    "place,bit", [*((1, 1 << number) for number in range(3, 8)), (2, 1), (2, 128), (3, 1), (3, 64)]
)
def test_header_bits_without_a_meaning_are_found(
    raw: Raw, position: int, place: int, bit: int
) -> None:
    """They are in no digest, so nothing else would tell."""
    raw.log.move_bodies([1], 7)
    raw.change(
        position, lambda value: value[:place] + bytes([value[place] | bit]) + value[place + 1 :]
    )

    assert raw.problems() == [("unreadable", position)]


@pytest.mark.parametrize("position", [2, 5])
def test_another_digest_is_found(raw: Raw, position: int) -> None:
    raw.log.move_bodies([position], 7)
    raw.change(position, lambda value: value[:BODY] + bytes(32) + value[BODY + 32 :])

    assert ("changed", position) in raw.problems()


@pytest.mark.parametrize("rest", [b"", b"x" * 31, b"x" * 33, b"x" * 39, b"x" * 41])
def test_an_archived_record_has_one_length(raw: Raw, rest: bytes) -> None:
    raw.log.move_bodies([2], 7)
    raw.change(2, lambda value: value[:BODY] + rest)

    assert ("unreadable", 2) in raw.problems()


def test_a_scan_goes_on_over_many_windows(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmdb_bodies, "WINDOW", 2)
    raw.log.move_bodies([1, 4], 7)
    raw.log.move_bodies([5], 9)

    assert raw.log.archives() == {7: 2, 9: 1}


def test_a_log_that_is_not_there_has_nothing_to_move(tmp_path: Path) -> None:
    environment = open_environment(str(tmp_path / "log"))
    log = LMDBLog(environment, "other", create=False)

    assert log.archives() == {}
    assert log.move_bodies([1], 7) == 0
    environment.close()
