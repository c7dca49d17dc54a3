"""The summary of an orchestrator run has exactly the fields of the original's files."""

from __future__ import annotations

import doctest
import json

import pytest

from tachograph.domain import orchestrator_summary as module
from tachograph.domain.orchestrator_summary import (
    SummaryStep,
    counted,
    orchestrator_summary,
    step_lines,
)
from tachograph.domain.outcome import OUTCOMES, STEP_STATUSES

STEPS = [
    SummaryStep("prune", "ok", summary="removed=3", duration_us=1_234_567),
    SummaryStep(
        "distill",
        "failed",
        summary="incidents=4 analysed=0",
        duration_us=60_000_000,
        job_run_id="job-distill-0dc845e1",
        semantic_outcome="failed_suspect_zero_parsed",
    ),
    SummaryStep("reflect", "skipped_guard", summary="guard (ran 3h ago)"),
    SummaryStep("reflect-meta", "skipped_dep"),
    SummaryStep("generate-proposals", "deferred", summary="time budget exceeded"),
    SummaryStep("repair-vectors", "rate_limited"),
]


def of(**changes: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "started_us": 1_715_134_530_250_000,
        "finished_us": 1_715_134_592_000_000,
        "exit_code": 1,
        "steps": STEPS,
    }
    return orchestrator_summary("orch-20240508T021530Z-7", "nightly", **{**fields, **changes})  # type: ignore[arg-type]


def test_it_has_the_fields_of_the_original_in_their_order() -> None:
    given = of(job="maintenance-nightly", validation={"maintenanceStatus": "failed"})

    assert list(given) == [
        "schemaVersion",
        "runId",
        "job",
        "tierLabel",
        "startedAt",
        "finishedAt",
        "durationMs",
        "exitCode",
        "summaryLine",
        "steps",
        "counts",
        "validation",
    ]


def test_what_is_unknown_is_left_out() -> None:
    given = of()

    assert "job" not in given and "validation" not in given
    assert given["steps"][0] == {  # type: ignore[index]
        "name": "prune",
        "status": "ok",
        "summary": "removed=3",
        "durationMs": 1234,
    }


def test_it_says_when_the_run_was_and_how_long() -> None:
    given = of()

    assert (given["startedAt"], given["finishedAt"]) == (
        "2024-05-08T02:15:30.250Z",
        "2024-05-08T02:16:32.000Z",
    )
    assert given["durationMs"] == 61_750


def test_a_duration_by_a_steady_clock_wins_over_the_wall_clock() -> None:
    assert of(duration_us=2_500_000)["durationMs"] == 2500


def test_a_clock_that_was_set_back_gives_no_negative_duration() -> None:
    assert of(finished_us=1_715_134_530_000_000)["durationMs"] == 0


def test_failed_counts_include_the_rate_limited() -> None:
    expected = {"ok": 1, "skipped": 2, "deferred": 1, "failed": 2, "rateLimited": 1}

    assert counted(STEPS) == expected
    assert of()["counts"] == expected


def test_every_step_is_counted_once() -> None:
    counts = counted([SummaryStep("x", status) for status in STEP_STATUSES])

    assert sum(counts.values()) - counts["rateLimited"] == len(STEP_STATUSES)


def test_the_line_sums_up() -> None:
    assert of()["summaryLine"] == (
        "Maintenance nightly — 6 steps (1 ok, 2 skipped, 1 deferred, 2 failed)"
    )


def test_a_semantic_outcome_is_one_of_the_seven() -> None:
    assert of()["steps"][1]["semanticOutcome"] == "failed_semantic_empty"  # type: ignore[index]
    for token in ("success_analyzed", "monitoring", "surprise", *OUTCOMES):
        step = SummaryStep("x", "ok", semantic_outcome=token)

        assert step.to_json()["semanticOutcome"] in OUTCOMES


@pytest.mark.parametrize("code", [3, 64, -1, 130])
def test_an_exit_code_that_no_orchestrator_run_has_is_refused(code: int) -> None:
    with pytest.raises(ValueError, match=str(code)):
        of(exit_code=code)


def test_a_status_that_no_step_has_is_refused() -> None:
    with pytest.raises(ValueError, match="started"):
        SummaryStep("x", "started")


def test_it_is_plain_json() -> None:
    given = of(job="j", validation={"a": [1]})

    assert json.loads(json.dumps(given)) == given


def test_the_lines_of_steps_are_aligned() -> None:
    lines = step_lines(STEPS)

    assert {line.find(step.status) for line, step in zip(lines, STEPS, strict=True)} == {29}
    assert lines[0].endswith("    1.2 removed=3")


def test_the_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0
