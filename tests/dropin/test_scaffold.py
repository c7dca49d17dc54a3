"""A scaffold runs as it is; killed in the middle, its task is continued by the adapter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import here
from workspaces import Bench, plain_python

from tachograph.cli.workspace_shapes import WORKSPACE
from tachograph.dropin.scaffolding import scaffold

Capture = pytest.CaptureFixture[str]
PROGRAMS = {"python": "python3", "bash": "bash"}

# What a user's own phase may do: die in the middle, the first time it runs.
DIE = {
    "python": """    if not (HERE / "died").exists():
        (HERE / "died").touch()
        os.kill(os.getpid(), 9)
""",
    "bash": ' [ -e "$here/died" ] || { touch "$here/died"; kill -KILL $$; };',
}
FAIL = {"python": "    raise RuntimeError('no disk')\n", "bash": " return 3;"}
ANALYZE = {"python": '    """Work on what was collected."""\n', "bash": "analyze() {"}
COLLECTED = {"python": "collected.json", "bash": "collect.txt"}
each_template = pytest.mark.parametrize("template", PROGRAMS)


def make(bench: Bench, template: str, slug: str = "Count Lines", title: str = "It's") -> Any:
    tasks = bench.tasks()
    try:
        return scaffold(tasks, slug, template=template, title=title)
    finally:
        tasks.services.close()


def run(job: Path, template: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAMS[template], str(job)], capture_output=True, text=True, cwd="/")


def rewrite(path: Path, after: str, more: str) -> None:
    """Write something into a file, as its user would."""
    text = path.read_text("utf-8")
    assert text.count(after) == 1
    path.write_text(text.replace(after, after + more), encoding="utf-8")


@each_template
def test_the_job_runs_as_it_is_and_again(bench: Bench, template: str) -> None:
    made = make(bench, template)
    waiting = bench.card("count-lines")
    first = run(made.job, template)
    second = run(made.job, template)

    assert (waiting["status"], waiting["allow_auto_resume"]) == ("pending", True)
    assert waiting["resume_adapter"] == str(made.adapter)
    assert (first.returncode, first.stderr, json.loads(first.stdout)["ok"]) == (0, "", True)
    assert (second.returncode, second.stderr) == (0, "")
    assert bench.card("count-lines")["ledger"]["run_id"] == "count-lines~2"
    assert bench.fields("finished", "count-lines")[0]["outcome"] == "success"
    assert [each["phase"] for each in bench.fields("phase-ended", "count-lines")] == [
        "collect",
        "analyze",
        "render",
    ]
    assert bench.card("count-lines")["title"] == "It's"


@each_template
def test_killed_in_the_middle_the_task_is_continued(bench: Bench, template: str) -> None:
    """It goes on with the phase that was cut off, and nothing before is done again."""
    made = make(bench, template)
    rewrite(made.adapter, ANALYZE[template], DIE[template])
    died = run(made.job, template)
    collected = (made.adapter.parent / COLLECTED[template]).stat()
    report = bench.watch("--auto-resume")

    assert died.returncode == -signal.SIGKILL
    assert [each["task_id"] for each in report["recoveries"]] == ["count-lines"]
    card = bench.card("count-lines")
    assert (card["status"], card["phase"]) == ("done", "render")
    assert sorted(card["artifacts"]) == ["analyze", "collect", "render"]
    assert bench.fields("finished", "count-lines")[0]["outcome"] == "success"
    assert Path(card["artifacts"]["collect"]).stat().st_mtime_ns == collected.st_mtime_ns


@each_template
def test_a_phase_that_fails_is_told(bench: Bench, template: str) -> None:
    made = make(bench, template)
    rewrite(made.adapter, ANALYZE[template], FAIL[template])
    done = run(made.job, template)

    assert done.returncode == (2 if template == "python" else 3)
    assert bench.card("count-lines")["status"] == "running"


@each_template
def test_nothing_is_overwritten(bench: Bench, template: str, capsys: Capture) -> None:
    folder = bench.root / "tmp" / "task-runtime" / "mine"
    mine = bench.write(f"tmp/task-runtime/mine/job.{'py' if template == 'python' else 'sh'}", "x")
    options = ("--template", template, "--workspace", bench.root)
    done = here(capsys, "workspace", "scaffold", "mine", *options)

    assert done.returncode == 1
    assert f"{mine} exists already. Nothing was written" in done.stderr
    assert [path.name for path in folder.iterdir()] == [mine.name]
    assert not bench.path("mine").exists()


@each_template
def test_a_task_that_nobody_has_started_waits(bench: Bench, template: str, capsys: Capture) -> None:
    made = make(bench, template)
    status = here(capsys, "run", "status", "count-lines", "--store", bench.workspace.store)
    before = bench.topics("count-lines")
    looked = bench.watch("--auto-resume")
    run(made.job, template)

    assert "waiting: no attempt has started" in " ".join(status.stdout.split())
    assert "attempt-started" not in before
    assert (looked["alerts"], looked["running_count"]) == ([], 0)
    assert bench.topics("count-lines").count("attempt-started") == 1


def test_a_task_that_is_there_is_not_taken(bench: Bench, capsys: Capture) -> None:
    bench.create("mine")
    done = here(capsys, "workspace", "scaffold", "mine", "--workspace", bench.root)

    assert done.returncode == 1
    assert "Task mine exists already and is running" in done.stderr
    assert not (bench.root / "tmp").exists()


def test_without_the_scripts_it_says_so(empty: Bench, capsys: Capture) -> None:
    done = here(capsys, "workspace", "scaffold", "mine", "--workspace", empty.root)

    assert done.returncode == 1
    assert "run `tacho workspace install` first" in done.stderr


@each_template
def test_what_is_shown_to_be_copied_runs_in_any_shell(
    tmp_path: Path, template: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "it's my workspace"
    root.mkdir()
    (root / "AGENTS.md").touch()
    bench = Bench(root)
    folder = plain_python(tmp_path / "bin")
    monkeypatch.setenv("PATH", os.pathsep.join((str(folder), os.environ["PATH"])))
    bench.install()
    options = ("--template", template, "--workspace", bench.root)
    done = here(capsys, "workspace", "scaffold", "mine", *options)
    shown = [line for line in done.stderr.splitlines() if line.startswith("  ")]
    job = subprocess.run(["sh", "-c", shown[0]], capture_output=True, text=True, cwd="/")
    again = subprocess.run(["sh", "-c", shown[1]], capture_output=True, text=True, cwd="/")

    assert (job.returncode, job.stderr) == (0, "")
    assert "Run mine is finished (success)" in again.stderr


def test_the_command_says_how_to_go_on(bench: Bench, capsys: Capture) -> None:
    done = here(capsys, "workspace", "scaffold", "mine", "--workspace", bench.root)
    shape = here(capsys, "workspace", "scaffold", "b", "--workspace", bench.root, "--json",
                 "--template", "bash")  # fmt: skip
    folder = bench.root / "tmp" / "task-runtime"

    assert done.stdout.splitlines() == [
        str(folder / "mine" / "task_resume.py"),
        str(folder / "mine" / "job.py"),
    ]
    assert f"python3 {folder / 'mine' / 'job.py'}" in done.stderr
    WORKSPACE["workspace-scaffold"].validate_json(shape.stdout)
    assert json.loads(shape.stdout) == {
        "taskId": "b",
        "adapter": str(folder / "b" / "task_resume.sh"),
        "job": str(folder / "b" / "job.sh"),
        "card": str(bench.path("b")),
    }
