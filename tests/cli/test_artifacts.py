"""The commands about artifact files: written on demand, pruned after a preview, shown as before."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from command_line import TACHO, Done, here, tacho, topics
from stores import begin, opened, record_run
from tree_reader import check_record, load

from tachograph.domain.owner import Owner
from tachograph.domain.recovery import Recovery
from tachograph.infra.layout import name_key
from tachograph.infra.processes import describe
from tachograph.starting import Start

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def store(store_environment: Path) -> Path:
    """Runs of several kinds."""
    with opened(store_environment) as services:
        record_run(services, "job-done")
        record_run(services, "job-failed", outcome="failed")
        begin(services, "job-lost").start_phase("parse")
        alive = describe(os.getpid())
        services.starter.start(Start("other", {"n": 2}, run_id="job-alive"), alive)
        nobody = Owner("here", kind="unowned")
        want = Start("nightly", {"n": 3}, run_id="orch-1")
        session = services.starter.start(want, nobody)
        session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["prune"]))
        session.execute(lambda run, why: run.start_maintenance_step(why, "prune"))
        session.execute(
            lambda run, why: run.end_maintenance_step(
                why, "prune", "failed", "disk full", runs=["job-failed"], result="failed"
            )
        )
        session.finish("failed", reason="failed: prune")
    return store_environment


@pytest.fixture
def tree(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of all of them, where the setting says."""
    monkeypatch.setenv("TACHO_ARTIFACTS", str(tmp_path / "tree"))
    assert tacho("run", "artifacts", "--all", "--update").returncode == 0
    return tmp_path / "tree"


def shown(done: Done) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# run artifacts.


def test_a_runs_files_are_written_on_demand(store: Path, tmp_path: Path, capsys: Capture) -> None:
    done = here(capsys, "run", "artifacts", "job-failed", "--write", tmp_path / "look", "--json")
    found = shown(done)

    assert [file["kind"] for file in found["tree"]["files"]] == [
        "summary",
        "events",
        "checkpoint",
        "report",
    ]
    assert found["artifacts"] == []
    record = load(next((tmp_path / "look").rglob("summary.json")))
    assert record is not None
    check_record(record)
    assert record["jobRunId"] == "job-failed"


def test_files_that_went_say_by_which_rule(tree: Path, capsys: Capture) -> None:
    done = here(capsys, "run", "artifacts", "job-done")

    assert "(gone by success-drops-events)" in done.stdout
    assert "summary.json" in done.stdout


def test_without_a_folder_only_what_the_run_made_is_shown(store: Path, capsys: Capture) -> None:
    assert shown(here(capsys, "run", "artifacts", "job-done", "--json"))["tree"] is None


def test_the_whole_tree_is_brought_up_to_the_log(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    found = shown(here(capsys, "run", "artifacts", "--all", "--write", tmp_path / "t", "--json"))

    assert found == {"root": str(tmp_path / "t"), "problems": []}
    assert len(list((tmp_path / "t").rglob("*summary.json"))) == 5


def test_a_problem_with_one_run_is_told_and_ends_with_1(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    here(capsys, "run", "artifacts", "job-lost", "--write", tmp_path / "t")
    (path,) = (tmp_path / "t").rglob("summary.json")
    path.write_text("{}")
    done = here(capsys, "run", "artifacts", "--all", "--write", tmp_path / "t")

    assert done.returncode == 1
    assert "job-lost: " in done.stderr
    assert "is left as it is" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Which run?"),
        (("job-done", "--all", "--update"), "Which run?"),
        (("--all",), "--all goes with"),
        (("job-done", "--write", "/x", "--update"), "exclude each other"),
        (("job-done", "--update"), "TACHO_ARTIFACTS"),
        (("job-done", "--write", ""), "has no name"),
    ],
)
def test_nonsense_is_refused(
    store: Path, capsys: Capture, arguments: tuple[str, ...], said: str
) -> None:
    done = here(capsys, "run", "artifacts", *arguments)

    assert done.returncode == 2
    assert said in done.stderr


