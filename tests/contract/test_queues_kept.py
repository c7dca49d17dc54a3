"""The queue index is what the log says: rebuilt, among processes, in stores that are moved."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from bare_queues import LIVED, BareQueues, job_id, live_through
from command_line import here
from other_process import OtherProcess
from stores import LARGE, record_run

from tachograph import storekeeping
from tachograph.bootstrap import open_store
from tachograph.domain.errors import StoreReadOnlyError
from tachograph.domain.queue_errors import JobNotFoundError
from tachograph.domain.queue_settings import QueuePlan
from tachograph.domain.records import NewRecord
from tachograph.infra import queue_checking, queue_rows
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.processes import describe
from tachograph.infra.queue_folding import fold
from tachograph.infra.queue_rows import QueueRows
from tachograph.infra.queue_tables import MemoryTable
from tachograph.queuekeeping import queues_of
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tachograph.domain.records import Record

    Make = Callable[..., BareQueues]


class TestRebuild:
    @pytest.mark.parametrize("seed", range(3))
    def test_the_index_is_what_the_log_says(self, make: Make, seed: int) -> None:
        bench = make(*LIVED)
        live_through(bench, 150, seed)

        bench.assert_index_follows_from_the_log(["k", "w"])

    def test_an_index_begins_with_a_log_that_has_jobs(self, make: Make) -> None:
        one, other = make(*LIVED), make(*LIVED)
        live_through(one, 100, 9)
        for record in one.log.read(limit=None):
            other.log.append([copied(record)])
        other.now_us = one.now_us

        assert other.store.content() == one.store.content()
        assert other.answers(["k", "w"]) == one.answers(["k", "w"])

    def test_what_is_appended_by_others_is_seen(self, make: Make) -> None:
        """As an import does, or a restore: by the log alone."""
        one, other = make(*LIVED), make(*LIVED)
        for _ in range(6):
            live_through(one, 20, 4)
            known = other.log.head().position
            other.log.append([copied(each) for each in one.log.read(after=known, limit=None)])
            other.now_us = one.now_us

            assert other.store.content() == one.store.content()
            assert other.answers(["k", "w"]) == one.answers(["k", "w"])

    def test_events_of_others_change_nothing(self, bench: BareQueues) -> None:
        job = bench.add()
        for number in range(1, 500):
            bench.log.append([NewRecord("run", number, "run.note-added", 0, b"\x80")])

        assert bench.taken() == [job]
        bench.assert_index_follows_from_the_log()

    def test_an_index_of_another_version_is_made_anew(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench = make(*LIVED)
        live_through(bench, 60, 5)
        answers = bench.answers(["k", "w"])
        monkeypatch.setattr(queue_rows, "VERSION", queue_rows.VERSION + 1)
        bench.reopen()

        assert bench.answers(["k", "w"]) == answers


class TestErased:
    """A job of which an event was erased is unknown, and stands in nobody's way."""

    @pytest.mark.parametrize("lived", ["pending", "leased", "completed"])
    def test_it_is_no_job_any_more(self, make: Make, lived: str) -> None:
        bench = make(*LIVED)
        gone = bench.add("memory", key="k", concurrency_key="c")
        if lived != "pending":
            job = bench.one()
            if lived == "completed":
                bench.queueing.complete(job.id, job.epoch)
        erase(bench, gone)
        left = bench.add("memory", concurrency_key="c")
        bench.store.rebuild()

        assert bench.repository.get(gone) is None
        with pytest.raises(JobNotFoundError):
            bench.queueing.get(gone)
        assert bench.answers(["k"])["memory"]["holders"] == {"k": None}
        assert bench.answers()["count"] == 1
        assert bench.taken(limit=9) == [left]
        assert bench.queueing.release_stale().pending == []
        bench.assert_index_follows_from_the_log(["k"])

    @pytest.mark.parametrize("lost", [1, 2, 3])
    def test_an_event_alone_makes_it_unknown_from_there_on(self, make: Make, lost: int) -> None:
        bench = make(*LIVED)
        gone = bench.add(key="k", concurrency_key="c")
        left = bench.add(concurrency_key="c")
        job = bench.one(pid=7)
        bench.queueing.fail(job.id, job.epoch, "boom", retry_us=bench.now_us)
        bench.one(pid=7)
        stream = bench.log.read_stream(UUID(gone))
        stream[lost - 1] = stream[lost - 1].with_body(b"", absent=True)
        rows = QueueRows(MemoryTable(), bench.codec)

        def read(job_id: str, up_to: int) -> list[Record]:
            assert job_id == gone
            return list(stream[:up_to])

        fold(rows, bench.codec, [bench.log.read_stream(UUID(left))[0]], read)
        before = dict(rows.content())
        for record in stream:
            fold(rows, bench.codec, [record], read)

        assert job.id == gone
        assert len(stream) == 4
        assert rows.job(gone) is None
        assert {key: value for key, value in rows.content() if key[:1] != b"t"} == before
        assert [each.id for each in rows.eligible("memory", None, bench.now_us, 1)] == [left]


