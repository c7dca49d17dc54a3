"""The files of a cron job: where they go, and that no trace is lost or half."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tachograph.infra import cron_files, cron_reading
from tachograph.infra.job_lock import JobLock, named_run

RUN_ID = "20240508T021530Z-7"


def head(run_id: str) -> str:
    return f"RUN_ID={run_id}"


def begin(
    root: Path, *more: Path, run_id: str | None = None, fresh: str = RUN_ID
) -> tuple[cron_files.CronPaths | None, list[OSError]]:
    choices = [(str(each), str(each / "guard")) for each in (root, *more)]
    return cron_files.begin(choices, "job", run_id, lambda: fresh, "first", head)


class TestRoots:
    """Which folder it is."""

    def roots(
        self, home: Path, named: str | None = None, store: str | None = "/s", **environment: str
    ) -> list[tuple[str, str]]:
        return cron_files.roots(
            named,
            {"USER": "ann", **environment},
            str(home),
            store,
            "/tmp",
        )

    def test_a_store_holds_them_where_nothing_else_is_said(self, tmp_path: Path) -> None:
        assert self.roots(tmp_path) == [
            ("/s/cron", "/s/cron/guard"),
            ("/tmp/openclaw-cron-hybrid-mem-ann", "/s/cron/guard"),
        ]

    def test_openclaws_folder_counts_when_it_is_there(self, tmp_path: Path) -> None:
        logs = tmp_path / ".openclaw" / "logs" / "cron-hybrid-mem"
        logs.mkdir(parents=True)

        assert self.roots(tmp_path)[0] == (
            str(logs),
            str(tmp_path / ".openclaw" / "cron" / "guard"),
        )

    def test_openclaws_folder_counts_when_it_is_named(self, tmp_path: Path) -> None:
        home = tmp_path / "claw"

        assert self.roots(tmp_path, OPENCLAW_HOME=str(home))[0] == (
            str(home / "logs" / "cron-hybrid-mem"),
            str(home / "cron" / "guard"),
        )

    def test_a_named_folder_wins(self, tmp_path: Path) -> None:
        given = self.roots(tmp_path, "~/logs", OPENCLAW_HOME="/claw")

        assert given[0] == (str(tmp_path / "logs"), str(tmp_path / "logs" / "guard"))

    def test_without_a_store_there_is_the_folder_for_temporary_files(self, tmp_path: Path) -> None:
        assert [root for root, _ in self.roots(tmp_path, store=None)] == [
            "/tmp/openclaw-cron-hybrid-mem-ann"
        ]


class TestBegin:
    """The first traces."""

    def test_the_first_row_and_the_head_are_there_at_once(self, tmp_path: Path) -> None:
        paths, problems = begin(tmp_path / "deep" / "root")

        assert paths is not None
        assert problems == []
        assert (tmp_path / "deep/root" / f"job-{RUN_ID}.exit.txt").read_text() == "first\n"
        assert (tmp_path / "deep/root" / f"job-{RUN_ID}.log").read_text() == f"RUN_ID={RUN_ID}\n"
        assert paths.summary.endswith(f"/20240508/job-{RUN_ID}.summary.json")
        assert stat.S_IMODE(Path(paths.log).stat().st_mode) == 0o600

    def test_two_runs_of_one_second_have_two_names(self, tmp_path: Path) -> None:
        begin(tmp_path)
        ids = iter([RUN_ID, RUN_ID, "20240508T021530Z-8"])
        choices = [(str(tmp_path), str(tmp_path))]
        paths, _ = cron_files.begin(choices, "job", None, lambda: next(ids), "first", head)

        assert paths is not None and paths.run_id == "20240508T021530Z-8"

    def test_a_run_that_is_taken_up_goes_on_in_its_files(self, tmp_path: Path) -> None:
        begin(tmp_path)
        _paths, problems = begin(tmp_path, run_id=RUN_ID)

        assert problems == []
        assert (tmp_path / f"job-{RUN_ID}.exit.txt").read_text() == "first\nfirst\n"

    def test_the_next_folder_is_taken_when_one_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        paths, problems = begin(tmp_path / "file" / "root", tmp_path / "other")

        assert paths is not None and paths.root == str(tmp_path / "other")
        assert len(problems) == 1

    def test_no_folder_at_all_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        paths, problems = begin(tmp_path / "file" / "a", tmp_path / "file" / "b")

        assert paths is None
        assert len(problems) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_disk_stops_the_log_and_is_told_once() -> None:
    told: list[OSError] = []
    log = cron_files.LogFile("/dev/full", told.append)
    for _ in range(3):
        log.add(b"more")
    log.close()

    assert [error.strerror for error in told] == ["No space left on device"]
    assert log.error is told[0]


def test_a_log_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("before\n")
    told: list[OSError] = []
    log = cron_files.LogFile(str(path), told.append)
    log.add(b"\xff out")
    log.add(b"")
    log.line(" and a line")
    log.close()
    log.close()

    assert path.read_bytes() == b"before\n\xff out\n and a line\n"
    assert told == []


def test_a_row_below_a_torn_line_is_on_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "exit.txt"
    path.write_text("t a exit=0\nt b ex")
    cron_files.append_line(str(path), "t c exit=0")

    assert path.read_text() == "t a exit=0\nt b ex\nt c exit=0\n"


def test_no_row_above_the_begin_of_an_execution_counts(tmp_path: Path) -> None:
    path = tmp_path / "exit.txt"
    path.write_text(
        "t a exit=0\nt harness-bootstrap exit=0 status=started reason=harness_execution_started\n"
    )

    assert not cron_reading.has_good_rows(str(path), ["a"])


def test_json_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    path.write_text("old")
    cron_files.write_json(str(path), {"ä": 1})

    assert json.loads(path.read_text("utf-8")) == {"ä": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["v.json"]


def test_a_guard_holds_milliseconds(tmp_path: Path) -> None:
    cron_files.write_guard(str(tmp_path / "guard" / "job.ms"), 1_715_134_530_250)

    assert (tmp_path / "guard" / "job.ms").read_text() == "1715134530250"


@pytest.mark.parametrize(
    ("rows", "good"),
    [
        ("t a exit=0\nt b exit=0 status=ok\n", True),
        ("t step=a exit=0\nt b-skipped exit=0\n", True),
        ("t a exit=0\n", False),
        ("t a exit=0\nt b exit=1\n", False),
        ("t a exit=0\nt b exit=1\nt b exit=0\n", True),
        ("t a exit=0\nt b exit=0\nt b exit=1\n", False),
        ("t a exit=0\nt bb exit=0\n", False),
        ("t a exit=0\nt b exit=00\n", False),
        ("t a exit=0\nlog says: t b exit=0\n", False),
    ],
)
def test_the_second_look_sees_only_rows(rows: str, good: bool, tmp_path: Path) -> None:
    path = tmp_path / "exit.txt"
    path.write_text(rows)

    assert cron_reading.has_good_rows(str(path), ["a", "b"]) is good


@pytest.mark.parametrize(
    ("stem", "day"),
    [
        ("job-20240508T021530Z-7", "20240508"),
        ("job-2024-05-08T02-15-30-000Z", "20240508"),
        ("job-20240508.cron", "20240508"),
        ("job", None),
    ],
)
def test_the_day_of_a_run_is_in_its_name(stem: str, day: str | None) -> None:
    assert cron_reading.day_of(stem) == day


def test_of_a_long_file_both_ends_are_read_and_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cron_reading, "MOST_READ", 4)
    (tmp_path / "log").write_text("0123456789")
    files = cron_reading.CronFiles()

    assert files.text(str(tmp_path / "log")) == "01\n--- bytes not read: 6 ---\n89"
    assert [each.text for each in files.left] == ["6 bytes in it were not read"]


class TestJobLock:
    """One at a time."""

    def test_the_second_holder_is_told_the_run_of_the_first(self, tmp_path: Path) -> None:
        with JobLock(str(tmp_path / "cron"), "job") as first:
            first.name("run-1")
            with JobLock(str(tmp_path / "cron"), "job") as second:
                assert (second.taken, second.last_run) == (True, "run-1")

    def test_it_is_free_again_and_remembers(self, tmp_path: Path) -> None:
        with JobLock(str(tmp_path), "job") as first:
            assert (first.taken, first.last_run) == (False, None)
            first.name("run-1")
        with JobLock(str(tmp_path), "job") as second:
            assert (second.taken, second.last_run) == (False, "run-1")

    def test_it_is_named_as_soon_as_it_is_had(self, tmp_path: Path) -> None:
        with JobLock(str(tmp_path), "job") as first:
            first.name("run-1")
        with JobLock(str(tmp_path), "job", "run-2") as second:
            assert (second.last_runs, named_run(str(tmp_path), "job")) == (["run-1"], "run-2")
        with JobLock(str(tmp_path), "job", "run-3") as third:  # neither has been seen to end
            assert third.last_runs == ["run-2", "run-1"]
            third.name("run-3")
        with JobLock(str(tmp_path), "job") as fourth:
            assert fourth.last_runs == ["run-3"]

    def test_other_jobs_are_not_in_the_way(self, tmp_path: Path) -> None:
        with JobLock(str(tmp_path), "job"), JobLock(str(tmp_path), "other") as other:
            assert not other.taken
