"""Phases, their batches, and progress."""

from __future__ import annotations

from typing import Any

import pytest
from given_when_then import attempt, do, fact, running, started

from tachograph.domain import errors
from tachograph.domain.events import (
    BatchCompleted,
    BatchesPlanned,
    PhaseEnded,
    PhaseStarted,
    ProgressReported,
)
from tachograph.domain.run import Run

ME = attempt(1)
STARTED = fact(PhaseStarted, phase="parse", safe_to_retry=True)
PLANNED = fact(BatchesPlanned, phase="parse", total=3, size=5, items_digest="items")
ENDED = fact(PhaseEnded, phase="parse", status="completed")


def batch(index: int, inputs: int | None = None, parsed: int | None = None) -> object:
    return fact(BatchCompleted, phase="parse", index=index, inputs=inputs, parsed=parsed)


class TestStartPhase:
    def test_a_phase_is_started(self) -> None:
        running().when(Run.start_phase, ME, "parse").then(STARTED)

    def test_a_phase_may_be_unsafe_to_retry(self) -> None:
        running().when(Run.start_phase, ME, "send", safe_to_retry=False).then(
            fact(PhaseStarted, phase="send", safe_to_retry=False)
        )

    def test_a_phase_has_a_name(self) -> None:
        running().when(Run.start_phase, ME, "").then(
            errors.InvalidValueError, saying="phase is '': write some text"
        )

    def test_a_running_phase_is_not_started_again_in_the_same_attempt(self) -> None:
        running(STARTED).when(Run.start_phase, ME, "parse").then(
            errors.PhaseOpenError, saying="End it before you start it again"
        )

    def test_a_phase_left_running_is_taken_up_by_the_next_attempt(self) -> None:
        running(STARTED, started(2)).when(Run.start_phase, attempt(2), "parse").then(STARTED)

    def test_a_phase_taken_up_keeps_its_plan_and_its_finished_batches(self) -> None:
        run = running(
            STARTED, PLANNED, do(Run.complete_batch, ME, "parse", 1), started(2), STARTED
        ).run

        assert run.phases["parse"].missing() == [0, 2]
        assert (run.phases["parse"].version, run.phases["parse"].epoch) == (3, 2)

    def test_a_failed_phase_is_taken_up_by_the_next_attempt(self) -> None:
        """Otherwise a run that failed could be resumed but never finished."""
        failed = fact(PhaseEnded, phase="parse", status="failed", summary="model down")
        case = running(STARTED, failed, started(2))

        case.when(Run.start_phase, attempt(2), "parse").then(STARTED)

        assert case.run.phases["parse"].status == "running"
        assert case.run.phases["parse"].summary is None

    def test_a_failed_phase_is_retried_within_its_attempt(self) -> None:
        failed = fact(PhaseEnded, phase="parse", status="failed")
        running(STARTED, failed).when(Run.start_phase, ME, "parse").then(STARTED)

    @pytest.mark.parametrize("status", ["completed", "skipped"])
    def test_a_phase_that_needs_no_more_work_is_not_started_again(self, status: str) -> None:
        ended = fact(PhaseEnded, phase="parse", status=status)
        running(STARTED, ended, started(2)).when(Run.start_phase, attempt(2), "parse").then(
            errors.PhaseEndedError, saying=f"ended already ({status}). Start a phase of another"
        )