def test_a_folder_that_cannot_be_written(store: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("")
    done = here(capsys, "run", "artifacts", "job-done", "--write", tmp_path / "file")

    assert done.returncode == 1
    assert "name another folder with --write" in done.stderr


def test_a_tree_that_was_deleted_is_brought_back_whole(tree: Path, capsys: Capture) -> None:
    here(capsys, "watchdog", "run", "--once")  # it notes what is interrupted
    before = {path: path.read_bytes() for path in tree.rglob("2*/**/*.*") if path.is_file()}
    shutil.rmtree(next(tree.glob("2*")))
    here(capsys, "watchdog", "run", "--once")
    assert {path: path.read_bytes() for path in before} == before

    next(tree.rglob("job-failed/summary.json")).unlink()
    assert here(capsys, "run", "artifacts", "--all", "--update").returncode == 0
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    "words",
    [
        ("run", "cancel", "job-lost", "--reason", "not wanted"),
        ("run", "expire", "job-lost", "--reason", "too old"),
        ("run", "finish", "--run", "job-lost", "--epoch", "1", "--outcome", "partial"),
        ("run", "fail", "--run", "job-lost", "--epoch", "1", "--reason", "disk full"),
    ],
)
def test_who_ends_a_run_by_hand_finds_its_files_up_to_date(
    tree: Path, capsys: Capture, words: tuple[str, ...]
) -> None:
    here(capsys, *words)
    record = load(next(tree.rglob("job-lost/summary.json")))

    assert record is not None
    assert record["status"] == {"cancel": "cancelled", "expire": "expired", "finish": "partial",
                                "fail": "failed"}[words[1]]  # fmt: skip


# store prune.


def test_pruning_shows_first_and_removes_when_asked(tree: Path, capsys: Capture) -> None:
    before = sorted(tree.rglob("*"))
    for words in ((), ("--dry-run",)):
        done = here(capsys, "store", "prune", "--older-than", "0s", *words)
        assert "Would remove 4 files" in done.stderr
        assert "Add --apply to remove them." in done.stderr
    assert sorted(tree.rglob("*")) == before
    found = shown(here(capsys, "store", "prune", "--older-than", "0s", "--apply", "--json"))

    assert (found["applied"], found["files"]) == (True, 4)
    assert {(each["jobRunId"], each["rule"]) for each in found["removals"]} == {
        ("job-done", "success-keeps-summary-30d"),
        ("orch-1", "orchestrator-keeps-30d"),
    }
    assert topics("job-done")[-1] == topics("orch-1")[-1] == "files-removed"
    assert not list(tree.rglob("job-done"))
    assert here(capsys, "store", "prune", "--older-than", "0s").stdout == ""


def test_pruned_files_do_not_come_back_by_themselves(tree: Path, capsys: Capture) -> None:
    here(capsys, "store", "prune", "--older-than", "0s", "--apply")
    here(capsys, "watchdog", "run", "--once")

    assert not list(tree.rglob("job-done"))


def test_within_thirty_days_nothing_goes(tree: Path, capsys: Capture) -> None:
    assert shown(here(capsys, "store", "prune", "--json"))["removals"] == []


def test_another_root_can_be_named(store: Path, tmp_path: Path, capsys: Capture) -> None:
    here(capsys, "run", "artifacts", "job-done", "--write", tmp_path / "t")
    found = shown(
        here(capsys, "store", "prune", "--root", tmp_path / "t", "--older-than", "0s", "--json")
    )

    assert found["roots"] == [str(tmp_path / "t")]
    assert found["files"] == 2


def test_without_a_folder_the_store_alone_is_looked_at(store: Path, capsys: Capture) -> None:
    done = here(capsys, "store", "prune")

    assert "names no folder" in done.stderr
    assert "Would remove 0 files" in done.stderr


def test_what_an_adapter_has_left_goes_with_its_run(store: Path, capsys: Capture) -> None:
    left = store / "spool" / f"{name_key('job-done').hex()}-1.stdout"
    left.parent.mkdir()
    left.write_text("said")
    os.utime(left, ns=(0, 0))
    found = shown(here(capsys, "store", "prune", "--apply", "--json"))

    assert [each["rule"] for each in found["removals"]] == ["spool-of-finished"]
    assert not left.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--apply", "--dry-run"), "exclude"),
        (("--older-than", "soon"), "soon"),
        (("--root", "/no/such"), "there is no such folder"),
    ],
)
def test_a_prune_that_makes_no_sense(
    store: Path, capsys: Capture, arguments: tuple[str, ...], said: str
) -> None:
    done = here(capsys, "store", "prune", *arguments)

    assert done.returncode == 2
    assert said in done.stderr


