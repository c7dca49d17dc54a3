"""Records of the log: compared and shown by what they hold."""

from __future__ import annotations

import pickle

from tachograph.domain.records import Head, NewRecord, SnapshotRecord


def test_records_are_equal_by_what_they_hold() -> None:
    assert NewRecord("a", 1, "t", 2, b"x") == NewRecord("a", 1, "t", 2, b"x")
    assert NewRecord("a", 1, "t", 2, b"x") != NewRecord("a", 2, "t", 2, b"x")
    assert hash(Head(1, b"x")) == hash(Head(1, b"x"))


def test_records_of_another_kind_are_never_equal() -> None:
    assert Head(1, b"x") != (1, b"x")
    assert Head(1, b"x") != SnapshotRecord("1", 1, b"x")


def test_a_record_shows_its_fields_and_survives_pickling() -> None:
    head = Head(7, b"x")

    assert repr(head) == "Head(digest=b'x', position=7)"
    assert pickle.loads(pickle.dumps(head)) == head
