"""The store commands print what the use cases found, and end with the right code."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from command_line import TACHO, here, tacho
from stores import files, make_store, opened, record_run

from tachograph.infra.processes import describe
from tachograph.queuekeeping import index_of, queues_of
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def store(store_environment: Path) -> Path:
    """The store that the commands use: two runs, one payload."""
    return make_store(store_environment)


def document(capsys: Capture, *arguments: str | Path, code: int = 0) -> Any:
    done = here(capsys, *arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def blob(store: Path) -> Path:
    (path,) = (store / "blobs").glob("??/*")
    return path


# Every command


READING = [
    ("store", "info"),
    ("store", "verify"),
    ("store", "export"),
    ("store", "export", "--run", "job-1"),
    ("store", "compact", "--dry-run"),
    ("run", "list"),
    ("run", "status", "job-1"),
    ("run", "timeline", "job-1"),
    ("run", "events", "job-1"),
    ("run", "events", "--all"),
    ("run", "artifacts", "job-1"),
    ("run", "replay", "job-1", "--diff"),
    ("run", "replay", "job-1", "--strict"),
    ("view", "list"),
    ("view", "check"),
    ("view", "rebuild"),
    ("config", "show"),
    ("config", "path"),
    ("doctor",),
]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_a_command_that_reads_leaves_the_store_as_it_is(
    store: Path, capsys: Capture, arguments: tuple[str, ...]
) -> None:
    before = files(store)
    plain = here(capsys, *arguments)
    as_json = here(capsys, *arguments, "--json")

    assert (plain.returncode, as_json.returncode) == (0, 0)
    assert files(store) == before


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_with_json_all_of_stdout_is_json(
    store: Path, capsys: Capture, arguments: tuple[str, ...]
) -> None:
    out = here(capsys, *arguments, "--json").stdout
    as_lines = {("store", "export"), ("run", "events"), ("run", "replay")}
    if arguments[:2] in as_lines and "--strict" not in arguments:
        parsed = [json.loads(line) for line in out.splitlines()]
    else:
        parsed = [json.loads(out)]

    assert parsed != []


@pytest.mark.parametrize(
    "arguments",
    [*READING[:-3], ("store", "backup", "elsewhere"), ("store", "compact")],
    ids=" ".join,
)
def test_a_missing_store_is_not_found_and_not_made(
    store_environment: Path, capsys: Capture, arguments: tuple[str, ...]
) -> None:
    done = here(capsys, *arguments)

    assert done.returncode == 3
    assert "There is no Tachograph store" in done.stderr
    assert not store_environment.exists()


@pytest.mark.parametrize("arguments", READING[:-3], ids=" ".join)
def test_a_store_of_a_newer_format_is_refused(
    store: Path, capsys: Capture, arguments: tuple[str, ...]
) -> None:
    (store / "format").write_text("99\n")
    done = here(capsys, *arguments)

    assert done.returncode == 1
    assert "Update Tachograph" in done.stderr


# Each command


def test_info_prints_an_anchor_that_verify_takes(store: Path, capsys: Capture) -> None:
    found = document(capsys, "store", "info")
    text = here(capsys, "store", "info").stdout

    assert f"Anchor      {found['anchor']}" in text
    assert "18 in 2 runs, of 7 types" in text
    assert here(capsys, "store", "verify", "--anchor", found["anchor"]).returncode == 0


def test_verify_reports_damage_with_code_4(store: Path, capsys: Capture) -> None:
    blob(store).unlink()
    found = document(capsys, "store", "verify", code=4)
    done = here(capsys, "store", "verify")

    assert found["whole"] is False
    assert [each["kind"] for each in found["problems"]] == ["payload"]
    assert done.stdout.startswith("payload  position 5: ")
    assert "Restore it from a backup" in done.stderr


def test_verify_reports_a_truncated_file_with_code_4(store: Path, capsys: Capture) -> None:
    data = store / "log" / "data.mdb"
    data.write_bytes(data.read_bytes()[:8192])

    assert document(capsys, "store", "verify", code=4)["problems"]


@pytest.mark.parametrize("anchor", ["", "12", "x:y"])
def test_verify_takes_no_odd_anchor(store: Path, capsys: Capture, anchor: str) -> None:
    done = here(capsys, "store", "verify", "--anchor", anchor)

    assert done.returncode == 2
    assert "POSITION:DIGEST" in done.stderr


def test_a_backup_is_made_once(store: Path, capsys: Capture, tmp_path: Path) -> None:
    found = document(capsys, "store", "backup", tmp_path / "copy")
    again = here(capsys, "store", "backup", tmp_path / "copy")
    info = document(capsys, "store", "info", "--store", tmp_path / "copy")

    assert (found["events"], found["blobs"], found["problems"]) == (18, 1, [])
    assert info["anchor"] == found["anchor"]
    assert again.returncode == 1
    assert "already exists" in again.stderr


def test_a_backup_of_a_damaged_store_says_so(store: Path, capsys: Capture, tmp_path: Path) -> None:
    blob(store).unlink()
    done = here(capsys, "store", "backup", tmp_path / "copy")

    assert done.returncode == 4
    assert "It was kept" in done.stderr


def test_an_export_to_a_pipe_and_to_a_file_are_the_same(
    store: Path, capsys: Capture, tmp_path: Path
) -> None:
    piped = tacho("store", "export")
    done = here(capsys, "store", "export", "--out", tmp_path / "export")

    assert (piped.returncode, done.returncode, done.stdout) == (0, 0, "")
    assert (tmp_path / "export").read_text() == piped.stdout
    assert "18 events, 1 payloads" in done.stderr


def test_an_export_of_one_run_takes_a_beginning_of_its_id(store: Path, capsys: Capture) -> None:
    lines = here(capsys, "store", "export", "--run", "job-1").stdout.splitlines()
    ambiguous = here(capsys, "store", "export", "--run", "job")

    assert {json.loads(line).get("stream") for line in lines} == {None, "job-1"}
    assert ambiguous.returncode == 3


def test_an_export_whose_reader_goes_away_ends_quietly(store: Path) -> None:
    with opened(store) as services:
        for number in range(20):
            record_run(services, f"more-{number}", output=f"{number} " * 9000)
    with subprocess.Popen(
        [*TACHO, "store", "export"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()

    assert (process.returncode, said) == (141, b"")


def test_an_export_of_a_store_with_lost_payloads_says_so(store: Path, capsys: Capture) -> None:
    blob(store).unlink()
    done = here(capsys, "store", "export")

    assert done.returncode == 4
    assert "1 payloads are missing" in done.stderr


def test_an_import_restores_a_store_with_the_same_anchor(
    store: Path, capsys: Capture, tmp_path: Path
) -> None:
    here(capsys, "store", "export", "--out", tmp_path / "export")
    target = ("--store", str(tmp_path / "new"))
    first = document(capsys, "store", "import", tmp_path / "export", *target)
    again = here(capsys, "store", "import", tmp_path / "export", *target)

    assert (first["imported"], first["known"], first["blobs"]) == (18, 0, 1)
    assert first["anchor"] == document(capsys, "store", "info")["anchor"]
    assert again.stdout.startswith("0 events imported, 18 were there already")


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        ("", 1, "line 1 is missing"),
        ("hello\n", 1, "line 1 is not JSON"),
        (b"\xff\xfe\n", 1, "line 1"),
        (None, 1, "No such file"),
    ],
)
def test_an_import_of_something_else_is_refused(
    store_environment: Path,
    capsys: Capture,
    tmp_path: Path,
    content: str | bytes | None,
    code: int,
    said: str,
) -> None:
    path = tmp_path / "export"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.write_text(content)
    done = here(capsys, "store", "import", path)

    assert done.returncode == code
    assert said in done.stderr


def test_an_import_without_the_payloads_that_were_lost_says_so(
    store: Path, capsys: Capture, tmp_path: Path
) -> None:
    blob(store).unlink()
    here(capsys, "store", "export", "--out", tmp_path / "export")
    done = here(capsys, "store", "import", tmp_path / "export", "--store", tmp_path / "new")

    assert done.returncode == 0
    assert "1 payloads were missing" in done.stderr


def test_an_import_into_another_store_is_refused(
    store: Path, capsys: Capture, tmp_path: Path
) -> None:
    here(capsys, "store", "export", "--out", tmp_path / "export")
    make_store(tmp_path / "other", output="other")
    done = here(capsys, "store", "import", tmp_path / "export", "--store", tmp_path / "other")

    assert done.returncode == 1
    assert "holds other events" in done.stderr


def test_a_compaction_tells_what_it_gave_back(store: Path, capsys: Capture) -> None:
    with opened(store) as services:
        services.blobs.put(b"unneeded")
    planned = document(capsys, "store", "compact", "--dry-run")
    text = here(capsys, "store", "compact", "--dry-run").stdout
    done = document(capsys, "store", "compact")

    assert "1 payloads (8 B) would be removed." in text
    assert {**planned, "dryRun": False} == done
    assert done["logBytesAfter"] < done["logBytesBefore"]


def test_a_store_in_use_is_compacted_later(store: Path, capsys: Capture) -> None:
    with opened(store):
        done = tacho("store", "compact")

    assert done.returncode == 75
    assert "in use" in done.stderr


# Progress


def test_a_bar_is_drawn_for_long_work_at_a_terminal_only(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys
    import time

    from tachograph.cli.bars import Bar
    from tachograph.cli.output import Output

    clock = iter((0.0, 0.1, 0.55, 0.6, 0.9))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Bar(Output(), "verify") as bar:
        for done in range(1, 5):
            bar(done, 4)
    drawn = capsys.readouterr().err

    assert drawn.split("\r\033[K") == [
        "",
        "verify  ############............   50%  2 of 4  0s left",
        "verify  ########################  100%  4 of 4  0s left",
        "",
    ]


@pytest.mark.parametrize("quiet", [True, False])
def test_no_bar_is_drawn_where_nobody_would_see_it(capsys: Capture, quiet: bool) -> None:
    from tachograph.cli.bars import Bar
    from tachograph.cli.output import Output

    with Bar(Output(quiet=quiet), "verify") as bar:
        bar._start -= 60
        bar._shown -= 60
        bar(1, 2)

    assert capsys.readouterr().err == ""


def damage_view(store: Path) -> None:
    with opened(store) as services:
        here_rows = services.views()
        here_rows.update(
            lambda rows: rows.put_summary({**(rows.summary("job-1") or {}), "outcome": "failed"})
        )


def unknown_event(store: Path) -> None:
    from tachograph.domain.records import NewRecord

    with opened(store) as services:
        services.log.append([NewRecord("new", 1, "run.invented", 0, b"\x80")])


# Views


def test_views_are_listed_with_their_lag(store: Path, capsys: Capture) -> None:
    found = document(capsys, "view", "list")
    here(capsys, "run", "list")
    later = document(capsys, "view", "list")

    assert (found["head"], {view["lag"] for view in found["views"]}) == (18, {18})
    assert {view["lag"] for view in later["views"]} == {0}


def test_a_damaged_view_is_found_and_mended(store: Path, capsys: Capture) -> None:
    here(capsys, "run", "list")
    damage_view(store)
    found = document(capsys, "view", "check", code=5)
    told = here(capsys, "view", "check")
    rebuilt = document(capsys, "view", "rebuild")

    assert len(found["differences"]) >= 1
    assert "tacho view rebuild" in told.stderr
    assert rebuilt == {"position": 18, "snapshotsMended": 0, "queueIndexRebuilt": False}
    assert document(capsys, "view", "check") == {"same": True, "differences": []}


def enqueue(store: Path) -> None:
    """Put five jobs in a queue: three wait, one is leased and one is done."""
    with opened(store) as services:
        queueing = queues_of(services)
        queueing.enqueue_many([Enqueue("memory", "ingest", {"n": n}) for n in range(5)])
        done, _leased = queueing.lease(["memory"], describe(os.getpid()), limit=2)
        queueing.complete(done.job.id, 1)


def damage_queue_index(store: Path) -> None:
    """Lose the row of each job, and have garbage instead."""
    with opened(store) as services:
        index = index_of(services)
        assert index is not None

        def damage(txn: Any) -> None:
            table = services.environment.databases[index.name]
            keys = [bytes(key) for key, _ in txn.cursor(db=table) if bytes(key)[:1] == b"j"]
            for key in keys:
                txn.put(key, b"\xc1", db=table)
            txn.put(b"zzz", b"", db=table)

        services.environment.update(damage)


def test_a_damaged_queue_index_is_found_and_mended(store: Path, capsys: Capture) -> None:
    enqueue(store)
    assert document(capsys, "view", "check") == {"same": True, "differences": []}
    damage_queue_index(store)
    found = document(capsys, "view", "check", code=5)
    told = here(capsys, "view", "check")
    rebuilt = document(capsys, "view", "rebuild")

    assert len(found["differences"]) == 5
    assert found["differences"][-1] == "queue-index 7a7a7a: should not be there"
    assert told.stdout.splitlines() == found["differences"]
    assert "tacho view rebuild" in told.stderr
    assert rebuilt["queueIndexRebuilt"] is True
    assert document(capsys, "view", "check") == {"same": True, "differences": []}
    assert "The index of the queues is made anew as well." in here(capsys, "view", "rebuild").stdout
    with opened(store) as services:
        leased = queues_of(services).lease(["memory"], describe(os.getpid()), limit=9)
        assert [each.payload for each in leased] == [{"n": 2}, {"n": 3}, {"n": 4}]


def test_checking_a_queue_index_leaves_nothing_behind(store: Path, capsys: Capture) -> None:
    enqueue(store)
    document(capsys, "view", "check")
    before = sorted(path.name for path in (store / "views").iterdir())
    document(capsys, "view", "check")

    assert sorted(path.name for path in (store / "views").iterdir()) == before


def test_a_store_without_jobs_gets_no_queue_index(store: Path, capsys: Capture) -> None:
    for command in ("check", "rebuild", "list"):
        here(capsys, "view", command)

    assert document(capsys, "store", "info")["jobs"] is None
    assert "Jobs" not in here(capsys, "store", "info").stdout
    with opened(store) as services:
        assert index_of(services) is None


def test_the_jobs_of_a_store_are_counted_by_their_state(store: Path, capsys: Capture) -> None:
    enqueue(store)
    found = document(capsys, "store", "info")["jobs"]
    told = here(capsys, "store", "info").stdout

    assert {state: count for state, count in found.items() if count} == {
        "pending": 3,
        "leased": 1,
        "completed": 1,
    }
    (line,) = [line for line in told.splitlines() if line.startswith("Jobs")]
    assert line.split(maxsplit=1)[1] == "3 pending, 1 leased, 1 completed"


@pytest.mark.parametrize("command", ["list", "status"])
def test_an_answer_warns_where_a_view_cannot_go_on(
    store: Path, capsys: Capture, command: str
) -> None:
    unknown_event(store)
    arguments = ["job-1"] if command == "status" else []
    done = here(capsys, "run", command, *arguments)

    assert done.returncode == 0
    assert "job-1" in done.stdout
    assert "tacho: warning: The view" in done.stderr
    assert "run.invented" in done.stderr


# The configuration


def test_settings_are_shown_with_where_they_come_from(
    store: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (store / "config").write_text("lease_seconds = 60\n")
    monkeypatch.setenv("TACHO_SNAPSHOT_EVERY", "9")
    found = document(capsys, "config", "show", "--origin")
    origins = {each["name"]: (each["value"], each["origin"]) for each in found["settings"]}
    text = here(capsys, "config", "show", "--origin").stdout
    short = here(capsys, "config", "show").stdout

    assert found["storeOrigin"] == "environment variable TACHO_STORE"
    assert origins["lease_seconds"] == (60, str(store / "config"))
    assert origins["snapshot_every"] == (9, "environment variable TACHO_SNAPSHOT_EVERY")
    assert origins["redact"] == ([], "default")
    assert "environment variable TACHO_SNAPSHOT_EVERY" in text
    assert short.splitlines()[0].split() == ["SETTING", "VALUE"]


def test_a_wrong_setting_is_a_usage_error(
    store: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACHO_SNAPSHOT_EVERY", "often")
    done = here(capsys, "config", "show")

    assert done.returncode == 2
    assert "TACHO_SNAPSHOT_EVERY" in done.stderr


def test_paths_are_shown_whether_they_exist_or_not(
    store: Path, capsys: Capture, home: Path
) -> None:
    (store / "config").write_text("")
    found = document(capsys, "config", "path")
    text = here(capsys, "config", "path").stdout

    assert found["store"]["path"] == str(store)
    assert found["storeConfig"] == {"path": str(store / "config"), "exists": True}
    assert found["userConfig"]["exists"] is False
    assert found["userConfig"]["path"].startswith(str(home))
    assert text.count("(not there)") == 1


# The doctor


def checks(capsys: Capture, code: int = 0) -> dict[str, tuple[str, str, str | None]]:
    found = document(capsys, "doctor", code=code)
    assert found["healthy"] is (code == 0)
    return {
        each["name"]: (each["state"], each["found"], each["advice"]) for each in found["checks"]
    }


def test_a_healthy_store_is_ok_in_every_line(store: Path, capsys: Capture) -> None:
    found = checks(capsys)
    text = here(capsys, "doctor").stdout

    assert {state for state, _, _ in found.values()} == {"ok"}
    assert {"store", "file system", "free space", "readers", "clock", "views"} <= set(found)
    assert all(line.startswith("ok    ") for line in text.splitlines())


def cut_short(store: Path) -> None:
    data = store / "log" / "data.mdb"
    data.write_bytes(data.read_bytes()[:8192])


def from_the_future(store: Path) -> None:
    from tachograph.domain.records import NewRecord
    from tachograph.infra.clock import now_us

    with opened(store) as services:
        later = now_us() + 3_600_000_000
        services.log.append([NewRecord("other", 1, "other", later, b"")])


def interrupt(store: Path) -> None:
    from stores import begin

    with opened(store) as services:
        begin(services, "job-lost")


def lose_log(store: Path) -> None:
    (store / "log" / "data.mdb").unlink()


@pytest.mark.parametrize(
    ("harm", "name", "state", "found", "advice"),
    [
        (cut_short, "log pages", "fail", "problems", "backup"),
        (lose_log, "log", "fail", "there is none", "restore it from a backup"),
        (unknown_event, "views", "fail", "run.invented", "Update Tachograph"),
        (from_the_future, "clock", "warn", "behind the last event", "Set the clock"),
        (interrupt, "interrupted runs", "warn", "1: job-lost", "tacho run status"),
        (
            lambda store: (store / "log" / "compact-x").mkdir(),
            "leftovers",
            "warn",
            "compact-x",
            "tacho store compact",
        ),
        (
            lambda store: (store / "config").write_text("snapshot_every = 'x'"),
            "settings",
            "fail",
            "snapshot_every",
            "tacho config path",
        ),
        (
            lambda store: (store / "format").write_text("99"),
            "store",
            "fail",
            "format 99",
            None,
        ),
        (
            lambda store: (store / "format").unlink(),
            "store",
            "warn",
            "not there yet",
            "tacho run start",
        ),
    ],
)
def test_what_is_amiss_is_told_with_what_to_do(
    store: Path,
    capsys: Capture,
    harm: Callable[[Path], object],
    name: str,
    state: str,
    found: str,
    advice: str | None,
) -> None:
    harm(store)
    line = checks(capsys, code=int(state == "fail"))[name]
    text = here(capsys, "doctor").stdout

    assert line[0] == state
    assert found in line[1]
    assert (line[2] is None) if advice is None else (advice in (line[2] or ""))
    assert f"\n{state:<4}  {name}" in text


def test_a_store_at_an_impossible_place_is_a_failure(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TACHO_STORE", str(tmp_path / "file"))

    assert checks(capsys, code=1)["store"][0] == "fail"


def test_slots_of_killed_readers_are_cleared(store: Path, capsys: Capture) -> None:
    code = (
        "import os, signal; from tachograph.bootstrap import open_store; s = open_store()\n"
        "with s.environment.read():\n    os.kill(os.getpid(), signal.SIGKILL)"
    )
    with opened(store):  # keeps LMDB's lock file from being made anew
        killed = subprocess.run([TACHO[0], "-c", code], capture_output=True)
        found = checks(capsys)["readers"]

    assert killed.returncode == -9
    assert found[:2] == ("ok", "0 open, 1 of killed processes cleared")
