"""A watchdog looks at what should be looked at, tells each situation once, and resumes once."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from recovering import (
    AUTO,
    FakeEnd,
    Recovering,
    fails,
    nothing,
    one_batch,
    process,
    to_the_end,
)
from stores import begin, opened

from tachograph.domain import errors
from tachograph.domain.owner import Owner
from tachograph.domain.recovery import Recovery
from tachograph.lookout import Lookout
from tachograph.resuming import Dispatcher
from tachograph.signals import Report
from tachograph.starting import Start
from tachograph.watching import Orders, Watchdog, run_at_once

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.bootstrap import Services
    from tachograph.domain.run import Run
    from tachograph.session import Session

SLOW = AUTO.changed(stale_after_seconds=600)
STUBBORN = SLOW.changed(kill_stalled=True)
PATIENT = AUTO.changed(backoff_seconds=60, max_retries=2)


@pytest.fixture
def bench() -> Recovering:
    return Recovering()


def ids(signals: list[dict[str, Any]]) -> list[str]:
    return [signal["task_id"] for signal in signals]


def codes(signals: list[dict[str, Any]]) -> list[str]:
    return [signal["code"] for signal in signals]


def actions(report: Report) -> list[str]:
    return [each["action"] for each in report.resumed]


class TestADeadOwner:
    def test_it_is_noticed_at_once_and_resumed(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.adapters.work = to_the_end
        report = bench.watch()

        assert ids(report.alerts) == ["job"]
        assert report.alerts[0]["situation"] == "gone"
        assert report.alerts[0]["kind"] == "silent"
        assert ids(report.recoveries) == ["job"]
        assert bench.run().outcome == "success"

    def test_without_auto_resume_it_is_reported_and_left_alone(self, bench: Recovering) -> None:
        bench.cut_off()
        report = bench.watch(auto_resume=False)

        assert ids(report.alerts) == ["job"]
        assert [(each["task_id"], each["reason"]) for each in report.skipped] == [
            ("job", "auto-resume was not asked for")
        ]
        assert bench.run().epoch == 1

    def test_a_later_watchdog_with_auto_resume_resumes_it(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.watch(auto_resume=False)
        report = bench.watch()

        assert ids(report.recoveries) == ["job"]
        assert report.alerts == []

    def test_a_job_that_does_not_want_it_is_not_resumed(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(auto_resume=False))
        report = bench.watch()

        assert ids(report.alerts) == ["job"]
        assert report.skipped[0]["reason"] == "the job does not let it be resumed unattended"
        assert bench.adapters.calls == []

    def test_a_run_without_recovery_is_alerted_and_not_resumed(self, bench: Recovering) -> None:
        bench.cut_off(recovery=None)
        report = bench.watch()

        assert ids(report.alerts) == ["job"]
        assert (report.resumed, report.needs_attention, bench.adapters.calls) == ([], [], [])

    def test_a_run_whose_lease_ended_counts_as_dead(self, bench: Recovering) -> None:
        want = Start("work", run_id="job")
        bench.starter.start(want, Owner("here", "boot", kind="unowned"))
        bench.passes(29)
        before = bench.watch()
        bench.passes(3)
        report = bench.watch()

        assert (before.alerts, ids(report.alerts)) == ([], ["job"])
        assert "last heartbeat" in report.alerts[0]["reason"]

    def test_a_run_whose_lease_ended_is_looked_at_once(self, bench: Recovering) -> None:
        bench.starter.start(Start("work", run_id="job"), Owner("here", "boot", kind="unowned"))
        bench.passes(60)
        bench.watch()
        bench.loads.clear()
        bench.watch()

        assert bench.loads == []

    def test_the_dead_of_one_process_are_all_found(self, bench: Recovering) -> None:
        owner = process(2000)
        bench.processes[2000] = 2000
        for number in range(5):
            bench.starter.start(Start("work", run_id=f"job-{number}"), owner)
        bench.begin("living")
        del bench.processes[2000]

        assert sorted(ids(bench.watch().alerts)) == [f"job-{number}" for number in range(5)]

    def test_a_pid_that_was_used_again_fools_nobody(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.processes[1001] = 99_999

        assert ids(bench.watch().alerts) == ["job"]

    def test_a_finished_run_is_nobodys_affair(self, bench: Recovering) -> None:
        bench.begin().finish("success")
        bench.kill()
        report = bench.watch()

        assert (report.alerts, report.stale, report.running_count) == ([], [], 0)

    def test_a_run_that_failed_by_itself_is_resumed(self, bench: Recovering) -> None:
        bench.cut_off().finish("failed", reason="no network")

        assert ids(bench.watch().recoveries) == ["job"]

    @pytest.mark.parametrize(
        ("outcome", "reason_code"),
        [
            ("partial", "stopped_by_person"),
            ("partial", "stopped_by_budget"),
            ("failed_semantic_empty", None),
        ],
    )
    def test_a_run_that_was_stopped_on_purpose_is_not(
        self, outcome: str, reason_code: str | None, bench: Recovering
    ) -> None:
        bench.cut_off().finish(outcome, reason_code=reason_code)

        assert bench.watch().resumed == []


class TestALivingOwner:
    def test_it_is_left_alone_while_it_works(self, bench: Recovering) -> None:
        """Spec 8.8: a busy run is not resumed beside itself, however old its checkpoint."""
        session = bench.begin(recovery=SLOW)
        session.start_phase("parse")
        reports = []
        for index in range(4):
            bench.passes(500)
            session.complete_batch("parse", index)
            reports.append(bench.watch())

        assert [(each.alerts, each.stale, each.resumed) for each in reports] == [([], [], [])] * 4
        assert [each.running_count for each in reports] == [1] * 4
        assert ids(reports[0].running) == ["job"]

    def test_without_progress_it_is_alerted_once_and_left_alone(self, bench: Recovering) -> None:
        bench.begin(recovery=SLOW)
        bench.passes(599)
        early = bench.watch()
        bench.passes(2)
        alerts = [ids(bench.watch().alerts) for _ in range(3)]

        assert early.alerts == []
        assert alerts == [["job"], [], []]
        assert (bench.stopped, bench.run().epoch) == ([], 1)

    def test_it_says_that_it_is_silent(self, bench: Recovering) -> None:
        bench.begin(recovery=SLOW)
        bench.passes(720)
        (alert,) = bench.watch().alerts

        assert (alert["situation"], alert["stale_for_minutes"]) == ("silent", 12)
        assert alert["message"] == (
            "work:job has shown no work for 12m00s: its owner lives, and records nothing."
        )

    def test_it_is_alerted_again_when_it_worked_in_between(self, bench: Recovering) -> None:
        session = bench.begin(recovery=SLOW)
        bench.passes(601)
        bench.watch()
        session.start_phase("parse")
        session.complete_batch("parse", 0)
        bench.passes(601)

        assert ids(bench.watch().alerts) == ["job"]

    def test_without_stale_after_it_may_take_for_ever(self, bench: Recovering) -> None:
        bench.begin()
        bench.passes(1_000_000)

        assert bench.watch().stale == []

    def test_it_is_stopped_and_resumed_where_the_job_lets_it(self, bench: Recovering) -> None:
        bench.cut_off_alive(STUBBORN)
        bench.passes(601)
        report = bench.watch()

        assert bench.stopped == ["job"]
        assert ids(report.alerts) == ["job"]
        assert ids(report.recoveries) == ["job"]
        assert bench.run().epoch == 2

    def test_nobody_is_stopped_whose_run_could_not_be_resumed(self, bench: Recovering) -> None:
        """Else the job would be gone, and nobody in its place."""
        session = bench.cut_off_alive(STUBBORN.changed(safe_to_retry=False))
        bench.passes(601)
        report = bench.watch()

        assert bench.stopped == []
        assert ids(report.needs_attention) == ["job"]
        assert session.reload().attempt_open

    @pytest.mark.parametrize(
        ("recovery", "auto_resume"),
        [
            (SLOW, True),
            (STUBBORN.changed(auto_resume=False), True),
            (STUBBORN, False),
        ],
    )
    def test_it_is_stopped_only_with_kill_stalled_and_auto_resume(
        self, recovery: Recovery, auto_resume: bool, bench: Recovering
    ) -> None:
        bench.cut_off_alive(recovery)
        bench.passes(601)
        bench.watch(auto_resume=auto_resume)

        assert (bench.stopped, bench.run().epoch) == ([], 1)

    def test_it_is_stopped_by_a_later_watchdog_that_may(self, bench: Recovering) -> None:
        bench.cut_off_alive(STUBBORN)
        bench.passes(601)
        bench.watch(auto_resume=False)
        bench.watch()

        assert bench.stopped == ["job"]

    def test_an_owner_that_cannot_be_stopped_calls_a_person(self, bench: Recovering) -> None:
        bench.cut_off_alive(STUBBORN)
        bench.stop_fails = "still there: 1001"
        bench.passes(601)
        report = bench.watch()

        assert codes(report.needs_attention) == ["not_stopped"]
        assert report.needs_attention[0]["detail"] == "still there: 1001"
        assert bench.run().epoch == 1

    def test_an_owner_that_nobody_can_judge_calls_a_person(self, bench: Recovering) -> None:
        bench.begin(recovery=SLOW)
        bench.here.pid_namespace = "another container"
        bench.lasting.leases.clear()
        bench.lasting.unsettled.clear()
        bench.passes(601)
        report = bench.watch()

        assert codes(report.needs_attention) == ["owner_not_judged"]
        assert (report.alerts, bench.run().epoch) == ([], 1)


class TestResuming:
    def test_the_pause_between_tries_doubles(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(backoff_seconds=60, max_retries=4))
        bench.adapters.work = nothing
        tried = []
        for second in range(0, 600, 10):
            if bench.watch().resumed:
                tried.append(second)
            bench.passes(10)

        assert tried == [0, 60, 180, 420]

    def test_no_more_than_max_retries(self, bench: Recovering) -> None:
        bench.cut_off(recovery=PATIENT)
        bench.adapters.work = nothing
        for _ in range(10):
            bench.watch()
            bench.passes(3600)

        assert len(bench.adapters.calls) == 2

    def test_progress_gives_all_retries_back(self, bench: Recovering) -> None:
        bench.cut_off(recovery=PATIENT)
        reports = []
        for work in (nothing, one_batch, nothing, one_batch):
            bench.adapters.work = work
            reports.append(bench.watch())
            bench.passes(3600)

        assert [actions(report) for report in reports] == [
            ["ineffective"],
            ["resume"],
            ["ineffective"],
            ["resume"],
        ]

    def test_a_recovery_is_told_only_after_progress(self, bench: Recovering) -> None:
        """G12: an adapter that ends well and does nothing has recovered nothing."""
        bench.cut_off()
        bench.adapters.work = nothing
        report = bench.watch()

        assert report.recoveries == []
        assert actions(report) == ["ineffective"]
        assert report.resumed[0]["ok"] is False
        assert report.resumed[0]["retry_count"] == 1

    def test_a_recovery_says_from_where_to_where(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.adapters.work = to_the_end
        (recovery,) = bench.watch().recoveries

        assert (recovery["from_phase"], recovery["to_phase"]) == ("parse", "completed")
        assert recovery["message"] == (
            "work:job went on by itself (attempt 2); it ended as success."
        )

    def test_a_failing_adapter_is_told_with_its_error(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.adapters.work = fails
        (tried,) = bench.watch().resumed

        assert (tried["action"], tried["error"], tried["returncode"]) == ("error", "exit code 3", 3)

    def test_progress_with_an_error_is_a_recovery_that_tells_it(self, bench: Recovering) -> None:
        bench.cut_off()

        def work(session: Session) -> FakeEnd:
            one_batch(session)
            return FakeEnd(exit_code=1)

        bench.adapters.work = work
        report = bench.watch()

        assert ids(report.recoveries) == ["job"]
        assert report.resumed[0]["error"] == "exit code 1"

    def test_a_time_limit_is_handed_on(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.watch(timeout_seconds=5)

        assert bench.adapters.calls[0]["timeout_seconds"] == 5

    def test_a_resume_that_is_overtaken_is_no_error(self, bench: Recovering) -> None:
        bench.cut_off()

        def overtaken(_run_id: str, work: Any) -> bool:
            bench.dispatcher.resume("job", despite=(), unattended=True)
            return run_at_once(_run_id, work)

        bench.adapters.work = to_the_end
        report = bench.watch(spawn=overtaken)

        assert report.resumed == []
        assert "is finished" in report.skipped[0]["reason"]

    def test_an_approval_that_was_given_lets_it_go_on(self, bench: Recovering) -> None:
        session = bench.cut_off()
        session.execute(
            lambda run, why: run.request_approval(why, "deploy", subject=1, subject_digest="d")
        )
        session.finish("partial", reason_code="waits_for_approval")
        waiting = bench.watch()
        bench.person().execute(lambda run, why: run.approve(why, "deploy", "looks right"))
        report = bench.watch()

        assert (waiting.resumed, codes(waiting.active_needs_attention)) == ([], ["approval:deploy"])
        assert ids(report.recoveries) == ["job"]
        assert report.active_needs_attention == []

    def test_a_refused_approval_does_not(self, bench: Recovering) -> None:
        session = bench.cut_off()
        session.execute(
            lambda run, why: run.request_approval(why, "deploy", subject=1, subject_digest="d")
        )
        session.finish("partial", reason_code="waits_for_approval")
        bench.person().execute(lambda run, why: run.reject(why, "deploy", "not on a Friday"))
        reports = [bench.watch() for _ in range(2)]

        assert [actions(report) for report in reports] == [[], []]
        assert [codes(report.needs_attention) for report in reports] == [["approval_rejected"], []]

    def test_a_run_starts_when_what_it_waits_for_is_done(self, bench: Recovering) -> None:
        first = bench.begin("first")
        bench.wait_for("job", ["first"])
        waiting = bench.watch()
        first.finish("success")
        bench.adapters.work = lambda session: session.save_checkpoint({"row": 1})
        report = bench.watch()

        assert waiting.resumed == []
        assert "it waits for first" in waiting.skipped[0]["reason"]
        assert ids(report.recoveries) == ["job"]
        assert bench.run().epoch == 1

    def test_a_run_whose_dependency_was_cancelled_calls_a_person(self, bench: Recovering) -> None:
        first = bench.begin("first")
        bench.wait_for("job", ["first"])
        first.execute(lambda run, why: run.cancel(why, "no"))
        report = bench.watch()

        assert codes(report.needs_attention) == ["dependency_ended"]
        assert report.resumed == []

    def test_what_a_killed_watchdog_left_is_adopted_before_the_next_try(
        self, bench: Recovering
    ) -> None:
        bench.cut_off()

        class Killed(BaseException):
            pass

        def work(session: Session) -> None:
            one_batch(session)
            raise Killed

        bench.adapters.work = work
        with pytest.raises(Killed):
            bench.watch()
        del bench.processes[7]
        bench.adapters.owner = lambda pid=None: process(8 if pid is None else pid)  # type: ignore[method-assign]
        bench.processes[8] = 8
        bench.adapters.work = to_the_end
        bench.watch()
        resumes = [topic for topic in bench.topics("job") if topic.startswith("resume-")]

        assert resumes == ["resume-dispatched", "resume-returned"] * 2
        assert bench.run().outcome == "success"

    def test_only_runs_of_the_command_are_watched(self, bench: Recovering) -> None:
        bench.cut_off()
        report = bench.watch(command="other")

        assert (report.alerts, report.resumed) == ([], [])
        assert ids(bench.watch(command="work").recoveries) == ["job"]

    def test_several_approvals_do_not_use_up_the_retries(self, bench: Recovering) -> None:
        """Each is asked for in a resume of its own, whose adapter ends as the asking does."""
        bench.cut_off(recovery=PATIENT.changed(backoff_seconds=0))

        def work(session: Session) -> FakeEnd | None:
            for name in "abcd":
                granted = session.execute(partial(ask, name=name))
                if not granted:
                    session.finish("partial", reason_code="waits_for_approval")
                    return FakeEnd(exit_code=8)
            to_the_end(session)
            return None

        bench.adapters.work = work
        reports = [bench.watch()]
        for name in "abcd":
            reports.append(bench.watch())  # nobody has decided yet
            approve(bench, name)
            reports.append(bench.watch())

        assert [actions(report) for report in reports] == [["resume"], *([[], ["resume"]] * 4)]
        assert [each["error"] for report in reports for each in report.resumed] == [None] * 5
        assert [code for report in reports for code in codes(report.needs_attention)] == [
            f"approval:{name}" for name in "abcd"
        ]
        assert bench.run().outcome == "success"

    def test_with_no_room_it_waits_for_the_next_look(self, bench: Recovering) -> None:
        bench.cut_off()
        full = [bench.watch(spawn=lambda _run_id, _work: False) for _ in range(2)]
        before = bench.run().epoch
        report = bench.watch()

        assert [[each["task_id"] for each in each.skipped] for each in full] == [["job"]] * 2
        assert full[0].skipped[0]["reason"] == "as many resumes as may be are at work; it is next"
        assert (ids(full[0].alerts), full[0].resumed, before) == (["job"], [], 1)
        assert ids(report.recoveries) == ["job"]


class TestWhoCannotBeLookedAt:
    """Whatever is wrong with one run, the others are looked at."""

    def broken(self, bench: Recovering, error: Exception) -> Any:
        """Make planning for the run `bad` fail, and return what repairs it."""
        bench.cut_off("bad")
        bench.cut_off("good")
        bench.adapters.work = to_the_end
        plan_of = bench.planner.plan_of

        def plan(run: Run, **how: Any) -> Any:
            if run.id == "bad":
                raise error
            return plan_of(run, **how)

        bench.planner.plan_of = plan  # type: ignore[method-assign]
        return lambda: setattr(bench.planner, "plan_of", plan_of)

    def test_the_others_are(self, bench: Recovering) -> None:
        self.broken(bench, KeyError("odd"))
        report = bench.watch()

        assert sorted(ids(report.alerts)) == ["bad", "good"]
        assert ids(report.recoveries) == ["good"]
        assert [(each["task_id"], each["reason"]) for each in report.skipped] == [
            ("bad", "KeyError: 'odd'")
        ]

    def test_it_is_told_once_and_stays_visible(self, bench: Recovering) -> None:
        self.broken(bench, KeyError("odd"))
        reports = [bench.watch() for _ in range(3)]

        assert [codes(report.needs_attention) for report in reports] == [["not_looked_at"], [], []]
        assert reports[0].needs_attention[0]["detail"] == "KeyError: 'odd'"
        assert [ids(report.active_needs_attention) for report in reports] == [["bad"]] * 3
        assert bench.topics("bad").count("attention-raised") == 1

    def test_a_look_that_works_clears_it(self, bench: Recovering) -> None:
        repair = self.broken(bench, KeyError("odd"))
        bench.watch()
        repair()
        report = bench.watch()

        assert ids(report.recoveries) == ["bad"]
        assert report.active_needs_attention == []
        assert bench.topics("bad").count("attention-cleared") == 1

    def test_it_is_cleared_though_there_is_nothing_to_resume(self, bench: Recovering) -> None:
        repair = self.broken(bench, KeyError("odd"))
        bench.watch()
        repair()
        report = bench.watch(auto_resume=False)

        assert (report.resumed, report.active_needs_attention) == ([], [])
        assert bench.run("bad").attention == {}

    @pytest.mark.parametrize("needs_person", [True, False])
    def test_one_that_cannot_even_be_read_is_only_reported(
        self, needs_person: bool, bench: Recovering, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench.cut_off("bad")
        if needs_person:
            bench.person("bad").execute(lambda run, why: run.raise_attention(why, "look"))
        bench.cut_off("good")
        get = bench.repository.get

        def read(run_id: str, **how: Any) -> Run | None:
            if run_id == "bad":
                raise ValueError("cut short")
            return get(run_id, **how)

        monkeypatch.setattr(bench.repository, "get", read)
        report = bench.watch()

        assert ids(report.recoveries) == ["good"]
        assert {(each["task_id"], each["reason"]) for each in report.skipped} == {
            ("bad", "ValueError: cut short")
        }
        assert report.needs_attention == []

    @pytest.mark.parametrize(
        "error", [errors.StoreFullError("/s", "full"), errors.StoreReadOnlyError("/s", "no")]
    )
    def test_what_is_wrong_with_the_store_ends_the_look(
        self, error: Exception, bench: Recovering
    ) -> None:
        self.broken(bench, error)
        with pytest.raises(type(error)):
            bench.watch()

        assert "attention-raised" not in bench.topics("bad")
        assert bench.lasting.noted == []

    def test_a_full_disk_found_while_telling_ends_it_too(
        self, bench: Recovering, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.broken(bench, KeyError("odd"))
        bench.watch(auto_resume=False)

        def full(_run: Run) -> None:
            raise errors.StoreFullError("/s", "full")

        monkeypatch.setattr(bench.repository, "save", full)
        with pytest.raises(errors.StoreFullError):
            bench.watch()

    def test_a_dry_run_reports_it_and_writes_nothing(self, bench: Recovering) -> None:
        self.broken(bench, KeyError("odd"))
        before = bench.log.head()
        report = bench.watch(record=False)

        assert [each["task_id"] for each in report.skipped] == ["bad"]
        assert bench.log.head() == before


class Killed(BaseException):
    """The dispatcher is at this point, or dies here."""


def under_way(
    bench: Recovering, recovery: Recovery = AUTO, work: Any = one_batch, run_id: str = "job"
) -> None:
    """Dispatch a resume that does not return: dispatcher (7) and adapter (100) are at work."""
    bench.cut_off(run_id, recovery)

    def go_on(session: Session) -> None:
        work(session)
        raise Killed

    bench.adapters.work = go_on
    with pytest.raises(Killed):
        bench.dispatcher.resume(run_id, unattended=True)
    pid = 99 + len(bench.adapters.calls)
    bench.processes[pid] = pid
    bench.adapters.work = to_the_end


def dispatcher_dies(bench: Recovering) -> None:
    """Kill the dispatcher; from now on another process watches."""
    del bench.processes[7]
    bench.processes[8] = 8
    bench.adapters.owner = lambda pid=None: process(8 if pid is None else pid)  # type: ignore[method-assign]


def stops_their_own(bench: Recovering) -> list[list[int]]:
    """Let stopping end the processes of a run, and return whom it ends each time."""
    stopped: list[list[int]] = []

    def stop(run: Run) -> str | None:
        pids = [each["pid"] for each in run.own_processes]
        stopped.append(pids)
        for pid in pids:
            bench.processes.pop(pid, None)
        return None

    bench.around.stop = stop  # type: ignore[method-assign]
    return stopped


def returns_of(bench: Recovering, run_id: str = "job") -> int:
    return bench.topics(run_id).count("resume-returned")


class TestAKilledDispatcher:
    """Nobody waits for its adapter any more: the next look records what came of it."""

    def test_a_run_that_its_adapter_finished_is_told_once(self, bench: Recovering) -> None:
        under_way(bench, work=to_the_end)
        dispatcher_dies(bench)
        del bench.processes[100]
        named = watched(bench)
        reports = [bench.watch() for _ in range(3)]

        assert [actions(report) for report in reports] == [["resume"], [], []]
        assert [ids(report.recoveries) for report in reports] == [["job"], [], []]
        assert reports[0].recoveries[0]["to_phase"] == "completed"
        assert (reports[0].alerts, reports[0].needs_attention) == ([], [])
        assert (returns_of(bench), len(bench.adapters.calls)) == (1, 1)
        assert (named, watched(bench)) == (["job"], [])

    def test_not_while_its_adapter_lives(self, bench: Recovering) -> None:
        under_way(bench, work=to_the_end)
        dispatcher_dies(bench)
        bench.watch()
        before = returns_of(bench)
        del bench.processes[100]
        bench.watch()

        assert (before, returns_of(bench)) == (0, 1)

    def test_not_while_it_lives_itself(self, bench: Recovering) -> None:
        under_way(bench, work=to_the_end)
        del bench.processes[100]
        bench.loads.clear()
        report = bench.watch()

        assert (report.resumed, returns_of(bench), bench.loads) == ([], 0, [])

    def test_one_whose_adapter_lingers_does_not_hide_another(self, bench: Recovering) -> None:
        """Both were sent by the same dispatcher."""
        under_way(bench, work=to_the_end, run_id="lingers")
        under_way(bench, work=to_the_end, run_id="job")
        dispatcher_dies(bench)
        del bench.processes[101]
        report = bench.watch()

        assert ids(report.recoveries) == ["job"]
        assert (returns_of(bench, "lingers"), returns_of(bench)) == (0, 1)

    def test_a_run_that_was_cancelled_meanwhile_is_no_recovery(self, bench: Recovering) -> None:
        under_way(bench, work=nothing)
        bench.person().execute(lambda run, why: run.cancel(why, "no longer wanted"))
        dispatcher_dies(bench)
        del bench.processes[100]
        report = bench.watch()

        assert (report.recoveries, report.needs_attention) == ([], [])
        assert actions(report) == ["error"]
        assert returns_of(bench) == 1

    def test_a_dry_run_records_nothing(self, bench: Recovering) -> None:
        under_way(bench, work=to_the_end)
        dispatcher_dies(bench)
        del bench.processes[100]
        before = bench.log.head()
        bench.watch(record=False)

        assert bench.log.head() == before


def watched(bench: Recovering) -> list[str]:
    """Return the runs that count on a process."""

    def question(view: Any) -> list[str]:
        return [view.card_at(one)["id"] for _, one in view.watched_processes()]

    found: list[str] = bench.around.ask(question)
    return found


LIMITED = AUTO.changed(timeout_seconds=60)


class TestAnOverdueAdapter:
    """Its dispatcher would have ended it at its time limit."""

    def test_it_is_ended_and_the_run_goes_on(self, bench: Recovering) -> None:
        under_way(bench, LIMITED)
        stopped = stops_their_own(bench)
        dispatcher_dies(bench)
        bench.passes(79)
        early = bench.watch()
        bench.passes(2)
        report = bench.watch()

        assert (early.resumed, early.alerts) == ([], [])
        assert stopped == [[100]]
        assert actions(report) == ["resume", "resume"]  # what it had done, and the next one
        assert (bench.run().outcome, returns_of(bench)) == ("success", 2)
        assert report.needs_attention == []

    def test_it_is_not_looked_at_before_its_time(self, bench: Recovering) -> None:
        under_way(bench, LIMITED)
        dispatcher_dies(bench)
        bench.passes(59)
        bench.watch()  # its lease has ended: this much is looked at once
        bench.loads.clear()
        bench.watch()
        early = list(bench.loads)
        bench.passes(2)
        bench.watch()

        assert (early, bench.loads) == ([], ["job"])

    def test_that_of_a_living_dispatcher_is_left_to_it(self, bench: Recovering) -> None:
        under_way(bench, LIMITED)
        stopped = stops_their_own(bench)
        bench.passes(3600)
        report = bench.watch()

        assert (stopped, report.resumed, returns_of(bench)) == ([], [], 0)

    def test_the_time_that_the_machine_slept_does_not_count(self, bench: Recovering) -> None:
        under_way(bench, LIMITED)
        stopped = stops_their_own(bench)
        dispatcher_dies(bench)
        bench.watch()
        bench.sleeps(8 * 3600)
        bench.watch()
        asleep = list(stopped)
        bench.passes(81)
        bench.watch()

        assert (asleep, stopped) == ([], [[100]])

    def test_without_a_limit_it_may_take_for_ever(self, bench: Recovering) -> None:
        under_way(bench)
        stopped = stops_their_own(bench)
        dispatcher_dies(bench)
        bench.passes(1_000_000)
        bench.watch()

        assert (stopped, returns_of(bench)) == ([], 0)

    @pytest.mark.parametrize("wrong", ["still there: 100", None])
    def test_one_that_lives_on_calls_a_person_and_is_not_worked_beside(
        self, wrong: str | None, bench: Recovering
    ) -> None:
        """Also when all that was known was ended, and something of it is at work nevertheless."""
        under_way(bench, LIMITED)
        bench.around.stop = lambda run: wrong  # type: ignore[method-assign]
        dispatcher_dies(bench)
        bench.passes(81)
        reports = [bench.watch() for _ in range(2)]

        assert [codes(report.needs_attention) for report in reports] == [["not_stopped"], []]
        assert reports[0].needs_attention[0]["detail"] == (wrong or "process 100 is running")
        assert (bench.run().epoch, returns_of(bench)) == (2, 0)
        del bench.processes[100]
        report = bench.watch()
        assert (bench.run().outcome, report.active_needs_attention) == ("success", [])

    def test_a_dry_run_ends_nobody(self, bench: Recovering) -> None:
        under_way(bench, LIMITED)
        stopped = stops_their_own(bench)
        dispatcher_dies(bench)
        bench.passes(81)
        before = bench.log.head()
        bench.watch(record=False)

        assert (stopped, bench.log.head()) == ([], before)


class TestAStalledAdapter:
    """Of this watchdog, which waits for it in the background, or of another one."""

    def test_it_is_stopped_and_its_dispatcher_records_the_return(self, bench: Recovering) -> None:
        under_way(bench, STUBBORN)
        stopped = stops_their_own(bench)
        bench.passes(601)
        reports = [bench.watch() for _ in range(2)]  # the return is not recorded yet
        bench.attempt().execute(lambda run, why: run.return_resume(why, {"signal": 15}))
        bench.passes(3600)
        after = bench.watch()

        assert stopped[0] == [100]
        assert 7 in bench.processes
        assert [codes(report.needs_attention) for report in reports] == [[], []]
        assert [actions(report) for report in reports] == [[], []]
        assert ids(reports[0].alerts) == ["job"]
        assert (actions(after), bench.run().outcome) == (["resume"], "success")

    def test_without_its_dispatcher_the_run_goes_on_at_once(self, bench: Recovering) -> None:
        under_way(bench, STUBBORN)
        stopped = stops_their_own(bench)
        dispatcher_dies(bench)
        bench.passes(601)
        report = bench.watch()

        assert stopped == [[100]]
        assert actions(report) == ["resume", "resume"]
        assert (bench.run().outcome, returns_of(bench)) == ("success", 2)

    def test_what_is_left_of_a_stopped_owner_is_not_worked_beside(self, bench: Recovering) -> None:
        bench.cut_off_alive(STUBBORN)
        bench.around.stop = lambda run: None  # type: ignore[method-assign]
        bench.passes(601)
        reports = [bench.watch() for _ in range(2)]

        assert [codes(report.needs_attention) for report in reports] == [["not_stopped"], []]
        assert bench.run().epoch == 1

    def test_whom_other_runs_count_on_is_left_alone(self, bench: Recovering) -> None:
        bench.cut_off_alive(STUBBORN)
        bench.shared = ["other", "third"]
        bench.passes(601)
        reports = [bench.watch() for _ in range(2)]

        assert (bench.stopped, bench.run().epoch) == ([], 1)
        assert [codes(report.needs_attention) for report in reports] == [["not_stopped"], []]
        assert reports[0].needs_attention[0]["detail"] == (
            "its process works on other runs too: other, third"
        )

    def test_who_that_is_is_found_by_every_process_of_the_run(self, tmp_path: Path) -> None:
        """A shell that started two runs, one of which is worked on by a command of its own."""
        with opened(tmp_path / "store") as services:
            shell, command = (services.owner().to_fields() for _ in range(2))
            command["pid"] = 1
            for run_id in ("one", "two", "done"):
                services.starter.start(Start("work", run_id=run_id), Owner.from_fields(shell))
            services.session("done", 1).finish("success")
            services.session("one", 1).execute(lambda run, why: run.start_worker(why, command))
            services.starter.start(Start("work", run_id="alone"), process(5))
            around = Lookout(services)
            found = {
                run_id: around.sharing(around.load(run_id) or pytest.fail("it is there"))
                for run_id in ("one", "two", "alone")
            }

        assert found == {"one": ["two"], "two": [], "alone": []}

    def test_a_dispatcher_is_shared_and_never_stopped(self, tmp_path: Path) -> None:
        with opened(tmp_path / "store") as services:
            for run_id in ("one", "two"):
                session = services.starter.start(Start("work", run_id=run_id), services.owner())
                session.execute(lambda run, why: run.dispatch_resume(why, "make", {}))
            around = Lookout(services)
            run = around.load("one")
            assert run is not None
            found = around.sharing(run)
            wrong = around.stop(run)

        assert (found, wrong) == ([], "no process works for it alone")

    def test_a_dry_run_tells_whom_it_would_stop(self, bench: Recovering) -> None:
        bench.cut_off_alive(STUBBORN)
        bench.passes(601)
        before = bench.log.head()
        reports = [bench.watch(record=False) for _ in range(2)]

        for report in reports:
            (entry,) = report.resumed
            assert (entry["task_id"], entry["action"]) == ("job", "dry-run")
            assert [each["pid"] for each in entry["stops"]] == [1001]
            assert entry["argv"] == ["run", "jobs:resume", "job"]
            assert ids(report.alerts) == ["job"]
        assert (bench.log.head(), bench.stopped, bench.adapters.calls) == (before, [], [])

    def test_a_dry_run_tells_whom_it_would_leave_alone(self, bench: Recovering) -> None:
        bench.cut_off_alive(STUBBORN)
        bench.shared = ["other"]
        bench.passes(601)
        before = bench.log.head()
        report = bench.watch(record=False)

        assert (report.resumed, codes(report.needs_attention)) == ([], ["not_stopped"])
        assert bench.log.head() == before


class TestAReturnThatCouldNotBeRecorded:
    def dog(self, bench: Recovering, spawn: Any = run_at_once) -> Watchdog:
        return Watchdog(bench.around, Orders(auto_resume=True), spawn)

    def look(self, dog: Watchdog, bench: Recovering) -> Report:
        return dog.count(dog.tick(Report(bench.now)))

    def test_it_is_recorded_at_a_later_look_and_told(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.adapters.work = to_the_end
        refuse(bench, lambda run: run.dispatch is None and run.returned_us is not None, times=2)
        bench.adapters.owner = only_the_living(bench)  # type: ignore[method-assign]
        dog = self.dog(bench)
        first = self.look(dog, bench)
        with pytest.raises(errors.StoreFullError):
            self.look(dog, bench)  # the disk is full still
        third, fourth = (self.look(dog, bench) for _ in range(2))

        assert (actions(first), first.recoveries) == (["error"], [])
        assert first.resumed[0]["error"].startswith("StoreFullError: ")
        assert (actions(third), ids(third.recoveries)) == (["resume"], ["job"])
        assert (fourth.resumed, returns_of(bench)) == ([], 1)

    def test_another_watchdog_leaves_it_to_the_living_one(self, bench: Recovering) -> None:
        bench.cut_off()
        refuse(bench, lambda run: run.dispatch is None and run.returned_us is not None)
        self.look(self.dog(bench), bench)
        bench.adapters.owner = lambda pid=None: process(8 if pid is None else pid)  # type: ignore[method-assign]
        self.look(self.dog(bench), bench)

        assert returns_of(bench) == 0

    def test_a_resume_of_another_living_dispatcher_is_not_taken_for_it(
        self, bench: Recovering
    ) -> None:
        """This watchdog could not even begin; another one was luckier."""
        bench.cut_off()
        refuse(bench, lambda run: run.dispatch is not None)
        dog = self.dog(bench)
        self.look(dog, bench)
        bench.processes[8] = 8
        bench.adapters.owner = lambda pid=None: process(8 if pid is None else pid)  # type: ignore[method-assign]
        bench.adapters.work = hangs
        with pytest.raises(Killed):
            bench.dispatcher.resume("job")
        bench.adapters.owner = lambda pid=None: process(7 if pid is None else pid)  # type: ignore[method-assign]
        report = self.look(dog, bench)

        assert (report.resumed, returns_of(bench)) == ([], 0)

    def test_its_own_next_resume_is_not_taken_for_it(self, bench: Recovering) -> None:
        """The first could not even begin; the second is at work in the background."""
        bench.cut_off()
        refuse(bench, lambda run: run.dispatch is not None)
        later = Later()
        dog = self.dog(bench, later.spawn)
        first = self.look(dog, bench)
        later.go_on()
        self.look(dog, bench)
        bench.adapters.work = hangs
        with pytest.raises(Killed):
            later.go_on()
        bench.processes[100] = 100
        third = self.look(dog, bench)

        assert actions(first) == ["error"]
        assert (third.resumed, returns_of(bench), bench.run().dispatch is None) == ([], 0, False)

    def test_what_its_adapter_left_running_is_left_at_work(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.processes[500] = 500
        bench.adapters.work = lambda session: FakeEnd(left_running=(500,))
        bench.adapters.owner = only_the_living(bench)  # type: ignore[method-assign]
        refuse(bench, lambda run: run.dispatch is None and run.returned_us is not None)
        dog = self.dog(bench)
        self.look(dog, bench)
        report = self.look(dog, bench)

        assert (actions(report), returns_of(bench)) == (["error"], 1)
        assert (bench.run().epoch, len(bench.adapters.calls)) == (2, 1)
        assert bench.run().attempt_open


def refuse(bench: Recovering, which: Any, times: int = 1) -> None:
    """Let the disk be full so many times, when a run is about to be saved that is so."""
    save = bench.repository.save
    left = [None] * times

    def full(run: Run) -> list[int]:
        if left and which(run):
            left.pop()
            raise errors.StoreFullError("/store", "the disk is full")
        return save(run)

    bench.repository.save = full  # type: ignore[method-assign]


def hangs(_session: Session) -> None:
    raise Killed


def only_the_living(bench: Recovering) -> Any:
    """Describe processes as they are: one that has ended is not there."""

    def owner(pid: int | None = None) -> Owner:
        if pid is not None and pid not in bench.processes:
            raise errors.ProcessNotFoundError(pid)
        return process(7 if pid is None else pid)

    return owner


class Later:
    """Begins no resume by itself, but keeps it."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def spawn(self, _run_id: str, work: Any) -> bool:
        self.kept.append(work)
        return True

    def go_on(self) -> None:
        """Carry out the last one."""
        self.kept.pop()()


