"""What a person can do with a run now. That each command does it is tested where it is."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from audit.bench import Audited
from audit.by_the_gate import blank_output, filter_unreadable, no_item_parsed, work
from recovering import AUTO

from tachograph.advising import next_step, spent_phase
from tachograph.domain.errors import DependenciesWaitingError
from tachograph.domain.expectations import Expectations
from tachograph.forking import fork


@pytest.fixture
def bench(tmp_path: Path) -> Audited:
    return Audited(tmp_path)


def step(bench: Audited, run_id: str) -> str:
    return next_step(bench.summary(run_id))


class TestSpentPhases:
    """Finished batches are never done again: what they gave stays."""

    def test_batches_that_gave_nothing_are_done_anew_by_a_fork(self, bench: Audited) -> None:
        run_id = no_item_parsed(bench)

        assert step(bench, run_id) == (
            "A new attempt would keep the 2 finished batches of phase 'analyse', which gave "
            f"nothing, and come to the same. `tacho run fork {run_id} --from analyse` makes a run "
            "that does it anew."
        )

    def test_it_is_true_of_the_attempt_and_of_the_fork(self, bench: Audited) -> None:
        run_id = no_item_parsed(bench)
        forked = fork(bench.repository, bench.actor, run_id, "analyse").run_id
        again = bench.attempt(run_id)
        bench.job("reflect-on-incidents", run_id=forked)

        assert again.run.phases["analyse"].missing() == []
        assert "analyse" not in bench.run(forked).phases
        work(bench.attempt(forked), "analyse", [(50, 50, "ok"), (34, 34, "ok")])
        assert bench.ends(bench.attempt(forked)) == "success"

    def test_blank_outputs_are_nothing(self, bench: Audited) -> None:
        assert spent_phase(bench.summary(blank_output(bench))) == "summarise"

    def test_the_first_phase_that_gave_nothing_is_named(self, bench: Audited) -> None:
        session = bench.job("index-notes")
        work(session, "read", [(50, 50, "ok")])
        work(session, "embed", [(50, 0, "?")])
        work(session, "store", [(0, 0, None)])
        bench.ends(session)

        assert "--from embed" in step(bench, session.run_id)

    def test_a_phase_that_gave_too_little_is_kept_too(self, bench: Audited) -> None:
        session = bench.job("index-notes")
        session.expect(Expectations(minimum_fraction=0.9))
        work(session, "embed", [(50, 30, "30 of 50")])
        bench.ends(session)

        assert step(bench, session.run_id).startswith(
            "A new attempt would keep the finished batch of phase 'embed', and come to the same."
        )

    def test_a_phase_without_batches_is_completed_all_the_same(self, bench: Audited) -> None:
        run_id = filter_unreadable(bench)

        assert step(bench, run_id).startswith(
            "A new attempt would find phase 'classify' completed, and come to the same."
        )

    @pytest.mark.parametrize("name", ["12", "latest"])
    def test_a_phase_with_the_name_of_a_point_is_named_as_one(
        self, bench: Audited, name: str
    ) -> None:
        session = bench.job("index-notes")
        work(session, name, [(50, 0, "?")])
        bench.ends(session)

        assert f"--from phase:{name}`" in step(bench, session.run_id)

    def test_what_is_left_to_do_may_change_the_outcome(self, bench: Audited) -> None:
        session = bench.job("index-notes")
        work(session, "embed", [(50, 30, "?")], total=2, end=False)
        session.expect(Expectations(minimum_fraction=0.9))
        session.end_phase("embed", status="failed")
        bench.ends(session)

        assert step(bench, session.run_id) == (
            "Start index-notes with the same inputs again: a new attempt takes up phase 'embed' "
            "again after 1 of 2 batches."
        )

    def test_an_end_that_the_gate_did_not_judge_is_another_matter(self, bench: Audited) -> None:
        session = bench.job("index-notes")
        work(session, "embed", [(50, 0, "?")])
        bench.ends(session, "failed", reason="boom", reason_code="exception")

        assert spent_phase(bench.summary(session.run_id)) is None

    def test_a_run_that_stopped_in_time_goes_on(self, bench: Audited) -> None:
        session = bench.job("index-notes")
        work(session, "embed", [(50, 0, "?")], total=2, end=False)
        from tachograph.domain.facts import Facts

        session.judge(Facts(stopped="budget"))
        bench.ends(session)

        assert "goes on in phase 'embed' after 1 of 2 batches" in step(bench, session.run_id)


class TestOthers:
    def test_a_run_that_waits_for_others_names_them(self, bench: Audited) -> None:
        bench.job("collect", run_id="job-collect")
        with contextlib.suppress(DependenciesWaitingError):
            bench.job("publish", run_id="job-publish", depends_on=["job-collect"])

        assert step(bench, "job-publish").startswith(
            "It waits until job-collect has ended well: see `tacho run explain job-collect`. "
        )

    def test_a_blocked_run_says_what_it_waits_for(self, bench: Audited) -> None:
        session = bench.job("rebuild")
        session.execute(lambda run, why: run.block(why, "the disk is full"))
        bench.kill(session.run_id)

        assert step(bench, session.run_id).startswith("It waits: the disk is full. Start ")

    def test_a_phase_without_batches_names_none(self, bench: Audited) -> None:
        session = bench.job("rebuild", recovery=AUTO)
        session.start_phase("rebuild")
        bench.kill(session.run_id)

        assert "goes on in phase 'rebuild';" in step(bench, session.run_id)
