"""A report is a diagnosis that a person can act on, whatever texts a job has recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audit import by_its_end, by_the_gate, unfinished
from audit.bench import GOLDEN, Audited
from treed import Treed, fill

from tachograph.advising import next_step
from tachograph.domain.recovery import Recovery
from tachograph.projections.run_summaries import new_summary
from tachograph.reporting_runs import MOST_LISTED, diagnosis, next_step_of, report_text

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.domain.run import Run


@pytest.fixture
def bench(tmp_path: Path) -> Treed:
    return Treed(tmp_path)


def loaded(bench: Treed, run_id: str) -> Run:
    run = bench.repository.get(run_id)
    assert run is not None
    return run


SAID = {
    "job-partial": "Command distill ended with semantic outcome partial. batch 1 failed: 503. "
    "Failed phase: analyze (cut off before its end). Progress: 1/4 batches.",
    "job-running": "Command distill has no outcome yet (unfinished). unfinished: attempt 1 by "
    "process 1 on here has not ended (tacho run status job-running says whether it is alive). "
    "Progress: 10/40 items.",
    "job-cancelled": "Command distill was ended for good (cancelled). cancelled: not wanted.",
}


@pytest.mark.parametrize("run_id", SAID)
def test_a_diagnosis_has_the_words_of_the_original(bench: Treed, run_id: str) -> None:
    fill(bench)

    assert diagnosis(loaded(bench, run_id)) == SAID[run_id]


def test_texts_of_a_job_stay_in_their_line_and_are_nothing_but_text(bench: Treed) -> None:
    session = bench.start("distill", {"n": 1}, run_id="job-a", title="# Big\n## title")
    session.start_phase("a | b\n\n# c")
    session.end_phase("a | b\n\n# c", status="failed", summary="<script>alert(1)</script>\n| x |")
    session.finish("failed", reason="\n\n# All is well\n\n[click](http://x)\n" + "y" * 5_000)
    text = report_text(loaded(bench, "job-a"), "ab")

    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# job-a: failed",
        "## What was done",
        "## What to do next",
    ]
    assert "<script>" not in text.replace("\\<script>", "")
    assert "[click]" not in text.replace("\\[click]", "")
    assert max(map(len, text.splitlines())) < 2_500
    row = next(line for line in text.splitlines() if line.startswith("| a"))
    assert row.replace("\\|", "").count("|") == 7


def test_the_next_step_is_the_one_that_status_gives(bench: Treed) -> None:
    session = bench.start("distill", {"n": 1}, run_id="job-a",
                          recovery=Recovery(command=["true"]))  # fmt: skip
    session.start_phase("p")
    session.finish("partial", reason="503")
    run = loaded(bench, "job-a")
    summary = {
        **new_summary("job-a"),
        "command": "distill",
        "status": "partial",
        "outcome": "partial",
        "liveness": None,
        "approval": None,
        "epoch": 1,
        "recovery": run.recovery,
        "phases": {"p": {"status": "interrupted", "batches": 0, "total": None}},
    }

    assert next_step_of(run) == next_step(summary)
    assert next_step_of(run).startswith("`tacho run resume job-a` goes on in phase 'p'")


KINDS = {each.__name__ for each in (by_its_end, by_the_gate, unfinished)}


@pytest.mark.parametrize(
    "name", sorted(n for n, made in GOLDEN.items() if made.__module__ in KINDS)
)
def test_the_next_step_of_every_kind_of_run_is_the_one_that_explain_gives(
    tmp_path: Path, name: str
) -> None:
    bench = Audited(tmp_path)
    run_id = GOLDEN[name](bench)
    summary = bench.summary(run_id)
    said = next_step_of(bench.run(run_id))

    assert said.endswith(next_step(summary)) or summary["status"] == "running"
    if not summary["attempt_open"]:
        assert said == next_step(summary)


def test_of_a_maintenance_step_the_orchestrator_run_is_resumed(bench: Treed) -> None:
    inputs = {"argv": ["false"], "orchestrator": "orch-1"}
    step = bench.start("prune", inputs, run_id="job-prune", parent="orch-1")
    step.finish("failed", reason="exit code 1")
    other = bench.start("prune", {"n": 1}, run_id="job-within", parent="orch-1")
    other.finish("failed", reason="exit code 1")
    whole = bench.start("maintenance-nightly", {"tier": "nightly"}, run_id="orch-1",
                        recovery=Recovery(command=["true"]))  # fmt: skip
    whole.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["prune"]))
    whole.finish("failed", reason="failed: prune")

    assert next_step_of(loaded(bench, "job-prune")) == (
        "It is a step of orch-1: `tacho run resume orch-1` takes it up again."
    )
    assert "orch-1" not in next_step_of(loaded(bench, "job-within"))
    assert "goes on with the steps that have not done their work" in next_step_of(
        loaded(bench, "orch-1")
    )


def test_of_a_run_at_work_nobody_is_told_to_start_it_twice(bench: Treed) -> None:
    bench.start("distill", {"n": 1}, run_id="job-a")

    assert next_step_of(loaded(bench, "job-a")).startswith(
        "`tacho run status job-a` says whether its process is alive. If it is, there is nothing"
    )


def test_what_waits_for_a_person_says_how_to_decide(bench: Treed) -> None:
    session = bench.start("distill", {"n": 1}, run_id="job-a")
    session.execute(
        lambda run, why: run.request_approval(why, "deploy", subject={"v": 1}, subject_digest="d")
    )
    session.execute(lambda run, why: run.raise_attention(why, "no_adapter", "none | named"))
    session.execute(lambda run, why: run.record_artifact(why, "r", path="/r`", size=3, sha256="a"))
    session.finish("partial", reason="waits", reason_code="waits_for_approval")
    text = report_text(loaded(bench, "job-a"), "ab")

    assert "`tacho run approve job-a deploy --reason …`" in text
    assert "- stale but no resume command or adapter configured: none \\| named" in text
    assert "- r: `/r'`, 3 bytes" in text


def test_a_run_with_very_many_phases_names_the_last_ones(bench: Treed) -> None:
    session = bench.start("distill", {"n": 1}, run_id="job-a")

    def many(run: Run, why: object) -> None:
        for number in range(MOST_LISTED + 1):
            run.start_phase(why, f"p{number}")  # type: ignore[arg-type]
            run.record_artifact(why, f"f{number}", path="/f", size=1, sha256="a")  # type: ignore[arg-type]

    session.execute(many)
    text = report_text(loaded(bench, "job-a"), "ab")

    assert "| p0 |" not in text
    assert f"These are the last {MOST_LISTED} of {MOST_LISTED + 1} phases." in text
    assert "and 1 more: `tacho run artifacts job-a`" in text