class TestEndPhase:
    def test_a_phase_is_completed(self) -> None:
        running(STARTED).when(Run.end_phase, ME, "parse").then(ENDED)

    @pytest.mark.parametrize("status", ["completed", "failed", "skipped"])
    def test_a_phase_ends_with_a_status_and_a_summary(self, status: str) -> None:
        running(STARTED).when(Run.end_phase, ME, "parse", status=status, summary="3 files").then(
            fact(PhaseEnded, phase="parse", status=status, summary="3 files")
        )

    def test_a_phase_ends_with_a_known_status(self) -> None:
        running(STARTED).when(Run.end_phase, ME, "parse", status="running").then(
            errors.InvalidValueError, saying="it must be one of completed, failed, skipped"
        )

    def test_a_phase_that_was_not_started_does_not_end(self) -> None:
        running().when(Run.end_phase, ME, "parse").then(
            errors.PhaseNotOpenError, saying="is not started. Start it first"
        )

    def test_a_phase_ends_once(self) -> None:
        running(STARTED, ENDED).when(Run.end_phase, ME, "parse").then(
            errors.PhaseNotOpenError, saying="is completed"
        )

    def test_a_phase_is_not_completed_while_batches_are_missing(self) -> None:
        running(STARTED, PLANNED, do(Run.complete_batch, ME, "parse", 1)).when(
            Run.end_phase, ME, "parse"
        ).then(errors.BatchesOpenError, saying="has 2 unfinished batches (0, 2). Finish them, or")

    @pytest.mark.parametrize(
        ("total", "named"),
        [
            (5, "5 unfinished batches (0, 1, 2, 3, 4)"),
            (6, "6 unfinished batches (0, 1, 2, 3, 4, …)"),
        ],
    )
    def test_many_missing_batches_are_named_in_short(self, total: int, named: str) -> None:
        plan = fact(BatchesPlanned, phase="parse", total=total, size=5)
        running(STARTED, plan).when(Run.end_phase, ME, "parse").then(
            errors.BatchesOpenError, saying=named
        )

    @pytest.mark.parametrize("status", ["failed", "skipped"])
    def test_a_phase_with_missing_batches_may_fail_or_be_skipped(self, status: str) -> None:
        running(STARTED, PLANNED).when(Run.end_phase, ME, "parse", status=status).then(
            fact(PhaseEnded, phase="parse", status=status)
        )


class TestPlanBatches:
    def test_batches_are_planned(self) -> None:
        running(STARTED).when(
            Run.plan_batches, ME, "parse", total=3, size=5, items_digest="items"
        ).then(PLANNED)

    def test_the_same_plan_again_records_nothing(self) -> None:
        running(STARTED, PLANNED, started(2)).when(
            Run.plan_batches, attempt(2), "parse", total=3, size=5, items_digest="items"
        ).then()

    @pytest.mark.parametrize(
        ("total", "size", "digest"), [(4, 5, "items"), (3, 6, "items"), (3, 5, "other"), (3, 5, "")]
    )
    def test_another_plan_is_refused(self, total: int, size: int, digest: str) -> None:
        running(STARTED, PLANNED).when(
            Run.plan_batches, ME, "parse", total=total, size=size, items_digest=digest
        ).then(errors.InputsChangedError, saying="Phase 'parse' of run")

    def test_a_plan_needs_an_open_phase(self) -> None:
        running().when(Run.plan_batches, ME, "parse", total=3, size=5, items_digest=None).then(
            errors.PhaseNotOpenError, saying="Start it first"
        )

    @pytest.mark.parametrize("count", [-1, 2.5, True, float("nan"), "3", None])
    def test_the_counts_of_a_plan_are_whole_numbers(self, count: Any) -> None:
        running(STARTED).when(
            Run.plan_batches, ME, "parse", total=count, size=5, items_digest=None
        ).then(errors.InvalidValueError, saying="it must be a whole number, 0 or more")
        running(STARTED).when(
            Run.plan_batches, ME, "parse", total=3, size=count, items_digest=None
        ).then(errors.InvalidValueError, saying="it must be a whole number, 0 or more")

    def test_a_plan_includes_the_batches_that_are_finished(self) -> None:
        running(STARTED, do(Run.complete_batch, ME, "parse", 3)).when(
            Run.plan_batches, ME, "parse", total=3, size=5, items_digest=None
        ).then(errors.BatchRangeError, saying="Batch 3 of phase 'parse'")

    def test_a_plan_of_no_batches_is_done_at_once(self) -> None:
        empty = fact(BatchesPlanned, phase="parse", total=0, size=5)
        running(STARTED, empty).when(Run.end_phase, ME, "parse").then(ENDED)


