"""A run waits for others, starts when they are done, and never for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from recovering import AUTO, Recovering, process

from tachograph import depending
from tachograph.domain import errors
from tachograph.starting import Start

if TYPE_CHECKING:
    from tachograph.session import Session


@pytest.fixture
def bench() -> Recovering:
    return Recovering()


def start(bench: Recovering, run_id: str, *runs: str) -> None:
    """Start a run that waits for others."""
    want = Start("work", run_id=run_id, recovery=AUTO, depends_on=runs)
    bench.starter.start(want, process(bench.begun))


def waiting(bench: Recovering, run_id: str = "job") -> depending.Waiting:
    return bench.planner.waiting(bench.run(run_id))


class TestWaiting:
    def test_a_run_that_has_to_wait_is_created_and_has_no_attempt(self, bench: Recovering) -> None:
        bench.begin("first")
        with pytest.raises(errors.DependenciesWaitingError, match="waits for first"):
            start(bench, "job", "first")

        assert bench.topics("job") == ["created", "recovery-declared", "dependencies-declared"]
        assert (bench.run().epoch, bench.run().depends_on) == (0, ["first"])

    def test_it_waits_for_all_of_them(self, bench: Recovering) -> None:
        one = bench.begin("one")
        bench.begin("two")
        with pytest.raises(errors.DependenciesWaitingError, match="waits for one, two"):
            start(bench, "job", "one", "two")
        one.finish("success")

        assert waiting(bench).runs == ["two"]
        with pytest.raises(errors.DependenciesWaitingError, match="waits for two"):
            start(bench, "job", "one", "two")

    @pytest.mark.parametrize("outcome", ["success", "success_with_review", "skipped", "empty"])
    def test_it_starts_when_they_have_ended_well(self, outcome: str, bench: Recovering) -> None:
        bench.begin("first").finish(outcome)
        start(bench, "job", "first")

        assert bench.run().epoch == 1

    @pytest.mark.parametrize("outcome", ["failed", "partial", "failed_semantic_empty"])
    def test_one_that_did_not_end_well_is_waited_for(self, outcome: str, bench: Recovering) -> None:
        """It may be resumed, and end well then."""
        bench.begin("first").finish(outcome)
        bench.wait_for("job", ["first"])

        assert (waiting(bench).runs, waiting(bench).never) == (["first"], [])

    def test_one_that_was_cancelled_can_no_more(self, bench: Recovering) -> None:
        bench.begin("first").execute(lambda run, why: run.cancel(why, "no"))
        with pytest.raises(errors.DependenciesWaitingError):
            start(bench, "job", "first")

        assert (waiting(bench).runs, waiting(bench).never) == ([], ["first"])

    def test_a_person_may_start_it_all_the_same(self, bench: Recovering) -> None:
        bench.begin("first")
        bench.wait_for("job", ["first"])
        done = bench.dispatcher.resume("job", despite=["waiting"], reason="it is enough")

        assert done.epoch == 1

    def test_what_it_waits_for_is_asked_when_it_is_resumed(self, bench: Recovering) -> None:
        first = bench.begin("first")
        bench.wait_for("job", ["first"])
        with pytest.raises(errors.DependenciesWaitingError, match="waits for first"):
            bench.dispatcher.resume("job")
        first.finish("success")

        assert bench.dispatcher.resume("job").epoch == 1

    def test_a_run_that_had_started_does_not_wait_again(self, bench: Recovering) -> None:
        """What it waits for counts before its first attempt."""
        bench.cut_off()
        bench.begin("first")
        start(bench, "job", "first")

        assert (bench.run().epoch, bench.run().depends_on) == (2, [])

    def test_it_is_shown_as_waiting(self, bench: Recovering) -> None:
        from tachograph import projecting, reading

        bench.begin("first")
        bench.wait_for("job", ["first"])
        summary = projecting.ask(
            bench.log,
            bench.codec,
            bench.views,
            lambda view: reading.summary(view, lambda *_: None, "job"),  # type: ignore[arg-type]
        )

        assert (summary["status"], summary["status_reason"]) == ("waiting", "it waits for first")


class TestRefusals:
    def test_a_run_that_is_not_there_cannot_be_waited_for(self, bench: Recovering) -> None:
        with pytest.raises(errors.RunNotFoundError, match="nowhere"):
            start(bench, "job", "nowhere")

        assert bench.log.head().position == 0

    def test_a_run_does_not_wait_for_itself(self, bench: Recovering) -> None:
        with pytest.raises(errors.DependencyCycleError, match="job → job"):
            start(bench, "job", "job")

        assert bench.log.head().position == 0

    def test_two_do_not_wait_for_each_other(self, bench: Recovering) -> None:
        bench.begin("first")
        bench.wait_for("job", ["first"])

        with pytest.raises(errors.DependencyCycleError, match="first → job → first"):
            depending.check(bench.repository.get, "first", ["job"])

    def test_a_long_way_round_is_found(self, bench: Recovering) -> None:
        bench.begin("job-0")
        for number in range(1, 6):
            bench.wait_for(f"job-{number}", [f"job-{number - 1}"])

        with pytest.raises(errors.DependencyCycleError) as raised:
            depending.check(bench.repository.get, "job-0", ["job-5"])

        assert "job-0 → job-5 → job-4 → job-3 → job-2 → job-1 → job-0" in str(raised.value)

    def test_a_diamond_is_no_cycle(self, bench: Recovering) -> None:
        bench.begin("first")
        for name in ("left", "right"):
            bench.wait_for(name, ["first"])
        bench.wait_for("job", ["left", "right"])

        assert depending.find_cycle(bench.repository.get, "job", ["left", "right"]) == []
        assert waiting(bench).runs == ["left", "right"]

    def test_a_finished_run_closes_no_cycle(self, bench: Recovering) -> None:
        first = bench.begin("first")
        first.finish("success")
        start(bench, "job", "first")

        depending.check(bench.repository.get, "first~2", ["job"])

    def test_one_that_came_about_later_calls_a_person(self, bench: Recovering) -> None:
        """Two that declared at the same instant: each looked before the other wrote."""
        bench.begin("other-first")
        bench.wait_for("one", ["other-first"])
        bench.wait_for("two", ["one"])
        bench.person("one").execute(lambda run, why: run.depend_on(why, ["two"]))

        assert waiting(bench, "one").cycle == ["one", "two", "one"]
        report = bench.watch()
        codes = {each["task_id"]: each["code"] for each in report.needs_attention}
        assert codes == {"one": "dependency_cycle", "two": "dependency_cycle"}


def test_a_chain_starts_one_after_the_other(bench: Recovering) -> None:
    first = bench.begin("job-0")
    for number in (1, 2):
        bench.wait_for(f"job-{number}", [f"job-{number - 1}"])

    def work(session: Session) -> None:
        session.finish("success")

    bench.adapters.work = work
    idle = bench.watch()
    first.finish("success")
    bench.watch()
    bench.watch()

    assert idle.recoveries == []
    assert [bench.run(f"job-{number}").outcome for number in range(3)] == ["success"] * 3
    assert [call["argv"][-1] for call in bench.adapters.calls] == ["job-1", "job-2"]