def erase(bench: BareQueues, job: str) -> None:
    """Drop the bodies of a job, as a store does with those of a run."""
    version = bench.log.stream_version(UUID(job)) + 1
    body = bench.codec.pack({"status_before": "dead", "reason": "", "repair": None, "archive": ""})
    bench.log.erase(NewRecord(UUID(job), version, "queue.job-pruned", bench.now_us, body))


def copied(record: Any) -> NewRecord:
    return NewRecord(record.stream, record.version, record.topic, record.time_us, record.body)


# On disk only: other processes, files, and what becomes of the index there.


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[BareQueues]:
    """Queues on disk."""
    bench = BareQueues(*LIVED, folder=tmp_path / "log")
    yield bench
    bench.close()


WORKER = """
from bare_queues import BareQueues, START_US
from tachograph.domain.queue_settings import QueueSettings
from pathlib import Path
bench = BareQueues(QueueSettings("memory"), folder=Path(folder))
say("ready")
hear()
found = []
while jobs := bench.take(limit=2, pid=os.getpid()):
    for job in jobs:
        found.append(job.id)
        bench.queueing.complete(job.id, job.epoch)
say(*found)
hear()
"""


def worker(disk: BareQueues) -> OtherProcess:
    assert disk.folder is not None
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    return OtherProcess(f"sys.path.insert(0, {here!r})\n{WORKER}", disk.folder)


class TestProcesses:
    def test_two_processes_never_take_the_same_job(self, disk: BareQueues) -> None:
        jobs = [each.job_id for each in disk.queueing.enqueue_many([Enqueue("memory", "a")] * 200)]
        with worker(disk) as one, worker(disk) as other:
            assert [one.hear(), other.hear()] == ["ready", "ready"]
            one.say("go")
            other.say("go")
            found = [one.hear().split(), other.hear().split()]

        assert sorted(found[0] + found[1]) == sorted(jobs)
        assert set(disk.statuses(*jobs)) == {"completed"}

    def test_a_job_of_another_process_is_seen_at_once(self, disk: BareQueues) -> None:
        assert disk.taken() == []
        with worker(disk) as other:
            assert other.hear() == "ready"
            job = disk.add()
            other.say("go")

            assert other.hear() == job
        assert disk.statuses(job) == ["completed"]
        assert disk.answers()["count"] == 0

    def test_a_killed_worker_loses_no_job(self, disk: BareQueues) -> None:
        """G1, G7."""
        job = disk.add()
        with worker(disk) as other:
            assert other.hear() == "ready"
            pid = other.pid
            disk.one(pid=pid)
            other.kill()
        disk.gone.add(pid)

        assert disk.queueing.release_stale().pending == [job]
        assert disk.taken() == [job]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
    def test_a_forked_process_takes_jobs_of_its_own(self, disk: BareQueues) -> None:
        for _ in range(4):
            disk.add()
        mine = disk.taken(limit=2)
        pid = os.fork()
        if pid == 0:
            try:
                ok = len(disk.taken(limit=1, pid=os.getpid())) == 1
            except BaseException:  # the child must end here
                ok = False
            os._exit(0 if ok else 1)
        _, status = os.waitpid(pid, 0)
        rest = disk.taken(limit=5)

        assert os.waitstatus_to_exitcode(status) == 0
        assert len({*mine, *rest}) == 3
        assert disk.store.look(lambda index: index.leased_count("memory")) == 4


