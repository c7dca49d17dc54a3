"""What goes and what stays, by the end that a run has come to and by the kind of file."""

from __future__ import annotations

import pytest
from given_when_then import OWNER, PERSON, RUN_ID, attempt

from tachograph.domain import retention
from tachograph.domain.outcome import OUTCOMES
from tachograph.domain.run import Run

WELL = ("success", "success_with_review", "skipped", "empty")
ALL = ("summary", "events", "checkpoint", "report", "validation")
LATER = 30 * retention.DAY_US


def created() -> Run:
    """Return a run that waits."""
    return Run.create(PERSON, RUN_ID, command="c", fingerprint="f", inputs=None, inputs_digest="d")


def begun() -> Run:
    """Return a run in its first attempt."""
    run = created()
    run.start_attempt(attempt(0), OWNER, live_owner=None)
    return run


def ended(outcome: str, code: str | None = None) -> Run:
    """Return a run whose attempt ended so."""
    run = begun()
    run.finish(attempt(1), outcome, reason="so", reason_code=code)
    return run


def going(run: Run, passed_us: int | None = None) -> set[str]:
    """Return the kinds of files that go, so long after the end."""
    now_us = None if passed_us is None else (run.ended_us or 0) + passed_us
    return {kind for kind in ALL if retention.rule_for(run, kind, now_us) is not None}


@pytest.mark.parametrize("outcome", WELL)
def test_a_run_that_ended_well_keeps_summary_and_report_for_thirty_days(outcome: str) -> None:
    run = ended(outcome)

    assert going(run) == going(run, LATER - 1) == {"events", "checkpoint"}
    assert going(run, LATER) == set(ALL)


@pytest.mark.parametrize("outcome", sorted(set(OUTCOMES) - set(WELL)))
def test_a_run_that_may_go_on_keeps_everything_however_old(outcome: str) -> None:
    assert going(ended(outcome), 1000 * LATER) == set()


def test_a_stop_by_its_budget_keeps_everything() -> None:
    assert going(ended("partial", "stopped_by_budget"), LATER) == set()


def test_a_run_without_an_end_keeps_everything() -> None:
    assert going(created(), LATER) == set()
    assert going(begun(), LATER) == set()


def test_a_cancelled_run_keeps_everything_for_thirty_days() -> None:
    run = begun()
    run.cancel(attempt(1), "not wanted")

    assert going(run) == going(run, LATER - 1) == set()
    assert going(run, LATER) == set(ALL)


def test_an_orchestrator_run_keeps_its_files_for_thirty_days_whatever_it_came_to() -> None:
    run = begun()
    run.plan_maintenance(attempt(1), "nightly", ["prune"])

    assert going(run, LATER) == set()
    run.finish(attempt(1), "failed", reason="prune failed")
    assert going(run, LATER - 1) == set()
    assert going(run, LATER) == {"summary", "validation", "report"}


def test_nothing_may_tell_of_a_run_that_was_erased() -> None:
    run = ended("success")
    run.ended = retention.ERASED

    assert going(run) == set(ALL)


def test_another_age_stands_in_for_the_days_and_for_nothing_else() -> None:
    well, partial = ended("success"), ended("partial")
    now_us = (well.ended_us or 0) + 10

    found = retention.rule_for(well, "summary", now_us, older_than_us=10)
    assert found is not None
    assert found.id == "success-keeps-summary-30d"
    assert retention.rule_for(well, "summary", now_us, older_than_us=11) is None
    assert retention.rule_for(partial, "checkpoint", now_us, older_than_us=0) is None


@pytest.mark.parametrize(
    ("kind", "age_us"),
    [(retention.SPOOL, retention.DAY_US), (retention.TEMPORARY, retention.HOUR_US)],
)
def test_a_leftover_goes_when_it_is_old_enough(kind: str, age_us: int) -> None:
    found = retention.is_left(kind, 0, age_us)

    assert found is not None
    assert kind in found.kinds
    assert retention.is_left(kind, 1, age_us) is None


def test_each_rule_has_an_id_of_its_own_and_says_what_it_does() -> None:
    assert len(retention.BY_ID) == len(retention.RULES)
    assert all(rule.text.endswith(".") for rule in retention.RULES)
