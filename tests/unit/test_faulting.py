"""From an orchestrator run to the step, the run and the rule at fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench import Workbench

from tachograph.domain.gate import Facts
from tachograph.faulting import fault_path

if TYPE_CHECKING:
    from tachograph.session import Session

STEPS = ["prune", "distill", "reflect", "dream", "sweep", "audit"]


def orchestrate(bench: Workbench) -> Session:
    session = bench.start("maintenance-nightly", {"tier": "nightly"}, run_id="orch-1")
    session.execute(lambda run, why: run.plan_maintenance(why, "nightly", STEPS))
    return session


def end(session: Session, step: str, status: str, summary: str = "words", **more: Any) -> None:
    session.execute(lambda run, why: run.start_maintenance_step(why, step))
    session.execute(lambda run, why: run.end_maintenance_step(why, step, status, summary, **more))


def test_a_run_that_went_well_is_nobodys_fault() -> None:
    bench = Workbench()
    session = orchestrate(bench)
    end(session, "prune", "ok", result="success", guard=True)
    end(session, "distill", "skipped_guard")

    assert fault_path(session.run, bench.repository.get) == []


def test_it_leads_to_the_rule_that_judged_the_nested_run() -> None:
    bench = Workbench()
    session = orchestrate(bench)
    wrapper = bench.start("distill", run_id="job-wrapper", parent="orch-1")
    inner = bench.start("self-correction-run", run_id="job-inner", parent="orch-1")
    inner.judge(Facts(inputs=50, outputs=0))
    inner.finish()
    wrapper.finish("failed", reason="exit code 7")
    runs = ["job-inner", "job-wrapper", "job-not-there"]
    end(session, "distill", "failed", "0 of 50", result="failed_semantic_empty", runs=runs)

    (fault,) = fault_path(session.run, bench.repository.get)

    assert (fault.step, fault.status, fault.summary) == ("distill", "failed", "0 of 50")
    assert (fault.run, fault.outcome, fault.rule) == (
        "job-inner",
        "failed_semantic_empty",
        inner.run.verdict["rule"],  # type: ignore[index]
    )
    assert fault.reason == inner.run.verdict["reason"]  # type: ignore[index]


def test_the_worst_comes_first() -> None:
    bench = Workbench()
    session = orchestrate(bench)
    end(session, "prune", "deferred", reason_code="deadline_reached")
    end(session, "distill", "ok", result="success_with_review", guard=True)
    end(session, "reflect", "rate_limited", result="partial", reason_code="rate_limited")
    end(session, "dream", "failed", result="failed")
    end(session, "sweep", "failed", result="failed_semantic_empty")
    session.execute(lambda run, why: run.start_maintenance_step(why, "audit"))
    found = fault_path(session.run, bench.repository.get)

    assert [(fault.step, fault.status) for fault in found] == [
        ("sweep", "failed"),
        ("dream", "failed"),
        ("audit", "cut_off"),
        ("prune", "deferred"),
        ("reflect", "rate_limited"),
        ("distill", "ok"),
    ]


def test_a_step_that_started_no_run_says_what_it_came_to() -> None:
    bench = Workbench()
    session = orchestrate(bench)
    end(session, "dream", "failed", "no folder", result="failed", reason_code="not_run")
    (fault,) = fault_path(session.run, bench.repository.get)

    assert (fault.run, fault.rule) == (None, None)
    assert (fault.outcome, fault.reason_code) == ("failed", "not_run")


def test_a_nested_run_that_never_ended_weighs_as_a_failure() -> None:
    bench = Workbench()
    session = orchestrate(bench)
    bench.start("work", {"n": 1}, run_id="job-open", parent="orch-1")
    bench.start("work", {"n": 2}, run_id="job-done", parent="orch-1").finish("success")
    end(session, "dream", "failed", result="failed", runs=["job-done", "job-open"])
    (fault,) = fault_path(session.run, bench.repository.get)

    assert (fault.run, fault.outcome) == ("job-open", None)
