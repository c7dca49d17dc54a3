"""The log on disk against a list: any calls in any order, with reopening in between."""

from __future__ import annotations

import shutil
import tempfile
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tachograph.domain.errors import TrackingConflictError, VersionConflictError
from tachograph.domain.records import GENESIS_DIGEST, NewRecord, Record, SnapshotRecord
from tachograph.infra.layout import MAX_VERSION, Packed, digest_record
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog

if TYPE_CHECKING:
    from collections.abc import Callable

STREAMS = st.sampled_from(["a", "b", "ü" * 400, "\udc80", UUID(int=7), UUID(int=2**128 - 1)])
VERSIONS = st.integers(0, 6) | st.sampled_from([MAX_VERSION, MAX_VERSION - 1])
TOPICS = st.sampled_from(["run.created", "run.finished", "", "tö", "x" * 300])
BODIES = st.binary(max_size=40) | st.integers(0, 9000).map(lambda size: b"x" * size)
TIMES = st.integers(-(2**63), 2**63 - 1)
RECORDS = st.builds(NewRecord, STREAMS, VERSIONS, TOPICS, TIMES, BODIES)
TRACKING = st.none() | st.tuples(st.sampled_from(["up", "down"]), st.integers(0, 9))
BOUND = st.none() | st.integers(0, 30)
MIB = 2**20


class LogMachine(RuleBasedStateMachine):
    """Does the same to a log and to a list of what it should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.records: list[Record] = []
        self.snapshots: dict[tuple[str | UUID, int], bytes] = {}
        self.tracking: dict[str, int] = {}

    @initialize()
    def open(self) -> None:
        self.environment = open_environment(self.folder, map_size=MIB)
        self.log = LMDBLog(self.environment)

    @rule()
    def reopen(self) -> None:
        self.environment.close()
        self.open()

    @rule()
    def forget_caches(self) -> None:
        self.log = LMDBLog(self.environment)

    @rule(records=st.lists(RECORDS, max_size=6), tracking=TRACKING)
    def append(self, records: list[NewRecord], tracking: tuple[str, int] | None) -> None:
        refusal = self.expected_refusal(records, tracking)
        if refusal is not None:
            with pytest.raises(refusal):
                self.log.append(records, tracking=tracking)
            return

        positions = self.log.append(records, tracking=tracking)

        first = len(self.records) + 1
        assert positions == list(range(first, first + len(records)))
        self.remember(records)
        if tracking is not None:
            self.tracking[tracking[0]] = tracking[1]

    @rule(stream=STREAMS, version=VERSIONS, body=BODIES)
    def take_snapshot(self, stream: str | UUID, version: int, body: bytes) -> None:
        self.log.append([], snapshot=SnapshotRecord(stream, version, body))

        self.snapshots[stream, version] = body

    @rule(after=st.integers(0, 30), up_to=BOUND, limit=BOUND, reverse=st.booleans())
    def read(self, after: int, up_to: int | None, limit: int | None, reverse: bool) -> None:
        expected = self.part(lambda each: each.position, after, up_to, limit, reverse)

        assert self.log.read(after=after, up_to=up_to, limit=limit, reverse=reverse) == expected

    @rule(
        topics=st.lists(TOPICS, min_size=1, max_size=3),
        after=st.integers(0, 30),
        up_to=BOUND,
        limit=BOUND,
        reverse=st.booleans(),
    )
    def read_topics(
        self, topics: list[str], after: int, up_to: int | None, limit: int | None, reverse: bool
    ) -> None:
        found = self.part(lambda each: each.position, after, up_to, None, reverse)
        expected = [each for each in found if each.topic in topics][:limit]

        assert expected == self.log.read(
            after=after, up_to=up_to, limit=limit, reverse=reverse, topics=topics
        )

    @rule(
        stream=STREAMS,
        after=st.none() | VERSIONS,
        up_to=st.none() | VERSIONS,
        limit=BOUND,
        reverse=st.booleans(),
    )
    def read_stream(
        self,
        stream: str | UUID,
        after: int | None,
        up_to: int | None,
        limit: int | None,
        reverse: bool,
    ) -> None:
        expected = self.part(lambda each: each.version, after, up_to, limit, reverse, stream)

        found = self.log.read_stream(stream, after=after, up_to=up_to, limit=limit, reverse=reverse)

        assert found == expected

    @rule(stream=STREAMS, up_to=st.none() | VERSIONS)
    def snapshot(self, stream: str | UUID, up_to: int | None) -> None:
        bound = MAX_VERSION if up_to is None else up_to
        versions = [each for owner, each in self.snapshots if owner == stream and each <= bound]
        latest = max(versions, default=None)
        expected = (
            None
            if latest is None
            else SnapshotRecord(stream, latest, self.snapshots[stream, latest])
        )

        assert self.log.snapshot(stream, up_to=up_to) == expected

    @rule(stream=STREAMS)
    def stream_version(self, stream: str | UUID) -> None:
        versions = [each.version for each in self.records if each.stream == stream]

        assert self.log.stream_version(stream) == max(versions, default=0)

    @rule()
    def verify(self) -> None:
        assert list(self.log.verify(expected_head=self.log.head())) == []

    @invariant()
    def head_and_tracking_agree(self) -> None:
        if not hasattr(self, "log"):
            return
        head = self.log.head()
        last = self.records[-1] if self.records else None

        assert head.position == len(self.records)
        assert head.digest == (last.digest if last else GENESIS_DIGEST)
        assert {name: self.log.max_tracking(name) for name in ("up", "down")} == {
            name: self.tracking.get(name) for name in ("up", "down")
        }

    def teardown(self) -> None:
        if hasattr(self, "environment"):
            self.environment.close()
        shutil.rmtree(self.folder)

    # The model

    def expected_refusal(
        self, records: list[NewRecord], tracking: tuple[str, int] | None
    ) -> type[Exception] | None:
        known = {(each.stream, each.version) for each in self.records}
        new = [(each.stream, each.version) for each in records]
        if known.intersection(new) or len(set(new)) < len(new):
            return VersionConflictError
        if tracking is not None and tracking[1] <= self.tracking.get(tracking[0], -1):
            return TrackingConflictError
        return None

    def remember(self, records: list[NewRecord]) -> None:
        for record in records:
            packed = Packed(record)
            position = len(self.records) + 1
            previous = self.records[-1].digest if self.records else GENESIS_DIGEST
            digest = digest_record(
                previous,
                position,
                packed.key,
                record.version,
                record.time_us,
                packed.topic,
                packed.body_digest,
            )
            self.records.append(
                Record(
                    position,
                    record.stream,
                    record.version,
                    record.topic,
                    record.time_us,
                    record.body,
                    digest,
                    previous,
                )
            )

    def part(
        self,
        number: Callable[[Record], int],
        after: int | None,
        up_to: int | None,
        limit: int | None,
        reverse: bool,
        stream: str | UUID | None = None,
    ) -> list[Record]:
        found = [
            each
            for each in self.records
            if (after is None or number(each) > after)
            and (up_to is None or number(each) <= up_to)
            and (stream is None or each.stream == stream)
        ]
        return sorted(found, key=number, reverse=reverse)[:limit]


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