def test_what_is_erased_is_told_of_no_more(tree: Path, capsys: Capture) -> None:
    assert list(tree.rglob("job-done"))
    done = tacho("store", "erase", "job-done", "--apply", "--reason", "it names a customer")

    assert done.returncode == 0, done.stderr
    assert not list(tree.rglob("job-done"))
    assert here(capsys, "run", "artifacts", "--all", "--update").returncode == 0
    assert not list(tree.rglob("job-done"))


# watchdog.


def test_the_watchdog_brings_the_files_up_to_the_log(
    store: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACHO_ARTIFACTS", str(tmp_path / "tree"))
    here(capsys, "watchdog", "run", "--once", "--dry-run")
    assert not (tmp_path / "tree").exists()
    here(capsys, "watchdog", "run", "--once")

    (path,) = (tmp_path / "tree").rglob("job-lost/summary.json")
    record = load(path)
    assert record is not None
    assert record["status"] == "interrupted"
    assert record["semanticOutcome"] == "partial"


# run exec.


def test_a_wrapped_command_has_files(
    store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACHO_ARTIFACTS", str(tmp_path / "tree"))
    done = tacho("run", "exec", "--quiet", "--id", "job-x", "--", "sh", "-c", "exit 3")

    assert done.returncode == 3
    (path,) = (tmp_path / "tree").rglob("summary.json")
    record = load(path)
    assert record is not None
    assert (record["semanticOutcome"], record["semanticReason"]) == ("failed", "exit code 3")


def test_a_wrapped_command_that_ended_badly_says_how_it_ended(
    store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("TACHO_ARTIFACTS", str(tmp_path / "tree"))
    tacho("run", "exec", "--quiet", "--id", "job-x", "--", "sh", "-c", "exit 3")
    record = load(next((tmp_path / "tree").rglob("summary.json")))
    report = next((tmp_path / "tree").rglob("report.md")).read_text()

    assert record is not None
    assert [(each["status"], each["summary"]) for each in record["phases"]] == [
        ("failed", "exit code 3")
    ]
    assert "| exec | failed | - | - | - | exit code 3 |" in report
    said = maintenance(capsys, "explain", "job-x")["diagnosis"]
    assert "Failed phase: exec (exit code 3)." in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_among_the_files_keeps_no_wrapped_command_waiting(
    store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACHO_ARTIFACTS", str(tmp_path / "tree"))
    words = ("run", "exec", "--quiet", "--id", "job-x", "--", "sh", "-c", "exit 3")
    tacho(*words)
    (path,) = (tmp_path / "tree").rglob("summary.json")
    path.unlink()
    os.mkfifo(path)
    done = tacho(*words)

    assert done.returncode == 3
    assert f"{path}: it is no regular file" in done.stderr


def test_a_folder_that_cannot_be_written_costs_a_wrapped_command_nothing(
    store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TACHO_ARTIFACTS", str(tmp_path / "file"))
    done = tacho("run", "exec", "--quiet", "--id", "job-x", "--", "sh", "-c", "exit 3")

    assert done.returncode == 3
    assert "The artifact files cannot be read or written" in done.stderr


def test_an_orchestrator_run_and_its_steps_have_files(
    store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACHO_ARTIFACTS", str(tmp_path / "tree"))
    (tmp_path / "tachograph.toml").write_text(
        '[[maintenance.steps]]\nname = "prune"\ntier = "cycle"\ncommand = ["false"]\n'
    )
    done = tacho("maintenance", "cycle", cwd=tmp_path)

    assert done.returncode == 1
    (summary,) = (tmp_path / "tree").rglob("maintenance-cycle-orch-*.summary.json")
    (step,) = json.loads(summary.read_text())["steps"]
    record = load(summary.parent / "job-runs" / step["jobRunId"] / "summary.json")
    assert record is not None
    assert f"{record['orchestratorRunId']}.summary.json" in summary.name


def test_runs_within_a_cron_line_have_their_files_beside_its_own(
    store_environment: Path, tmp_path: Path
) -> None:
    job = (*TACHO, "run", "exec", "--quiet", "--id", "job-x", "--", "sh", "-c", "exit 3")
    done = tacho(
        "cron", "exec", "--quiet", "--job", "nightly", "--root", tmp_path / "root", "--", *job
    )

    assert done.returncode != 0
    (path,) = (tmp_path / "root").rglob("job-runs/job-x/summary.json")
    record = load(path)
    assert record is not None
    assert list(path.parents[2].glob(f"nightly-{record['orchestratorRunId']}.summary.json"))
    (validation,) = path.parents[2].glob("*.validation.json")
    assert json.loads(validation.read_text())["unexplained"] == []


def test_a_cron_line_that_failed_has_its_report_at_its_end(
    store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACHO_ARTIFACTS", str(tmp_path / "tree"))
    tacho("cron", "exec", "--quiet", "--job", "nightly", "--root", tmp_path / "root", "--",
          "false")  # fmt: skip
    (report,) = (tmp_path / "tree").rglob("report.md")

    assert ": failed" in report.read_text().splitlines()[0]


def test_the_files_of_cron_lines_are_found_and_pruned_where_nothing_is_set(
    store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OPENCLAW_HOME", raising=False)
    job = (*TACHO, "run", "exec", "--quiet", "--id", "job-x", "--", "true")
    done = tacho("cron", "exec", "--quiet", "--job", "nightly", "--", *job)
    assert done.returncode == 0, done.stderr
    root = store_environment / "cron"
    (summary,) = root.rglob("nightly-*.summary.json")
    line = summary.name.removeprefix("nightly-").removesuffix(".summary.json")

    found = maintenance(capsys, "artifacts", line)
    assert found["summary"] == str(summary)
    assert all(os.path.exists(path) for path in found.values())  # noqa: PTH110
    assert maintenance(capsys, "artifacts", "job-x")["report"].startswith(str(root))
    rows = {row["id"]: row for row in maintenance(capsys, "list")}
    assert rows[line]["path"] == str(summary)

    pruned = shown(here(capsys, "store", "prune", "--older-than", "0s", "--apply", "--json"))
    assert pruned["roots"] == [str(root)]
    assert {(each["jobRunId"], *each["kinds"]) for each in pruned["removals"]} == {
        (line, "summary", "validation"),
        ("job-x", "report", "summary"),
    }
    assert not summary.exists()
    assert list(root.glob("*.log"))


def test_the_files_of_a_cron_line_are_found_where_it_was_told_to_leave_them(
    store_environment: Path, tmp_path: Path, capsys: Capture
) -> None:
    tacho("cron", "exec", "--quiet", "--job", "nightly", "--root", tmp_path / "root", "--",
          "false")  # fmt: skip
    (summary,) = (tmp_path / "root").rglob("nightly-*.summary.json")
    line = summary.name.removeprefix("nightly-").removesuffix(".summary.json")

    assert maintenance(capsys, "artifacts", line)["summary"] == str(summary)


def test_a_summary_is_the_same_wherever_it_is_asked_for(
    store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("TACHO_ARTIFACTS", str(tmp_path / "tree"))
    monkeypatch.setenv("HM_JOB", "nightly")
    monkeypatch.setenv("HM_SUMMARY", str(tmp_path / "out.json"))
    (tmp_path / "tachograph.toml").write_text(
        '[[maintenance.steps]]\nname = "prune"\ntier = "cycle"\ncommand = ["true"]\n'
    )
    done = tacho("maintenance", "cycle", "--json", cwd=tmp_path)
    (in_tree,) = (tmp_path / "tree").rglob("nightly-orch-*.summary.json")
    summary = json.loads(in_tree.read_bytes())
    status = maintenance(capsys, "status", summary["runId"])

    assert summary["job"] == "nightly"
    assert json.loads(done.stdout) == summary
    assert json.loads((tmp_path / "out.json").read_bytes()) == summary
    assert {name: value for name, value in status.items() if name != "status"} == summary


# maintenance run.


def maintenance(capsys: Capture, *words: str) -> Any:
    return shown(here(capsys, "maintenance", "run", *words, "--json"))


def test_the_list_has_the_fields_of_the_original(tree: Path, capsys: Capture) -> None:
    rows = {row["id"]: row for row in maintenance(capsys, "list")}

    assert list(rows["job-failed"]) == [
        "kind",
        "id",
        "path",
        "startedAt",
        "command",
        "semanticOutcome",
        "status",
    ]
    assert rows["job-failed"]["path"].endswith("/job-runs-standalone/job-failed/summary.json")
    assert (rows["orch-1"]["kind"], rows["orch-1"]["exitCode"]) == ("orchestrator", 1)
    states = {run_id: (row.get("semanticOutcome"), row["status"]) for run_id, row in rows.items()}
    assert states["job-alive"] == ("partial", "running")
    assert states["job-lost"] == ("partial", "interrupted")
    assert states["job-done"] == ("success", "success")
    starts = [row["startedAt"] for row in maintenance(capsys, "list")]
    assert starts == sorted(starts, reverse=True)


def test_the_list_for_people(store: Path, capsys: Capture) -> None:
    lines = here(capsys, "maintenance", "run", "list").stdout.splitlines()

    assert any(
        line.startswith("job            job-failed command=report semantic=failed status=failed  s")
        for line in lines
    )
    assert any(line.startswith("orchestrator   orch-1 exit=1 ") for line in lines)


def test_an_empty_list_is_no_failure(store_environment: Path, capsys: Capture) -> None:
    with opened(store_environment):
        pass
    done = here(capsys, "maintenance", "run", "list")

    assert (done.returncode, done.stdout) == (0, "")
    assert "No maintenance runs found." in done.stderr


def test_a_since_that_is_none_is_refused(store: Path, capsys: Capture) -> None:
    """The original takes it for seven days, without a word."""
    done = here(capsys, "maintenance", "run", "list", "--since", "banana")

    assert done.returncode == 2
    assert "'banana' is not a time" in done.stderr


@pytest.mark.parametrize("command", ["status", "artifacts", "explain", "resume"])
def test_an_ambiguous_id_and_a_missing_one_are_told_apart(
    store: Path, capsys: Capture, command: str
) -> None:
    ambiguous = here(capsys, "maintenance", "run", command, "job-")
    missing = here(capsys, "maintenance", "run", command, "job-dome")

    assert ambiguous.returncode == missing.returncode == 3
    assert "fits several runs" in ambiguous.stderr
    assert "job-done" in ambiguous.stderr
    assert "There is no run 'job-dome'" in missing.stderr
    assert "Did you mean job-done" in missing.stderr


def test_an_id_is_found_whatever_its_capitals(store_environment: Path, capsys: Capture) -> None:
    with opened(store_environment) as services:
        for run_id in ("ok1", "Twin", "tWin", "twi2"):
            record_run(services, run_id)

    assert maintenance(capsys, "status", "OK1")["jobRunId"] == "ok1"
    assert maintenance(capsys, "status", "OK")["jobRunId"] == "ok1"
    assert maintenance(capsys, "explain", "tWin")["diagnosis"].startswith("Command")
    for text in ("TWIN", "TWI"):
        done = here(capsys, "maintenance", "run", "status", text)
        assert done.returncode == 3
        assert "Twin" in done.stderr
    assert "finished" in here(capsys, "maintenance", "run", "resume", "OK1").stderr
    assert here(capsys, "run", "status", "OK1").returncode == 3


def test_a_status_is_the_whole_record_and_says_what_is_so_now(tree: Path, capsys: Capture) -> None:
    failed = maintenance(capsys, "status", "job-failed")
    check_record(failed)
    assert failed == load(next(tree.rglob("job-failed/summary.json")))

    lost = maintenance(capsys, "status", "job-lost")
    assert lost["status"] == "interrupted"
    assert lost["semanticReason"].startswith("interrupted: ")
    assert maintenance(capsys, "status", "job-alive")["status"] == "running"
    assert maintenance(capsys, "status", "orch-1")["exitCode"] == 1


def test_a_status_for_people(store: Path, capsys: Capture) -> None:
    job = here(capsys, "maintenance", "run", "status", "job-failed").stdout
    assert job.startswith("JobRun job-failed command=report\n  semantic=failed started=")
    assert "  progress=3/3 batches" in job

    line = here(capsys, "maintenance", "run", "status", "orch-1").stdout
    assert line.startswith("Orchestrator run orch-1\n  tier=nightly exit=1 durationMs=")
    assert "Maintenance nightly — 1 steps" in line


def test_artifacts_are_those_that_are_there(tree: Path, capsys: Capture) -> None:
    found = maintenance(capsys, "artifacts", "job-done")
    assert list(found) == ["summary", "events", "checkpoint", "report"]
    assert (found["events"], found["checkpoint"]) == (None, None)
    assert found["summary"].endswith("job-done/summary.json")

    found = maintenance(capsys, "artifacts", "orch-1")
    assert list(found) == ["summary", "log", "exit", "validation"]
    assert found["summary"].endswith("/nightly-orch-1.summary.json")
    assert "log: -" in here(capsys, "maintenance", "run", "artifacts", "orch-1").stdout


def test_an_explanation_leads_to_the_failure(tree: Path, capsys: Capture) -> None:
    job = maintenance(capsys, "explain", "job-failed")
    assert job["diagnosis"].startswith("Command report ended with semantic outcome failed.")
    assert json.loads(job["lastEvent"])["type"] == "semantic_gate"
    assert "Start report with the same inputs again" in job["resumeHint"]

    line = maintenance(capsys, "explain", "orch-1")
    assert "Failed step: prune (disk full), see run job-failed." in line["diagnosis"]
    assert [step["name"] for step in line["failedSteps"]] == ["prune"]
    assert "resumeHint" not in maintenance(capsys, "explain", "job-done")


def test_an_orchestrator_run_that_goes_on_has_no_exit_code_yet(
    store: Path, capsys: Capture
) -> None:
    with opened(store) as services:
        want = Start("nightly", {"n": 4}, run_id="orch-2")
        session = services.starter.start(want, describe(os.getpid()))
        session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["prune", "reflect"]))
        session.execute(lambda run, why: run.start_maintenance_step(why, "prune"))

    found = maintenance(capsys, "status", "orch-2")
    assert found["status"] == "running"
    assert not {"exitCode", "finishedAt", "durationMs", "summaryLine"} & set(found)
    rows = {row["id"]: row for row in maintenance(capsys, "list")}
    assert "exitCode" not in rows["orch-2"]
    said = maintenance(capsys, "explain", "orch-2")["diagnosis"]
    assert said == "Maintenance nightly has not ended."
    text = here(capsys, "maintenance", "run", "status", "orch-2").stdout
    assert "  tier=nightly exit=- durationMs=- status=running" in text


def test_a_cron_line_that_was_validated_and_taken_up_again_has_no_steps_yet(
    store: Path, capsys: Capture
) -> None:
    with opened(store) as services:
        want = Start("nightly", {"n": 5}, run_id="20240508T000000Z-7")
        session = services.starter.start(want, describe(os.getpid()))
        session.finish("failed", reason="exit code 3")
        report = {"requiredSteps": [{"name": "nightly", "exit": 3}], "recommendedExitCode": 7}
        session.execute(lambda run, why: run.record_exit_validation(why, report, "skipped_failed"))
        assert maintenance(capsys, "status", "20240508T000000Z-7")["exitCode"] == 1
        services.starter.start(want, describe(os.getpid()))

    found = maintenance(capsys, "status", "20240508T000000Z-7")
    assert (found["steps"], found["tierLabel"], found["status"]) == ([], "cron", "running")


def test_a_run_of_which_nothing_is_known_to_the_original_has_no_last_event(
    store: Path, capsys: Capture
) -> None:
    assert "lastEvent" not in maintenance(capsys, "explain", "job-alive")


def test_the_last_event_is_the_last_line_of_the_file(tree: Path, capsys: Capture) -> None:
    for run_id in ("job-failed", "job-lost"):
        (path,) = tree.rglob(f"{run_id}/events.jsonl")
        last = path.read_text().splitlines()[-1]
        assert maintenance(capsys, "explain", run_id)["lastEvent"] == last


def test_an_explanation_for_people(store: Path, capsys: Capture) -> None:
    said = here(capsys, "maintenance", "run", "explain", "job-lost").stdout.splitlines()

    assert said[0].startswith("Command report has no outcome yet (unfinished).")
    assert said[1].startswith('Last event: {"type":"phase_start"')
    assert "`tacho run status job-lost` says whether its process is alive." in said[2]


def test_a_resume_goes_by_the_plan_of_the_log(store: Path, tmp_path: Path, capsys: Capture) -> None:
    """The original refuses what was cut off, and runs the text that a file holds."""
    made = tmp_path / "made"
    with opened(store) as services:
        want = Start(
            "touch",
            {"n": 9},
            run_id="job-cut",
            recovery=Recovery(command=["touch", str(made)], working_folder=str(tmp_path)),
        )
        owner = describe(os.getpid())
        assert owner.started is not None
        owner.started -= 1
        services.starter.start(want, owner)
    here(capsys, "run", "artifacts", "job-cut", "--write", tmp_path / "t")
    (path,) = (tmp_path / "t").rglob("summary.json")
    path.write_text(path.read_text().replace("tacho run resume", "rm -rf /; tacho run resume"))
    done = here(capsys, "maintenance", "run", "resume", "job-cut")

    assert made.exists()
    assert "resume-dispatched" in topics("job-cut")
    assert done.returncode in (0, 1)  # the command records nothing of its own


def test_what_is_finished_is_not_resumed(store: Path, capsys: Capture) -> None:
    done = here(capsys, "maintenance", "run", "resume", "job-done")

    assert done.returncode == 1
    assert "finished" in done.stderr
