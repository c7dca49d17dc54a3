"""Two runs are compared by what they did and how they were judged, never by who and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from stores import LARGE, Seen, opened, record_run
from workbench import Workbench

from tachograph import bodykeeping, differing, erasurekeeping, histories, offloading
from tachograph.domain import errors
from tachograph.domain.counting import Counted
from tachograph.domain.default_policy import default_policy
from tachograph.domain.expectations import Expectations
from tachograph.domain.facts import Facts
from tachograph.domain.gate import judge
from tachograph.forking import fork
from tachograph.histories import Values
from tachograph.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tachograph.differing import Comparison


def work(bench: Workbench, run_id: str, inputs: Any = None, **options: Any) -> Session:
    """Record a run with three batches, an answer, a step, an effect and a file."""
    outputs: list[Any] = options.pop("outputs", ["a", "b", "c"])
    order: list[int] = options.pop("order", [0, 1, 2])
    session = bench.start("work", inputs or {"n": 1}, run_id=run_id, **options)
    session.expect(Expectations(inputs=3, deadline_us=bench.now + 1_000))
    session.start_phase("parse")
    session.plan_batches("parse", 3, 1, "items")
    for index in order:
        session.receive_answer(asked=1, answered=1, parsed=1, phase="parse", source="large")
        session.complete_batch("parse", index, inputs=1, parsed=1, output=outputs[index])
    session.end_phase("parse")
    session.complete_step("load(1)", 42)
    session.intend_effect("mail")
    session.complete_effect("mail")
    session.execute(lambda run, why: run.record_artifact(why, "a", path="a", size=1, sha256="ab"))
    session.judge(Facts(outputs=3))
    session.finish()
    return session


def anybody(bench: Workbench, run_id: str) -> Session:
    """A session outside any attempt."""
    beat = bench.presence.beat
    return Session(bench.repository, bench.payloads, beat, bench.actor, run_id, 0)


def compare(bench: Workbench, left: str = "left", right: str = "right") -> Comparison:
    return differing.compare(bench.repository, bench.payloads, left, right)


def paths(found: Comparison) -> dict[str, tuple[Any, Any]]:
    return {each.path: (each.old, each.new) for each in found.differences}


@pytest.fixture
def bench() -> Workbench:
    bench = Workbench()
    work(bench, "left")
    bench.now += 5_000_000
    return bench


def test_the_same_work_by_others_at_another_time_is_the_same(bench: Workbench) -> None:
    bench.actor.host, bench.actor.pid = "elsewhere", 8
    work(bench, "right")
    found = compare(bench)

    assert (found.same, found.differences, found.divergence) == (True, [], None)
    assert (found.left.events, found.right.events) == (18, 18)


def test_an_interruption_is_a_difference_of_attempts_alone() -> None:
    bench = Workbench()
    work(bench, "left")
    bench.start("work", {"n": 1}, run_id="right")
    work(bench, "right")
    found = compare(bench)

    assert paths(found) == {"attempts": (1, 2)}
    assert found.divergence is None


def test_inputs_are_compared_key_by_key_and_large_ones_by_digest(bench: Workbench) -> None:
    work(bench, "right", {"n": 2, "text": LARGE})
    work(bench, "other", {"n": 2, "text": LARGE + "!"})
    by_key = paths(compare(bench))
    large = paths(compare(bench, "right", "other"))

    assert by_key["inputs.n"] == (1, 2)
    assert by_key["inputs.text"][0] is None
    assert list(large) == ["inputs.text"]
    assert large["inputs.text"][0].keys() == {"digest", "bytes"}
    assert large["inputs.text"][0] != large["inputs.text"][1]


def test_inputs_whose_payload_is_missing_are_compared_by_digest(bench: Workbench) -> None:
    work(bench, "right", {"text": LARGE})
    work(bench, "other", {"text": LARGE + "!"})
    bench.blobs.kept.clear()

    assert list(paths(compare(bench, "right", "other"))) == ["inputs"]


def test_the_first_event_that_differs_is_named_with_its_fields(bench: Workbench) -> None:
    work(bench, "right", outputs=["a", "B", "C"])
    found = compare(bench)
    divergence = found.divergence

    assert divergence is not None
    assert divergence.left is not None and divergence.right is not None
    assert (divergence.left.version, divergence.right.version) == (9, 9)
    assert divergence.right.position == divergence.left.position + 18
    assert divergence.left.topic == "run.batch-completed"
    assert [(d.path, d.old, d.new) for d in divergence.differences] == [("output", "b", "B")]


def test_what_differs_of_a_large_output_is_its_digest(bench: Workbench) -> None:
    bench.start("work", {"n": 1}, run_id="x").complete_step("k", "y" * 500)
    bench.start("work", {"n": 1}, run_id="y").complete_step("k", "z" * 500)
    divergence = compare(bench, "x", "y").divergence

    assert divergence is not None and divergence.left is not None
    assert divergence.left.fields is not None
    assert divergence.left.fields["result"].keys() == {"digest", "bytes"}
    assert divergence.differences[0].old == divergence.left.fields["result"]


def test_a_history_that_ends_earlier_parts_there(bench: Workbench) -> None:
    fork(bench.repository, bench.actor, "left", "9", run_id="right", repeat_effects=True)
    divergence = compare(bench).divergence

    assert divergence is not None
    assert divergence.right is None
    assert divergence.left is not None
    assert divergence.left.version == 10


def test_batches_are_compared_in_whatever_order_they_ended(bench: Workbench) -> None:
    work(bench, "right", order=[2, 0, 1], outputs=["a", "b", "!"])
    found = compare(bench)

    assert found.pieces == {("batch", "parse"): 1}
    assert found.first_piece is not None
    assert (found.first_piece.index, found.first_piece.left.shown) == (2, "c")
    assert found.divergence is not None


def test_the_first_batch_that_differs_is_the_first_of_the_left_run(bench: Workbench) -> None:
    work(bench, "right", order=[2, 1, 0], outputs=["A", "B", "C"])
    first = compare(bench).first_piece

    assert first is not None
    assert (first.index, first.left.place[0], first.right.shown) == (0, 7, "A")


def test_a_value_is_the_same_inline_and_in_a_payload(bench: Workbench) -> None:
    work(bench, "right", outputs=[LARGE, "b", "c"])
    values = Values(bench.repository, bench.payloads)
    stored = bench.fields("right", "batch-completed")[0]["output"]

    assert values.digest(stored) == values.digest(LARGE) != values.digest("b")


def test_steps_that_gave_something_else_are_counted(bench: Workbench) -> None:
    for run_id, result in (("x", 1), ("y", 2)):
        session = bench.start("work", {"n": 1}, run_id=run_id)
        session.complete_step("same", 0)
        session.complete_step("other", result)
        session.complete_step("exec:1", {"exit_code": 0, "seconds": result})
    found = compare(bench, "x", "y")

    assert found.pieces == {("step", ""): 1}
    assert found.first_piece is not None
    assert found.first_piece.name == "other"


def test_orders_that_are_too_different_are_not_compared_in_full(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory stays bounded, and the comparison says what it left out."""
    monkeypatch.setattr(differing, "MOST_WAITING", 1)
    work(bench, "right", order=[2, 1, 0])
    found = compare(bench)

    assert "beyond 1 only some outputs were compared" in found.unknown[0]


