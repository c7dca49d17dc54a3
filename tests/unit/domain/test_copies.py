"""What an export holds is plain data: equal when its parts are, and fit to cross processes."""

from __future__ import annotations

import pickle

import pytest

from tachograph.domain.blobref import BlobRef
from tachograph.domain.copies import CopiedBlob, CopiedRecord, CopiedTracking, Heading
from tachograph.domain.records import GENESIS_DIGEST, Head, Problem, Record, SnapshotRecord

RECORD = Record(1, "job-1", 1, "run.created", 5, b"body", b"d" * 32, GENESIS_DIGEST)
COPIES = [
    Heading(Head(7, b"d" * 32), "job-1"),
    CopiedRecord(RECORD, b"b" * 32),
    CopiedBlob(BlobRef("ab" * 32, 4), None),
    CopiedTracking("upstream", 9),
    SnapshotRecord("job-1", 3, b"state"),
    Problem("gap", 4, "version 2 is missing"),
]


@pytest.mark.parametrize("copy", COPIES, ids=lambda copy: type(copy).__name__)
def test_it_survives_pickling(copy: object) -> None:
    assert pickle.loads(pickle.dumps(copy)) == copy


def test_it_is_of_the_whole_log_and_with_its_bodies_unless_it_says_otherwise() -> None:
    assert Heading(Head(0, GENESIS_DIGEST)).run_id is None
    assert CopiedRecord(RECORD).body_digest is None
