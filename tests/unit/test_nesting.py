"""What the runs within a run came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from workbench import Workbench

from tachograph.nesting import came_to, runs_within, worst_within

if TYPE_CHECKING:
    from tachograph.domain.run import Run


@pytest.fixture
def bench() -> Workbench:
    return Workbench()


def gone(_run: Run) -> bool:
    return False


def finished(bench: Workbench, name: str, outcome: str, code: str | None = None) -> Run:
    session = bench.start(name, run_id=name)
    session.finish(outcome, reason=f"{name} is {outcome}", reason_code=code)
    return session.run


def test_no_runs_say_nothing() -> None:
    assert worst_within([], gone) is None


def test_the_worst_of_them_counts(bench: Workbench) -> None:
    ends = [("a", "success", None), ("b", "partial", "stopped_by_budget"), ("c", "empty", None)]
    runs = [finished(bench, *each) for each in ends]

    assert worst_within(runs, gone) == (
        "partial",
        "as its run b: b is partial",
        "stopped_by_budget",
    )
    assert worst_within(runs[:1], gone) == ("success", "as its run a: a is success", "nested_run")


def test_a_run_without_an_end_is_no_success(bench: Workbench) -> None:
    run = bench.start("work", run_id="work").run

    assert came_to(run, gone)[:2] == ("failed", "unfinished")
    assert came_to(run, lambda _run: True)[:2] == ("partial", "left_running")


@pytest.mark.parametrize(
    ("how", "expected"),
    [("cancel", ("partial", "stopped_by_person")), ("expire", ("failed", "expired"))],
)
def test_a_run_that_was_ended_for_good_did_not_do_its_work(
    how: str, expected: tuple[str, str], bench: Workbench
) -> None:
    session = bench.start("work", run_id="work")
    session.execute(lambda run, why: getattr(run, how)(why, "no use"))

    assert came_to(session.run, gone)[:2] == expected


def test_only_runs_that_were_started_for_it_and_since_then_are_within(bench: Workbench) -> None:
    bench.start("early", run_id="early", parent="outer")
    after = bench.log.head().position
    bench.start("outer", run_id="outer")
    bench.start("inner", run_id="inner", parent="outer")
    bench.start("other", run_id="other", parent="another")

    found = runs_within(bench.repository, "outer", after)
    assert [run.id for run in found] == ["inner"]
    assert [run.id for run in runs_within(bench.repository, "outer", 0)] == ["early", "inner"]
