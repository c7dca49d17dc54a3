"""The queue index is derived: whatever happens to its rows or its room, the log says what is so."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest
from bare_queues import BareQueues, owner

from tachograph.domain.errors import BlobMissingError, InvalidValueError
from tachograph.domain.queue_settings import QueueSettings, Rate
from tachograph.domain.records import NewRecord
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = QueueSettings("memory", rate=Rate(100, 10**9))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BareQueues]:
    """Queues on disk, with a job that waits, one at work, a key, and a metered lease."""
    made = BareQueues(SETTINGS, folder=tmp_path / "log")
    made.add("memory", key="k1", concurrency_key="c")
    made.one("memory", pid=7)
    made.add("memory", key="k2", concurrency_key="c")
    yield made
    made.close()


def change_rows(bench: BareQueues, kind: bytes, value: bytes | None) -> int:
    """Give all rows of a kind another value, or remove them; return how many there were."""
    database = bench.environment.databases[bench.store.name]

    def change(txn: object) -> int:
        cursor = txn.cursor(db=database)  # type: ignore[attr-defined]
        keys = [key for key, _ in cursor if key[:1] == kind]
        for key in keys:
            if value is None:
                txn.delete(key, db=database)  # type: ignore[attr-defined]
            else:
                txn.put(key, value, db=database)  # type: ignore[attr-defined]
        return len(keys)

    count: int = bench.environment.update(change)
    return count


@pytest.mark.parametrize("value", [None, b"", b"\xc1garbage"], ids=["gone", "empty", "garbage"])
def test_an_index_without_its_mark_is_made_anew(bench: BareQueues, value: bytes | None) -> None:
    """A process that knows the old one must not take an empty one for it."""
    assert change_rows(bench, b"m", value) == 1
    bench.add("memory")

    assert bench.store.look(lambda index: index.count()) == 3
    bench.assert_index_follows_from_the_log(["k1", "k2"])


def test_a_dropped_index_is_made_anew_under_a_living_process(bench: BareQueues) -> None:
    database = bench.environment.databases[bench.store.name]
    bench.environment.update(lambda txn: txn.drop(database, delete=False))
    again = bench.queueing.enqueue(Enqueue("memory", "ingest", key="k2"))

    assert not again.created
    assert bench.store.look(lambda index: index.count()) == 2


@pytest.mark.parametrize("kind", [b"c", b"k", b"j"])
@pytest.mark.parametrize("value", [b"", b"\xc1\xff"], ids=["empty", "garbage"])
def test_damaged_rows_mend_themselves(bench: BareQueues, kind: bytes, value: bytes) -> None:
    assert change_rows(bench, kind, value)
    bench.queueing.enqueue(Enqueue("memory", "ingest", key="k1"))
    bench.queueing.lease(["memory"], owner(9))
    (held,) = bench.store.look(lambda index: list(index.leased()))[:1]
    bench.queueing.complete(held.id, held.epoch)

    bench.assert_index_follows_from_the_log(["k1", "k2"])


def test_a_map_that_is_full_grows_while_jobs_become_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moving what has become due writes before anything is recorded: it may be what fills it."""
    monkeypatch.setenv("LMDB_MAP_SIZE", str(1 << 20))
    bench = BareQueues(QueueSettings("memory"), folder=tmp_path / "log")
    due_us = bench.now_us + 1_000_000
    bench.queueing.enqueue_many(
        [Enqueue("memory", "ingest", available_us=due_us, concurrency_key="c" * 300)] * 1500
    )
    size = bench.environment.map_size
    number = 0
    while room(bench) > 12 * 4096 and bench.environment.map_size == size:
        number += 1
        bench.log.append([NewRecord(f"filler-{number}", 1, "x.y", 1, os.urandom(3000))])
    bench.sleep(2)
    taken = bench.queueing.lease(["memory"], owner(9), limit=1)

    assert len(taken) == 1
    bench.close()


def room(bench: BareQueues) -> int:
    """Return the bytes of the map that no page has used yet."""
    raw = bench.environment.enter()
    try:
        info, page = raw.info(), raw.stat()["psize"]
    finally:
        bench.environment.leave()
    return int(info["map_size"] - (info["last_pgno"] + 1) * page)


def test_a_heartbeat_is_not_refused_while_the_index_is_made_anew(bench: BareQueues) -> None:
    (held,) = bench.store.look(lambda index: list(index.leased()))
    stop = threading.Event()

    def make_anew() -> None:
        while not stop.is_set():
            bench.store.rebuild()

    other = threading.Thread(target=make_anew)
    other.start()
    try:
        beats = [bench.queueing.beat(held) for _ in range(50)]
    finally:
        stop.set()
        other.join()

    assert beats == [True] * 50


def test_a_payload_that_is_gone_is_told_when_it_is_read(bench: BareQueues) -> None:
    """It must not end who takes the job: the lease is durable by then."""
    bench.queueing.enqueue(Enqueue("memory", "large", "x" * 100_000))
    bench.blobs.kept.clear()
    (taken,) = bench.queueing.lease(["memory"], owner(9), types=["large"])

    with pytest.raises((BlobMissingError, KeyError)):
        assert taken.payload


def test_a_key_that_holds_a_secret_is_refused(
    bench: BareQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G13: the index keeps keys as they are, and redacted ones would be one."""
    monkeypatch.setattr(
        bench.queueing.payloads, "redacted", lambda text: str(text).replace("hunter2", "[redacted]")
    )

    for want in (
        Enqueue("memory", "ingest", key="mail of hunter2"),
        Enqueue("memory", "ingest", concurrency_key="mail of hunter2"),
    ):
        with pytest.raises(InvalidValueError, match="it holds a secret"):
            bench.queueing.enqueue(want)
