"""What erasing a run would destroy, and that the views of what is left are those of the log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import lmdb
import pytest
from stores import LARGE, begin, make_store, opened, record_run

from tachograph import bodykeeping, erasing, erasurekeeping, projecting, storekeeping
from tachograph.domain.errors import (
    RunNotFoundError,
    StoreBusyError,
    StoreCorruptError,
)
from tachograph.domain.records import NewRecord
from tachograph.infra import lmdb_files, lmdb_rewriting
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.presence import Presence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.bootstrap import Services


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    with opened(tmp_path / "store") as services:
        yield services


def catch_up(services: Services) -> None:
    projecting.catch_up(services.log, services.codec, services.views())


def erase_in_the_log(services: Services, run_id: str) -> None:
    planned = erasurekeeping.plan_erasure(services, run_id)
    erasing.erase(services.repository, services.log, services.actor, planned, "it names a customer")


class TestViews:
    @pytest.mark.parametrize("later", [False, True])
    def test_views_that_had_read_it_become_those_of_the_log(
        self, services: Services, *, later: bool
    ) -> None:
        """G8: whoever folds, in whatever portions, before or after."""
        for run_id in ("job-1", "job-2"):
            record_run(services, run_id)
        catch_up(services)
        erase_in_the_log(services, "job-1")
        if later:
            catch_up(services)
            services.session("job-1", 0).execute(lambda run, why: run.add_note(why, "gone"))

        assert storekeeping.check_views(services) == []
        with services.views().read() as view:
            kinds = [entry["kind"] for entry in view.timeline("job-1")]
            others = [entry["kind"] for entry in view.timeline("job-2")]
        assert kinds == (["bodies", "note"] if later else ["bodies"])
        assert "phase" in others

    def test_the_same_job_can_start_again(self, services: Services) -> None:
        """G6: as a new run, whatever the old one was."""
        record_run(services)
        erase_in_the_log(services, "job-1")

        assert begin(services, "job-1").run_id == "job-1~2"

    def test_all_in_one_portion_is_the_same(self, services: Services) -> None:
        record_run(services)
        head = services.log.head()
        erase_in_the_log(services, "job-1")
        catch_up(services)

        assert storekeeping.check_views(services) == []
        assert services.log.head().position == head.position + 1

    def test_an_archive_that_is_erased_too_leaves_no_word(self, services: Services) -> None:
        from tachograph import offloading

        record_run(services)
        bodykeeping.offload(services, offloading.plan(services.repository, [("job-1", "?")]))
        catch_up(services)
        erase_in_the_log(services, "job-1")
        catch_up(services)

        assert storekeeping.check_views(services) == []
        with services.views().read() as view:
            found = view.summary("job-1")
        assert found is not None
        assert found["counters"] == {"erased": 10}


class TestPlan:
    def test_payloads_of_payloads_count(self, services: Services) -> None:
        inner = services.payloads.store(LARGE, "x")
        record_run(services, "job-1", output={"inner": inner, "more": "y" * 20_000})
        record_run(services, "job-2", output="small")
        planned = erasurekeeping.plan_erasure(services, "job-1")

        assert len(planned.blobs) == 2
        assert planned.shared == []
        assert planned.records == 9

    def test_a_run_that_is_not_there(self, services: Services) -> None:
        with pytest.raises(RunNotFoundError):
            erasurekeeping.plan_erasure(services, "nobody")

    def test_nothing_is_guessed_where_others_cannot_be_read(self, services: Services) -> None:
        """The payloads stay, and are named: the other run may need them."""
        record_run(services, "job-1", output=LARGE)
        services.log.append([NewRecord("other", 1, "x.y", 0, b"\xc1")])
        planned = erasurekeeping.plan_erasure(services, "job-1")

        assert planned.records == 9
        assert (planned.blobs, len(planned.doubtful), planned.unread) == ([], 1, ["other"])

    def test_without_payloads_it_does_not_matter_what_others_refer_to(
        self, services: Services
    ) -> None:
        record_run(services, "job-1")
        services.log.append([NewRecord("other", 1, "x.y", 0, b"\xc1")])

        assert erasurekeeping.plan_erasure(services, "job-1").records == 9

    def test_what_is_lost_already_can_be_erased_too(self, tmp_path: Path) -> None:
        from tachograph import offloading

        store = make_store(tmp_path / "store", 2, output="text")
        with opened(store) as services:
            bodykeeping.offload(services, offloading.plan(services.repository, [("job-0", "?")]))
            (number,) = services.log.archives()
            Path(bodykeeping.Shelf(str(store)).files.path(number)).unlink()
        erasurekeeping.erase(str(store), "job-0", "a test", actor="test")

        assert list(storekeeping.verify(str(store))) == []
        with opened(store) as services:
            run = services.repository.get("job-0")
        assert run is not None
        assert (run.ended, run.finished) == ("erased", True)


class TestRewriting:
    def environment(self, folder: Path) -> None:
        environment = open_environment(str(folder))
        environment.open_databases(b"one", b"two")
        databases = environment.databases

        def fill(txn: lmdb.Transaction[bytes]) -> None:
            for number in range(2_000):
                txn.put(b"%05d" % number, b"canary %d " % number * 20, db=databases[b"one"])
            txn.put(b"beside", bytes(48))  # as long as the entry of a database
            txn.put(b"nul\0key", bytes(48))
            txn.put(b"k", b"value", db=databases[b"two"])

        environment.update(fill)

        def thin_out(txn: lmdb.Transaction[bytes]) -> None:
            for number in range(2_000):
                if number % 7:
                    txn.delete(b"%05d" % number, db=databases[b"one"])
                else:
                    txn.put(b"%05d" % number, b"short", db=databases[b"one"])

        environment.update(thin_out)
        environment.close()

    def content(self, folder: Path) -> dict[str, list[tuple[bytes, bytes]]]:
        environment = open_environment(str(folder), create=False)
        environment.open_databases(b"one", b"two")
        with environment.read() as txn:
            found = {
                name.decode(): list(txn.cursor(db=environment.databases[name]))
                for name in (b"one", b"two")
            }
            found["beside"] = [pair for pair in txn.cursor() if pair[0] not in (b"one", b"two")]
        environment.close()
        return found

    def test_nothing_that_was_deleted_comes_along(self, tmp_path: Path) -> None:
        """LMDB's own compact copy keeps old bytes in the unused part of pages."""
        folder = tmp_path / "environment"
        self.environment(folder)
        before = self.content(folder)
        assert b"canary" in (folder / "data.mdb").read_bytes()

        lmdb_rewriting.rewrite(str(folder))

        assert b"canary" not in (folder / "data.mdb").read_bytes()
        assert self.content(folder) == before
        assert len(before["one"]) == 286
        assert [key for key, _ in before["beside"]] == [b"beside", b"nul\0key"]
        assert sorted(path.name for path in folder.iterdir()) == [
            "data.mdb",
            "in-use.lock",
            "lock.mdb",
            "tachograph.lock",
        ]

    def test_a_presence_in_use_is_left(self, tmp_path: Path) -> None:
        store = make_store(tmp_path / "store", 1)
        with opened(store) as services:
            begin(services, "job-9").beat()
        presence = Presence(str(store / "presence"))
        presence.beat("other", 1)
        with pytest.raises(StoreBusyError, match="presence"):
            erasurekeeping.erase(str(store), "job-0", "a test", actor="test")
        presence.close()

        assert erasurekeeping.pending(str(store)) == ["job-0"]
        assert erasurekeeping.finish_erasing(str(store), actor="test") == ["job-0"]
        assert erasurekeeping.finish_erasing(str(store), actor="test") == []

    def test_what_cannot_be_opened_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "data.mdb").write_bytes(b"x" * 10_000)
        (tmp_path / "copy").mkdir()
        with pytest.raises(StoreCorruptError):
            lmdb_rewriting.rewrite_into(str(tmp_path), str(tmp_path / "copy"))
        assert lmdb_files.identity(str(tmp_path / "copy")) is None