def test_verdicts_are_compared_with_their_facts(bench: Workbench) -> None:
    work(bench, "right")
    session = bench.start("work", {"n": 1}, run_id="poor")
    session.judge(Facts(inputs=3, outputs=1))
    found = paths(compare(bench, "left", "poor"))

    assert found["verdict.facts.outputs"] == (3, 1)
    assert found["verdict.rule"] == ("all-done", "fewer-outputs")
    assert "verdict.facts.deadline_left_seconds" not in found


def change_retry(session: Session) -> None:
    session.execute(lambda run, why: run.schedule_retry(why, "parse", 1, model="small"))


def change_fallback(session: Session) -> None:
    session.execute(lambda run, why: run.take_fallback(why, "large", "small"))


def change_answer(session: Session) -> None:
    session.receive_answer(asked=1, answered=0, fault="provider", source="small")


def change_effect(session: Session) -> None:
    session.intend_effect("mail")


def change_file(session: Session) -> None:
    session.execute(lambda run, why: run.record_artifact(why, "a", path="a", size=2, sha256="cd"))


def change_phase(session: Session) -> None:
    session.start_phase("p")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (change_retry, "retries.parse"),
        (change_retry, "models.small"),
        (change_fallback, "fallbacks.'large → small'"),
        (change_answer, "answers.no-phase"),
        (change_answer, "models.small"),
        (change_effect, "effects.mail"),
        (change_file, "artifacts.a"),
        (change_phase, "phases.p"),
    ],
)
def test_every_part_of_the_work_is_compared(
    bench: Workbench, change: Callable[[Session], None], path: str
) -> None:
    bench.start("work", {"n": 1}, run_id="x")
    change(bench.start("work", {"n": 1}, run_id="y"))
    found = compare(bench, "x", "y")

    assert path in paths(found)
    assert found.divergence is not None


