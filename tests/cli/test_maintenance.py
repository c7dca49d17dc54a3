"""`tacho maintenance`: steps as real processes, their outcomes, exit codes, links and summary."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import here, history, tacho
from projects import Project, clean_environment, orchestrators, runs

from tachograph.bootstrap import open_store
from tachograph.cli.maintenance_steps import _row
from tachograph.domain import outcome
from tachograph.domain.maintenance_plan import MaintenanceStep
from tachograph.domain.outcome import traits
from tachograph.faulting import fault_path
from tachograph.projections.maintenance_guards import Standing

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def project(store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in [name for name in os.environ if name.startswith("HM_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Project(folder).write()


def nightly(capsys: Capture, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = here(capsys, "maintenance", "nightly", "--json", *arguments)
    return done.returncode, json.loads(done.stdout)


def statuses(document: dict[str, Any]) -> dict[str, str]:
    return {step["name"]: step["status"] for step in document["steps"]}


# What a step came to.

START = 'eval "$(tacho run start inner --input d=1 --export)"; '

OUTCOMES = {
    "well": ("true", "ok", 0, "success"),
    "badly": ("exit 3", "failed", 1, "failed"),
    "killed": ("kill -9 $$", "failed", 1, "failed"),
    "try later": ("exit 75", "failed", 1, "partial"),
    "nothing parsed": ("exit 7", "failed", 1, "failed_semantic_empty"),
    "itself judged": ("tacho run judge --inputs 5 --outputs 5", "ok", 0, "success"),
    "itself judged badly": (
        "tacho run judge --inputs 5 --outputs 0 || true",
        "failed",
        1,
        "failed_semantic_empty",
    ),
    "limited": (
        "tacho run finish --outcome partial --reason-code rate_limited --reason 'HTTP 429'",
        "rate_limited",
        2,
        "partial",
    ),
    "nothing to do": ("tacho run judge --inputs 0", "ok", 0, "empty"),
    "nothing to do, declared": (
        "tacho run judge --inputs 5 --declared 'all known'",
        "ok",
        0,
        "empty",
    ),
}


def test_the_reason_of_a_verdict_says_more_than_an_exit_code(
    project: Project, store_path: Path, capsys: Capture
) -> None:
    project.step("work", "tacho run judge --inputs 5 --outputs 0")
    _, document = nightly(capsys)
    (run,) = runs(store_path, "work")

    assert run.verdict is not None
    assert document["steps"][0]["summary"] == run.verdict["reason"] == run.reason
    assert document["steps"][0]["semanticOutcome"] == "failed_semantic_empty"


def test_a_verdict_is_not_talked_away_by_a_run_that_went_well(
    project: Project, capsys: Capture
) -> None:
    project.step(
        "work",
        "tacho run judge --inputs 5 --outputs 0; " + START + "tacho run finish --outcome success",
    )
    code, document = nightly(capsys)

    assert (code, statuses(document)) == (1, {"work": "failed"})


def test_an_effect_in_doubt_fails_the_step_and_not_the_run(
    project: Project, store_path: Path, capsys: Capture
) -> None:
    project.step("work", "tacho run effect mail -- false; exit 0").step("next")
    code, document = nightly(capsys)

    assert (code, statuses(document)) == (1, {"work": "failed", "next": "ok"})
    assert "mail" in document["steps"][0]["summary"]
    assert [run.outcome for run in runs(store_path, "work")] == ["failed"]


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_step_comes_to_what_it_reports(name: str, project: Project, capsys: Capture) -> None:
    script, status, code, result = OUTCOMES[name]
    project.step("work", script)
    found, document = nightly(capsys)

    assert (statuses(document), found) == ({"work": status}, code)
    waits = status in ("deferred", "rate_limited")
    assert document["steps"][0].get("semanticOutcome") == (None if waits else result)
    assert document["exitCode"] == code


INNER = {
    "well": (START + "tacho run finish --outcome success", "ok", "success"),
    "within its budget": (
        START + "tacho run finish --outcome partial --reason-code stopped_by_budget",
        "deferred",
        "partial",
    ),
    # The exit code of the script says that all is well; the run inside says otherwise.
    "badly, and hides it": (
        START + "tacho run fail --reason 'no disk'; exit 0",
        "failed",
        "failed",
    ),
    "well, and the script fails": (
        START + "tacho run finish --outcome success; exit 4",
        "failed",
        "failed",
    ),
    "without an end": (START + "exit 0", "failed", "failed"),
    "cancelled": (START + "tacho run cancel $TACHO_RUN_ID --reason no", "deferred", "partial"),
}


@pytest.mark.parametrize("name", INNER)
def test_a_step_comes_to_the_worst_of_its_runs(
    name: str, project: Project, store_path: Path, capsys: Capture
) -> None:
    script, status, result = INNER[name]
    project.step("work", script)
    _, document = nightly(capsys)
    (orchestrator,) = orchestrators(store_path)
    step = orchestrator.maintenance_steps["work"]

    assert statuses(document) == {"work": status}
    assert step["outcome"] == result
    assert {run.command for run in runs(store_path) if run.id in step["runs"]} == {"work", "inner"}
    assert {run.parent for run in runs(store_path) if run.id in step["runs"]} == {orchestrator.id}


def test_a_run_that_is_taken_up_again_the_next_night_is_known_by_both(
    project: Project, store_path: Path, capsys: Capture
) -> None:
    """It belongs to the run that created it, and its new attempt to the one of tonight."""
    project.step(
        "work", START + "tacho run finish --outcome partial --reason-code stopped_by_budget"
    )
    nightly(capsys)
    nightly(capsys)
    first, second = orchestrators(store_path)
    (inner,) = runs(store_path, "inner")

    assert inner.parent == first.id
    assert inner.id in second.maintenance_steps["work"]["runs"]
    assert second.maintenance_steps["work"]["status"] == "deferred"
    started = [f for topic, f in history(inner.id) if topic == "run.attempt-started"]
    assert [fields["orchestrator"] for fields in started] == [first.id, second.id]


def test_a_program_that_is_not_there_fails_its_step_loudly(
    project: Project, capsys: Capture
) -> None:
    project.step("work", None, command=["/no/such/program"])
    code, document = nightly(capsys)

    assert (code, statuses(document)) == (1, {"work": "failed"})
    assert "/no/such/program cannot be run" in document["steps"][0]["summary"]


def test_a_working_folder_that_is_not_there_fails_its_step(
    project: Project, capsys: Capture
) -> None:
    project.step("work", "true", working_folder="gone")
    code, document = nightly(capsys)

    assert (code, statuses(document)) == (1, {"work": "failed"})
    assert "gone cannot be used" in document["steps"][0]["summary"]


def test_a_step_is_run_in_its_folder_with_its_variables(project: Project, capsys: Capture) -> None:
    (project.folder / "data").mkdir()
    project.step(
        "work",
        'echo "$COLOUR" >written',
        working_folder="data",
        environment={"COLOUR": "blue"},
        expect_output=["written"],
    )
    code, _ = nightly(capsys)

    assert code == 0
    assert (project.folder / "data" / "written").read_text() == "blue\n"
    assert Path.cwd() == project.folder


def test_a_file_that_is_missing_fails_the_step(project: Project, capsys: Capture) -> None:
    project.step("work", "true", expect_output=["report.pdf"])
    code, document = nightly(capsys)

    assert (code, statuses(document)) == (1, {"work": "failed"})
    assert "(report.pdf: " in document["steps"][0]["summary"]


def test_a_file_that_is_blank_is_told_from_one_that_is_missing(
    project: Project, capsys: Capture
) -> None:
    project.step("work", ": >report.pdf", expect_output=["report.pdf"])
    project.step("other", "true", expect_output=["other.pdf"])
    _, document = nightly(capsys)
    blank, gone = (step["summary"].rpartition("(")[2] for step in document["steps"])

    assert blank.removeprefix("report.pdf") != gone.removeprefix("other.pdf")


def test_a_step_that_takes_too_long_is_stopped(project: Project, capsys: Capture) -> None:
    project.step("work", "exec sleep 100", timeout="1s")
    code, document = nightly(capsys)

    assert (code, statuses(document)) == (1, {"work": "failed"})
    assert "stopped at its time limit" in document["steps"][0]["summary"]


OUTCOMES_BY_NAME = outcome.OUTCOMES
JUDGED = """
import os
import tachograph

