"""An adapter written for the original runs unchanged, under a Python that has no Tachograph."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from workspaces import ADAPTER, ARTICLE_ADAPTER, Bench

if TYPE_CHECKING:
    from pathlib import Path

PUBLISHED = "skills/report/scripts/task_resume.py"
ARTICLE = "skills/research/scripts/task_resume.py"


@pytest.fixture
def adapter(bench: Bench) -> Path:
    return bench.write(PUBLISHED, ADAPTER)


@pytest.fixture
def article(bench: Bench) -> Path:
    return bench.write(ARTICLE, ARTICLE_ADAPTER)


def run(path: Path, task_id: str = "job") -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        ["python3", str(path), "--task-id", task_id], capture_output=True, text=True, cwd="/"
    )
    return done.returncode, json.loads(done.stdout or done.stderr)


def test_this_python_has_no_tachograph(bench: Bench) -> None:
    done = subprocess.run(["python3", "-c", "import tachograph"], cwd=bench.root)

    assert done.returncode == 1


def test_an_adapter_of_the_published_shape_finishes_the_task(bench: Bench, adapter: Path) -> None:
    source = bench.write("tmp/in.json", "[1]")
    bench.create("job", "--phase", "render", "--artifact", f"source={source}")
    code, answer = run(adapter)

    card = bench.card()
    assert (code, answer["ok"]) == (0, True)
    assert (card["status"], card["phase"]) == ("done", "render_complete")
    assert card["artifacts"] == {"source": str(source), "result": str(source)}
    assert card["history"][-1]["event"] == "render-resumed"
    assert bench.fields("finished")[0]["outcome"] == "success"


def test_an_adapter_that_refuses_ends_with_2(bench: Bench, adapter: Path) -> None:
    bench.create("job", "--phase", "deliver")

    assert run(adapter) == (2, {"ok": False, "error": "no safe handler for phase deliver"})
    assert run(adapter, "none") == (2, {"ok": False, "error": "task not found: none"})


def test_the_dispatcher_runs_it_in_the_workspace(bench: Bench, adapter: Path) -> None:
    source = bench.write("tmp/in.json", "[1]")
    bench.create(
        "job", "--phase", "render", "--artifact", f"source={source}", "--resume-adapter", PUBLISHED
    )
    code, answer = bench.resume()

    assert (code, answer["ok"], answer["progressed"]) == (0, True, True)
    assert answer["command"][:2] == ["python3", str(adapter)]
    assert answer["result"]["artifacts"]["result"] == str(source)
    assert bench.card()["status"] == "done"
    assert bench.topics()[-1] == "resume-returned"


@pytest.mark.parametrize("command", ["fail", "block"])
def test_a_task_that_was_given_up_can_be_dispatched_and_is_not_resumed_by_itself(
    bench: Bench, adapter: Path, command: str
) -> None:
    """Giving it up turns auto-resume off and marks it unsafe, for the watchdog."""
    source = bench.write("tmp/in.json", "[1]")
    bench.create("job", "--phase", "render", "--artifact", f"source={source}",
                 "--allow-auto-resume", "--resume-adapter", PUBLISHED)  # fmt: skip
    bench.runtime(command, "job", "--message", "no key")
    unattended = bench.watch("--auto-resume")
    code, answer = bench.resume()

    assert unattended["resumed"] == []
    assert (code, answer["ok"]) == (0, True)
    assert bench.card()["status"] == "done"


def test_a_damaged_artifact_is_never_resumed_on(bench: Bench, adapter: Path) -> None:
    source = bench.write("tmp/in.json", "[1]")
    bench.create("job", "--phase", "render", "--artifact", f"source={source}",
                 "--resume-adapter", PUBLISHED)  # fmt: skip
    source.write_text("[2, 3]", encoding="utf-8")
    code, answer = bench.resume()

    assert (code, answer["ok"]) == (2, False)
    assert "artifact source has another size" in answer["error"]
    assert bench.card()["status"] == "running"


def test_a_dispatcher_whose_adapter_fails_ends_with_2_and_says_all(
    bench: Bench, adapter: Path
) -> None:
    bench.create("job", "--phase", "deliver", "--resume-adapter", PUBLISHED)
    code, answer = bench.resume()

    assert (code, answer["ok"], answer["returncode"]) == (2, False, 2)
    assert json.loads(answer["stderr"])["error"] == "no safe handler for phase deliver"
    assert bench.card()["last_resume_error"].startswith("exit code 2")


def test_the_adapter_of_a_further_execution_finds_its_card(bench: Bench, adapter: Path) -> None:
    """It is named by the run, `job~2`, and the card is that of the task."""
    source = bench.write("tmp/in.json", "[1]")
    options = ("--phase", "render", "--artifact", f"source={source}", "--resume-adapter", PUBLISHED)
    bench.create("job", *options)
    bench.runtime("complete", "job")
    bench.create("job", *options)
    code, answer = bench.resume()

    assert (code, answer["command"][-3:]) == (0, ["job~2", "--timeout-seconds", "180"])
    assert bench.card()["ledger"]["run_id"] == "job~2"
    assert bench.card()["status"] == "done"


def test_an_adapter_named_in_meta_is_found(bench: Bench, adapter: Path) -> None:
    source = bench.write("tmp/in.json", "[1]")
    bench.create("job", "--phase", "render", "--artifact", f"source={source}",
                 "--meta", f"resume_adapter={PUBLISHED}")  # fmt: skip

    assert bench.resume()[0] == 0


def test_an_adapter_of_the_article_goes_on_phase_by_phase(bench: Bench, article: Path) -> None:
    bench.create("job", "--phase", "collect")
    first = run(article)
    second = run(article)

    assert first == (0, {"resumed_to": 100, "next_phase": "analyze"})
    assert second == (0, {"status": "analysis_completed"})
    card = bench.card()
    assert (card["status"], card["phase"]) == ("completed", "analyze")
    assert card["artifacts"] == {"phase_collect": {"partial": str(article.parent / "partial.txt")}}
    assert [each["name"] for each in bench.fields("artifact-recorded")] == ["phase_collect.partial"]
    assert bench.fields("finished")[0]["outcome"] == "success"


def test_an_adapter_of_the_article_sees_artifacts_by_phase(bench: Bench, article: Path) -> None:
    """Those of the command line too, whose card keeps them flat."""
    partial = bench.write("tmp/partial.txt", "40")
    bench.create("job", "--phase", "collect")
    bench.runtime("checkpoint", "job", "--phase", "collect", "--artifact", f"partial={partial}")

    assert run(article)[1]["resumed_to"] == 140
    assert bench.card()["artifacts"] == {"partial": str(article.parent / "partial.txt")}


@pytest.mark.parametrize(
    ("phase", "status", "detail"),
    [("analyze", "failed", "missing input"), ("report", "needs_attention", None)],
)
def test_what_an_adapter_of_the_article_says_is_kept(
    bench: Bench, article: Path, phase: str, status: str, detail: str | None
) -> None:
    bench.create("job", "--phase", phase)
    run(article)

    assert bench.card()["status"] == status
    assert bench.card()["meta"].get("error") == detail
    reasons = [each["reason"] for each in bench.fields("attention-raised")]
    assert reasons == (["adapter_asks"] if status == "needs_attention" else [])


def test_an_adapter_of_the_article_that_finds_no_task_ends_with_1(
    bench: Bench, article: Path
) -> None:
    assert run(article, "none") == (1, {"error": "not found"})


def test_without_its_interpreter_the_scripts_say_what_to_do(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACHO_PYTHON", "/nowhere/python")

    code, error = bench.refused("list")
    assert code == 1
    assert "/nowhere/python, cannot be run. Run `tacho workspace install` again" in error
    assert bench.program("runtime_resume", "--task-id", "a").returncode == 2