def test_the_model_policy_and_the_command_are_compared(bench: Workbench) -> None:
    bench.start("other", {"n": 1}, run_id="x", model_policy={"model": "large"})
    found = paths(compare(bench, "left", "x"))

    assert found["command"] == ("work", "other")
    assert found["model_policy"] == (None, {"model": "large"})


def test_revisions_are_compared_with_their_facts(bench: Workbench) -> None:
    work(bench, "right")
    session = anybody(bench, "right")
    facts = Facts(inputs=3, outputs=0)
    session.execute(
        lambda run, why: run.revise_verdict(
            why, judge(facts), Counted(facts, {}, None), default_policy(), "blank answers"
        )
    )
    found = paths(compare(bench))

    assert found["revision.outcome"] == (None, "failed_semantic_empty")
    assert found["revision.facts.outputs"] == (None, 0)


def test_what_is_told_apart_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "MOST_NAMES", 1)
    bench = Workbench()
    for run_id, models in (("x", "ab"), ("y", "ba")):
        session = bench.start("work", {"n": 1}, run_id=run_id)
        for model in models:
            session.receive_answer(asked=1, answered=1, source=model)
    found = compare(bench, "x", "y")

    assert (found.left.models, found.right.models) == ({"a": 1}, {"b": 1})


def test_phases_and_the_whole_run_are_timed(bench: Workbench) -> None:
    bench.start("work", {"n": 1}, run_id="right").start_phase("other")
    found = compare(bench)

    assert found.left.timings()["parse"] == pytest.approx(1.4e-5)
    assert found.left.timings()[""] is not None
    assert found.right.timings() == {"": None, "other": None}


def test_what_two_runs_did_by_now_is_compared_while_they_go_on(bench: Workbench) -> None:
    for run_id in ("x", "y"):
        bench.start("work", {"n": 1}, run_id=run_id).start_phase("p")

    assert compare(bench, "x", "y").same is True


def test_more_differences_than_are_named_are_counted(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differing, "MOST_DIFFERENCES", 2)
    bench.start("other", {"n": 2}, run_id="x")
    found = compare(bench, "left", "x")

    assert (len(found.differences), found.omitted > 0, found.same) == (2, True, False)


def test_a_run_that_is_not_there_is_not_compared(bench: Workbench) -> None:
    with pytest.raises(errors.RunNotFoundError, match="nope"):
        compare(bench, "left", "nope")


def test_progress_goes_through_the_events_of_both(bench: Workbench) -> None:
    work(bench, "right")
    seen = Seen()
    differing.compare(bench.repository, bench.payloads, "left", "right", seen)

    assert seen == [(done, 36) for done in range(1, 37)]


# Bodies elsewhere


def test_bodies_in_an_archive_are_compared_like_others(store_path: Path) -> None:
    with opened(store_path) as services:
        record_run(services, "job-1", output=LARGE)
        record_run(services, "job-2", output=LARGE)
        plans = offloading.plan(services.repository, [("job-1", "success")])
        bodykeeping.offload(services, plans)

        assert differing.compare(services.repository, services.payloads, "job-1", "job-2").same


def test_of_lost_bodies_only_types_and_order_are_compared(store_path: Path) -> None:
    with opened(store_path) as services:
        record_run(services, "job-1")
        record_run(services, "job-2", batches=4)
        plans = offloading.plan(services.repository, [("job-1", "success")])
        bodykeeping.offload(services, plans)
    for archive in (store_path / "archive").glob("*.zst"):
        archive.unlink()
    with opened(store_path) as services:
        found = differing.compare(services.repository, services.payloads, "job-1", "job-2")

        assert found.divergence is not None and found.divergence.left is not None
        assert found.divergence.left.topic == "run.phase-ended"
        assert "is lost" in found.unknown[0]
        assert found.left.timings() == {}


def test_of_an_erased_run_only_types_and_order_and_outcome_are_compared(store_path: Path) -> None:
    with opened(store_path) as services:
        for run_id in ("job-1", "job-2"):
            record_run(services, run_id)
        record_run(services, "job-3", outcome="empty")
    erasurekeeping.erase(str(store_path), "job-1", "it names a customer", actor="test")
    with opened(store_path) as services:
        same = differing.compare(services.repository, services.payloads, "job-1", "job-2")
        other = differing.compare(services.repository, services.payloads, "job-1", "job-3")

        assert (same.same, same.differences, same.divergence) == (None, [], None)
        assert "job-1: it was erased" in same.unknown[0]
        assert "because: it names a customer; of 9 events" in same.unknown[0]
        assert paths(other) == {"outcome.outcome": ("success", "empty")}