class TestOnDisk:
    def test_it_is_there_again_when_opened_again(self, disk: BareQueues) -> None:
        live_through(disk, 80, 6)
        content, answers = disk.store.content(), disk.answers(["k", "w"])
        disk.reopen()

        assert disk.store.content() == content
        assert disk.answers(["k", "w"]) == answers

    def test_a_damaged_index_is_made_anew(self, disk: BareQueues) -> None:
        live_through(disk, 80, 7)
        content, answers = disk.store.content(), disk.answers()

        spoil(disk, b"j")

        assert disk.answers() == answers
        assert disk.store.content() == content

    def test_a_decision_runs_again_where_the_map_has_to_grow(self, disk: BareQueues) -> None:
        """Large payloads: the same commit is tried in a larger map."""
        before = disk.environment.map_size
        wants = [Enqueue("memory", "a", os.urandom(15_000)) for _ in range(500)]
        size = 0
        while disk.environment.map_size == before:
            disk.queueing.enqueue_many(wants)
            size += 500
            assert size < 50_000, "the map never grew"

        assert disk.answers()["count"] == size
        assert disk.log.head().position == size

    def test_a_store_that_may_only_be_read_tells_and_takes_nothing(self, disk: BareQueues) -> None:
        job = disk.add()
        disk.one()
        disk.reopen(readonly=True)

        assert disk.store.look(lambda index: [each.id for each in index.leased()]) == [job]
        with pytest.raises(StoreReadOnlyError):
            disk.add()
        with pytest.raises(StoreReadOnlyError):
            disk.queueing.complete(job, 1)

    def test_one_without_an_index_answers_from_the_log(
        self, disk: BareQueues, tmp_path: Path
    ) -> None:
        live_through(disk, 80, 3)
        expected, live = seen(disk), disk.answers()["count"]
        with environment_of(tmp_path / "other") as environment:
            copy_to(disk, LMDBLog(environment))
        other = BareQueues(*LIVED, folder=tmp_path / "other", readonly=True)
        try:
            assert not other.store.exists()
            assert seen(other) == expected
            assert other.store.look(lambda index: index.count()) == live > 0
            assert other.store.check(str(tmp_path / "beside")) == []
            assert not other.store.exists()
        finally:
            other.close()

    @pytest.mark.parametrize("damaged", [False, True])
    def test_one_whose_index_lacks_events_answers_from_the_log(
        self, disk: BareQueues, tmp_path: Path, damaged: bool
    ) -> None:
        """As after an import into it, or a restore."""
        live_through(disk, 40, 8)
        other = BareQueues(*LIVED, folder=tmp_path / "other")
        copy_to(disk, other.log)
        assert seen(other) == seen(disk)
        if damaged:
            spoil(other, b"j")
        else:
            live_through(disk, 40, 9)
            copy_to(disk, other.log)
        other.reopen(readonly=True)

        assert seen(other) == seen(disk)
        assert seen(other) == seen(disk), "and once more"
        other.close()

    def test_one_goes_on_while_another_process_writes(self, disk: BareQueues) -> None:
        """The index in memory is brought up, and not made anew, with each look."""
        with worker(disk) as other:
            assert other.hear() == "ready"
            disk.reopen(readonly=True)
            assert disk.store.look(lambda index: index.count()) == 0
            other.say("go")
            assert other.hear() == ""
            assert disk.store.look(lambda index: index.count()) == 0

    def test_an_empty_log_has_no_jobs(self, tmp_path: Path) -> None:
        bench = BareQueues(*LIVED, folder=tmp_path / "log")
        try:
            assert bench.store.look(lambda index: index.count()) == 0
            assert bench.queueing.next_us(["memory"]) is None
        finally:
            bench.close()