class TestCompleteBatch:
    def test_a_batch_is_completed(self) -> None:
        running(STARTED, PLANNED).when(
            Run.complete_batch, ME, "parse", 0, inputs=5, parsed=4, output=["a"]
        ).then(
            fact(BatchCompleted, phase="parse", index=0, inputs=5, parsed=4, output=["a"]),
        )

    def test_batches_end_in_any_order(self) -> None:
        run = running(
            STARTED,
            PLANNED,
            do(Run.complete_batch, ME, "parse", 2),
            do(Run.complete_batch, ME, "parse", 0),
        ).run

        assert run.phases["parse"].missing() == [1]

    def test_a_completed_batch_is_not_run_again(self) -> None:
        """G10."""
        running(STARTED, PLANNED, do(Run.complete_batch, ME, "parse", 0), started(2)).when(
            Run.complete_batch, attempt(2), "parse", 0
        ).then(errors.BatchCompletedError, saying="finished already. Go on with another one")

    def test_a_batch_beyond_the_plan_is_refused(self) -> None:
        running(STARTED, PLANNED).when(Run.complete_batch, ME, "parse", 3).then(
            errors.BatchRangeError, saying="3 are planned, and indexes start at 0"
        )

    def test_without_a_plan_every_index_will_do(self) -> None:
        running(STARTED).when(Run.complete_batch, ME, "parse", 10**6).then(
            fact(BatchCompleted, phase="parse", index=10**6)
        )

    @pytest.mark.parametrize("index", [-1, 1.5, True, "0", None])
    def test_an_index_is_a_whole_number(self, index: Any) -> None:
        running(STARTED, PLANNED).when(Run.complete_batch, ME, "parse", index).then(
            errors.InvalidValueError, saying="batch index is"
        )

    @pytest.mark.parametrize("count", [-1, 2.5, float("nan"), "3"])
    def test_the_counts_of_a_batch_are_whole_numbers(self, count: Any) -> None:
        running(STARTED).when(Run.complete_batch, ME, "parse", 0, inputs=count).then(
            errors.InvalidValueError, saying="inputs is"
        )
        running(STARTED).when(Run.complete_batch, ME, "parse", 0, parsed=count).then(
            errors.InvalidValueError, saying="parsed is"
        )

    def test_a_batch_needs_an_open_phase(self) -> None:
        running(STARTED, ENDED).when(Run.complete_batch, ME, "parse", 0).then(
            errors.PhaseNotOpenError, saying="Start it first, and end it after its last batch"
        )

    def test_a_batch_is_checked_before_its_output_is_prepared(self) -> None:
        run = running(STARTED, PLANNED, do(Run.complete_batch, ME, "parse", 0)).run

        run.check_batch("parse", 1)
        with pytest.raises(errors.BatchCompletedError):
            run.check_batch("parse", 0)

    def test_counts_of_batches_add_up(self) -> None:
        run = running(
            STARTED,
            do(Run.complete_batch, ME, "parse", 0, inputs=5, parsed=4),
            do(Run.complete_batch, ME, "parse", 1, inputs=5),
            do(Run.complete_batch, ME, "parse", 2, parsed=0),
        ).run

        assert (run.phases["parse"].inputs, run.phases["parse"].parsed) == (10, 4)

    def test_counts_that_nobody_gave_stay_unknown(self) -> None:
        run = running(STARTED, do(Run.complete_batch, ME, "parse", 0)).run

        assert (run.phases["parse"].inputs, run.phases["parse"].parsed) == (None, None)


class TestProgress:
    def test_progress_is_reported(self) -> None:
        running().when(Run.report_progress, ME, 3, 10, "facts").then(
            fact(ProgressReported, completed=3, total=10, unit="facts")
        )

    def test_the_total_may_be_unknown(self) -> None:
        running().when(Run.report_progress, ME, 3).then(
            fact(ProgressReported, completed=3, unit="units")
        )

    def test_the_latest_progress_counts(self) -> None:
        run = running(
            do(Run.report_progress, ME, 3, 10, "facts"), do(Run.report_progress, ME, 4, 10, "facts")
        ).run

        assert run.progress == {"completed": 4, "total": 10, "unit": "facts"}

    def test_progress_is_not_beyond_its_total(self) -> None:
        running().when(Run.report_progress, ME, 11, 10).then(
            errors.InvalidValueError, saying="total is 10: it must be a whole number, 11 or more"
        )

    @pytest.mark.parametrize("count", [-1, 0.5, float("nan"), "3"])
    def test_progress_is_a_whole_number(self, count: Any) -> None:
        running().when(Run.report_progress, ME, count).then(
            errors.InvalidValueError, saying="completed is"
        )

    def test_progress_has_a_unit(self) -> None:
        running().when(Run.report_progress, ME, 1, 2, " ").then(
            errors.InvalidValueError, saying="unit is ' '"
        )
