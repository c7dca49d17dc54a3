"""Faults that others' task recovery has: none of them is ours. One test, or more, for each.

1 half a card after a crash, and unreadable ones left out; 2 changes without a lock, a run resumed
twice; 3 exhausted retries fall silent; 4 exit code 0 counts as a recovery; 5 the outer time limit
kills the dispatcher and not the adapter; 6 a superseded task writes on; 7 a dry run counts a
retry; 8 only the age of a checkpoint counts as life; 9 local clocks; 10 two ids share a card;
11 each tick reads every card; 12 old history is lost; 13 a typo in a status hides a task.
What concerns card files and the drop-in scripts alone is tested with them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

import pytest
from abandoned import FINISHES, NOTHING, ONE_BATCH, abandon, lives, watch
from command_line import TACHO, history, tacho, topics
from recovering import AUTO, Recovering
from stores import files, opened

from tachograph.domain import errors
from tachograph.domain.ids import InvalidIdError
from tachograph.domain.records import NewRecord

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.session import Session

on_disk = pytest.mark.usefixtures("store_environment")

BLOCKS = """
import os, sys
begun, go = sys.argv[1:]
descriptor = os.open(begun, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(descriptor, b"begun\\n")
with open(go) as pipe:
    pipe.readline()
"""
"""Says that it has begun, and waits until somebody writes into a pipe."""


@on_disk
def test_1_a_run_that_cannot_be_read_is_reported_and_not_left_out(store_path: Path) -> None:
    abandon(store_path)
    with opened(store_path) as services:
        version = services.log.stream_version("job") + 1
        services.log.append([NewRecord("job", version, "run.of-tomorrow", 0, b"\x80")])
    done = tacho("watchdog", "run", "--once", "--auto-resume")

    assert done.returncode not in (0, 75)
    assert "run.of-tomorrow" in done.stderr


@on_disk
def test_1_a_resume_that_is_killed_in_the_middle_leaves_all_or_nothing(store_path: Path) -> None:
    """G2: the new attempt and the resume are one write."""
    abandon(store_path)
    watch()
    with opened(store_path) as services:
        records = services.log.read_stream("job")
    names = [record.topic for record in records]
    first = names.index("run.attempt-started", 3)

    assert names[first : first + 2] == ["run.attempt-started", "run.resume-dispatched"]
    assert list_problems(store_path) == []


def list_problems(store: Path) -> list[Any]:
    with opened(store) as services:
        return list(services.log.verify())


@on_disk
def test_2_two_watchdogs_at_once_resume_a_run_once(store_path: Path, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    os.mkfifo(go)
    abandon(store_path, command=[sys.executable, "-c", BLOCKS + FINISHES, str(begun), str(go)])
    command = [*TACHO, "watchdog", "run", "--once", "--auto-resume", "--json"]
    dogs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        # One of them waits for the adapter, so the first to report is the one that was too late.
        first = wait([dog.stdout.fileno() for dog in dogs if dog.stdout is not None])
        with go.open("w") as pipe:
            pipe.write("go on\n")
        reports = [json.loads(dog.communicate()[0]) for dog in dogs]
    finally:
        for dog in dogs:
            dog.kill()
            dog.wait()

    assert len(first) == 1
    assert begun.read_text() == "begun\n"
    assert topics("job").count("resume-dispatched") == 1
    assert sorted(len(report["recoveries"]) for report in reports) == [0, 1]
    assert sorted(len(report["alerts"]) for report in reports) == [0, 1]


def test_2_nobody_overwrites_what_others_have_changed(tmp_path: Path) -> None:
    """Task, adapter and watchdog change one run at the same time: every change is there."""
    store = tmp_path / "store"
    abandon(store)

    def note(who: str) -> None:
        with opened(store) as services:
            session = services.session("job", 0)
            for number in range(10):
                note_down(session, f"{who} {number}")

    threads = [threading.Thread(target=note, args=(who,)) for who in ("task", "adapter", "dog")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    notes = {fields["text"] for topic, fields in history("job", store) if topic == "run.note-added"}

    assert notes == {
        f"{who} {number}" for who in ("task", "adapter", "dog") for number in range(10)
    }


def note_down(session: Session, text: str) -> None:
    session.execute(lambda run, why: run.add_note(why, text))


@on_disk
def test_3_exhausted_retries_stay_visible_for_ever(store_path: Path) -> None:
    abandon(store_path, NOTHING, max_retries=2)
    reports = [watch() for _ in range(5)]
    told = [[each["reason"] for each in report["needs_attention"]] for report in reports]
    active = [[each["task_id"] for each in report["active_needs_attention"]] for report in reports]

    reason = "auto-resume failed and retries are exhausted"
    assert told == [[], [reason], [], [], []]
    assert active == [[], ["job"], ["job"], ["job"], ["job"]]


@on_disk
def test_4_an_adapter_that_does_nothing_has_recovered_nothing(store_path: Path) -> None:
    abandon(store_path, NOTHING)
    report = watch()
    (tried,) = report["resumed"]

    assert report["recoveries"] == []
    assert (tried["action"], tried["ok"], tried["returncode"]) == ("ineffective", False, 0)
    assert tried["retry_count"] == 1


@on_disk
def test_4_progress_counts_whatever_the_exit_code_says(store_path: Path) -> None:
    abandon(store_path, ONE_BATCH.replace("_exit(0)", "_exit(3)"))
    report = watch()

    assert [each["task_id"] for each in report["recoveries"]] == ["job"]
    assert report["resumed"][0]["error"] == "exit code 3"


CHILDREN = """
import os, subprocess, sys, time
pids = sys.argv[1]
sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(sleeper)
escaped = subprocess.Popen(sleeper, start_new_session=True)
with open(pids, "w") as file:
    file.write(f"{os.getpid()} {child.pid} {escaped.pid}")
time.sleep(600)
"""


@on_disk
def test_5_after_the_time_limit_nothing_of_the_adapter_is_left(
    store_path: Path, tmp_path: Path
) -> None:
    """There is one limit, the adapter's: nothing outside fires first."""
    pids = tmp_path / "pids"
    abandon(store_path, command=[sys.executable, "-c", CHILDREN, str(pids)], timeout_seconds=2)
    report = watch()
    found = [int(pid) for pid in pids.read_text().split()]

    assert len(found) == 3
    assert [pid for pid in found if lives(pid)] == []
    assert report["resumed"][0]["action"] == "error"
    assert "time limit" in report["resumed"][0]["error"]
    assert topics("job")[-1] == "resume-returned"


@on_disk
def test_5_an_adapter_outlives_its_watchdog_and_nobody_runs_beside_it(
    store_path: Path, tmp_path: Path
) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    os.mkfifo(go)
    os.mkfifo(begun)
    abandon(store_path, command=[sys.executable, "-c", BLOCKS + FINISHES, str(begun), str(go)])
    command = [*TACHO, "watchdog", "run", "--once", "--auto-resume"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as dog, begun.open() as adapter:
        assert adapter.readline() == "begun\n"
        dog.kill()
        dog.wait()
        meanwhile = watch()
        with go.open("w") as pipe:
            pipe.write("go on\n")
        assert adapter.read() == ""  # it holds its end of the pipe as long as it lives
    afterwards = watch()

    assert (meanwhile["alerts"], meanwhile["resumed"]) == ([], [])
    assert [each["action"] for each in afterwards["resumed"]] == ["resume"]
    assert [each["task_id"] for each in afterwards["recoveries"]] == ["job"]
    assert topics("job").count("resume-dispatched") == topics("job").count("resume-returned") == 1
    assert topics("job").count("finished") == 1


@on_disk
def test_6_a_task_that_wakes_up_after_it_was_resumed_is_fenced(store_path: Path) -> None:
    """G5: from any process, and even when the run is finished by then."""
    abandon(store_path)
    watch()
    before = topics("job")
    late = {"TACHO_RUN_ID": "job", "TACHO_EPOCH": "1"}
    written = [
        tacho(*words.split(), environment=late)
        for words in ("run batch parse 2", "run checkpoint --state 3", "run finish")
    ]

    assert [done.returncode for done in written] == [6, 6, 6]
    assert "superseded by attempt 2" in written[0].stderr
    assert topics("job") == before


@on_disk
def test_7_a_dry_run_writes_nothing(store_path: Path) -> None:
    abandon(store_path)
    before = files(store_path)
    report = watch("--dry-run")

    assert [each["action"] for each in report["resumed"]] == ["dry-run"]
    assert files(store_path) == before


@on_disk
def test_8_a_living_owner_is_not_resumed_beside_itself(store_path: Path) -> None:
    """However old its last checkpoint is: here at once."""
    from tachograph.infra.processes import describe

    abandon(store_path, owner=describe(os.getpid()), stale_after_seconds=0)
    report = watch()

    assert [each["situation"] for each in report["alerts"]] == ["silent"]
    assert (report["resumed"], topics("job").count("attempt-started")) == ([], 1)


@on_disk
def test_8_a_dead_owner_is_not_waited_for(store_path: Path) -> None:
    """Though its threshold is a day."""
    abandon(store_path, stale_after_seconds=86_400)

    assert [each["task_id"] for each in watch()["recoveries"]] == ["job"]


@pytest.mark.parametrize("seconds", [86_400, -86_400])
def test_9_a_clock_that_is_set_makes_nothing_stale_or_young(seconds: int) -> None:
    bench = Recovering()
    bench.cut_off_alive(AUTO.changed(stale_after_seconds=600))
    bench.watch()
    bench.sets_clock(seconds)
    right_after = bench.watch()
    bench.passes(601)

    assert right_after.stale == []
    assert [each["task_id"] for each in bench.watch().alerts] == ["job"]


@on_disk
def test_9_times_are_in_utc_whatever_the_zone(store_path: Path) -> None:
    abandon(store_path)
    report = watch(environment={"TZ": "Asia/Shanghai"})

    assert report["checked_at"].endswith("Z")
    assert report["recoveries"][0]["recovered_at"].endswith("Z")


def test_10_no_two_ids_share_a_run() -> None:
    """What cannot be an id is refused, and not made to fit."""
    bench = Recovering()
    bench.begin("report-1")
    for text in ("report 1", "report/1", "-report-1", "report-1 "):
        with pytest.raises(InvalidIdError):
            bench.begin(text)

    assert bench.begin("REPORT-1").run_id == "REPORT-1"
    assert bench.run("report-1").epoch == 1


def test_10_to_start_an_id_once_more_wipes_nothing() -> None:
    bench = Recovering()
    bench.cut_off()
    before = bench.topics("job")
    with pytest.raises(errors.InputsChangedError):
        bench.begin(inputs={"other": True})

    assert bench.topics("job") == before
    bench.begin()
    assert bench.topics("job")[: len(before)] == before


def test_11_a_tick_reads_no_run_that_needs_nothing() -> None:
    bench = Recovering()
    for number in range(200):
        bench.begin(f"done-{number}").finish("success")
        bench.begin(f"live-{number}", AUTO.changed(stale_after_seconds=86_400))
    bench.passes(3600)
    bench.watch()
    bench.loads.clear()
    bench.watch()

    assert bench.loads == []


def test_12_the_log_keeps_the_whole_history() -> None:
    """The card shows the last 80 entries; the reason for everything is in the log."""
    bench = Recovering()
    bench.begin()
    for number in range(200):
        add_entry(bench.attempt(), {"event": "checkpoint", "message": f"{number}"})
    kept = [fields["entries"][0]["message"] for fields in bench.fields("job", "card-edited")]

    assert len(bench.run().history) == 80
    assert kept == [str(number) for number in range(200)]


def add_entry(session: Session, entry: dict[str, str]) -> None:
    session.execute(lambda run, why: run.change_card(why, {}, [entry]))


@pytest.mark.parametrize("status", ["runing", "Running", "", "en cours"])
def test_13_a_status_that_nobody_knows_hides_no_run(status: str) -> None:
    bench = Recovering()
    session = bench.cut_off()
    session.execute(lambda run, why: run.change_card(why, {"status": status}))
    report = bench.watch()

    assert [each["task_id"] for each in report.alerts] == ["job"]
    assert [each["task_id"] for each in report.recoveries] == ["job"]