class TestChecked:
    """`tacho view check` finds what is wrong with an index, and `tacho view rebuild` mends it."""

    def check(self, disk: BareQueues) -> list[tuple[bytes, bytes | None, bytes | None]]:
        """Check it in a folder that is used for nothing else, as it may have been before."""
        assert disk.folder is not None
        found: list[tuple[bytes, bytes | None, bytes | None]] = disk.store.check(
            str(disk.folder.parent / f"beside-{len(list(disk.folder.parent.iterdir()))}")
        )
        return found

    @pytest.mark.parametrize("seed", range(3))
    def test_nothing_is_wrong_with_one_in_use(self, disk: BareQueues, seed: int) -> None:
        live_through(disk, 150, seed)

        assert self.check(disk) == []
        live_through(disk, 50, seed + 9)
        disk.reopen(readonly=True)
        assert self.check(disk) == []

    def test_it_is_made_anew_in_parts(
        self, disk: BareQueues, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        live_through(disk, 60, 4)
        monkeypatch.setattr(queue_checking, "CHUNK", 7)

        assert self.check(disk) == []

    @pytest.mark.parametrize("kind", [b"j", b"l", b"a", b"c", b"k", b"t"])
    @pytest.mark.parametrize("how", ["lost", "garbage", "more"])
    def test_every_row_that_is_wrong_is_found(
        self, disk: BareQueues, kind: bytes, how: str
    ) -> None:
        rows_of_every_kind(disk)
        keys = spoil(disk, kind, how)
        disk.reopen(readonly=True)
        found = {key: (stored, expected) for key, stored, expected in self.check(disk)}

        for key in keys:
            stored, expected = found[key]
            assert (stored is None, expected is None) == (how == "lost", how == "more")
        disk.reopen()
        disk.store.rebuild()
        assert self.check(disk) == []

    @pytest.mark.parametrize("kind", [b"r", b"s", b"p"])
    @pytest.mark.parametrize("how", ["lost", "garbage", "more"])
    def test_a_job_that_nobody_would_ever_take_is_found(
        self, disk: BareQueues, kind: bytes, how: str
    ) -> None:
        rows_of_every_kind(disk)
        assert self.check(disk) == []
        keys = spoil(disk, kind, how)
        found = self.check(disk)

        if how == "lost":
            assert len(found) == len(keys)
            assert {(stored, expected is None) for _, stored, expected in found} == {(None, False)}
        else:
            assert {key for key, _, expected in found if expected is None} == set(keys)
        disk.store.rebuild()
        assert self.check(disk) == []

    def test_no_more_is_told_than_can_be_read(
        self, disk: BareQueues, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queue_checking, "MOST_DIFFERENCES", 3)
        disk.queueing.enqueue_many([Enqueue("memory", "a")] * 9)
        spoil(disk, b"r", "lost")
        assert len(self.check(disk)) == 3
        spoil(disk, b"j", "lost")

        assert len(self.check(disk)) == 3


def rows_of_every_kind(disk: BareQueues) -> None:
    """Leave jobs in every state, so that there is a row of each kind."""
    for number in range(5):
        disk.add(key=f"k{number}", concurrency_key="c")
    disk.add(available_us=2**60)
    tried = disk.add(priority=5)
    metered = disk.add("summary")
    failed = disk.one(limit=1)
    disk.queueing.fail(failed.id, failed.epoch, "boom")
    disk.take("memory", limit=3)
    disk.take("memory", limit=3)
    disk.one("summary")
    disk.add()
    assert failed.id == tried
    assert disk.statuses(metered) == ["leased"]


def spoil(disk: BareQueues, kind: bytes, how: str = "garbage") -> list[bytes]:
    """Damage all rows of a kind, or add one; return the keys."""

    def damage(txn: Any) -> list[bytes]:
        table = disk.environment.databases[disk.store.name]
        keys = [bytes(key) for key, _ in txn.cursor(db=table) if bytes(key)[:1] == kind]
        assert keys
        if how == "more":
            keys = [keys[0] + b"~"]
        for key in keys:
            if how == "lost":
                txn.delete(key, db=table)
            else:
                txn.put(key, b"\xc1", db=table)
        return keys

    disk.store.exists()
    spoiled: list[bytes] = disk.environment.update(damage)
    return spoiled


def environment_of(folder: Path) -> Any:
    return closing(open_environment(folder))


def copy_to(disk: BareQueues, log: Any) -> None:
    """Append what a log lacks, past any index."""
    known = log.head().position
    log.append([copied(each) for each in disk.log.read(after=known, limit=None)])


def seen(disk: BareQueues) -> dict[str, Any]:
    """Return what the index says to those who only look."""

    def work(index: Any) -> dict[str, Any]:
        return {
            "count": index.count(),
            "leased": [job.to_row() for job in index.leased()],
            "tried": [job.id for name in disk.plan.queues for job in index.tried(name)],
            "holders": [index.holder("memory", key, disk.now_us) for key in ("k", "w")],
        }

    told: dict[str, Any] = disk.store.look(work)
    return told


class TestStores:
    """Jobs of a whole store survive what is done to stores."""

    def test_jobs_survive_an_export_and_an_import(self, tmp_path: Path) -> None:
        fill_store(tmp_path / "one")
        with opened(tmp_path / "one") as (services, queueing):
            expected = queueing.store.content()
            head = services.log.head()
            with storekeeping.new_file(str(tmp_path / "export")) as file:
                storekeeping.export(services, file.write)
        with opened(tmp_path / "other") as (services, queueing):
            storekeeping.import_file(services, str(tmp_path / "export"))

            assert services.log.head() == head
            assert queueing.store.content() == expected
        assert list(storekeeping.verify(str(tmp_path / "other"))) == []

    def test_jobs_survive_a_backup_and_a_compaction(self, tmp_path: Path) -> None:
        fill_store(tmp_path / "one")
        with opened(tmp_path / "one") as (services, queueing):
            expected = queueing.store.content()
            storekeeping.backup(services, str(tmp_path / "copy"))
        storekeeping.compact(str(tmp_path / "copy"))
        with opened(tmp_path / "copy") as (services, queueing):
            assert queueing.store.content() == expected
            leased = queueing.lease(["memory"], describe(os.getpid()), limit=9)
            assert [each.payload for each in leased] == [{"n": 4}, LARGE]

    def test_jobs_that_were_imported_into_a_store_in_use_are_taken(self, tmp_path: Path) -> None:
        fill_store(tmp_path / "one")
        with opened(tmp_path / "one") as (services, _queueing):
            with storekeeping.new_file(str(tmp_path / "export")) as file:
                storekeeping.export(services, file.write)
        with opened(tmp_path / "other") as (services, queueing):
            assert queueing.lease(["memory"], describe(os.getpid())) == []
            storekeeping.import_file(services, str(tmp_path / "export"))

            leased = queueing.lease(["memory"], describe(os.getpid()), limit=9)
            assert [each.payload for each in leased] == [{"n": 4}, LARGE]

    def test_jobs_survive_what_is_done_to_runs(
        self, store_environment: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Archiving and erasing take the bodies of runs, and leave those of jobs."""
        fill_store(store_environment)
        with opened(store_environment) as (services, queueing):
            record_run(services, "job-1")
            record_run(services, "job-2", output=LARGE)
            expected = queueing.store.content()
        for command in (
            ("store", "archive", "job-1", "--apply"),
            ("store", "erase", "job-2", "--reason", "asked", "--apply"),
            ("store", "verify"),
        ):
            done = here(capsys, *command)
            assert done.returncode == 0, done.stdout + done.stderr
        with opened(store_environment) as (services, queueing):
            assert services.log.read_stream("job-2", limit=1)[0].absent
            assert queueing.store.content() == expected
            queueing.store.rebuild()
            assert queueing.store.content() == expected

    def test_damage_to_an_event_of_a_job_is_found(self, tmp_path: Path) -> None:
        with opened(tmp_path / "one") as (services, _queueing):
            for version, (topic, body) in enumerate(
                [("queue.job-enqueued", {"queue": "memory"}), ("queue.of-tomorrow", {})], 1
            ):
                packed = services.codec.pack(body)
                services.log.append([NewRecord(UUID(job_id(1)), version, topic, 5, packed)])
        found = list(storekeeping.verify(str(tmp_path / "one")))

        assert [(each.kind, each.position) for each in found] == [("unreadable", 1), ("type", 2)]


def fill_store(path: Path) -> None:
    with opened(path) as (_services, queueing):
        for number in range(6):
            payload = LARGE if number == 5 else {"n": number}
            queueing.enqueue(Enqueue("memory", "ingest", payload, key=f"k{number}"))
        me = describe(os.getpid())
        done, failed, dead, _leased = queueing.lease(["memory"], me, limit=4)
        queueing.complete(done.job.id, 1, {"rows": 7})
        queueing.fail(failed.job.id, 1, "boom", retry_us=2**60)
        queueing.fail(dead.job.id, 1, "boom", terminal=True)


class opened:  # noqa: N801  # used like a function
    """Open a store with its queues for the length of a block."""

    def __init__(self, path: Path) -> None:
        self._services = open_store(str(path), create=True, actor="test")

    def __enter__(self) -> Any:
        return self._services, queues_of(self._services, QueuePlan())

    def __exit__(self, *_: object) -> None:
        self._services.close()