def work():
    services = tachograph.bootstrap.open_store()
    session = services.session(os.environ["TACHO_RUN_ID"], int(os.environ["TACHO_EPOCH"]))
    session.judge(Facts(inputs=5, outputs={outputs}))
    services.close()
    return {said!r}

import tachograph.bootstrap
from tachograph.domain.facts import Facts
"""
JOB = """
import tachograph

def well():
    with tachograph.record("inner", {"n": 1}) as run:
        run.judge(inputs=2, outputs=2)

async def asleep():
    return "partial"

def fails():
    raise ValueError("no such table")

def named_in_a_file():
    with open("outcome") as file:
        return file.read()

def odd():
    return object()
"""


@pytest.mark.parametrize(
    ("job", "status", "words"),
    [
        ("nightjobs:well", "ok", "run job-inner"),
        ("nightjobs:asleep", "failed", "it returned 'partial'"),
        ("nightjobs:fails", "failed", "exit code 1"),
        ("nightjobs:odd", "failed", "exit code 1"),
        ("nightjobs:missing", "failed", "exit code 127"),
        ("nightjobs", "failed", "exit code 127"),
    ],
)
def test_a_step_can_be_a_python_function(
    job: str, status: str, words: str, project: Project, capsys: Capture
) -> None:
    (project.folder / "nightjobs.py").write_text(JOB)
    project.step("work", None, job=job)
    _, document = nightly(capsys)

    assert statuses(document) == {"work": status}
    assert words in document["steps"][0]["summary"]


@pytest.mark.parametrize("result", OUTCOMES_BY_NAME)
def test_a_function_comes_to_the_outcome_that_it_names(
    result: str, project: Project, store_path: Path, capsys: Capture
) -> None:
    (project.folder / "nightjobs.py").write_text(JOB)
    (project.folder / "outcome").write_text(result)
    project.step("work", None, job="nightjobs:named_in_a_file", guard="20h")
    code, document = nightly(capsys)
    (step,) = document["steps"]
    (run,) = runs(store_path, "work")

    assert (step["semanticOutcome"], step["summary"]) == (result, f"it returned {result!r}")
    assert step["status"] == ("failed" if traits(result).fails_step else "ok")
    assert (run.outcome, run.reason_code) == (result, "returned")
    assert code == int(traits(result).fails_step)


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ("success", "failed_semantic_empty"),
        ("empty", "failed_semantic_empty"),
        ("success_with_review", "failed_semantic_empty"),
        ("failed", "failed"),
    ],
)
def test_what_a_function_returns_does_not_talk_a_verdict_away(
    said: str, result: str, project: Project, capsys: Capture
) -> None:
    (project.folder / "judged.py").write_text(JUDGED.format(outputs=0, said=said))
    project.step("work", None, job="judged:work")
    code, document = nightly(capsys)

    assert (code, document["steps"][0]["semanticOutcome"]) == (1, result)


def test_a_function_may_say_worse_of_itself_than_the_gate(
    project: Project, capsys: Capture
) -> None:
    (project.folder / "judged.py").write_text(JUDGED.format(outputs=5, said="success_with_review"))
    project.step("work", None, job="judged:work")
    _, document = nightly(capsys)

    assert document["steps"][0]["semanticOutcome"] == "success_with_review"


# Secrets.


def test_secrets_that_are_declared_for_a_step_are_stored_and_printed_nowhere(
    project: Project, store_path: Path, capsys: Capture
) -> None:
    """G13: they are in no environment but that of the step."""
    secret = "hunter2-hunter2"
    project.step(
        "work",
        'echo "$API_TOKEN"; tacho run finish --outcome failed --reason "no: $API_TOKEN"; exit 1',
        environment={"API_TOKEN": secret},
    )
    project.step("other", f"echo {secret}; exit 4")
    done = here(capsys, "maintenance", "nightly", "-v", "--summary-out", "summary.json")
    stored = b"".join(path.read_bytes() for path in store_path.rglob("*") if path.is_file())

    assert done.returncode == 1
    assert "no: [redacted]" in done.stdout
    assert secret not in done.stderr
    lines = [line for line in done.stdout.splitlines() if line != secret]  # printed by the steps
    assert secret not in "".join(lines)
    assert secret not in (project.folder / "summary.json").read_text()
    assert secret.encode() not in stored
    assert here(capsys, "maintenance", "steps").returncode == 0


# What a step is told.


def test_a_step_knows_whose_part_it_is(project: Project, store_path: Path, capsys: Capture) -> None:
    project.head = '[maintenance]\nmax_runtime = "5m"\n'
    project.step("work", "env >seen")
    nightly(capsys)
    (orchestrator,) = orchestrators(store_path)
    lines = (project.folder / "seen").read_text().splitlines()
    seen = {name: value for name, _, value in (line.partition("=") for line in lines)}

    assert seen["HM_ORCHESTRATOR_RUN_ID"] == orchestrator.id
    assert "HM_RUN_ID" not in seen
    assert seen["TACHO_STORE"] == str(store_path)
    assert seen["TACHO_RUN_ID"] in orchestrator.maintenance_steps["work"]["runs"]
    deadline_us = (orchestrator.maintenance or {})["deadline_us"]
    assert int(seen["HM_MAINTENANCE_RUN_DEADLINE_MS"]) == deadline_us // 1000


def test_the_id_of_one_run_does_not_leak_into_the_next(
    project: Project, store_path: Path, capsys: Capture
) -> None:
    """Fault 20 of the contract: in one process, without an id in the environment."""
    project.step("work")
    before = dict(os.environ)
    nightly(capsys)
    nightly(capsys)
    alone = here(capsys, "run", "start", "alone", "--id", "alone")

    assert dict(os.environ) == before
    assert len({run.id for run in orchestrators(store_path)}) == 2
    assert alone.returncode == 0
    assert [run.parent for run in runs(store_path, "alone")] == [None]


@pytest.mark.parametrize(
    ("variables", "parent"),
    [
        ({}, None),
        ({"HM_ORCHESTRATOR_RUN_ID": "orch-1"}, "orch-1"),
        ({"HM_ORCHESTRATOR_RUN_ID": "orch-1", "HM_RUN_ID": "cron-2"}, "cron-2"),
        ({"HM_ORCHESTRATOR_RUN_ID": " orch-1 ", "HM_RUN_ID": " "}, "orch-1"),
        ({"HM_RUN_ID": "no/id"}, None),
    ],
)
def test_a_run_belongs_to_the_orchestrator_that_its_environment_names(
    variables: dict[str, str],
    parent: str | None,
    project: Project,
    store_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    here(capsys, "run", "start", "one", "--id", "one")
    here(capsys, "run", "start", "two", "--id", "two", "--parent", "mine")
    tacho("run", "exec", "--id", "three", "--", "true")

    assert [run.parent for run in runs(store_path)] == [parent, "mine", parent]


# Ids.


def test_a_harness_names_the_run(
    project: Project, store_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("HM_RUN_ID", "20260301T020000Z-17")
    project.step("work", 'test "$HM_RUN_ID" = 20260301T020000Z-17')
    code, document = nightly(capsys)

    assert (code, document["runId"]) == (0, "20260301T020000Z-17")
    assert [run.id for run in orchestrators(store_path)] == ["20260301T020000Z-17"]


def test_two_tiers_of_one_harness_run_are_two_runs(
    project: Project, store_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("HM_RUN_ID", "cron-1")
    project.step("a", tier="cycle").step("b")
    first = here(capsys, "maintenance", "cycle", "--json")
    code, second = nightly(capsys)

    assert (first.returncode, code) == (0, 0)
    assert (json.loads(first.stdout)["runId"], second["runId"]) == ("cron-1", "cron-1-nightly")
    assert [run.parent for run in orchestrators(store_path)] == [None, "cron-1"]


def test_an_orchestrator_inside_another_is_part_of_it(project: Project, store_path: Path) -> None:
    inner = "tacho maintenance step leaf --json >inner.json"
    project.step("nest", inner, tier="cycle").step("leaf")
    done = tacho("maintenance", "cycle", environment={"HM_RUN_ID": "outer"}, cwd=project.folder)
    document = json.loads((project.folder / "inner.json").read_text())
    outer, nested = orchestrators(store_path)

    assert done.returncode == 0, done.stderr
    assert (outer.id, nested.id) == ("outer", "outer-step-leaf") == ("outer", document["runId"])
    assert nested.parent == "outer"
    assert nested.id in outer.maintenance_steps["nest"]["runs"]
    leaves = [run.parent for run in runs(store_path, "leaf")]
    assert leaves == ["outer-step-leaf"]


# Guards, choices, exit codes.


def test_a_step_is_not_run_before_it_is_due(project: Project, capsys: Capture) -> None:
    project.step("work", "echo x >>ran", guard="20h")
    nightly(capsys)
    _, second = nightly(capsys)
    nightly(capsys, "--force")
    nightly(capsys, "--full")

    assert statuses(second) == {"work": "skipped_guard"}
    assert (project.folder / "ran").read_text() == "x\n" * 3


def test_the_guard_of_a_step_can_be_set_apart_from_it(project: Project, capsys: Capture) -> None:
    project.head += "[maintenance.guards]\nwork = 0\n"
    project.step("work", "echo x >>ran", guard="20h")
    nightly(capsys)
    nightly(capsys)

    assert (project.folder / "ran").read_text() == "x\n" * 2


def test_steps_are_chosen_by_name(project: Project, capsys: Capture) -> None:
    project.step("a").step("b").step("c")
    _, some = nightly(capsys, "--include", "a, c")
    _, others = nightly(capsys, "--exclude", "a", "--exclude", "b")

    assert list(statuses(some)) == ["a", "c"]
    assert list(statuses(others)) == ["c"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nightly", "--include", "disti"), 1, "Did you mean 'distill'?"),
        (("nightly", "--include", "prune"), 1, "of the tier cycle, not nightly"),
        (("step", "disti"), 1, "There are: prune, distill."),
        (("nightly", "--max-runtime-min", "0"), 2, "give a number above 0"),
        (("nightly", "--max-runtime-min", "nan"), 2, "--max-runtime-min"),
        (("nightly", "--max-runtime-min", "inf"), 2, "--max-runtime-min"),
        (("nightly", "--max-runtime-min", "1e300"), 2, "at most 527040"),
        (("nightly", "--include", ""), 2, "--include names no step"),
        (("nightly", "--include", " , "), 2, "--include names no step"),
        (("nightly", "--exclude", ","), 2, "--exclude names no step"),
        (("nightly", "--config", "gone.toml"), 3, "gone.toml: looked there"),
    ],
)
def test_what_makes_no_sense_is_told(
    arguments: tuple[str, ...], code: int, words: str, project: Project, capsys: Capture
) -> None:
    project.step("prune", tier="cycle").step("distill")
    done = here(capsys, "maintenance", *arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


def test_one_step_alone(project: Project, store_path: Path, capsys: Capture) -> None:
    project.step("a", tier="cycle").step("b")
    done = here(capsys, "maintenance", "step", "a", "--json")
    document = json.loads(done.stdout)
    (run,) = orchestrators(store_path)

    assert (done.returncode, document["tierLabel"]) == (0, "cycle")
    assert (run.command, list(run.maintenance_steps)) == ("maintenance-step", ["a"])
    planned = run.maintenance or {}
    assert planned["deadline_us"] - run.created_us == pytest.approx(240_000_000, abs=5_000_000)


@pytest.mark.parametrize(
    ("arguments", "code"), [((), 0), (("--force",), 3), (("--force", "--allow-skip"), 0)]
)
def test_a_forced_step_that_did_not_run_is_no_success(
    arguments: tuple[str, ...], code: int, project: Project, capsys: Capture
) -> None:
    project.step("work", gate=False)

    assert here(capsys, "maintenance", "step", "work", *arguments).returncode == code


def test_a_gate_looks_at_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    project.step("work", gate={"env": "SENSORS", "equals": "1"})
    _, shut = nightly(capsys)
    monkeypatch.setenv("SENSORS", "1")
    _, opened = nightly(capsys)

    assert (statuses(shut), statuses(opened)) == ({"work": "skipped_gate"}, {"work": "ok"})


# What is printed and written.


def test_people_read_a_line_for_each_step(project: Project, capsys: Capture) -> None:
    project.step("work", "echo hello").step("later", "exit 4")
    done = here(capsys, "maintenance", "nightly", "-v")
    told = done.stderr.splitlines()
    seconds = r" +[0-9]+\.[0-9] "

    first, *lines = done.stdout.splitlines()
    assert first == "Maintenance nightly — 2 steps (1 ok, 0 skipped, 0 deferred, 1 failed)"
    for line, expected in zip(lines, ("work,ok,0", "later,failed,4"), strict=True):
        name, status, code = expected.split(",")
        assert re.fullmatch(f"{name:<28} {status:<14}{seconds}exit code {code}", line)
        assert line in told
    assert "maintenance-orchestrator: work — start" in told
    assert any(
        re.fullmatch("maintenance-orchestrator: work — complete in [0-9]+s", each) for each in told
    )


def test_with_json_what_steps_print_is_no_part_of_stdout(project: Project) -> None:
    project.step("work", "echo host log line; echo {}")
    done = tacho("maintenance", "nightly", "--json", cwd=project.folder)

    assert json.loads(done.stdout)["exitCode"] == 0
    assert "host log line" in done.stderr


@pytest.mark.parametrize("by", ["option", "environment"])
def test_the_summary_is_written_where_it_is_wanted(
    by: str, project: Project, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("HM_JOB", "maintenance-nightly")
    target = project.folder / "day" / "summary.json"
    arguments = ("--summary-out", str(target)) if by == "option" else ()
    if by == "environment":
        monkeypatch.setenv("HM_SUMMARY", str(target))
    project.step("work", 'test -z "$HM_SUMMARY"')
    code, document = nightly(capsys, *arguments)

    assert code == 0
    assert json.loads(target.read_text()) == document
    assert document["job"] == "maintenance-nightly"
    assert [path.name for path in target.parent.iterdir()] == ["summary.json"]


def test_a_summary_that_cannot_be_written_is_told(project: Project, capsys: Capture) -> None:
    (project.folder / "file").touch()
    project.step("work")
    done = here(capsys, "maintenance", "nightly", "--summary-out", "file/summary.json")

    assert done.returncode == 0
    assert "the summary could not be written to file/summary.json" in done.stderr


def test_a_dry_run_leaves_nothing(
    project: Project, store_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("HM_SUMMARY", str(project.folder / "harness.json"))
    project.step("work", "touch ran").step("other", gate=False)
    done = here(
        capsys, "maintenance", "nightly", "--dry-run", "--json", "--summary-out", "rehearsal.json"
    )
    document = json.loads(done.stdout)

    assert (done.returncode, document["runId"]) == (0, "dry-run")
    assert statuses(document) == {"work": "ok", "other": "skipped_gate"}
    assert document["steps"][0]["summary"] == "dry-run (would execute)"
    assert json.loads((project.folder / "rehearsal.json").read_text()) == document
    assert not store_path.exists()
    assert sorted(path.name for path in project.folder.iterdir()) == [
        "rehearsal.json",
        "tachograph.toml",
    ]


def test_a_dry_run_knows_the_guards(project: Project, store_path: Path, capsys: Capture) -> None:
    project.step("work", guard="20h")
    nightly(capsys)
    _, document = nightly(capsys, "--dry-run")

    assert statuses(document) == {"work": "skipped_guard"}
    assert len(orchestrators(store_path)) == 1


def test_a_reason_of_many_lines_is_one_line_of_the_list(project: Project, capsys: Capture) -> None:
    project.step(
        "work",
        "tacho run finish --outcome partial --reason 'one\n\ttwo' --reason-code stopped_by_budget",
    )
    _, document = nightly(capsys)

    assert document["steps"][0]["summary"] == "one two"


def test_a_tier_without_steps_is_told(project: Project, capsys: Capture) -> None:
    done = here(capsys, "maintenance", "cycle")

    assert done.returncode == 0
    assert "declares no step" in done.stderr


def test_a_choice_that_leaves_no_step_is_told(project: Project, capsys: Capture) -> None:
    project.step("a")
    done = here(capsys, "maintenance", "nightly", "--exclude", "a")

    assert done.returncode == 0
    assert "every step that there is to choose from is excluded" in done.stderr


def test_an_id_that_can_be_none_is_told_and_recorded(
    project: Project, store_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("HM_RUN_ID", "no/id")
    project.step("a")
    done = here(capsys, "maintenance", "nightly")
    (run,) = orchestrators(store_path)

    assert done.returncode == 0
    assert "HM_RUN_ID is 'no/id', which can be no id of a run" in done.stderr
    assert (run.maintenance or {})["options"]["refused_id"] == "no/id"
    assert run.parent is None


@pytest.mark.parametrize("job", ["maintenance-nightly", ""])
def test_the_job_that_a_run_is_of_is_in_its_options(
    job: str, project: Project, store_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("HM_JOB", job)
    project.step("a")
    _, document = nightly(capsys)
    (run,) = orchestrators(store_path)

    assert (run.maintenance or {})["options"].get("job", "") == document.get("job", "") == job


def test_a_harness_id_that_was_used_up_gets_another_execution(
    project: Project, store_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("HM_RUN_ID", "cron-1")
    project.step("work", 'echo "$HM_RUN_ID" >>seen')
    nightly(capsys)
    nightly(capsys)

    assert [run.id for run in orchestrators(store_path)] == ["cron-1", "cron-1~2"]
    assert (project.folder / "seen").read_text().split() == ["cron-1", "cron-1~2"]
    assert [run.parent for run in runs(store_path, "work")] == ["cron-1", "cron-1~2"]


def test_steps_are_listed_with_when_they_are_due(project: Project, capsys: Capture) -> None:
    project.step("a", guard="20h", llm="nano").step("b", depends_on=["a"], gate={"env": "X"})
    project.step("c", once=True).step("d", "exit 1", guard="5d")
    before = json.loads(here(capsys, "maintenance", "steps", "--json").stdout)
    nightly(capsys)
    after = json.loads(here(capsys, "maintenance", "steps", "--json").stdout)
    table = here(capsys, "maintenance", "steps").stdout

    assert before[0] == {
        "name": "a",
        "tier": "nightly",
        "guardIntervalMs": 72_000_000,
        "cadence": "every night",
        "llmTier": "nano",
        "dependsOn": [],
        "featureGate": False,
        "lastRunAt": None,
        "nextEligibleAt": None,
        "eligibleNow": True,
    }
    assert [row["featureGate"] for row in before] == [False, True, False, False]
    assert [row["eligibleNow"] for row in after] == [False, True, False, True]
    assert after[0]["lastRunAt"] < after[0]["nextEligibleAt"]
    assert (after[2]["lastRunAt"] is None, after[2]["nextEligibleAt"]) == (False, None)
    assert after[3]["lastRunAt"] is None
    assert "in 19h59m" in table


@pytest.mark.parametrize(
    ("ahead_hours", "eligible", "next_after_hours"),
    [(-30, True, -10), (5, False, 25), (30, True, None)],
)
def test_a_guard_from_the_future_says_when_it_ends_only_while_it_holds(
    ahead_hours: int, eligible: bool, next_after_hours: int | None
) -> None:
    hour_us, now_us = 3_600_000_000, 1_800_000_000_000_000
    known = Standing(now_us + ahead_hours * hour_us, "orch-1", 1, once_done=False)
    row = _row(MaintenanceStep("a", "nightly", guard_us=20 * hour_us), known, now_us)
    wanted = None if next_after_hours is None else now_us + next_after_hours * hour_us

    assert (row["eligibleNow"], row["nextEligibleAt"]) == (eligible, wanted)


def test_listing_makes_no_store(project: Project, store_path: Path, capsys: Capture) -> None:
    project.step("a")

    assert here(capsys, "maintenance", "steps").returncode == 0
    assert not store_path.exists()


# Why.


def test_a_fault_leads_to_the_step_the_run_and_the_reason(
    project: Project, store_path: Path, capsys: Capture
) -> None:
    project.step("good").step("work", START + "tacho run judge --inputs 9 --outputs 0; exit 0")
    nightly(capsys)
    (run,) = orchestrators(store_path)
    services = open_store(str(store_path), read_only=True)
    found = fault_path(run, services.repository.get)
    services.close()

    assert [fault.step for fault in found] == ["work"]


def test_views_are_what_the_log_says(project: Project, capsys: Capture) -> None:
    project.step("a", guard="20h").step("b", "exit 1").step("c", once=True)
    nightly(capsys)
    nightly(capsys)

    assert here(capsys, "view", "check").returncode == 0


def test_the_views_agree_after_a_run_was_erased(
    project: Project, store_path: Path, capsys: Capture
) -> None:
    """G8: with the events of a run its guards are gone, in old views and new ones alike."""
    project.step("a", guard="20h")
    nightly(capsys)
    here(capsys, "maintenance", "steps")
    (run,) = orchestrators(store_path)
    erased = here(capsys, "store", "erase", run.id, "--reason", "asked for", "--apply")
    (row,) = json.loads(here(capsys, "maintenance", "steps", "--json").stdout)

    assert erased.returncode == 0, erased.stderr
    assert here(capsys, "view", "check").returncode == 0
    assert (row["lastRunAt"], row["eligibleNow"]) == (None, True)


def test_the_environment_of_tests_is_clean() -> None:
    assert not [name for name in clean_environment() if name.startswith("HM_")]
