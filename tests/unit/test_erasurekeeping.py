"""What a person erases is in no file of the store, whoever wrote it there and in whatever order."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_line import here
from dying import in_a_child
from stores import LARGE, begin, opened, record_run

from tachograph import bodykeeping, erasurekeeping, forking, offloading, storekeeping
from tachograph.domain.errors import (
    ErasureNoRoomError,
    ErasurePendingError,
    ErasureUnfinishedError,
    StoreBusyError,
    StoreFullError,
)
from tachograph.infra import body_archive_writing, erasing_marks, remains
from tachograph.infra.body_archives import BodyArchives
from tachograph.infra.cron_files import CronPaths
from tachograph.starting import Start

if TYPE_CHECKING:
    Capture = pytest.CaptureFixture[str]

CANARY = "canary-51c07e"


@pytest.fixture
def store(store_environment: Path) -> Path:
    """Three finished runs; the words of the first are a canary."""
    with opened(store_environment) as services:
        record_run(services, "job-0", output=CANARY)
        record_run(services, "job-1", output="text")
        record_run(services, "job-2", output="text")
    return store_environment


def erase(store: Path, run_id: str = "job-0") -> None:
    erasurekeeping.erase(str(store), run_id, "it names a customer", actor="test")


def archive(store: Path, *run_ids: str) -> Path:
    with opened(store) as services:
        plans = offloading.plan(services.repository, [(each, "success") for each in run_ids])
        (name,) = bodykeeping.offload(services, plans).archives
    return store / "archive" / name


def problems(store: Path) -> list[tuple[str, str]]:
    return [(each.kind, each.detail) for each in storekeeping.verify(str(store))]


def begun(store: Path, run_id: str = "job-0") -> None:
    """Erase a run in the log, and die before anything else."""

    def die() -> None:
        erasurekeeping._destroy = lambda *_: os._exit(9)
        erase(store, run_id)

    in_a_child(die, 0)
    assert erasurekeeping.pending(str(store)) == [run_id]


class TestPlaces:
    """One list says where a run's words can be, for the preview and for the cleaning."""

    @pytest.fixture
    def named(self, store: Path) -> list[str]:
        """What a cron line and job runs leave in the store, under the names they give it."""
        paths = CronPaths(str(store / "cron"), "nightly", "job-0", str(store / "cron" / "guard"))
        folder = store / "cron" / "20261130" / "job-runs" / "job-0"
        alone = store / "tree" / "20261130" / "job-runs-standalone" / "job-0"
        files = [
            *map(Path, (paths.log, paths.exit, paths.summary, paths.validation)),
            Path(paths.day) / "nightly-job-0.report.md",
            Path(paths.day) / ".nightly-job-0.summary.json.tmp-x1",
            store / "cron" / "job-0.summary.json",
            store / "cron" / "nightly-job-0.stderr.txt",
        ]
        for path in (*files, folder / "summary.json", alone / "events.jsonl"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(CANARY)
        return sorted(map(str, (*files, folder, alone)))

    def test_the_preview_names_what_goes(
        self, store: Path, named: list[str], capsys: Capture
    ) -> None:
        shown = json.loads(here(capsys, "store", "erase", "job-0", "--json").stdout)
        text = here(capsys, "store", "erase", "job-0").stdout

        assert shown["files"] == named
        assert [line for line in text.splitlines() if line.startswith("Goes: ")] == [
            f"Goes: {path}" for path in named
        ]
        assert all(map(os.path.exists, named))

    def test_what_the_preview_names_goes(self, store: Path, named: list[str]) -> None:
        erase(store)

        assert not any(map(os.path.exists, named))
        assert problems(store) == []

    def test_files_of_other_runs_stay(self, store: Path) -> None:
        """A longer id that fits is whose file it is; so is a name that only looks alike."""
        with opened(store) as services:
            record_run(services, "night-job-0")
            record_run(services, "job-0.5")
        cron = store / "cron" / "20261130"
        (cron / "job-runs" / "job-01").mkdir(parents=True)
        names = ("a-job-01.log", "a-night-job-0.log", "a-job-0.5.log", "a-job-1.log", "myjob-0.log",
                 "job-0", "a-job-0-b.log")  # fmt: skip
        for name in names:
            (cron / name).write_text("of another one")
        (store / "config").write_text("")
        erase(store)

        assert sorted(path.name for path in cron.iterdir()) == sorted(["job-runs", *names])
        assert (cron / "job-runs" / "job-01").is_dir()

    def test_an_id_within_an_id_is_told_apart(self) -> None:
        known = {"a", "x-a", "a.b"}.__contains__

        assert remains._is_of("job-a.log", "a", known)
        assert not remains._is_of("job-x-a.log", "a", known)
        assert remains._is_of("job-x-a.log", "x-a", known)
        assert not remains._is_of("job-a.b.log", "a", known)
        assert remains._is_of("aa-a.log", "a", known)

    def test_an_archive_of_runs_anywhere_in_the_store_loses_it(
        self, store: Path, capsys: Capture
    ) -> None:
        own = store / "kept" / "deep"
        here(capsys, "run", "archive", "job-0", "--output", own)
        here(capsys, "run", "archive", "job-0", "job-1", "--output", store / "kept")
        (both,) = (store / "kept").glob("*.tar.zst")
        shown = json.loads(here(capsys, "store", "erase", "job-0", "--json").stdout)
        assert shown["rewritten"] == sorted(map(str, (both, own / "job-0.tar.zst")))
        assert shown["outside"] == []
        erase(store)

        checked = here(capsys, "run", "archive", "--check", both, "--json")
        assert json.loads(checked.stdout)["whole"]
        assert list(own.iterdir()) == []
        assert problems(store) == []

    def test_a_store_that_is_reached_by_a_link_is_the_same_store(
        self, store: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        link = tmp_path / "link"
        link.symlink_to(store)
        here(capsys, "run", "archive", "job-0", "--output", store / "kept")
        here(capsys, "run", "archive", "job-0", "--store", link)
        shown = json.loads(
            here(capsys, "store", "erase", "job-0", "--store", link, "--json").stdout
        )
        assert len(shown["rewritten"]) == 2
        assert shown["outside"] == []
        erase(link)

        assert list(store.rglob("*.tar.zst")) == []

    def test_a_folder_of_the_store_that_is_a_link_is_cleaned_too(
        self, store: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        (tmp_path / "disk").mkdir()
        (store / "archives").symlink_to(tmp_path / "disk")
        here(capsys, "run", "archive", "job-0")
        erase(store)

        assert list((tmp_path / "disk").iterdir()) == []

    def test_recorded_files_in_the_store_are_named(self, store: Path, capsys: Capture) -> None:
        """They are of no kind that is known to be only its own."""
        report = store / "reports" / "all.txt"
        report.parent.mkdir()
        report.write_text("of many runs")
        with opened(store) as services:
            session = begin(services, "job-8")
            session.execute(
                lambda run, why: run.record_artifact(
                    why, "report", path=str(report), size=10, sha256="ab"
                )
            )
            session.finish("success")
        done = here(capsys, "store", "erase", "job-8", "--reason", "a test", "--apply")

        assert f"Recorded by it, left alone: {report}" in done.stdout
        assert report.exists()


class TestRelatives:
    def test_runs_that_may_hold_copies_are_named(self, store: Path, capsys: Capture) -> None:
        with opened(store) as services:
            forking.fork(services.repository, services.actor, "job-0", run_id="fork")
            forking.fork(services.repository, services.actor, "fork", run_id="fork-of-fork")
            for run_id, parent in (("within", "job-0"), ("deeper", "within"), ("alone", None)):
                start = Start("step", {"n": 2}, run_id=run_id, parent=parent)
                services.starter.start(start, services.owner()).finish("success")
            services.session("fork", 0).execute(lambda run, why: run.cancel(why, "a test"))
        shown = json.loads(here(capsys, "store", "erase", "job-0", "--json").stdout)
        of_fork = json.loads(here(capsys, "store", "erase", "fork", "--json").stdout)
        of_deeper = json.loads(here(capsys, "store", "erase", "deeper", "--json").stdout)
        text = here(capsys, "store", "erase", "job-0").stdout

        assert {each["jobRunId"]: each["relation"] for each in shown["related"]} == {
            "fork": "fork",
            "fork-of-fork": "fork",
            "within": "within",
            "deeper": "within",
        }
        assert {each["jobRunId"]: each["relation"] for each in of_fork["related"]} == {
            "job-0": "source",
            "fork-of-fork": "fork",
        }
        assert [each["relation"] for each in of_deeper["related"]] == ["parent", "parent"]
        assert "May hold copies of its words, left alone: fork-of-fork (a fork of it)" in text


class TestPending:
    def test_no_backup_is_made_of_what_is_erased_in_part(
        self, store: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        """G13: it would hold all of it, and not the note that it is being erased."""
        begun(store)
        done = here(capsys, "store", "backup", tmp_path / "backup")

        assert done.returncode == 1
        assert "tacho store erase job-0 --reason … --apply" in done.stderr
        assert not (tmp_path / "backup").exists()
        erase(store)
        assert here(capsys, "store", "backup", tmp_path / "backup").returncode == 0

    def test_an_erasing_that_begins_during_a_backup_spoils_it(
        self, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """G13: the copy may hold the log as it is after the commit, all bytes on free pages."""
        from tachograph.infra.store_files import StoreFiles

        copy_log = StoreFiles.copy_log

        def meanwhile(files: StoreFiles, target: str) -> None:
            erasing_marks.mark(str(store), ["job-0"])
            copy_log(files, target)

        monkeypatch.setattr(StoreFiles, "copy_log", meanwhile)
        with opened(store) as services, pytest.raises(ErasurePendingError):
            storekeeping.backup(services, str(tmp_path / "backup"))

        assert list(tmp_path.glob("backup*")) == []

    def test_an_export_of_it_holds_none_of_it(self, store: Path) -> None:
        """So it needs no refusal: it is made of bodies, and those are gone with the commit."""
        begun(store)
        lines: list[str] = []
        with opened(store) as services:
            storekeeping.export(services, lines.append)

        assert CANARY not in "".join(lines)

    def test_two_at_the_same_time_lose_no_note(self, store: Path) -> None:
        """One lock is held from the first look to the last file."""
        with erasing_marks.sole(str(store)), pytest.raises(StoreBusyError, match="erases a run"):
            erase(store)
        with erasing_marks.sole(str(store)), pytest.raises(StoreBusyError, match="erases a run"):
            erasurekeeping.finish_erasing(str(store), actor="test")

        assert erasurekeeping.pending(str(store)) == []
        begun(store, "job-0")
        erase(store, "job-1")
        assert problems(store) == []
        assert erasurekeeping.pending(str(store)) == []
        with opened(store) as services:
            assert erasurekeeping.erased_runs(services.log) == {"job-0", "job-1"}

    def test_a_note_of_what_was_never_erased_goes(self, store: Path) -> None:
        erasing_marks.mark(str(store), ["job-1"])

        assert erasurekeeping.finish_erasing(str(store), actor="test") == []
        assert erasurekeeping.pending(str(store)) == []


class TestPutBack:
    """What was erased and lies there again, from an older backup, is found and goes again."""

    def doctor(self, capsys: Capture) -> str:
        return next(
            line
            for line in here(capsys, "doctor").stdout.splitlines()
            if line.split()[1:2] == ["erasing"]
        )

    @pytest.mark.parametrize("others", [(), ("job-1", "job-2")])
    def test_an_archive_of_bodies(
        self, store: Path, tmp_path: Path, capsys: Capture, others: tuple[str, ...]
    ) -> None:
        path = archive(store, "job-0", *others)
        shutil.copy(path, tmp_path / "older")
        erase(store)
        assert problems(store) == []
        shutil.copy(tmp_path / "older", path)
        done = here(capsys, "store", "verify")

        assert problems(store) == [("surplus", f"job-0 was erased, and 9 bodies are in {path}")]
        assert "tacho store erase RUN" in done.stderr
        assert self.doctor(capsys).startswith("fail")
        erase(store)
        assert problems(store) == []
        assert self.doctor(capsys).startswith("ok")
        assert path.exists() is bool(others)

    def test_archives_of_runs_and_files_of_a_run(
        self, store: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        here(capsys, "run", "archive", "job-0")
        path = store / "archives" / "job-0.tar.zst"
        shutil.copy(path, tmp_path / "older")
        erase(store)
        shutil.copy(tmp_path / "older", path)
        log = store / "cron" / "nightly-job-0.log"
        log.parent.mkdir()
        log.write_text(CANARY)

        assert problems(store) == [
            ("surplus", f"job-0 was erased, and {log} is there"),
            ("surplus", f"job-0 was erased, and it is in {path}"),
        ]
        erase(store)
        assert problems(store) == []

    def test_an_archive_of_an_erased_run_holds_nothing_of_it(
        self, store: Path, capsys: Capture
    ) -> None:
        erase(store)
        done = here(capsys, "run", "archive", "job-0", "job-1")

        assert done.returncode == 0
        assert problems(store) == []

    def test_an_archive_that_was_written_and_not_used_yet_is_no_surplus(self, store: Path) -> None:
        """A kill has left it; the bodies are in the log too."""
        path = archive(store, "job-0")
        shutil.copy(path, path.with_name("000000000999.zst"))
        with opened(store) as services:
            record_run(services, "job-3")
            bodies = [(r.position, r.body) for r in services.log.read_stream("job-3")]
        from tachograph.infra.layout import name_key

        files = BodyArchives(str(store / "archive"))
        body_archive_writing.write(files, 998, [(name_key("job-3"), bodies)])

        assert problems(store) == []


class TestLost:
    def test_a_lost_archive_hinders_no_other_erasing(self, store: Path, capsys: Capture) -> None:
        with opened(store) as services:
            record_run(services, "job-5", output=LARGE)
        archive(store, "job-1").unlink()
        done = here(capsys, "store", "erase", "job-5", "--reason", "a test", "--apply", "--json")
        shown = json.loads(done.stdout)

        assert done.returncode == 0
        assert (shown["blobs"], len(shown["doubtfulBlobs"]), shown["unread"]) == ([], 1, ["job-1"])

    @pytest.mark.parametrize("twice", [False, True])
    def test_a_run_whose_bodies_are_lost_can_be_erased(self, store: Path, *, twice: bool) -> None:
        lost = [archive(store, "job-0")]
        if twice:
            with opened(store) as services:
                services.session("job-0", 0).execute(lambda run, why: run.add_note(why, "seen"))
            lost.append(archive(store, "job-0"))
        for path in lost:
            path.unlink()
        erase(store)

        assert problems(store) == []
        with opened(store) as services:
            run = services.repository.get("job-0")
            assert services.log.archives() == {}
        assert run is not None
        assert run.ended == "erased"


class TestNoRoom:
    def fail(self, monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
        def refuse(*_: object) -> None:
            raise error

        monkeypatch.setattr(erasurekeeping, "_rewrite_bodies", refuse)

    def test_it_says_that_it_is_erased_in_the_log_and_what_to_do(
        self, store: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            self.fail(patch, OSError(errno.ENOSPC, "No space left on device"))
            with pytest.raises(ErasureNoRoomError):
                erase(store, "job-1")
            done = here(capsys, "store", "erase", "job-0", "--reason", "a test", "--apply")
        assert done.returncode == 75
        assert "is erased in the log of the store" in done.stderr
        assert "give the same command again: it does the rest" in done.stderr
        assert "Nothing of this command was recorded" not in done.stderr
        assert erasurekeeping.pending(str(store)) == ["job-1"]
        erase(store)

        assert problems(store) == []
        assert erasurekeeping.pending(str(store)) == []

    def test_another_failure_says_so_too(
        self, store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.fail(monkeypatch, OSError(errno.EIO, "Input/output error"))
        with pytest.raises(ErasureUnfinishedError, match="job-0 is erased in the log"):
            erase(store)

    def test_what_could_not_begin_is_left_as_it_was(
        self, store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(erasing_marks, "write_atomically", refuse)
        with pytest.raises(StoreFullError, match="Nothing of this command was recorded"):
            erase(store)

        assert not (store / "erasing").exists()
        with opened(store) as services:
            assert services.repository.get("job-0").bodies is None  # type: ignore[union-attr]
