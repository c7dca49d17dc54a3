"""The artifact files say what the log says: for the original's readers, and byte for byte."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from tree_reader import catalogue, check_line, check_record, events, load
from treed import DAY_US, Treed, fill

from tachograph import job_run_records
from tachograph.domain.errors import (
    ArtifactFolderError,
    ArtifactsTakenError,
    BlobMissingError,
    RunNotFoundError,
)
from tachograph.domain.gate import Facts
from tachograph.domain.records import NewRecord
from tachograph.event_files import CHUNK
from tachograph.infra.artifact_files import ArtifactFolder, is_temporary
from tachograph.pruning import Plan, Pruner

if TYPE_CHECKING:
    from tachograph.domain.records import Record


@pytest.fixture
def bench(tmp_path: Path) -> Treed:
    return Treed(tmp_path / "tree")


def in_phase(bench: Treed, run_id: str = "job-a", batches: int = 3) -> Any:
    """Begin a run with a phase of batches."""
    session = bench.start("distill", {"id": run_id}, run_id=run_id)
    session.start_phase("analyze")
    session.plan_batches("analyze", batches, 1, None)
    return session


def finish(session: Any, batches: int = 3) -> None:
    """Finish all that is left, well."""
    for index in session.run.phases["analyze"].missing():
        session.complete_batch("analyze", index, inputs=1, parsed=1, output=[index])
    session.end_phase("analyze")
    session.finish()


def test_a_reader_of_the_originals_files_reads_every_one(bench: Treed) -> None:
    fill(bench)
    bench.catch_up()

    assert catalogue(bench.root) == [
        ("job", "job-partial"),
        ("job", "job-cancelled"),
        ("job", "job-ok"),
        ("job", "job-running"),
    ]
    for path in bench.root.rglob("summary.json"):
        record = load(path)
        assert record is not None
        check_record(record)
        for line in events(Path(record["artifactPaths"]["events"])):
            check_line(line)


def test_what_imports_the_originals_files_finds_nothing_wrong_with_ours(bench: Treed) -> None:
    fill(bench)
    bench.catch_up()

    for path in bench.root.rglob("summary.json"):
        assert job_run_records.summary_fault(json.loads(path.read_bytes())) is None
    for path in bench.root.rglob("events.jsonl"):
        assert job_run_records.lines_of(path.read_bytes(), "")[2] == []
    for path in bench.root.rglob("checkpoint.json"):
        kind = job_run_records.checkpoint_of(json.loads(path.read_bytes())).kind
        assert kind == ("batch" if "job-partial" in str(path) else "offset")


def test_a_tree_that_was_deleted_comes_back_byte_for_byte(bench: Treed) -> None:
    fill(bench)
    bench.catch_up()
    before = bench.written()
    shutil.rmtree(bench.root)

    assert bench.catch_up() == []
    assert bench.written() == before


def test_events_are_appended_and_nothing_before_them_is_written_again(bench: Treed) -> None:
    session = in_phase(bench)
    bench.layout.refresh("job-a")
    path = bench.folder("job-a") / "events.jsonl"
    inode, before = path.stat().st_ino, path.read_bytes()
    session.complete_batch("analyze", 0)
    bench.layout.refresh("job-a")
    session.complete_batch("analyze", 1)
    bench.writer(bench.root).refresh("job-a")  # as another process does

    assert path.stat().st_ino == inode
    assert path.read_bytes().startswith(before)
    assert [line["index"] for line in events(path)[1:]] == [0, 1]


def test_a_look_at_a_run_that_has_not_changed_writes_nothing(bench: Treed) -> None:
    in_phase(bench)
    bench.layout.refresh("job-a")
    before = {path: path.stat().st_mtime_ns for path in bench.root.rglob("*.*")}
    bench.layout.refresh("job-a")

    assert {path: path.stat().st_mtime_ns for path in bench.root.rglob("*.*")} == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-7],
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data + b'{"type":"phase_st',
        lambda data: data + b"\0\0\0\0\0\0\n",
        lambda data: data + b'{"type":"phase_start","version":999}\n',
        lambda data: data + b'{"type":"phase_start","version":2}\n',
        lambda data: b"not ours\n",
        lambda data: b'"text"\n',
    ],
)
def test_a_damaged_events_file_is_repaired(bench: Treed, damage: Any) -> None:
    session = in_phase(bench)
    session.complete_batch("analyze", 0)
    bench.layout.refresh("job-a")
    path = bench.folder("job-a") / "events.jsonl"
    whole = path.read_bytes()
    path.write_bytes(damage(whole))

    bench.layout.refresh("job-a")
    assert path.read_bytes() == whole
    bench.writer(bench.root).refresh("job-a")
    assert path.read_bytes() == whole


def test_a_long_run_is_written_in_portions(bench: Treed) -> None:
    session = in_phase(bench, batches=2 * CHUNK)

    def many(run: Any, why: Any, numbers: range) -> None:
        for index in numbers:
            run.complete_batch(why, "analyze", index)

    session.execute(lambda run, why: many(run, why, range(CHUNK + 5)))
    bench.layout.refresh("job-a")
    session.execute(lambda run, why: many(run, why, range(CHUNK + 5, 2 * CHUNK)))
    bench.layout.refresh("job-a")

    lines = events(bench.folder("job-a") / "events.jsonl")
    assert [line.get("index") for line in lines] == [None, *range(2 * CHUNK)]


def test_the_end_of_a_run_that_was_judged_in_an_earlier_look_is_told_once(bench: Treed) -> None:
    session = in_phase(bench, batches=1)
    session.complete_batch("analyze", 0, inputs=1, parsed=0)
    session.end_phase("analyze")
    session.judge(Facts(inputs=1, outputs=0))
    bench.layout.refresh("job-a")
    session.finish()
    bench.writer(bench.root).refresh("job-a")

    lines = events(bench.folder("job-a") / "events.jsonl")
    gates = [line for line in lines if line["type"] == "semantic_gate"]
    assert [line["outcome"] for line in gates] == ["failed_semantic_empty"]


def test_a_success_loses_checkpoint_and_events_and_that_is_recorded_first(bench: Treed) -> None:
    session = in_phase(bench)
    bench.layout.refresh("job-a")
    assert (bench.folder("job-a") / "checkpoint.json").exists()
    finish(session)
    bench.layout.refresh("job-a")

    assert sorted(path.name for path in bench.folder("job-a").iterdir()) == [
        "report.md",
        "summary.json",
    ]
    removed = bench.fields("job-a", "files-removed")
    assert [(each["what"], each["rule"]) for each in removed] == [
        ("events", "success-drops-events"),
        ("checkpoint", "success-drops-checkpoint"),
    ]
    assert removed[0]["paths"] == [str(bench.folder("job-a") / "events.jsonl")]
    assert removed[0]["size"] > 0


def test_nothing_is_recorded_where_there_is_nothing_to_remove(bench: Treed) -> None:
    finish(in_phase(bench))
    bench.layout.refresh("job-a")

    assert bench.fields("job-a", "files-removed") == []


def test_a_removal_that_was_cut_off_after_its_record_is_done_and_not_recorded_again(
    bench: Treed, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = in_phase(bench)
    bench.layout.refresh("job-a")
    finish(session)
    bench.now += 10**15  # files have the times of this machine
    with monkeypatch.context() as patched:
        patched.setattr(type(bench.layout.folder), "remove", killed)
        with pytest.raises(KeyboardInterrupt):
            bench.layout.refresh("job-a")
    assert (bench.folder("job-a") / "events.jsonl").exists()
    bench.layout.refresh("job-a")

    assert not (bench.folder("job-a") / "events.jsonl").exists()
    assert len(bench.fields("job-a", "files-removed")) == 2


def killed(*_arguments: object) -> None:
    raise KeyboardInterrupt


def test_a_partial_run_keeps_everything_until_its_resume_completes(bench: Treed) -> None:
    session = in_phase(bench)
    session.complete_batch("analyze", 0, output=["a"])
    session.finish("partial", reason="503")
    bench.layout.refresh("job-a")
    names = {"checkpoint.json", "events.jsonl", "report.md", "summary.json"}
    assert {path.name for path in bench.folder("job-a").iterdir()} == names

    bench.now += 3 * DAY_US  # the resume happens on another day, by hand
    session = bench.start("distill", {"id": "job-a"}, run_id="job-a")
    bench.layout.refresh("job-a")
    assert {path.name for path in bench.folder("job-a").iterdir()} == names
    assert [path.name for path in bench.root.iterdir() if path.is_dir()] == ["20240508"]
    finish(session)
    bench.layout.refresh("job-a")
    assert {path.name for path in bench.folder("job-a").iterdir()} == {"report.md", "summary.json"}


def test_an_attempt_more_is_counted_and_begins_nothing_anew(bench: Treed) -> None:
    session = in_phase(bench)
    session.finish("partial", reason="503")
    bench.layout.refresh("job-a")
    first = load(bench.folder("job-a") / "summary.json")
    bench.start("distill", {"id": "job-a"}, run_id="job-a")
    bench.layout.refresh("job-a")
    second = load(bench.folder("job-a") / "summary.json")

    assert first is not None
    assert second is not None
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert first["startedAt"] == second["startedAt"]
    assert "finishedAt" not in second


def test_a_checkpoint_that_takes_long_is_written_less_often_and_at_the_end(bench: Treed) -> None:
    session = in_phase(bench)
    path = bench.folder("job-a") / "checkpoint.json"

    def done() -> list[int]:
        indexes: list[int] = json.loads(path.read_bytes())["completedBatchIndexes"]
        return indexes

    load_value = bench.payloads.load

    def slow(stored: Any) -> Any:
        bench.seconds += 1.0
        return load_value(stored)

    bench.payloads.load = slow  # type: ignore[method-assign]
    session.complete_batch("analyze", 0)
    bench.layout.refresh("job-a", whole=False)
    session.complete_batch("analyze", 1)
    bench.seconds += 19.0
    bench.layout.refresh("job-a", whole=False)
    assert done() == [0]
    bench.seconds += 1.0
    bench.layout.refresh("job-a", whole=False)
    assert done() == [0, 1]
    session.complete_batch("analyze", 2)
    bench.layout.refresh("job-a")
    assert done() == [0, 1, 2]


def test_a_lost_payload_costs_the_checkpoint_alone(bench: Treed) -> None:
    session = in_phase(bench)
    session.complete_batch("analyze", 0, output="x" * 40_000)
    bench.blobs.kept.clear()

    with pytest.raises(BlobMissingError):
        bench.layout.refresh("job-a")
    assert {path.name for path in bench.folder("job-a").iterdir()} == {
        "events.jsonl",
        "report.md",
        "summary.json",
    }


def test_a_run_of_another_store_is_not_written_over(bench: Treed) -> None:
    in_phase(bench)
    bench.layout.refresh("job-a")
    before = bench.written()
    other = Treed(bench.root)
    other.now += 1
    in_phase(other)

    with pytest.raises(ArtifactsTakenError, match="another store has recorded it"):
        other.layout.refresh("job-a")
    assert bench.written() == before


def test_what_the_original_has_written_is_not_written_over(bench: Treed) -> None:
    in_phase(bench)
    path = bench.folder("job-a") / "summary.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"schemaVersion": 1, "jobRunId": "job-a"}')

    with pytest.raises(ArtifactsTakenError, match="not written from this log"):
        bench.layout.refresh("job-a")


def test_a_torn_summary_is_written_anew(bench: Treed) -> None:
    in_phase(bench)
    bench.layout.refresh("job-a")
    path = bench.folder("job-a") / "summary.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    bench.layout.refresh("job-a")

    assert path.read_bytes() == whole


def test_a_run_that_does_not_exist(bench: Treed) -> None:
    with pytest.raises(RunNotFoundError):
        bench.layout.refresh("job-none")


def test_a_root_in_use_is_left_to_who_uses_it(bench: Treed) -> None:
    in_phase(bench)
    with bench.writer(bench.root).folder.locked():
        assert not bench.layout.refresh("job-a", wait=False)
    assert bench.written() == {}


def test_many_writers_leave_whole_files(bench: Treed) -> None:
    session = in_phase(bench, batches=40)
    over = threading.Event()

    def write() -> None:
        writer = bench.writer(bench.root)
        while not over.is_set():
            writer.refresh("job-a", whole=False)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for index in range(40):
        session.complete_batch("analyze", index, inputs=1, parsed=1, output=[index])
        record = load(bench.folder("job-a") / "summary.json")
        if record is not None:
            check_record(record)
    over.set()
    for thread in threads:
        thread.join()
    bench.layout.refresh("job-a")

    lines = events(bench.folder("job-a") / "events.jsonl")
    assert [line.get("index") for line in lines] == [None, *range(40)]


# All runs.


def test_a_catch_up_looks_at_what_has_changed_and_at_nothing_else(
    bench: Treed, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_phase(bench, "job-a")
    session = in_phase(bench, "job-b")
    bench.catch_up()
    session.complete_batch("analyze", 0)
    looked: list[str] = []
    monkeypatch.setattr(bench.layout, "refresh", lambda run_id, **_: looked.append(run_id))
    bench.catch_up()
    bench.catch_up()

    assert looked == ["job-b"]


def test_a_catch_up_reads_no_event_that_is_of_no_run(
    bench: Treed, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_phase(bench, "job-a")
    job = UUID(int=7)
    bench.log.append([NewRecord(job, n, "queue.job-leased", 1, b"\x80") for n in range(1, 9)])
    in_phase(bench, "job-b")
    read: list[str] = []
    whole = bench.log.read

    def noted(**options: Any) -> list[Record]:
        records = whole(**options)
        read.extend(str(record.stream) for record in records)
        return records

    monkeypatch.setattr(bench.log, "read", noted)

    assert bench.catch_up() == []
    assert set(read) == {"job-a", "job-b"}
    assert bench.layout.marks.load().position == bench.log.head().position


def test_what_went_after_thirty_days_does_not_come_back(bench: Treed) -> None:
    finish(in_phase(bench, "job-old"))
    bench.now += 31 * DAY_US
    in_phase(bench, "job-new")
    bench.catch_up()

    assert [run_id for _, run_id in catalogue(bench.root)] == ["job-new"]


def test_a_removal_alone_brings_no_file_back(bench: Treed) -> None:
    finish(in_phase(bench))
    bench.catch_up()
    shutil.rmtree(bench.folder("job-a"))
    bench.execute(
        "job-a", lambda run, why: run.record_files_removed(why, "summary", ["/x"], 1, "by-hand")
    )
    bench.catch_up()

    assert bench.written() == {}


def test_one_run_that_cannot_be_written_does_not_keep_the_others_waiting(bench: Treed) -> None:
    in_phase(bench, "job-a")
    in_phase(bench, "job-b")
    bench.folder("job-a").mkdir(parents=True)
    (bench.folder("job-a") / "summary.json").write_text("{}")

    wrong = bench.catch_up()
    assert [run_id for run_id, _ in wrong] == ["job-a"]
    assert load(bench.folder("job-b") / "summary.json") is not None


def test_a_mark_of_another_history_counts_for_nothing(bench: Treed) -> None:
    in_phase(bench)
    bench.catch_up()
    (mark,) = bench.root.glob(".tachograph-*.json")
    for text in ("{", '{"position": 99, "digest": "00"}', '{"position": 1, "digest": "00"}'):
        shutil.rmtree(bench.root / "20240508")
        mark.write_text(text)
        bench.catch_up()
        assert load(bench.folder("job-a") / "summary.json") is not None


def test_a_mark_that_holds_nonsense_does_no_harm(bench: Treed) -> None:
    in_phase(bench)
    bench.catch_up()
    (mark,) = bench.root.glob(".tachograph-*.json")
    said = json.loads(mark.read_bytes())
    for due, days in ((3, "x"), ({"job-none": 7}, ["..", 5, "20240508"])):
        mark.write_text(json.dumps({**said, "due": due, "days": days}))
        assert bench.catch_up() == []

    assert json.loads(mark.read_bytes()) == said


def test_an_empty_log_makes_no_tree(bench: Treed) -> None:
    assert bench.catch_up() == []
    assert not bench.root.exists()


def test_an_erased_run_is_told_of_no_more(bench: Treed, monkeypatch: pytest.MonkeyPatch) -> None:
    session = in_phase(bench)
    session.run.bodies = "erased"
    monkeypatch.setattr(bench.repository, "get", lambda _run_id: session.run)

    assert bench.layout.refresh("job-a")
    assert bench.written() == {}


def test_a_day_that_was_deleted_is_made_anew_at_the_next_look(bench: Treed) -> None:
    in_phase(bench, "job-a")
    bench.now += DAY_US
    in_phase(bench, "job-b")
    bench.catch_up()
    before = bench.written()
    shutil.rmtree(bench.root / "20240508")
    bench.layout.refresh("job-b")  # somebody else writes meanwhile

    assert bench.catch_up() == []
    assert bench.written() == before


def test_a_file_that_was_deleted_is_made_anew_when_every_run_is_looked_at(bench: Treed) -> None:
    in_phase(bench, "job-a")
    in_phase(bench, "job-b")
    bench.catch_up()
    before = bench.written()
    shutil.rmtree(bench.folder("job-a"))
    (bench.folder("job-b") / "report.md").unlink()

    assert bench.catch_up(thorough=True) == []
    assert bench.written() == before


def test_a_run_that_could_not_be_written_stays_due(bench: Treed) -> None:
    in_phase(bench, "job-a")
    in_phase(bench, "job-b")
    bench.folder("job-a").parent.mkdir(parents=True)
    bench.folder("job-a").write_text("in the way")

    assert [run_id for run_id, _ in bench.catch_up()] == ["job-a"]
    assert bench.catch_up() == []  # as before: it was told
    assert [run_id for run_id, _ in bench.catch_up(thorough=True)] == ["job-a"]
    bench.folder("job-a").unlink()
    assert bench.catch_up() == []
    assert load(bench.folder("job-a") / "summary.json") is not None


def test_with_more_runs_due_than_can_be_named_all_are_looked_at_again(
    bench: Treed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tachograph.catching_up.MOST_DUE", 1)
    for run_id in ("job-a", "job-b", "job-c"):
        in_phase(bench, run_id)
    bench.folder("job-a").parent.mkdir(parents=True)
    for run_id in ("job-a", "job-b"):
        bench.folder(run_id).write_text("in the way")
    bench.catch_up()
    for run_id in ("job-a", "job-b"):
        bench.folder(run_id).unlink()
    bench.catch_up()

    assert [run_id for _, run_id in catalogue(bench.root)] == ["job-a", "job-b", "job-c"]


def test_what_went_early_comes_back_only_when_its_run_goes_on_or_is_named(bench: Treed) -> None:
    finish(in_phase(bench))
    bench.catch_up()
    before = bench.written()
    pruner = Pruner(bench.repository, bench.payloads, is_temporary, bench.now, 0)
    plan = Plan()
    pruner.look_at_tree(plan, ArtifactFolder(str(bench.root)))
    pruner.apply(plan, [bench.layout])
    bench.catch_up()
    bench.catch_up(thorough=True)
    assert bench.written() == {}

    bench.layout.refresh("job-a")
    assert bench.written() == before
    shutil.rmtree(bench.root)
    bench.execute("job-a", lambda run, why: run.add_note(why, "it was read"))
    bench.catch_up()
    assert bench.written() == before


def damaged(lines: list[bytes]) -> dict[str, list[bytes]]:
    """Return what may have become of lines that a look at their end does not notice."""
    return {
        "a line is gone": [lines[0], *lines[2:]],
        "a line is nonsense": [lines[0], b"\0nonsense\n", *lines[2:]],
        "the last line is there twice": [*lines, lines[-1]],
        "a line was changed": [lines[0].replace(b"analyze", b"analyse"), *lines[1:]],
    }


@pytest.mark.parametrize("what", list(damaged([b""] * 3)))
def test_damage_anywhere_in_an_events_file_is_repaired_by_a_thorough_look(
    bench: Treed, what: str
) -> None:
    session = in_phase(bench)
    session.complete_batch("analyze", 0)
    session.complete_batch("analyze", 1)
    bench.catch_up()
    path = bench.folder("job-a") / "events.jsonl"
    whole = path.read_bytes()
    path.write_bytes(b"".join(damaged(whole.splitlines(keepends=True))[what]))
    assert path.read_bytes() != whole
    bench.catch_up(thorough=True)
    assert path.read_bytes() == whole

    path.write_bytes(b"".join(damaged(whole.splitlines(keepends=True))[what]))
    bench.layout.refresh("job-a", thorough=True)
    assert path.read_bytes() == whole


# Whose a file is.


@pytest.mark.parametrize("summary", [None, "{", "[]"])
def test_a_folder_in_which_nothing_says_whose_it_is_is_not_written_over(
    bench: Treed, summary: str | None
) -> None:
    in_phase(bench)
    folder = bench.folder("job-a")
    folder.mkdir(parents=True)
    (folder / "checkpoint.json").write_text("{}")
    (folder / "events.jsonl").write_text("{}\n")
    if summary is not None:
        (folder / "summary.json").write_text(summary)
    before = bench.written()

    with pytest.raises(ArtifactsTakenError, match="nothing in it says"):
        bench.layout.refresh("job-a")
    assert bench.written() == before


@pytest.mark.parametrize("left", ["report.md", "events.jsonl"])
def test_a_folder_of_ours_without_its_summary_is_completed(bench: Treed, left: str) -> None:
    in_phase(bench)
    bench.layout.refresh("job-a")
    before = bench.written()
    for path in bench.folder("job-a").iterdir():
        if path.name != left:
            path.unlink()
    bench.layout.refresh("job-a")

    assert bench.written() == before


@pytest.mark.parametrize("has_ended", [False, True])
def test_an_orchestrator_run_of_another_store_is_not_written_over(
    bench: Treed, has_ended: bool
) -> None:
    other = Treed(bench.root)
    other.now += 1
    for each in (bench, other):
        session = each.start("nightly", {"n": 1}, run_id="orch-1")
        session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["prune"]))
        if has_ended:
            session.finish("skipped", reason="nothing was due")
    bench.layout.refresh("orch-1")
    before = bench.written()

    with pytest.raises(ArtifactsTakenError, match="another store has recorded it"):
        other.layout.refresh("orch-1")
    assert bench.written() == before


def test_a_validation_that_lies_alone_is_written_over_by_its_own_run_only(bench: Treed) -> None:
    session = bench.start("nightly", {"n": 1}, run_id="orch-1")
    session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["prune"]))
    path = bench.root / "20240508" / "nightly-orch-1.validation.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"by": "the harness that has started the run"}')
    bench.layout.refresh("orch-1")
    assert "by" in json.loads(path.read_bytes())

    (bench.root / "20240508" / "nightly-orch-1.report.md").unlink()
    session.execute(lambda run, why: run.record_exit_validation(why, {"error": None}, "written"))
    with pytest.raises(ArtifactsTakenError, match="nothing in it says"):
        bench.layout.refresh("orch-1")


def test_the_files_of_a_run_keep_the_job_that_they_were_named_after(bench: Treed) -> None:
    session = bench.start("maintenance-nightly", {"n": 1}, run_id="orch-1")

    def plan(**options: str) -> None:
        session.execute(
            lambda run, why: run.plan_maintenance(why, "nightly", ["prune"], options=options)
        )

    plan(job="nightly")
    plan()
    plan(job="watchdog")
    session.finish("skipped", reason="nothing was due")
    bench.layout.refresh("orch-1")

    assert sorted(bench.written()) == [
        "20240508/nightly-orch-1.report.md",
        "20240508/nightly-orch-1.summary.json",
    ]
    summary = json.loads(bench.written()["20240508/nightly-orch-1.summary.json"])
    assert summary["job"] == "nightly"


# Orchestrator runs and cron lines.


def test_an_orchestrator_run_has_its_summary_only_at_its_end(bench: Treed) -> None:
    session = bench.start("maintenance-nightly", {"n": 1}, run_id="20240508T021530Z-7")
    session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["prune", "distill"]))
    session.execute(lambda run, why: run.start_maintenance_step(why, "prune"))
    session.execute(
        lambda run, why: run.end_maintenance_step(
            why, "prune", "failed", "disk", duration_us=1_500_000, runs=["job-a"], result="failed"
        )
    )
    bench.layout.refresh("20240508T021530Z-7")
    stem = "20240508/maintenance-nightly-20240508T021530Z-7"
    assert set(bench.written()) == {f"{stem}.report.md"}
    session.finish("failed", reason="failed: prune")
    bench.layout.refresh("20240508T021530Z-7")

    summary = json.loads(bench.written()[f"{stem}.summary.json"])
    assert (summary["runId"], summary["exitCode"]) == ("20240508T021530Z-7", 1)
    assert summary["steps"][0]["jobRunId"] == "job-a"
    assert (
        "| prune | failed | 1.5 | `job-a` | disk |" in bench.written()[f"{stem}.report.md"].decode()
    )
    assert catalogue(bench.root) == [("orchestrator", "20240508T021530Z-7")]


def test_a_validated_orchestrator_run_has_its_validation_too(bench: Treed) -> None:
    session = bench.start("nightly", {"n": 1}, run_id="orch-1")
    session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["prune"]))
    session.execute(lambda run, why: run.record_exit_validation(why, {"error": None}, "written"))
    session.finish("skipped", reason="nothing was due")
    bench.layout.refresh("orch-1")

    assert json.loads(bench.written()["20240508/nightly-orch-1.validation.json"]) == {"error": None}
    summary = json.loads(bench.written()["20240508/nightly-orch-1.summary.json"])
    assert summary["validation"] == {"error": None}


def test_a_writer_of_very_many_runs_forgets_some(
    bench: Treed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tachograph.laying_out.MOST_KNOWN", 1)
    for run_id in ("job-a", "job-b", "job-a"):
        in_phase(bench, run_id)
        bench.layout.refresh(run_id)

    assert len(events(bench.folder("job-a") / "events.jsonl")) == 2


REPORT = {
    "maintenanceStatus": "failed",
    "recommendedExitCode": 1,
    "requiredSteps": [{"name": "prune", "exit": 0}, {"name": "distill-skipped", "exit": 0},
                      {"name": "reflect", "exit": 3}],
    "failedSteps": [{"name": "reflect", "exit": 3, "reason": "nonzero_exit"}],
}  # fmt: skip


def cron_line(bench: Treed) -> None:
    """Record a cron line with its validation."""
    session = bench.start("nightly", {"n": 1}, run_id="20240509T000000Z-7")
    session.finish("failed", reason="exit code 3")
    session.execute(
        lambda run, why: run.record_exit_validation(why, REPORT, "skipped_failed_steps")
    )


def test_a_cron_line_gets_its_summary_and_validation_back_from_the_log(bench: Treed) -> None:
    cron_line(bench)
    bench.layout.refresh("20240509T000000Z-7")
    stem = "20240509/nightly-20240509T000000Z-7"

    assert json.loads(bench.written()[f"{stem}.validation.json"]) == REPORT
    summary = json.loads(bench.written()[f"{stem}.summary.json"])
    assert [(step["name"], step["status"]) for step in summary["steps"]] == [
        ("prune", "ok"),
        ("distill", "skipped_guard"),
        ("reflect", "failed"),
    ]
    assert summary["exitCode"] == 1


def test_what_the_harness_of_a_cron_line_wrote_itself_stays(bench: Treed) -> None:
    cron_line(bench)
    path = bench.root / "20240509" / "nightly-20240509T000000Z-7.summary.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"runId": "20240509T000000Z-7", "by": "the harness"}')
    bench.layout.refresh("20240509T000000Z-7")

    assert '"by": "the harness"' in path.read_text()


def test_a_root_that_cannot_be_written_is_told(bench: Treed, tmp_path: Path) -> None:
    in_phase(bench)
    (tmp_path / "file").write_text("")

    with pytest.raises(ArtifactFolderError):
        bench.writer(tmp_path / "file").refresh("job-a")
