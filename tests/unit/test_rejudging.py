"""Another policy may judge otherwise; what was recorded stays, and says what it said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from stores import Seen, opened, record_run
from workbench import Workbench

from tachograph import bodykeeping, erasurekeeping, offloading, rejudging
from tachograph.domain import errors
from tachograph.domain.default_policy import default_policy
from tachograph.domain.expectations import Expectations
from tachograph.domain.facts import Facts
from tachograph.domain.policy import Policy, Rule
from tachograph.domain.records import NewRecord
from tachograph.judging import kept_policy
from tachograph.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run
    from tachograph.rejudging import Rejudged


def policy(*when: str, outcome: str = "failed", version: int = 1) -> Policy:
    """A policy with one rule before those of Tachograph."""
    rule = {
        "id": "strict",
        "version": 1,
        "when": when,
        "outcome": outcome,
        "reason_code": "too_few",
        "text": "{done} of {work}",
    }
    return Policy("own", version, [Rule(rule), *default_policy().rules])


STRICT = policy("done < work")


@pytest.fixture
def bench() -> Workbench:
    """Two runs: one came out whole, one with a few items missing."""
    bench = Workbench()
    judged(bench, "whole", Facts(inputs=3, outputs=3))
    judged(bench, "part", Facts(inputs=3, outputs=2))
    return bench


def judged(bench: Workbench, run_id: str, facts: Facts, outcome: str | None = None) -> Session:
    session = bench.start("work", {"n": 1}, run_id=run_id)
    session.judge(facts)
    session.finish(outcome)
    return session


def rejudge(bench: Workbench, *run_ids: str, by: Policy = STRICT) -> list[Rejudged]:
    return rejudging.rejudge(bench.repository, bench.payloads, run_ids, by)


def one(bench: Workbench, run_id: str, by: Policy = STRICT) -> Rejudged:
    (found,) = rejudge(bench, run_id, by=by)
    return found


def revise(bench: Workbench, found: list[Rejudged], by: Policy = STRICT) -> None:
    def execute(run_id: str, command: Callable[[Run, Cause], bool]) -> bool:
        session = Session(
            bench.repository, bench.payloads, bench.presence.beat, bench.actor, run_id, 0
        )
        return session.execute(command)

    rejudging.revise(execute, found, kept_policy(by, None, bench.payloads), "we want all")


# What would change


def test_only_runs_that_the_policy_judges_otherwise_differ(bench: Workbench) -> None:
    whole, part = rejudge(bench, "whole", "part")

    assert (whole.state, part.state) == ("same", "different")
    assert part.recorded is not None
    assert (part.recorded["outcome"], part.recorded["rule"]) == (
        "success_with_review",
        "fewer-outputs",
    )
    assert part.judgement is not None
    assert (part.judgement.outcome, part.judgement.reason) == ("failed", "2 of 3")


def test_looking_records_nothing(bench: Workbench) -> None:
    before = bench.log.head()
    rejudge(bench, "whole", "part")

    assert bench.log.head() == before


def test_the_policy_of_the_verdict_judges_the_same(bench: Workbench) -> None:
    found = rejudge(bench, "whole", "part", by=default_policy())

    assert [each.state for each in found] == ["same", "same"]


def test_another_rule_with_the_same_outcome_is_another_verdict(bench: Workbench) -> None:
    assert one(bench, "part", policy("done < work", outcome="success_with_review")).state == (
        "different"
    )


def test_what_was_counted_is_counted_as_of_the_verdict(bench: Workbench) -> None:
    """What the run did after it was judged is no evidence for its verdict."""
    session = bench.start("work", {"n": 1}, run_id="job")
    session.start_phase("parse")
    session.complete_batch("parse", 0, inputs=2, parsed=2)
    session.judge(Facts())
    session.complete_batch("parse", 1, inputs=2, parsed=0)
    session.end_phase("parse")
    session.finish()
    found = one(bench, "job")

    assert found.state == "same"
    assert found.counted is not None
    assert (found.counted.facts.inputs, found.counted.facts.outputs) == (2, 2)


def test_what_the_job_stated_stays_as_it_was_stated(bench: Workbench) -> None:
    session = bench.start("work", {"n": 1}, run_id="job")
    session.start_phase("parse")
    session.complete_batch("parse", 0, inputs=2, parsed=2)
    session.judge(Facts(outputs=1))
    session.end_phase("parse")
    session.finish()
    found = one(bench, "job")

    assert found.state == "different"
    assert found.counted is not None
    assert (found.counted.facts.inputs, found.counted.facts.outputs) == (2, 1)
    assert found.counted.evidence["inputs"] == [4, 4, 1]
    assert "outputs" not in found.counted.evidence


def test_a_deadline_is_compared_with_the_time_of_the_verdict(bench: Workbench) -> None:
    session = bench.start("work", {"n": 1}, run_id="job")
    session.expect(Expectations(deadline_us=bench.now + 10_000_000))
    session.judge(Facts(inputs=1, outputs=1))
    session.finish()
    bench.now += 20_000_000

    assert one(bench, "job", policy("deadline_left_seconds <= 0")).state == "same"


def test_a_run_that_ended_unjudged_is_judged_by_what_its_log_holds(bench: Workbench) -> None:
    session = bench.start("work", {"n": 1}, run_id="job")
    session.start_phase("parse")
    session.complete_batch("parse", 0, inputs=2, parsed=1)
    session.end_phase("parse")
    session.finish("success")
    found = one(bench, "job")

    assert (found.state, found.verdict_version) == ("different", 0)
    assert found.recorded is not None
    assert (found.recorded["outcome"], found.recorded["rule"]) == ("success", None)


def test_a_verdict_from_before_rules_had_versions_stays_as_it_was_counted(
    bench: Workbench,
) -> None:
    """It does not say exactly which facts were stated: all of them are taken as they are."""
    session = bench.start("work", {"n": 1}, run_id="job")
    session.start_phase("parse")
    session.complete_batch("parse", 0, inputs=2, parsed=2)
    session.end_phase("parse")
    now = bench.tick()
    fields = {
        "time_us": now,
        "by": ["tester", "here", 7, 1],
        "gate": "default",
        "outcome": "success_with_review",
        "rule": "fewer-outputs",
        "reason_code": "fewer_outputs",
        "reason": "1 of 2 items came out",
        "facts": {"inputs": 2, "outputs": 1, "faults": 0, "declared": None, "stopped": None},
        "evidence": [5],
        "policy_version": 1,
    }
    body = bench.codec.pack(fields)
    record = NewRecord("job", 6, "run.semantic-gate-judged", now, body)
    bench.log.append([record])
    session.reload()
    session.finish()
    found = one(bench, "job")

    assert (found.state, found.judgement and found.judgement.reason) == ("different", "1 of 2")
    assert one(bench, "job", default_policy()).state == "same"


# What is not judged


def named(bench: Workbench, outcome: str) -> None:
    bench.start("work", {"n": 1}, run_id="job").finish(outcome)


def ended(bench: Workbench) -> None:
    session = bench.start("work", {"n": 1}, run_id="job")
    session.execute(lambda run, why: run.cancel(why, "no longer wanted"))


def returned(bench: Workbench) -> None:
    session = bench.start("work", {"n": 1}, run_id="job")
    session.execute(lambda run, why: run.dispatch_resume(why, "m:f", {}))
    session.execute(lambda run, why: run.return_resume(why, {"exit_code": 1}))


@pytest.mark.parametrize(
    ("happen", "state", "why"),
    [
        (lambda bench: named(bench, "success"), "unjudgeable", "it recorded nothing"),
        (lambda bench: named(bench, "failed"), "unjudgeable", "ended as failed by its own word"),
        (lambda bench: named(bench, "partial"), "unjudgeable", "ended as partial by its own word"),
        (ended, "unjudgeable", "it was cancelled: no longer wanted"),
        (
            lambda bench: bench.start("work", {"n": 1}, run_id="job"),
            "skipped",
            "an attempt of it is open",
        ),
        (returned, "skipped", "it has not ended"),
    ],
)
def test_what_cannot_be_judged_says_why(
    bench: Workbench, happen: Callable[[Workbench], object], state: str, why: str
) -> None:
    happen(bench)
    found = one(bench, "job")

    assert found.state == state
    assert why in (found.why or "")
    assert found.judgement is None


def test_a_run_that_is_not_there_is_not_judged(bench: Workbench) -> None:
    with pytest.raises(errors.RunNotFoundError):
        rejudge(bench, "nope")


def test_an_erased_run_cannot_be_judged(store_path: Path) -> None:
    with opened(store_path) as services:
        record_run(services)
    erasurekeeping.erase(str(store_path), "job-1", "it names a customer", actor="test")
    with opened(store_path) as services:
        (found,) = rejudging.rejudge(services.repository, services.payloads, ["job-1"], STRICT)

    assert found.state == "unjudgeable"
    assert "erased" in (found.why or "")


def test_a_run_whose_archive_is_lost_cannot_be_judged(store_path: Path) -> None:
    with opened(store_path) as services:
        record_run(services)
        plans = offloading.plan(services.repository, [("job-1", "success")])
        bodykeeping.offload(services, plans)
    for archive in (store_path / "archive").glob("*.zst"):
        archive.unlink()
    with opened(store_path) as services:
        (found,) = rejudging.rejudge(services.repository, services.payloads, ["job-1"], STRICT)

    assert found.state == "unjudgeable"
    assert "is lost" in (found.why or "")


# Revisions


def test_a_revision_is_one_more_event_and_the_verdict_stays(bench: Workbench) -> None:
    before = bench.log.read_stream("part")
    found = rejudge(bench, "whole", "part")
    revise(bench, found)
    (revision,) = bench.fields("part", "verdict-revised")

    assert [each.state for each in found] == ["same", "revised"]
    assert bench.log.read_stream("part")[:-1] == before
    assert bench.topics("whole")[-1] == "finished"
    assert (revision["outcome"], revision["revises"], revision["why"]) == (
        "failed",
        3,
        "we want all",
    )


def test_a_revision_does_not_move_the_run(bench: Workbench) -> None:
    """G6."""
    revise(bench, rejudge(bench, "part"))
    run = bench.repository.get("part")

    assert run is not None
    assert (run.outcome, run.finished) == ("success_with_review", True)
    assert run.revision is not None
    assert run.revision["outcome"] == "failed"


def test_the_rules_of_a_policy_of_ones_own_are_kept_with_the_revision(bench: Workbench) -> None:
    revise(bench, rejudge(bench, "part"))
    (revision,) = bench.fields("part", "verdict-revised")
    stored = revision["policy"]

    assert (stored["id"], stored["digest"]) == ("own", STRICT.digest)
    assert Policy.from_fields(bench.payloads.load(stored["rules"]), "store").digest == STRICT.digest


def test_a_second_time_records_nothing(bench: Workbench) -> None:
    revise(bench, rejudge(bench, "part"))
    head = bench.log.head()
    again = rejudge(bench, "part")
    revise(bench, again)

    assert [each.state for each in again] == ["same"]
    assert bench.log.head() == head


def test_who_looked_earlier_records_nothing_a_second_time(bench: Workbench) -> None:
    first, second = rejudge(bench, "part"), rejudge(bench, "part")
    revise(bench, first)
    revise(bench, second)

    assert [each.state for each in second] == ["same"]
    assert len(bench.fields("part", "verdict-revised")) == 1


def test_a_revision_can_be_revised(bench: Workbench) -> None:
    revise(bench, rejudge(bench, "part"))
    revise(bench, rejudge(bench, "part", by=default_policy()), default_policy())
    last = bench.fields("part", "verdict-revised")[-1]

    assert (last["outcome"], last["rule"], last["revises"]) == (
        "success_with_review",
        "fewer-outputs",
        5,
    )
    assert last["policy"]["rules"] is None


def test_what_goes_on_meanwhile_is_skipped(bench: Workbench) -> None:
    judged(bench, "job", Facts(inputs=3, outputs=2), "partial")
    judged(bench, "again", Facts(inputs=3, outputs=2), "partial")
    found = rejudge(bench, "job", "again")
    bench.start("work", {"n": 1}, run_id="job")
    judged(bench, "again", Facts(inputs=3, outputs=2), "partial")
    revise(bench, found)

    assert [each.state for each in found] == ["skipped", "skipped"]
    assert {each.why for each in found} == {"it has gone on meanwhile"}


def test_a_writer_who_was_first_is_overtaken(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note that somebody adds in that moment keeps no revision away."""
    append = bench.log.append

    def overtaken(records: Any, **options: Any) -> list[int]:
        monkeypatch.setattr(bench.log, "append", append)
        run = bench.repository.get("part")
        assert run is not None
        run.add_note(bench.actor.cause(), "look at this")
        bench.repository.save(run)
        return append(records, **options)

    found = rejudge(bench, "part")
    monkeypatch.setattr(bench.log, "append", overtaken)
    revise(bench, found)

    assert bench.topics("part")[-2:] == ["note-added", "verdict-revised"]


def test_a_new_attempt_has_no_revision_yet(bench: Workbench) -> None:
    """Else its own verdict would be taken for the older one."""
    judged(bench, "job", Facts(inputs=3, outputs=2), "partial")
    revise(bench, rejudge(bench, "job"))
    session = judged(bench, "job", Facts(inputs=3, outputs=3))

    assert session.run.revision is None
    assert one(bench, "job").state == "same"


def test_progress_is_told_for_each_run(bench: Workbench) -> None:
    seen = Seen()
    runs = ["whole", "part"]
    rejudging.rejudge(bench.repository, bench.payloads, runs, STRICT, seen, 2)

    assert seen == [(1, 2), (2, 2)]
