"""Which runs leave the log, and what becomes of those that were begun and killed."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from stores import begin, make_store, opened, record_run

from tachograph import bodykeeping, erasurekeeping, offloading, storekeeping
from tachograph.domain.errors import (
    BodiesStayError,
    BodyLostError,
    StoreExistsError,
    StoreFailedError,
    StoreFullError,
)
from tachograph.domain.records import NewRecord
from tachograph.infra.body_archives import BodyArchives, name_of
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.bootstrap import Services
    from tachograph.offloading import Offload


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    with opened(tmp_path / "store") as services:
        yield services


def plan(services: Services, *run_ids: str) -> list[Offload]:
    return offloading.plan(services.repository, [(run_id, "status") for run_id in run_ids])


def archive(services: Services, *run_ids: str) -> offloading.Offloaded:
    return bodykeeping.offload(services, plan(services, *run_ids))


def files(services: Services) -> BodyArchives:
    return bodykeeping.Shelf(services.folder).files


class TestWhatStays:
    def test_an_unfinished_run_stays(self, services: Services) -> None:
        record_run(services, "job-1", outcome=None)
        record_run(services, "job-2", outcome="partial")

        assert [each.why for each in plan(services, "job-1", "job-2")] == [
            "the run is unfinished (status)"
        ] * 2
        assert archive(services, "job-1", "job-2").events == 0
        assert files(services).numbers() == []

    def test_a_run_stays_while_its_orchestrator_is_unfinished(self, services: Services) -> None:
        begin(services, "orch-1")
        nested = Start("report", {"n": 2}, run_id="job-1", parent="orch-1")
        services.starter.start(nested, services.owner()).finish("success")

        (stays,) = plan(services, "job-1")
        services.session("orch-1", 1).finish("success")
        (goes,) = plan(services, "job-1")

        assert stays.why == "its orchestrator run orch-1 is unfinished"
        assert goes.why is None

    def test_an_orchestrator_that_is_not_in_the_log_keeps_nothing(self, services: Services) -> None:
        nested = Start("report", {"n": 2}, run_id="job-1", parent="orch-elsewhere")
        services.starter.start(nested, services.owner()).finish("success")

        assert plan(services, "job-1")[0].why is None

    def test_what_is_not_there_stays(self, services: Services) -> None:
        assert plan(services, "nothing")[0].why == "there is no such run"

    def test_what_was_erased_stays_so(self, tmp_path: Path) -> None:
        store = make_store(tmp_path / "store", 1)
        erasurekeeping.erase(str(store), "job-0", "a test", actor="test")
        with opened(store) as services:
            why = plan(services, "job-0")[0].why

        assert why is not None
        assert why.startswith("they were erased on ")

    def test_what_was_archived_is_not_archived_again(self, services: Services) -> None:
        record_run(services)
        archive(services, "job-1")

        assert plan(services, "job-1")[0].why == offloading.ALREADY

    def test_no_command_records_it_of_an_unfinished_run(self, services: Services) -> None:
        record_run(services, outcome=None)
        session = services.session("job-1", 0)

        with pytest.raises(BodiesStayError, match="tacho run cancel job-1"):
            session.execute(
                lambda run, why: run.record_bodies_archived(
                    why, "a.zst", sha256="ab", up_to=1, records=1
                )
            )
        with pytest.raises(BodiesStayError, match="it is unfinished"):
            session.execute(lambda run, why: run.erase_bodies(why, "why not", records=1))


class TestWhatGoes:
    def test_the_event_says_where_the_bodies_are(self, services: Services) -> None:
        record_run(services)
        plans = plan(services, "job-1")
        done = bodykeeping.offload(services, plans, "the disk is full")
        fields = services.repository.fields(services.log.read(reverse=True, limit=1)[0])
        section = next(iter(files(services).sections(9).values()))

        assert done.archives == [name_of(9)]
        assert (plans[0].events, done.events, done.runs) == (9, 9, 1)
        assert {name: fields[name] for name in ("archive", "up_to", "records", "reason")} == {
            "archive": name_of(9),
            "up_to": 9,
            "records": 9,
            "reason": "the disk is full",
        }
        assert fields["sha256"] == section.sha256

    def test_what_came_later_goes_the_next_time(self, services: Services) -> None:
        record_run(services)
        archive(services, "job-1")
        services.session("job-1", 0).execute(lambda run, why: run.add_note(why, "looked at it"))
        done = archive(services, "job-1")

        assert done.events == 2
        assert services.log.archives() == {9: 9, 11: 2}
        assert services.repository.get("job-1").notes == 1  # type: ignore[union-attr]

    def test_runs_share_an_archive_up_to_a_size(
        self, services: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(offloading, "MOST_RUNS", 2)
        for number in range(5):
            record_run(services, f"job-{number}")
        done = archive(services, *(f"job-{number}" for number in range(5)))

        assert len(done.archives) == 3
        assert list(services.log.archives().values()) == [18, 18, 9]

    def test_bodies_are_replaced_a_few_at_a_time(
        self, services: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(offloading, "PAGE", 4)
        record_run(services)
        before = services.environment.last_transaction()
        archive(services, "job-1")

        assert services.environment.last_transaction() - before == 4  # the event, and 9 bodies

    def test_others_record_meanwhile(
        self, services: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A remark that comes between the plan and the event stays in the log."""
        record_run(services)
        plans = plan(services, "job-1")
        services.session("job-1", 0).execute(lambda run, why: run.add_note(why, "just now"))
        bodykeeping.offload(services, plans)

        assert services.log.archives() == {10: 9}
        assert services.repository.get("job-1").notes == 1  # type: ignore[union-attr]

    def test_two_who_had_the_same_plan_move_it_once(self, services: Services) -> None:
        record_run(services)
        first, second = plan(services, "job-1"), plan(services, "job-1")

        assert bodykeeping.offload(services, first).events == 9
        assert bodykeeping.offload(services, second).events == 0
        assert services.log.archives() == {9: 9}

    def test_a_full_disk_changes_nothing(
        self, services: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(_descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        record_run(services)
        before = services.log.read(limit=None)
        monkeypatch.setattr("tachograph.infra.body_archive_writing.sync_file", full)
        with pytest.raises(StoreFullError):
            archive(services, "job-1")

        assert services.log.read(limit=None) == before
        assert files(services).numbers() == []

    def test_a_disk_that_lies_changes_nothing(
        self, services: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        record_run(services)
        before = services.log.read(limit=None)
        monkeypatch.setattr(BodyArchives, "bodies", lambda *_: iter([]))
        with pytest.raises(StoreFailedError, match="reads back"):
            archive(services, "job-1")

        assert services.log.read(limit=None) == before

    def test_no_archive_is_written_over(self, services: Services) -> None:
        shelf = bodykeeping.Shelf(services.folder)
        shelf.write(3, [("job-1", [(1, b"body")])])

        with pytest.raises(StoreExistsError):
            shelf.write(3, [("job-2", [(2, b"other")])])

    def test_a_run_that_was_erased_meanwhile_is_passed_over(self, services: Services) -> None:
        record_run(services)
        plans = plan(services, "job-1")
        run = services.repository.get("job-1")
        assert run is not None
        run.erase_bodies(services.actor.cause(), "just now", records=9)
        services.log.erase(services.repository.record_of(run.collect_events()[0]))
        done = bodykeeping.offload(services, plans)

        assert (done.runs, done.events) == (0, 0)
        assert services.log.archives() == {}


class TestTakingUp:
    def test_what_was_announced_is_moved_without_a_new_archive(
        self, services: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        record_run(services)
        with monkeypatch.context() as patch:
            patch.setattr(offloading, "_replace", lambda *_: 0)
            archive(services, "job-1")
        assert services.log.archives() == {}

        done = archive(services, "job-1")

        assert (done.archives, done.events) == ([], 9)
        assert services.log.archives() == {9: 9}

    def test_an_announced_archive_that_was_lost_is_written_anew(
        self, services: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        record_run(services)
        with monkeypatch.context() as patch:
            patch.setattr(offloading, "_replace", lambda *_: 0)
            archive(services, "job-1")
        Path(files(services).path(9)).unlink()

        done = archive(services, "job-1")

        assert done.archives == [name_of(10)]
        assert services.log.archives() == {10: 10}
        assert [each.body for each in services.log.read(limit=9)] != []

    def test_what_nobody_refers_to_is_removed(self, services: Services) -> None:
        record_run(services)
        shelf = bodykeeping.Shelf(services.folder)
        shelf.write(3, [("job-1", [(1, b"left by a killed one")])])
        (Path(shelf.files.folder) / "tmp-8").write_bytes(b"half")
        archive(services, "job-1")

        assert shelf.files.numbers() == [9]
        assert sorted(path.name for path in Path(shelf.files.folder).iterdir()) == [
            name_of(9),
            "lock",
        ]


class TestLoss:
    @pytest.fixture
    def lost(self, services: Services) -> str:
        """Two runs, the first with a lost archive."""
        for run_id in ("job-1", "job-2"):
            record_run(services, run_id)
            archive(services, run_id)
        path = files(services).path(9)
        Path(path).unlink()
        return path

    def test_verify_names_the_file_and_what_is_lost(self, tmp_path: Path) -> None:
        store = make_store(tmp_path / "store", 2)
        with opened(store) as services:
            archive(services, "job-1")
            path = files(services).path(18)
        data = Path(path).read_bytes()
        Path(path).write_bytes(data[:-1])
        cut = [(each.kind, each.detail) for each in storekeeping.verify(str(store))]
        Path(path).unlink()
        lost = [(each.kind, each.detail) for each in storekeeping.verify(str(store))]
        Path(path).write_bytes(data)

        what = "9 bodies of job-1 (versions 1 to 9) are lost"
        assert lost == [
            ("archive", f"{what}: {path} is missing"),
            ("archive", f"{path} is missing"),
        ]
        assert [kind for kind, _ in cut] == ["archive", "archive"]
        assert cut[0][1] == f"{what}: {path} was cut off, or is no archive of bodies"
        assert list(storekeeping.verify(str(store))) == []

    def test_everything_else_stays_readable(self, services: Services, lost: str) -> None:
        storekeeping.rebuild(services)
        with services.views().read() as view:
            summaries = [view.summary(run_id) for run_id in ("job-1", "job-2")]
        other = services.repository.get("job-2")

        assert other is not None
        assert other.outcome == "success"
        assert [each and each["ended"] for each in summaries] == ["unreadable", None]
        assert [each and each["outcome"] for each in summaries] == [None, "success"]
        with pytest.raises(BodyLostError, match=name_of(9)):
            services.repository.get("job-1")

    def test_the_same_job_can_start_again(self, services: Services, lost: str) -> None:
        again = Start("report", {"n": 1}, run_id="job-1")

        assert services.starter.start(again, services.owner()).run_id == "job-1~2"

    def test_other_runs_can_still_be_archived(self, services: Services, lost: str) -> None:
        services.session("job-2", 0).execute(lambda run, why: run.add_note(why, "a remark"))
        last = services.log.read(reverse=True, limit=1)[0]
        note = NewRecord("job-1", 11, "run.note-added", last.time_us, last.body)
        services.log.append([note])
        first, second = plan(services, "job-1", "job-2")

        assert first.why is not None
        assert lost in first.why
        assert second.why is None

    def test_the_file_put_back_makes_all_good(self, services: Services) -> None:
        record_run(services)
        archive(services, "job-1")
        path = Path(files(services).path(9))
        data = path.read_bytes()
        path.unlink()
        storekeeping.rebuild(services)
        lost = bodykeeping.quick_look(services)
        path.write_bytes(data)
        storekeeping.rebuild(services)

        assert lost == (1, [f"{path} is missing: 9 bodies are lost"], [])
        assert bodykeeping.quick_look(services) == (1, [], [])
        with services.views().read() as view:
            found = view.summary("job-1")
        assert found is not None
        assert (found["ended"], found["outcome"]) == (None, "success")

    def test_an_archive_that_nobody_needs_is_seen(self, services: Services) -> None:
        shelf = bodykeeping.Shelf(services.folder)
        shelf.write(3, [("job-1", [(1, b"left")])])

        assert bodykeeping.quick_look(services) == (0, [], [shelf.files.path(3)])

    def test_a_backup_holds_the_archives(self, services: Services, tmp_path: Path) -> None:
        record_run(services)
        archive(services, "job-1")
        made = storekeeping.backup(services, str(tmp_path / "backup"))

        assert made.problems == []
        with opened(tmp_path / "backup") as copy:
            assert copy.log.read(limit=None) == services.log.read(limit=None)
            assert copy.log.archives() == {9: 9}
