"""What retention lets go goes, is recorded before, and nothing else goes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from treed import DAY_US, Treed, fill

from tachograph.infra.artifact_files import ArtifactFolder, is_temporary
from tachograph.infra.layout import name_key
from tachograph.pruning import OTHER_LOG, OTHER_PLACE, Plan, Pruner
from tachograph.tree_owners import ANOTHER, NOT_OURS, UNPROVEN


@pytest.fixture
def bench(tmp_path: Path) -> Treed:
    return Treed(tmp_path / "tree")


def look(bench: Treed, **options: Any) -> tuple[Pruner, Plan]:
    """Return a plan of the tree."""
    only = options.pop("only", None)
    pruner = Pruner(bench.repository, bench.payloads, is_temporary, bench.now, **options)
    plan = Plan()
    pruner.look_at_tree(plan, ArtifactFolder(str(bench.root)), only)
    return pruner, plan


def going(plan: Plan) -> set[tuple[str | None, str, str]]:
    return {(each.run_id, ", ".join(each.kinds), each.rule.id) for each in plan.removals}


def test_nothing_goes_on_the_day_it_was_written(bench: Treed) -> None:
    fill(bench)
    bench.catch_up()

    assert look(bench)[1].removals == []


def test_after_thirty_days_only_what_may_go_on_is_left(bench: Treed) -> None:
    fill(bench)
    bench.catch_up()
    bench.now += 31 * DAY_US
    pruner, plan = look(bench)
    assert going(plan) == {
        ("job-ok", "report, summary", "success-keeps-summary-30d"),
        ("job-cancelled", "events, report, summary", "given-up-keeps-30d"),
    }
    assert plan.files == 5
    assert plan.size == sum(len(data) for name, data in bench.written().items()
                            if "job-ok" in name or "job-cancelled" in name)  # fmt: skip
    pruner.apply(plan, [bench.layout])

    assert {name.split("/")[2] for name in bench.written()} == {"job-partial", "job-running"}
    assert not bench.folder("job-ok").exists()
    (removed,) = bench.fields("job-ok", "files-removed")
    assert removed["rule"] == "success-keeps-summary-30d"
    assert look(bench)[1].removals == []


def test_a_look_removes_and_records_nothing(bench: Treed) -> None:
    fill(bench)
    bench.catch_up()
    bench.now += 31 * DAY_US
    before, head = bench.written(), bench.log.head()
    look(bench)

    assert bench.written() == before
    assert bench.log.head() == head


def test_another_age_is_taken_instead_of_thirty_days(bench: Treed) -> None:
    fill(bench)
    bench.catch_up()
    bench.now += 2 * DAY_US

    assert {run for run, _, _ in going(look(bench, older_than_us=DAY_US)[1])} == {
        "job-ok",
        "job-cancelled",
    }


def test_a_run_that_was_taken_up_meanwhile_keeps_its_files(bench: Treed) -> None:
    fill(bench)
    bench.catch_up()
    bench.now += 31 * DAY_US
    pruner, plan = look(bench)
    run = bench.repository.get("job-ok")
    assert run is not None
    run.outcome = None  # as if it were not finished
    before = bench.written()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bench.repository, "get", lambda _run_id: run)
        pruner.apply(plan, [bench.layout])

    assert {name for name in bench.written() if "job-ok" in name} == {
        name for name in before if "job-ok" in name
    }


def test_what_is_not_of_this_log_stays_and_is_named(bench: Treed) -> None:
    other = Treed(bench.root)
    other.now += 1_000
    fill(other)
    other.catch_up()
    bench.start("distill", {"days": 1}, run_id="job-ok").finish("success")
    bench.now += 40 * DAY_US
    plan = look(bench)[1]

    assert plan.removals == []
    assert {(Path(left.path).parent.name, left.why) for left in plan.left} == {
        ("job-ok", ANOTHER),
        ("job-partial", OTHER_LOG),
        ("job-running", OTHER_LOG),
        ("job-cancelled", OTHER_LOG),
    }


def test_files_that_are_none_of_ours_are_not_looked_at(bench: Treed) -> None:
    fill(bench)
    bench.catch_up()
    for name in ("nightly-1.log", "nightly-1.exit.txt", "20240508/notes.txt", "20240508/a/b/c/d"):
        (bench.root / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.root / name).write_text("mine")
    (bench.folder("job-ok") / "notes.txt").write_text("mine")
    bench.now += 31 * DAY_US
    pruner, plan = look(bench)
    pruner.apply(plan, [bench.layout])

    assert plan.left == []
    assert (bench.folder("job-ok") / "notes.txt").read_text() == "mine"
    assert (bench.root / "nightly-1.log").exists()


def test_a_temporary_file_of_a_killed_writer_goes_after_an_hour(bench: Treed) -> None:
    fill(bench)
    bench.catch_up()
    stale = bench.folder("job-running") / ".summary.json.tmp-abc"
    fresh = bench.folder("job-running") / ".report.md.tmp-def"
    for path, age_us in ((stale, 3_600_000_000), (fresh, 3_599_000_000)):
        path.write_text("half")
        at = (bench.now - age_us) * 1_000
        os.utime(path, ns=(at, at))
    pruner, plan = look(bench)
    assert going(plan) == {("job-running", "temporary", "stale-temporary")}
    pruner.apply(plan, [bench.layout])

    assert not stale.exists()
    assert fresh.exists()


def test_one_run_alone_is_looked_at_when_it_is_named(bench: Treed) -> None:
    fill(bench)
    bench.catch_up()
    bench.now += 31 * DAY_US

    assert {run for run, _, _ in going(look(bench, only="job-ok")[1])} == {"job-ok"}


def test_an_orchestrator_runs_files_go_whatever_its_job_is_called(bench: Treed) -> None:
    session = bench.start("main-ten-ance", {"n": 1}, run_id="orch-1")
    session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["prune"]))
    session.finish("failed", reason="prune failed")
    line = bench.start("night-ly", {"n": 1}, run_id="20240508T000000Z-7")
    line.finish("skipped", reason="not due")
    line.execute(lambda run, why: run.record_exit_validation(why, {"requiredSteps": []}, "written"))
    bench.catch_up()
    bench.now += 31 * DAY_US
    pruner, plan = look(bench)
    assert going(plan) == {
        ("orch-1", "report, summary", "orchestrator-keeps-30d"),
        ("20240508T000000Z-7", "report, summary, validation", "success-keeps-summary-30d"),
    }
    pruner.apply(plan, [bench.layout])

    assert bench.written() == {}


def orchestrated(bench: Treed, command: str = "nightly") -> None:
    """Record an orchestrator run that has ended."""
    session = bench.start(command, {"n": 1}, run_id="orch-1")
    session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["prune"]))
    session.finish("skipped", reason="nothing was due")


def test_an_orchestrator_runs_files_of_another_store_stay_and_are_named(bench: Treed) -> None:
    other = Treed(bench.root)
    other.now += 1_000
    orchestrated(other)
    other.catch_up()
    orchestrated(bench)
    bench.now += 40 * DAY_US
    plan = look(bench)[1]

    assert plan.removals == []
    assert {(Path(left.path).name, left.why) for left in plan.left} == {
        ("nightly-orch-1.summary.json", ANOTHER),
        ("nightly-orch-1.report.md", ANOTHER),
    }


def test_a_cron_lines_files_of_another_store_stay_and_are_named(bench: Treed) -> None:
    stem = bench.root / "20240508" / "night-ly-20240508T000000Z-7"
    stem.parent.mkdir(parents=True)
    stem.with_suffix(".validation.json").write_text('{"requiredSteps": ["others"]}')
    stem.with_suffix(".summary.json").write_text('{"runId": "20240508T000000Z-7"}')
    line = bench.start("night-ly", {"n": 1}, run_id="20240508T000000Z-7")
    line.finish("skipped", reason="not due")
    line.execute(lambda run, why: run.record_exit_validation(why, {"requiredSteps": []}, "written"))
    bench.now += 40 * DAY_US
    plan = look(bench)[1]

    assert plan.removals == []
    assert {left.why for left in plan.left} == {NOT_OURS}


@pytest.mark.parametrize("summary", [None, "{", "[]"])
def test_a_folder_in_which_nothing_says_whose_it_is_stays_and_is_named(
    bench: Treed, summary: str | None
) -> None:
    bench.start("distill", {"n": 1}, run_id="job-ok").finish("skipped", reason="not due")
    folder = bench.folder("job-ok")
    folder.mkdir(parents=True)
    (folder / "checkpoint.json").write_text("{}")
    (folder / "events.jsonl").write_text("{}\n")
    if summary is not None:
        (folder / "summary.json").write_text(summary)
    plan = look(bench)[1]

    assert plan.removals == []
    assert {left.why for left in plan.left} == {UNPROVEN}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_folder_that_cannot_be_read_stays_and_is_named(bench: Treed) -> None:
    bench.start("distill", {"n": 1}, run_id="job-ok").finish("skipped", reason="not due")
    bench.catch_up()
    (bench.folder("job-ok") / "summary.json").unlink()
    os.mkfifo(bench.folder("job-ok") / "summary.json")
    bench.now += 40 * DAY_US
    plan = look(bench)[1]

    assert plan.removals == []
    assert ["no regular file" in left.why for left in plan.left] == [True]


def test_a_copy_of_a_runs_folder_elsewhere_stays_and_is_named(bench: Treed) -> None:
    bench.start("distill", {"n": 1}, run_id="job-ok").finish("skipped", reason="not due")
    bench.catch_up()
    bench.folder("job-ok").parent.rename(bench.root / "20240508" / "job-runs")
    bench.now += 40 * DAY_US

    assert {left.why for left in look(bench)[1].left} == {OTHER_PLACE}


def test_temporary_files_of_the_folder_itself_go_as_well(bench: Treed) -> None:
    bench.start("distill", {"n": 1}, run_id="job-a")
    bench.catch_up()
    (mark,) = bench.root.glob(".tachograph-*.json")
    stale = [bench.root / f".{mark.name}.tmp-abc", bench.root / "20240508" / f".{mark.name}.tmp-x"]
    others = bench.root / "..tachograph-0000000000000000.json.tmp-abc"
    for path in (*stale, others):
        path.write_text("half")
        os.utime(path, ns=(0, 0))
    head = bench.log.head()
    pruner, plan = look(bench)
    assert [(each.run_id, each.rule.id) for each in plan.removals] == [(None, "stale-temporary")]
    pruner.apply(plan, [bench.layout])

    assert [path.exists() for path in (*stale, others)] == [False, False, True]
    assert bench.log.head() == head


def test_a_day_whose_last_file_went_is_not_taken_for_one_that_was_deleted(bench: Treed) -> None:
    bench.start("distill", {"n": 1}, run_id="job-a").finish("skipped", reason="not due")
    bench.catch_up()
    bench.now += DAY_US
    bench.start("distill", {"n": 2}, run_id="job-b")
    bench.catch_up()
    bench.now += 31 * DAY_US
    pruner, plan = look(bench)
    pruner.apply(plan, [bench.layout])

    assert not (bench.root / "20240508").exists()
    assert bench.layout.marks.load().days == {"20240509"}


def test_a_temporary_file_of_an_orchestrator_run_goes_as_well(bench: Treed) -> None:
    session = bench.start("nightly", {"n": 1}, run_id="orch-1")
    session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["prune"]))
    bench.catch_up()
    stale = bench.root / "20240508" / ".nightly-orch-1.summary.json.tmp-abc"
    unknown = bench.root / "20240508" / ".nightly-orch-9.summary.json.tmp-abc"
    for path in (stale, unknown):
        path.write_text("half")
        os.utime(path, ns=(0, 0))

    assert [each.paths for each in look(bench)[1].removals] == [[str(stale)]]


def test_what_an_erased_orchestrator_run_has_left_goes_at_once(bench: Treed) -> None:
    session = bench.start("nightly", {"n": 1}, run_id="orch-1")
    session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["prune"]))
    bench.catch_up()
    run = bench.repository.get("orch-1")
    assert run is not None
    run.bodies = run.ended = "erased"
    run.maintenance = None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bench.repository, "get", lambda run_id: run if run_id == "orch-1" else None)

        assert going(look(bench)[1]) == {("orch-1", "report", "erased-drops-all")}


def test_what_an_erased_run_has_left_goes_at_once(bench: Treed) -> None:
    fill(bench)
    bench.catch_up()
    run = bench.repository.get("job-partial")
    assert run is not None
    run.bodies = run.ended = "erased"
    run.parent = None  # that is forgotten, too
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bench.repository, "get", lambda _run_id: run)
        pruner, plan = look(bench, only="job-partial")
        pruner.apply(plan, [bench.layout])

    assert not any("job-partial" in name for name in bench.written())


def test_what_adapters_of_finished_runs_have_left_goes_after_a_day(
    bench: Treed, tmp_path: Path
) -> None:
    fill(bench)
    spool = tmp_path / "spool"
    spool.mkdir()
    keys = {name_key(run_id).hex(): run_id for run_id in ("job-ok", "job-running")}
    for key in keys:
        (spool / f"{key}-1.stdout").write_text("said")
        os.utime(spool / f"{key}-1.stdout", ns=(0, 0))
    (spool / "unknown-1.stdout").write_text("said")
    pruner, plan = Pruner(bench.repository, bench.payloads, is_temporary, bench.now), Plan()
    pruner.look_at_spool(plan, ArtifactFolder(str(spool)), keys)
    assert going(plan) == {("job-ok", "spool", "spool-of-finished")}
    pruner.apply(plan, [bench.writer(spool)])

    left = sorted(path.name for path in spool.iterdir() if not path.name.startswith("."))
    assert left == sorted([f"{name_key('job-running').hex()}-1.stdout", "unknown-1.stdout"])
    assert bench.fields("job-ok", "files-removed")[-1]["what"] == "spool"