def approve(bench: Recovering, name: str) -> None:
    bench.person().execute(lambda run, why: run.approve(why, name, "fine"))


def ask(run: Run, why: Any, name: str) -> bool:
    return run.request_approval(why, name, subject=name, subject_digest=name)


class TestNeedsAttention:
    def exhausted(self, bench: Recovering, work: Any = nothing) -> list[Report]:
        bench.cut_off(recovery=PATIENT)
        bench.adapters.work = work
        reports = []
        for _ in range(5):
            reports.append(bench.watch())
            bench.passes(3600)
        return reports

    def test_exhausted_retries_are_told_once_and_stay_visible_for_ever(
        self, bench: Recovering
    ) -> None:
        """Spec 8.3."""
        reports = self.exhausted(bench)

        told = [codes(report.needs_attention) for report in reports]
        active = [ids(report.active_needs_attention) for report in reports]
        assert told == [[], ["resume_failed"], [], [], []]
        assert active == [[], ["job"], ["job"], ["job"], ["job"]]

    def test_the_texts_are_those_that_tools_know(self, bench: Recovering) -> None:
        reports = self.exhausted(bench, fails)
        (told,) = reports[1].needs_attention

        assert told["reason"] == "auto-resume failed and retries are exhausted"
        assert told["detail"] == (
            "2 resumes in a row brought no progress; the last one: exit code 3"
        )

    def test_no_retries_at_all_is_max_retries_reached(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(max_retries=0))
        report = bench.watch()

        assert [each["reason"] for each in report.needs_attention] == ["max retries reached"]

    def test_progress_clears_it(self, bench: Recovering) -> None:
        self.exhausted(bench)
        bench.adapters.work = one_batch
        bench.dispatcher.resume("job")

        assert bench.watch().active_needs_attention == []

    def test_a_changed_declaration_lets_it_try_again(self, bench: Recovering) -> None:
        self.exhausted(bench)
        bench.adapters.work = one_batch
        more = PATIENT.changed(max_retries=5)
        bench.person().execute(
            lambda run, why: run.declare_recovery(why, more, reason="the network is back")
        )

        assert ids(bench.watch().recoveries) == ["job"]

    @pytest.mark.parametrize(
        ("recovery", "reason"),
        [
            (AUTO.changed(safe_to_retry=False), "task marked unsafe to auto-retry"),
            (
                Recovery(auto_resume=True),
                "stale but no resume command or adapter configured",
            ),
        ],
    )
    def test_each_reason_has_its_text(
        self, recovery: Recovery, reason: str, bench: Recovering
    ) -> None:
        bench.cut_off(recovery=recovery)
        reports = [bench.watch() for _ in range(3)]

        assert [[each["reason"] for each in report.needs_attention] for report in reports] == [
            [reason],
            [],
            [],
        ]
        assert ids(reports[2].active_needs_attention) == ["job"]

    def test_an_effect_in_doubt_calls_a_person(self, bench: Recovering) -> None:
        """G10."""
        bench.cut_off().intend_effect("mail")
        report = bench.watch()

        assert codes(report.needs_attention) == ["effects_in_doubt"]
        assert "'mail'" in report.needs_attention[0]["detail"]
        assert bench.adapters.calls == []

    @pytest.mark.parametrize("happened", [True, False])
    def test_when_a_person_has_decided_it_goes_on(self, happened: bool, bench: Recovering) -> None:
        """G10."""
        bench.cut_off().intend_effect("mail")
        bench.watch()
        if happened:
            bench.person().complete_effect("mail", reason="it is in the outbox")
        else:
            bench.person().allow_effect_retry("mail", "the outbox is empty")
        report = bench.watch()

        assert ids(report.recoveries) == ["job"]
        assert report.active_needs_attention == []

    def test_a_damaged_artifact_calls_a_person(self, bench: Recovering, tmp_path: Path) -> None:
        path = tmp_path / "report"
        path.write_text("whole")
        bench.cut_off().execute(
            lambda run, why: run.record_artifact(
                why, "report", path=str(path), size=5, sha256="0" * 64
            )
        )
        report = bench.watch()

        assert codes(report.needs_attention) == ["artifact_damaged"]
        assert bench.adapters.calls == []

    def test_an_adapter_that_asks_for_a_person_is_told_at_once(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.adapters.work = one_batch
        bench.adapters.says = b'{"needs_attention": "which page?"}', b""
        report = bench.watch()

        assert [each.get("detail") for each in report.needs_attention] == ["which page?"]

    def test_an_adapter_that_asks_is_not_resumed_before_a_person_looked(
        self, bench: Recovering
    ) -> None:
        bench.cut_off()
        bench.adapters.says = b'{"needs_attention": "which page?"}', b""
        bench.watch()
        bench.adapters.calls.clear()
        reports = []
        for _ in range(3):
            bench.passes(3600)
            reports.append(bench.watch())

        assert bench.adapters.calls == []
        assert [codes(report.needs_attention) for report in reports] == [[], [], []]
        assert [codes(report.active_needs_attention) for report in reports] == [
            ["adapter_asks"]
        ] * 3

    def test_an_approval_that_is_asked_for_is_told_once(self, bench: Recovering) -> None:
        bench.ask_approval("deploy", "d1")
        reports = [bench.watch() for _ in range(3)]

        assert [codes(report.needs_attention) for report in reports] == [
            ["approval:deploy"],
            [],
            [],
        ]
        assert [codes(report.active_needs_attention) for report in reports] == [
            ["approval:deploy"]
        ] * 3

    def test_an_approval_of_something_else_is_told_again(self, bench: Recovering) -> None:
        bench.ask_approval("deploy", "d1")
        bench.watch()
        bench.ask_approval("deploy", "d2")

        assert codes(bench.watch().needs_attention) == ["approval:deploy"]

    def test_what_was_told_is_not_looked_up_again(self, bench: Recovering) -> None:
        bench.ask_approval("deploy", "d1")
        bench.watch()
        before = bench.log.head()
        bench.watch()

        assert bench.log.head() == before

    def test_several_approvals_are_each_told_once(self, bench: Recovering) -> None:
        bench.ask_approval("deploy", "d1")
        bench.ask_approval("publish", "d1")
        reports = [bench.watch() for _ in range(2)]

        assert [codes(report.needs_attention) for report in reports] == [
            ["approval:deploy", "approval:publish"],
            [],
        ]

    def test_a_dry_run_tells_it_without_counting_it_as_told(self, bench: Recovering) -> None:
        bench.ask_approval("deploy", "d1")
        told = [codes(bench.watch(record=False).needs_attention) for _ in range(2)]

        assert told == [["approval:deploy"]] * 2

    def test_when_a_person_took_it_up_its_question_is_settled(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.adapters.says = b'{"needs_attention": "which page?"}', b""
        bench.watch()
        bench.adapters.says = b"{}", b""
        bench.dispatcher.resume("job")

        assert bench.watch(auto_resume=False).active_needs_attention == []

    def test_a_finished_run_needs_nobody(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(safe_to_retry=False))
        bench.watch()
        bench.person().execute(lambda run, why: run.cancel(why, "no longer wanted"))

        assert bench.watch().active_needs_attention == []


class TestOncePerSituation:
    def test_two_watchdogs_tell_it_once(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(auto_resume=False))
        alerts = [ids(bench.watch().alerts) for _ in range(2)]

        assert alerts == [["job"], []]

    def test_the_next_attempt_that_dies_is_a_new_situation(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(auto_resume=False))
        first = bench.watch().alerts
        bench.begin(recovery=None)
        bench.kill()
        second = bench.watch().alerts

        assert (ids(first), ids(second)) == (["job"], ["job"])
        assert first[0]["id"] != second[0]["id"]

    def test_two_at_the_same_instant_tell_and_resume_once(self, tmp_path: Path) -> None:
        """Real threads on a real store: both plan, then both try."""
        store = tmp_path / "store"
        with opened(store) as one, opened(store) as other:
            session = begin(one, "job")
            session.execute(lambda run, why: run.declare_recovery(why, AUTO.changed(adapter="a:b")))
            barrier = threading.Barrier(2, timeout=60)
            adapters = Counting()
            lookouts = [Together(each, barrier, adapters) for each in (one, other)]
            reports = [Report(0), Report(0)]
            orders = Orders(auto_resume=True)
            threads = [
                threading.Thread(target=Watchdog(lookout, orders, run_at_once).tick, args=(report,))
                for lookout, report in zip(lookouts, reports, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            topics = [record.topic for record in one.log.read_stream("job")]

        assert adapters.count == 1
        assert topics.count("run.resume-dispatched") == 1
        assert topics.count("run.stall-detected") == 1
        assert sum(len(report.alerts) for report in reports) == 1
        assert sum(len(report.recoveries) for report in reports) == 1


class TestADryRun:
    @pytest.mark.parametrize("auto_resume", [True, False])
    def test_it_writes_nothing(self, auto_resume: bool, bench: Recovering) -> None:
        """Spec 8.7: not even a retry is counted."""
        bench.cut_off("one")
        bench.cut_off("two", AUTO.changed(safe_to_retry=False))
        bench.cut_off("three", AUTO.changed(resume_window_seconds=1))
        bench.cut_off_alive(STUBBORN, "four")
        bench.passes(700)
        before = bench.log.head()
        leases = dict(bench.lasting.leases)
        unsettled = set(bench.lasting.unsettled)
        for _ in range(2):
            bench.watch(record=False, auto_resume=auto_resume)

        assert bench.log.head() == before
        assert (bench.lasting.leases, bench.lasting.unsettled) == (leases, unsettled)
        assert bench.lasting.noted == []
        assert (bench.stopped, bench.adapters.calls) == ([], [])

    def test_it_says_what_would_be_done(self, bench: Recovering) -> None:
        bench.cut_off("one")
        bench.cut_off("two", AUTO.changed(safe_to_retry=False))
        bench.cut_off("three", AUTO.changed(resume_window_seconds=1))
        bench.passes(700)
        report = bench.watch(record=False)

        assert sorted(ids(report.alerts)) == ["one", "three", "two"]
        assert [(each["task_id"], each["action"]) for each in report.resumed] == [
            ("one", "dry-run")
        ]
        assert report.resumed[0]["argv"] == ["run", "jobs:resume", "one"]
        assert codes(report.needs_attention) == ["unsafe_to_retry"]
        assert ids(report.expired) == ["three"]


class TestClocks:
    @pytest.mark.parametrize("seconds", [7200, -7200, 400 * 86_400, -400 * 86_400])
    def test_a_clock_that_is_set_raises_no_alert(self, seconds: float, bench: Recovering) -> None:
        bench.begin(recovery=SLOW)
        bench.watch()
        bench.sets_clock(seconds)
        reports = [bench.watch() for _ in range(2)]

        assert [report.stale for report in reports] == [[], []]

    def test_a_silent_run_is_found_though_the_clock_was_set_forward(
        self, bench: Recovering
    ) -> None:
        bench.begin(recovery=SLOW)
        bench.watch()
        bench.sets_clock(7200)
        bench.watch()
        bench.passes(601)

        assert ids(bench.watch().alerts) == ["job"]

    def test_a_silent_run_is_found_though_the_clock_was_set_back(self, bench: Recovering) -> None:
        bench.begin(recovery=SLOW)
        bench.watch()
        bench.sets_clock(-86_400)
        bench.watch()
        bench.passes(601)

        assert ids(bench.watch().alerts) == ["job"]

    def test_the_next_try_does_not_wait_for_a_clock_that_was_set_back(
        self, bench: Recovering
    ) -> None:
        bench.cut_off(recovery=PATIENT)
        bench.adapters.work = nothing
        bench.watch()
        bench.sets_clock(-86_400)
        bench.passes(61)

        assert actions(bench.watch()) == ["ineffective"]

    def test_a_night_of_sleep_is_no_silence(self, bench: Recovering) -> None:
        bench.begin(recovery=SLOW)
        bench.passes(60)
        bench.watch()
        bench.sleeps(8 * 3600)
        asleep = bench.watch()
        bench.passes(601)

        assert asleep.stale == []
        assert ids(bench.watch().alerts) == ["job"]

    def test_a_run_that_was_left_too_long_expires(self, bench: Recovering) -> None:
        """Report 32."""
        bench.cut_off(recovery=AUTO.changed(resume_window_seconds=86_400))
        bench.passes(90_000)
        report = bench.watch()

        assert ids(report.expired) == ["job"]
        assert (bench.run().ended, bench.adapters.calls) == ("expired", [])

    def test_it_expires_though_its_death_was_noted_before(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(resume_window_seconds=86_400, auto_resume=False))
        bench.watch()
        bench.passes(90_000)

        assert ids(bench.watch().expired) == ["job"]

    def test_no_run_expires_just_after_the_clock_was_set(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(resume_window_seconds=86_400, auto_resume=False))
        bench.watch()
        bench.sets_clock(400 * 86_400)
        for _ in range(3):
            report = bench.watch()
            bench.passes(60)

            assert (report.expired, bench.run().ended) == ([], None)
        bench.passes(90_000)

        assert ids(bench.watch().expired) == ["job"]

    def test_a_run_that_the_clock_made_old_calls_a_person(self, bench: Recovering) -> None:
        """By its times it was left too long, by the time that has passed it was not."""
        bench.cut_off(recovery=AUTO.changed(resume_window_seconds=86_400))
        bench.watch(auto_resume=False)
        bench.sets_clock(400 * 86_400)
        reports = [bench.watch() for _ in range(2)]

        assert [codes(report.needs_attention) for report in reports] == [
            ["resume_window_passed"],
            [],
        ]
        assert bench.adapters.calls == []

    def test_it_expires_after_a_night_of_sleep_too(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(resume_window_seconds=3600, auto_resume=False))
        bench.watch()
        bench.sleeps(8 * 3600)

        assert ids(bench.watch().expired) == ["job"]

    def test_a_living_run_does_not_expire(self, bench: Recovering) -> None:
        bench.begin(recovery=AUTO.changed(resume_window_seconds=60))
        bench.passes(3600)

        assert bench.watch().expired == []


class TestCost:
    def test_of_a_thousand_living_runs_none_is_loaded(self, bench: Recovering) -> None:
        """Spec 8.11: a tick costs what is stale."""
        bench.processes[2000] = 2000
        for number in range(1000):
            want = Start("work", run_id=f"job-{number}", recovery=SLOW)
            bench.starter.start(want, process(2000))
        bench.watch()
        bench.loads.clear()
        report = bench.watch()

        assert bench.loads == []
        assert report.running_count == 1000
        assert len(report.running) == 100

    def test_of_many_finished_runs_none_is_loaded(self, bench: Recovering) -> None:
        for number in range(100):
            bench.begin(f"job-{number}", SLOW).finish("success")
        bench.passes(100_000)
        bench.watch()
        bench.loads.clear()
        bench.watch()

        assert bench.loads == []

    def test_only_the_stale_one_is_loaded(self, bench: Recovering) -> None:
        for number in range(50):
            bench.begin(f"job-{number}")
        bench.kill("job-17")
        bench.watch(auto_resume=False)

        assert set(bench.loads) == {"job-17"}


class TestTheReport:
    def test_it_has_the_fields_of_both_published_shapes(self, bench: Recovering) -> None:
        bench.cut_off("one")
        bench.cut_off("two", AUTO.changed(safe_to_retry=False))
        fields = bench.watch().to_fields()

        assert set(fields) >= {
            *("checked_at", "running_count", "stale_count", "running", "stale", "alerts"),
            *("recoveries", "resumed", "skipped", "needs_attention", "active_needs_attention"),
        }
        everywhere = {"task_id", "task_type", "summary", "message"}
        assert set(fields["alerts"][0]) >= everywhere | {
            *("kind", "phase", "stale_for_minutes", "last_checkpoint"),
        }
        assert set(fields["recoveries"][0]) >= everywhere | {
            *("retry_count", "from_phase", "to_phase", "recovered_at"),
        }
        assert set(fields["needs_attention"][0]) >= everywhere | {
            *("reason", "detail", "blocked_since"),
        }
        assert set(fields["stale"][0]) >= {"task_id", "retry_count", "max_retries"}

    def test_resumes_in_the_background_tell_in_the_next_report(self, bench: Recovering) -> None:
        bench.cut_off()
        later = Later()
        dog = Watchdog(bench.around, Orders(auto_resume=True), later.spawn)
        report = Report(bench.now)
        first = dog.tick(report).take()
        later.go_on()
        second = dog.tick(report).take()

        assert (len(first.alerts), first.recoveries) == (1, [])
        assert (second.alerts, len(second.recoveries)) == ([], 1)

    def test_nothing_that_is_told_while_a_report_is_taken_is_lost(self) -> None:
        """A resume in the background may hold a list at that very moment."""
        report = Report(0)
        held = report.recoveries
        held.append({"task_id": "one"})
        taken = report.take()
        held.append({"task_id": "two"})

        assert (ids(taken.recoveries), ids(report.recoveries)) == (["one"], ["two"])


class Counting:
    """How often an adapter was run."""

    def __init__(self) -> None:
        self.count = 0


class Together(Lookout):
    """A watchdog's surroundings that let both begin a resume at the same instant."""

    def __init__(self, services: Services, barrier: threading.Barrier, counting: Counting) -> None:
        super().__init__(services)
        self._store = services
        self._barrier = barrier
        self._counting = counting

    def planner(self) -> Any:
        from tachograph.planning import Planner

        def locate(run_id: str, declared: Recovery) -> dict[str, Any]:
            unset = dict.fromkeys(("folder", "code_path", "timeout_seconds"))
            return {**unset, "kind": "function", "name": "a:b", "argv": ["a"]}

        services = self._store
        return Planner(
            services.repository,
            services.liveness,
            services.actor.now_us,
            locate,
            lambda command, path, folder: None,
        )

    def dispatcher(self) -> Dispatcher:
        self._barrier.wait()
        services = self._store
        return Dispatcher(
            services.repository,
            services.payloads,
            self.planner(),
            services.beat,
            services.actor,
            Finishing(services, self._counting),
        )


class Finishing:
    """Runs no program: finishes the attempt that it was started for."""

    def __init__(self, services: Services, counting: Counting) -> None:
        self._services = services
        self._counting = counting

    def outputs(self, run_id: str, epoch: int) -> Any:
        from recovering import FakeOutputs

        return FakeOutputs()

    def run(self, execute: Any, variables: Any, outputs: Any, on_started: Any) -> FakeEnd:
        self._counting.count += 1
        session = self._services.session(variables["TACHO_RUN_ID"], int(variables["TACHO_EPOCH"]))
        session.finish("success")
        return FakeEnd()

    def owner(self, pid: int | None = None) -> Owner:
        return self._services.owner(pid)

    def heartbeat(self, beat: Any) -> Any:
        import contextlib

        return contextlib.nullcontext()
