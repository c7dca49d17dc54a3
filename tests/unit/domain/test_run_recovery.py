"""Watching, resuming, approving and calling a person: what each command records, and when not."""

from __future__ import annotations

from typing import Any

import pytest
from given_when_then import (
    CREATED,
    NOW_US,
    OWNER,
    PERSON,
    Do,
    Fact,
    attempt,
    do,
    fact,
    given,
    running,
    started,
)

from tachograph.domain import attention, errors
from tachograph.domain.event import Cause
from tachograph.domain.events import (
    ApprovalGranted,
    ApprovalRejected,
    ApprovalRequested,
    AttemptStarted,
    AttentionCleared,
    AttentionRaised,
    BatchCompleted,
    CardEdited,
    CheckpointSaved,
    DependenciesDeclared,
    EffectDone,
    EffectIntended,
    EffectRetryAllowed,
    PhaseEnded,
    ProgressReported,
    RecoveryDeclared,
    ResumeDispatched,
    ResumeReturned,
    RunBlocked,
    RunCancelled,
    RunExpired,
    RunFinished,
    StallDetected,
    StepCompleted,
    WorkerStarted,
)
from tachograph.domain.recovery import Recovery
from tachograph.domain.recovery_state import MOST_HISTORY, MOST_PROCESSES, ending_key
from tachograph.domain.run import Run

ME = attempt(1)
TWO = attempt(2)
WORKER = {**OWNER, "pid": 18, "started": 100}
PHASE = do(Run.start_phase, ME, "parse")
SAVED = do(Run.save_checkpoint, ME, state=1)
UNATTENDED = do(Run.dispatch_resume, ME, "jobs:resume", {"unattended": True})
ATTENDED = do(Run.dispatch_resume, ME, "jobs:resume", {"unattended": False})
RETURNED = do(Run.return_resume, ME, {"exit_code": 0})
LEFT_RUNNING = do(Run.return_resume, ME, {"exit_code": 0, "left_running": [4711]})
GONE = do(Run.detect_stall, PERSON, "gone", {"reason": "process 17 has ended"})
INTENDED = do(Run.intend_effect, ME, "mail")


def raised(reason: str, detail: str | None = None) -> Do:
    return do(Run.raise_attention, PERSON, reason, detail)


def cleared(reason: str) -> Fact:
    return fact(AttentionCleared, reason=reason)


def asked(name: str = "deploy", digest: str = "d1") -> Do:
    return do(Run.request_approval, ME, name, subject={"v": digest}, subject_digest=digest)


class TestDeclareRecovery:
    def test_what_a_job_declares_is_recorded(self) -> None:
        given(CREATED).when(Run.declare_recovery, PERSON, Recovery(adapter="jobs:resume")).then(
            fact(RecoveryDeclared, recovery={"adapter": "jobs:resume"})
        )

    def test_the_last_declaration_counts(self) -> None:
        run = given(
            CREATED,
            do(Run.declare_recovery, PERSON, Recovery(adapter="jobs:resume")),
            do(Run.declare_recovery, PERSON, Recovery(max_retries=5)),
        ).run

        assert run.recovery == {"max_retries": 5}

    def test_the_same_again_records_nothing(self) -> None:
        declare = do(Run.declare_recovery, PERSON, Recovery(adapter="a"), reason="once more")
        given(CREATED, declare).when_asked(declare).then()

    def test_a_job_that_declares_nothing_special_has_declared_it(self) -> None:
        given(CREATED).when(Run.declare_recovery, PERSON, Recovery()).then(
            fact(RecoveryDeclared, recovery={})
        )

    def test_what_makes_no_sense_is_refused(self) -> None:
        given(CREATED).when(Run.declare_recovery, PERSON, Recovery(max_retries=-1)).then(
            errors.InvalidValueError, saying="max retries is -1"
        )

    def test_an_empty_reason_is_refused(self) -> None:
        given(CREATED).when(Run.declare_recovery, PERSON, Recovery(), reason=" ").then(
            errors.InvalidValueError, saying="reason is ' '"
        )

    def test_a_finished_run_declares_nothing(self) -> None:
        running(do(Run.finish, ME, "success")).when(Run.declare_recovery, PERSON, Recovery()).then(
            errors.RunFinishedError
        )

    def test_a_person_who_changes_it_lets_the_watchdog_try_again(self) -> None:
        """Resumes are counted anew, and what stood in the way is looked at again."""
        case = running(UNATTENDED, RETURNED, raised("max_retries_reached"))
        case.when(Run.declare_recovery, PERSON, Recovery(max_retries=9), reason="more").then(
            fact(RecoveryDeclared, recovery={"max_retries": 9}, reason="more"),
            cleared("max_retries_reached"),
        )

        assert (case.run.futile, case.run.resumes) == (0, 1)

    def test_a_job_that_declares_itself_anew_forgets_no_futile_resume(self) -> None:
        case = running(UNATTENDED, RETURNED)
        case.when(Run.declare_recovery, PERSON, Recovery(max_retries=9)).then(
            fact(RecoveryDeclared, recovery={"max_retries": 9})
        )

        assert case.run.futile == 1

    @pytest.mark.parametrize("reason", sorted(attention.RETRIED))
    def test_what_stood_in_the_way_is_looked_at_anew(self, reason: str) -> None:
        running(raised(reason)).when(Run.declare_recovery, PERSON, Recovery(adapter="a")).then(
            fact(RecoveryDeclared, recovery={"adapter": "a"}), cleared(reason)
        )

    def test_what_a_declaration_does_not_settle_stays_open(self) -> None:
        running(
            raised("card_edited"), raised("adapter_asks"), INTENDED, raised("effects_in_doubt")
        ).when(Run.declare_recovery, PERSON, Recovery(adapter="a"), reason="found it").then(
            fact(RecoveryDeclared, recovery={"adapter": "a"}, reason="found it")
        )

    def test_who_says_what_to_do_about_doubt_is_asked_no_more(self) -> None:
        running(INTENDED, raised("effects_in_doubt")).when(
            Run.declare_recovery, PERSON, Recovery(in_doubt="skip"), reason="look in the outbox"
        ).then(
            fact(RecoveryDeclared, recovery={"in_doubt": "skip"}, reason="look in the outbox"),
            cleared("effects_in_doubt"),
        )


class TestWorkers:
    def test_the_process_that_does_the_work_is_recorded(self) -> None:
        running().when(Run.start_worker, ME, WORKER).then(
            fact(WorkerStarted, worker=WORKER, joined=False)
        )

    def test_the_same_worker_again_records_nothing(self) -> None:
        running(do(Run.start_worker, ME, WORKER)).when(Run.start_worker, ME, WORKER).then()

    def test_another_worker_takes_its_place(self) -> None:
        other = {**WORKER, "pid": 19}
        case = running(do(Run.start_worker, ME, WORKER))
        case.when(Run.start_worker, ME, other).then(fact(WorkerStarted, worker=other, joined=False))

        assert case.run.worker == other

    def test_a_new_attempt_has_no_worker_yet(self) -> None:
        assert running(do(Run.start_worker, ME, WORKER), started(2)).run.worker is None

    def test_every_owner_and_worker_is_remembered_to_be_fenced(self) -> None:
        """G5."""
        run = running(do(Run.start_worker, ME, WORKER), started(2)).run

        assert run.processes == [[1, "b", 17, 99], [1, "b", 18, 100], [2, "b", 17, 99]]

    def test_nobody_in_particular_is_no_process_to_remember(self) -> None:
        unowned = fact(AttemptStarted, epoch=1, owner={"kind": "unowned", "host": "ada"})
        run = given(CREATED, unowned, fact(WorkerStarted), fact(AttemptStarted, epoch=2)).run

        assert run.processes == []

    def test_only_the_newest_processes_are_remembered(self) -> None:
        workers = [
            do(Run.start_worker, ME, {**WORKER, "pid": pid}) for pid in range(MOST_PROCESSES + 1)
        ]
        run = running(*workers).run

        assert [pid for _, _, pid, _ in run.processes] == list(range(1, MOST_PROCESSES + 1))


class TestDependencies:
    def test_the_runs_it_waits_for_are_recorded(self) -> None:
        given(CREATED).when(Run.depend_on, PERSON, ["job-a", "job-b"]).then(
            fact(DependenciesDeclared, runs=["job-a", "job-b"])
        )

    def test_a_run_named_twice_is_waited_for_once(self) -> None:
        given(CREATED).when(Run.depend_on, PERSON, ["job-a", "job-b", "job-a"]).then(
            fact(DependenciesDeclared, runs=["job-a", "job-b"])
        )

    def test_the_same_again_records_nothing(self) -> None:
        given(CREATED, do(Run.depend_on, PERSON, ["job-a"])).when(
            Run.depend_on, PERSON, ["job-a", "job-a"]
        ).then()

    def test_the_last_declaration_counts(self) -> None:
        case = given(CREATED, do(Run.depend_on, PERSON, ["job-a"]))
        case.when(Run.depend_on, PERSON, []).then(fact(DependenciesDeclared, runs=[]))

        assert case.run.depends_on == []

    def test_a_run_without_a_name_is_refused(self) -> None:
        given(CREATED).when(Run.depend_on, PERSON, ["job-a", ""]).then(
            errors.InvalidValueError, saying="run to wait for is ''"
        )

    @pytest.mark.parametrize("reason", ["dependency_ended", "dependency_cycle"])
    def test_who_waits_for_others_now_needs_nobody_for_the_former(self, reason: str) -> None:
        given(CREATED, raised(reason)).when(Run.depend_on, PERSON, ["job-c"]).then(
            fact(DependenciesDeclared, runs=["job-c"]), cleared(reason)
        )

    def test_a_run_does_not_start_while_it_waits(self) -> None:
        given(CREATED).when(
            Run.start_attempt, PERSON, OWNER, live_owner=None, waiting_for=["job-a", "job-b"]
        ).then(errors.DependenciesWaitingError, saying="job-a, job-b")

    def test_a_person_starts_it_all_the_same_for_a_reason(self) -> None:
        given(CREATED).when(
            Run.start_attempt,
            PERSON,
            OWNER,
            live_owner=None,
            waiting_for=["job-a"],
            reason="its output is here",
        ).then(fact(AttemptStarted, epoch=1, owner=OWNER, reason="its output is here"))


class TestCard:
    def test_changes_and_history_are_recorded(self) -> None:
        running().when(Run.change_card, PERSON, {"goal": "report"}, [{"event": "created"}]).then(
            fact(CardEdited, changes={"goal": "report"}, entries=[{"event": "created"}])
        )

    def test_only_what_differs_is_recorded(self) -> None:
        case = running(do(Run.change_card, PERSON, {"goal": "report", "notes": "n"}))
        case.when(Run.change_card, PERSON, {"goal": "report", "notes": "m"}).then(
            fact(CardEdited, changes={"notes": "m"}, entries=[])
        )

        assert case.run.card == {"goal": "report", "notes": "m"}

    def test_no_change_records_nothing(self) -> None:
        running(do(Run.change_card, PERSON, {"goal": "report"})).when(
            Run.change_card, PERSON, {"goal": "report", "notes": None}
        ).then()

    def test_an_entry_alone_is_recorded(self) -> None:
        running().when(Run.change_card, PERSON, {}, [{"event": "looked"}]).then(
            fact(CardEdited, changes={}, entries=[{"event": "looked"}])
        )

    def test_a_field_is_removed(self) -> None:
        case = running(do(Run.change_card, PERSON, {"goal": "report"}))
        case.when(Run.change_card, PERSON, {"goal": None}).then(
            fact(CardEdited, changes={"goal": None}, entries=[])
        )

        assert case.run.card == {}

    def test_removing_what_is_not_there_changes_nothing(self) -> None:
        run = running(fact(CardEdited, changes={"goal": None}, entries=[])).run

        assert run.card == {}

    def test_the_newest_history_is_at_hand_and_the_log_keeps_all(self) -> None:
        entries = [{"number": number} for number in range(MOST_HISTORY)]
        case = running(
            do(Run.change_card, PERSON, {}, entries),
            do(Run.change_card, PERSON, {}, [{"number": MOST_HISTORY}]),
        )

        assert case.run.history == [*entries[1:], {"number": MOST_HISTORY}]
        assert [len(vars(event)["entries"]) for event in case.events[2:]] == [MOST_HISTORY, 1]

    def test_a_value_of_another_kind_is_a_change_though_it_is_equal(self) -> None:
        case = running(do(Run.change_card, ME, {"priority": 1}))
        case.when(Run.change_card, ME, {"priority": True}).then(
            fact(CardEdited, changes={"priority": True}, entries=[])
        )

    def test_the_card_of_a_finished_run_is_edited_too(self) -> None:
        running(do(Run.finish, ME, "success")).when(
            Run.change_card, PERSON, {"notes": "well done"}
        ).then(fact(CardEdited, changes={"notes": "well done"}, entries=[]))

    def test_a_superseded_attempt_edits_no_card_of_a_finished_run(self) -> None:
        """G5."""
        given(CREATED, started(1), started(2), do(Run.finish, TWO, "success")).when(
            Run.change_card, ME, {"notes": "late"}
        ).then(errors.FencedError)


class TestBlock:
    def test_a_run_says_what_it_waits_for(self) -> None:
        running().when(Run.block, PERSON, "the disk is full").then(
            fact(RunBlocked, reason="the disk is full")
        )

    def test_it_needs_a_reason(self) -> None:
        running().when(Run.block, PERSON, "").then(errors.InvalidValueError)

    @pytest.mark.parametrize("work", [PHASE, SAVED, do(Run.report_progress, ME, 1), started(2)])
    def test_work_shows_that_it_waits_no_more(self, work: Do | Fact) -> None:
        assert running(do(Run.block, ME, "waits"), work).run.blocked is None

    @pytest.mark.parametrize(
        "no_work", [do(Run.add_note, ME, "hm"), do(Run.schedule_retry, ME, "parse", 1)]
    )
    def test_what_is_no_work_does_not(self, no_work: Do) -> None:
        assert running(do(Run.block, ME, "waits"), no_work).run.blocked == "waits"


class TestApprovals:
    def test_a_person_is_asked_about_exactly_this_subject(self) -> None:
        running().when_asked(asked()).then(
            fact(ApprovalRequested, approval="deploy", subject={"v": "d1"}, subject_digest="d1"),
            fact(AttentionRaised, reason="approval:deploy"),
        )

    def test_asking_the_same_again_records_nothing(self) -> None:
        """It survives a restart: the next attempt asks again, and waits as before."""
        case = running(asked(), started(2))
        case.when(
            Run.request_approval, TWO, "deploy", subject={"v": "d1"}, subject_digest="d1"
        ).then()

        assert case.run.approvals_pending == ["deploy"]

    def test_who_asks_is_told_whether_a_person_agreed(self) -> None:
        run = running(asked()).run
        ask: dict[str, Any] = {"subject": {"v": "d1"}, "subject_digest": "d1"}
        before = run.request_approval(ME, "deploy", **ask)
        run.approve(PERSON, "deploy", "looks right")

        assert (before, run.request_approval(ME, "deploy", **ask)) == (False, True)

    def test_a_person_agrees_and_is_needed_no_more(self) -> None:
        running(asked()).when(Run.approve, PERSON, "deploy", "looks right").then(
            fact(ApprovalGranted, approval="deploy", subject_digest="d1", reason="looks right"),
            cleared("approval:deploy"),
        )

    def test_a_person_refuses_and_is_needed_no_more(self) -> None:
        case = running(asked())
        case.when(Run.reject, PERSON, "deploy", "not on Fridays").then(
            fact(ApprovalRejected, approval="deploy", subject_digest="d1", reason="not on Fridays"),
            cleared("approval:deploy"),
        )

        assert (case.run.approvals_pending, case.run.approvals_rejected) == ([], ["deploy"])

    def test_an_approval_is_void_when_the_subject_changes(self) -> None:
        case = running(asked(), do(Run.approve, PERSON, "deploy", "looks right"))
        case.when_asked(asked(digest="d2")).then(
            fact(ApprovalRequested, approval="deploy", subject={"v": "d2"}, subject_digest="d2"),
            fact(AttentionRaised, reason="approval:deploy"),
        )

        assert case.run.approvals == {"deploy": {"status": "requested", "subject_digest": "d2"}}

    def test_a_subject_that_changes_back_is_asked_about_again(self) -> None:
        approve = do(Run.approve, PERSON, "deploy", "looks right")
        case = running(asked(), approve, asked(digest="d2"), asked())

        assert case.run.approvals_pending == ["deploy"]

    def test_a_subject_that_changes_before_the_decision_calls_a_person_once(self) -> None:
        running(asked()).when_asked(asked(digest="d2")).then(
            fact(ApprovalRequested, approval="deploy", subject={"v": "d2"}, subject_digest="d2")
        )

    def test_what_was_refused_is_not_asked_again(self) -> None:
        running(asked(), do(Run.reject, PERSON, "deploy", "no")).when_asked(asked()).then(
            errors.ApprovalError, saying="was rejected: ask for something else"
        )

    def test_something_else_may_be_asked_after_a_refusal(self) -> None:
        running(
            asked(), do(Run.reject, PERSON, "deploy", "no"), raised("approval_rejected")
        ).when_asked(asked(digest="d2")).then(
            fact(ApprovalRequested, approval="deploy", subject={"v": "d2"}, subject_digest="d2"),
            cleared("approval_rejected"),
            fact(AttentionRaised, reason="approval:deploy"),
        )

    def test_a_refusal_of_something_else_stays(self) -> None:
        case = running(
            asked("deploy"),
            asked("publish"),
            do(Run.reject, PERSON, "deploy", "no"),
            do(Run.reject, PERSON, "publish", "no"),
            raised("approval_rejected"),
            asked("deploy", "d2"),
        )

        assert case.run.approvals_rejected == ["publish"]
        assert set(case.run.attention) == {"approval_rejected", "approval:deploy"}

    def test_several_approvals_in_one_run_are_decided_one_by_one(self) -> None:
        case = running(asked("deploy"), asked("publish"))
        case.when(Run.approve, PERSON, "publish", "fine").then(
            fact(ApprovalGranted, approval="publish", subject_digest="d1", reason="fine"),
            cleared("approval:publish"),
        )

        assert case.run.approvals_pending == ["deploy"]
        assert list(case.run.attention) == ["approval:deploy"]

    @pytest.mark.parametrize("decide", [Run.approve, Run.reject])
    def test_who_decides_may_say_about_what(self, decide: Any) -> None:
        case = running(asked(), do(decide, PERSON, "deploy", "seen", subject_digest="d1"))

        assert case.run.approvals_pending == []

    @pytest.mark.parametrize("decide", [Run.approve, Run.reject])
    def test_a_decision_about_another_subject_is_refused(self, decide: Any) -> None:
        running(asked(), asked(digest="d2")).when(
            decide, PERSON, "deploy", "seen", subject_digest="d1"
        ).then(errors.ApprovalError, saying="is asked for another subject now (d2)")

    @pytest.mark.parametrize("decide", [Run.approve, Run.reject])
    def test_what_is_decided_is_not_decided_again(self, decide: Any) -> None:
        running(asked(), do(Run.approve, PERSON, "deploy", "seen")).when(
            decide, PERSON, "deploy", "again"
        ).then(errors.ApprovalError, saying="was granted already")

    def test_what_nobody_asked_for_is_not_approved(self) -> None:
        running().when(Run.approve, PERSON, "deploy", "fine").then(
            errors.ApprovalError, saying="was never asked for (asked for: none)"
        )
        running(asked("publish"), asked("mail")).when(Run.approve, PERSON, "deploy", "fine").then(
            errors.ApprovalError, saying="(asked for: 'publish', 'mail')"
        )

    @pytest.mark.parametrize("decide", [Run.approve, Run.reject])
    def test_a_decision_needs_a_reason(self, decide: Any) -> None:
        running(asked()).when(decide, PERSON, "deploy", " ").then(errors.InvalidValueError)

    def test_an_approval_needs_a_name(self) -> None:
        running().when(Run.request_approval, ME, "", subject=1, subject_digest="d").then(
            errors.InvalidValueError
        )


class TestStalls:
    def test_an_attempt_that_is_gone_is_noted(self) -> None:
        running().when_asked(GONE).then(
            fact(StallDetected, evidence={"kind": "gone", "reason": "process 17 has ended"})
        )

    def test_a_situation_is_noted_once(self) -> None:
        case = running(GONE)
        case.when_asked(GONE).then()

        assert case.run.detect_stall(PERSON, "gone", {}) is False

    def test_another_watchdog_finds_it_noted(self) -> None:
        assert given(CREATED, started(1)).run.detect_stall(PERSON, "gone", {}) is True

    @pytest.mark.parametrize(
        "news",
        [SAVED, started(2), do(Run.detect_stall, PERSON, "silent", {})],
        ids=["progress", "attempt", "kind"],
    )
    def test_another_situation_is_noted_again(self, news: Do | Fact) -> None:
        case = running(GONE, news)

        assert case.run.detect_stall(PERSON, "gone", {}) is True

    def test_a_silent_run_that_gets_no_further_is_noted_once(self) -> None:
        silent = do(Run.detect_stall, PERSON, "silent", {})
        case = running(silent, do(Run.report_progress, ME, 1))
        case.when_asked(silent).then()

        assert case.run.noted is None

    def test_an_attempt_taken_for_gone_that_went_on_can_be_gone_once_more(self) -> None:
        running(GONE, do(Run.report_progress, ME, 1)).when_asked(GONE).then(
            fact(StallDetected, evidence={"kind": "gone", "reason": "process 17 has ended"})
        )

    @pytest.mark.parametrize("evidence", [None, {"minutes": 30}, "long"])
    def test_evidence_of_another_form_is_read(self, evidence: Any) -> None:
        """G9: older versions wrote what they liked."""
        run = running(fact(StallDetected, evidence=evidence)).run

        assert run.stall == {"epoch": 1, "progress_version": 0, "kind": None, "version": 3}


class TestDispatchAndReturn:
    def test_what_a_worker_starts_records_for_it_and_is_no_worker(self) -> None:
        helper = {**WORKER, "pid": 19}
        case = running(do(Run.start_worker, ME, WORKER))
        case.when(Run.start_worker, ME, helper, joined=True).then(
            fact(WorkerStarted, worker=helper, joined=True)
        )

        assert (case.run.worker, case.run.joiner) == (WORKER, helper)
        assert started(2) and case.run.own_processes == [WORKER, OWNER]

    def test_a_dispatcher_is_no_process_of_the_run_it_resumes(self) -> None:
        """It may be a watchdog that serves other runs too: who ends this run does not end it."""
        case = running(do(Run.dispatch_resume, ME, "make", {}))

        assert case.run.own_processes == []
        assert running(
            do(Run.dispatch_resume, ME, "make", {}), do(Run.start_worker, ME, WORKER)
        ).run.own_processes == [WORKER]

    @pytest.mark.parametrize("decide", [None, Run.approve])
    def test_an_approval_that_is_asked_for_or_given_is_progress(self, decide: Any) -> None:
        """So that a run with several approvals does not use up its retries."""
        asked = do(Run.request_approval, ME, "deploy", subject="v1", subject_digest="d1")
        decided = [] if decide is None else [do(decide, PERSON, "deploy", "looks right")]
        resume = do(Run.dispatch_resume, ME, "make", {"unattended": True})
        before = [asked, resume] if decided else [resume, asked]
        run = running(*before, *decided).run

        assert run.futile == 0

    def test_a_resume_goes_on_from_the_last_progress(self) -> None:
        running(SAVED, do(Run.add_note, ME, "hm")).when(
            Run.dispatch_resume, ME, "jobs:resume", {"unattended": True}
        ).then(
            fact(ResumeDispatched, adapter="jobs:resume", from_version=3, plan={"unattended": True})
        )

    def test_a_resume_under_way_is_known(self) -> None:
        plan = {"unattended": True, "execute": {"kind": "command", "argv": ["make"]}}
        run = running(SAVED, do(Run.dispatch_resume, ME, "make", plan)).run

        assert run.dispatch == {
            "version": 4,
            "epoch": 1,
            "adapter": "make",
            "progress_version": 3,
            "unattended": True,
            "kind": "command",
            "timeout_seconds": None,
        }
        assert (run.resumes, run.futile, run.dispatched_us) == (1, 1, NOW_US)

    @pytest.mark.parametrize("plan", [None, "a plan", {"execute": "make"}])
    def test_a_plan_of_another_form_is_read(self, plan: Any) -> None:
        """G9."""
        run = running(fact(ResumeDispatched, adapter="a", from_version=1, plan=plan)).run

        assert run.dispatch is not None
        assert (run.dispatch["unattended"], run.dispatch["kind"]) == (False, None)

    def test_an_adapter_has_a_name(self) -> None:
        running().when(Run.dispatch_resume, ME, "", {}).then(errors.InvalidValueError)

    @pytest.mark.parametrize(
        "progress",
        [
            SAVED,
            do(Run.complete_step, ME, "load", 1),
            do(Run.complete_batch, ME, "parse", 0),
            do(Run.end_phase, ME, "parse"),
            do(Run.end_phase, ME, "parse", status="skipped"),
            do(Run.complete_effect, ME, "mail"),
        ],
        ids=["checkpoint", "step", "batch", "phase", "skipped", "effect"],
    )
    def test_progress_counts_and_not_the_exit_code(self, progress: Do) -> None:
        """Spec §8.4."""
        case = running(PHASE, INTENDED, UNATTENDED, progress)
        case.when(Run.return_resume, ME, {"exit_code": 3, "error": "boom"}).then(
            fact(ResumeReturned, result={"exit_code": 3, "error": "boom"}, progressed=True)
        )

        assert (case.run.futile, case.run.resume_error) == (0, None)

    @pytest.mark.parametrize(
        "idle",
        [
            do(Run.add_note, ME, "all well"),
            do(Run.report_progress, ME, 5),
            do(Run.save_checkpoint, ME, state=1),
            do(Run.end_phase, ME, "parse", status="failed"),
            do(Run.intend_effect, ME, "post"),
            do(Run.complete_effect, PERSON, "mail", reason="it is in the outbox"),
            do(Run.record_artifact, ME, "r", path="r", size=1, sha256="a"),
            do(Run.complete_step, ME, ending_key(1), {"exit_code": 3}),
            do(Run.finish, ME, "failed"),
        ],
        ids=[
            "note",
            "report",
            "same",
            "failed phase",
            "intent",
            "settled",
            "artifact",
            "wrapped",
            "failed",
        ],
    )
    def test_an_adapter_that_brings_nothing_is_no_recovery(self, idle: Do) -> None:
        """Spec §8.4: exit code 0 alone says nothing; saving the same once more is no progress."""
        case = running(PHASE, INTENDED, SAVED, UNATTENDED, idle)
        case.when(Run.return_resume, ME, {"exit_code": 0}).then(
            fact(ResumeReturned, result={"exit_code": 0}, progressed=False)
        )

        assert (case.run.futile, case.run.resume_error) == (1, "the run got no further")

    @pytest.mark.parametrize(
        ("phase", "kind", "state"),
        [(None, "state", 2), ("parse", "state", 1), (None, "offset", {"offset": 1, "total": 2})],
    )
    def test_another_checkpoint_is_progress(self, phase: str | None, kind: str, state: Any) -> None:
        run = running(
            PHASE,
            SAVED,
            UNATTENDED,
            do(Run.save_checkpoint, ME, phase=phase, kind=kind, state=state),
        ).run

        assert (run.progress_version, run.futile) == (6, 0)

    def test_a_run_that_ends_well_got_further(self) -> None:
        """The resume may be returned after the run has ended."""
        running(UNATTENDED, do(Run.finish, ME, "empty")).when(Run.return_resume, ME, {}).then(
            fact(ResumeReturned, result={}, progressed=True)
        )

    def test_what_went_wrong_is_kept_until_the_next_progress(self) -> None:
        failed = running(UNATTENDED, do(Run.return_resume, ME, {"error": "no such file"}))

        assert failed.run.resume_error == "no such file"
        assert running(*failed_history(), started(2), saved_by(TWO)).run.resume_error is None

    def test_only_unattended_resumes_are_counted_as_futile(self) -> None:
        run = running(ATTENDED, RETURNED, started(2), unattended_by(TWO)).run

        assert (run.resumes, run.futile) == (2, 1)

    def test_futile_resumes_add_up_until_progress(self) -> None:
        history = (UNATTENDED, RETURNED, started(2), unattended_by(TWO))

        assert running(*history).run.futile == 2
        assert running(*history, saved_by(TWO)).run.futile == 0

    def test_a_return_closes_the_attempt(self) -> None:
        case = running(UNATTENDED, RETURNED)

        assert (case.run.attempt_open, case.run.dispatch, case.run.returned_us) == (
            False,
            None,
            NOW_US,
        )

    def test_an_attempt_whose_resume_returned_writes_no_more(self) -> None:
        """G5."""
        running(UNATTENDED, RETURNED).when_asked(SAVED).then(
            errors.AttemptEndedError, saying="its resume returned"
        )

    def test_what_an_adapter_left_running_keeps_the_attempt_open(self) -> None:
        case = running(UNATTENDED, LEFT_RUNNING)
        case.when_asked(SAVED).then(fact(CheckpointSaved, kind="state", state=1))

        assert (case.run.attempt_open, case.run.dispatch) == (True, None)

    def test_what_an_adapter_left_running_owns_the_attempt(self) -> None:
        """Its dispatcher has nothing to do with it any more."""
        with_worker = running(do(Run.start_worker, ME, WORKER), UNATTENDED, LEFT_RUNNING).run

        assert with_worker.owner == WORKER
        assert running(UNATTENDED, LEFT_RUNNING).run.owner == OWNER

    def test_without_a_resume_under_way_nothing_returns(self) -> None:
        running(UNATTENDED, RETURNED).when_asked(RETURNED).then()

    def test_a_resume_that_was_superseded_returns_nothing(self) -> None:
        running(UNATTENDED, started(2)).when(Run.return_resume, PERSON, {}).then()

    def test_a_superseded_dispatcher_is_fenced(self) -> None:
        """G5."""
        running(UNATTENDED, started(2)).when_asked(RETURNED).then(errors.FencedError)

    def test_a_killed_dispatcher_is_spoken_for(self) -> None:
        running(UNATTENDED).when(Run.return_resume, PERSON, {"adopted": True}).then(
            fact(ResumeReturned, result={"adopted": True}, progressed=False)
        )

    @pytest.mark.parametrize("result", [None, "ok"])
    def test_a_result_of_another_form_is_read(self, result: Any) -> None:
        """G9."""
        run = running(fact(ResumeReturned, result=result, progressed=False)).run

        assert (run.attempt_open, run.resume_error) == (False, "the run got no further")


def failed_history() -> tuple[Do, ...]:
    return (UNATTENDED, do(Run.return_resume, ME, {"error": "no such file"}))


def unattended_by(cause: Cause) -> Do:
    return do(Run.dispatch_resume, cause, "jobs:resume", {"unattended": True})


def saved_by(cause: Cause) -> Do:
    return do(Run.save_checkpoint, cause, state="further")


class TestAttention:
    def test_a_person_is_called_once(self) -> None:
        case = running(raised("no_adapter", "nothing is named"))
        case.when(Run.raise_attention, PERSON, "no_adapter", "once more").then()

        assert case.run.attention == {"no_adapter": "nothing is named"}

    def test_a_reason_says_something(self) -> None:
        running().when(Run.raise_attention, PERSON, "").then(errors.InvalidValueError)

    def test_what_is_settled_is_cleared_once(self) -> None:
        case = running(raised("card_edited"))
        case.when(Run.clear_attention, PERSON, "card_edited").then(cleared("card_edited"))

        assert case.run.clear_attention(PERSON, "card_edited") is False

    def test_whoever_calls_is_told_whether_it_is_news(self) -> None:
        run = running().run

        assert [run.raise_attention(PERSON, "card_edited") for _ in range(2)] == [True, False]
        assert [run.clear_attention(PERSON, "card_edited") for _ in range(2)] == [True, False]

    @pytest.mark.parametrize(
        ("end", "ended"),
        [
            (do(Run.cancel, PERSON, "enough"), fact(RunCancelled, reason="enough")),
            (do(Run.expire, PERSON, "old"), fact(RunExpired, reason="old")),
            (
                do(Run.finish, ME, "skipped"),
                fact(RunFinished, outcome="skipped"),
            ),
        ],
        ids=["cancelled", "expired", "finished"],
    )
    def test_a_run_that_ended_needs_nobody(self, end: Do, ended: Fact) -> None:
        case = running(raised("card_edited"), raised("adapter_asks"))
        case.when_asked(end).then(ended, cleared("card_edited"), cleared("adapter_asks"))

        assert case.run.attention == {}

    def test_a_run_that_may_go_on_needs_whom_it_needed(self) -> None:
        running(raised("no_adapter")).when(Run.finish, ME, "failed", reason="boom").then(
            fact(RunFinished, outcome="failed", reason="boom")
        )

    @pytest.mark.parametrize("reason", sorted(attention.RETRIED))
    def test_progress_clears_what_stood_in_the_way(self, reason: str) -> None:
        running(PHASE, raised(reason)).when(Run.complete_batch, ME, "parse", 0).then(
            fact(BatchCompleted, phase="parse", index=0), cleared(reason)
        )

    def test_every_kind_of_progress_does(self) -> None:
        running(PHASE, raised("unsafe_to_retry")).when(Run.end_phase, ME, "parse").then(
            fact(PhaseEnded, phase="parse", status="completed"), cleared("unsafe_to_retry")
        )
        running(raised("no_adapter")).when(Run.complete_step, ME, "load", 1).then(
            fact(StepCompleted, key="load", result=1), cleared("no_adapter")
        )

    def test_progress_leaves_open_what_it_does_not_settle(self) -> None:
        running(raised("card_edited")).when_asked(SAVED).then(
            fact(CheckpointSaved, kind="state", state=1)
        )

    def test_what_is_no_progress_clears_nothing(self) -> None:
        running(SAVED, raised("max_retries_reached")).when_asked(SAVED).then(
            fact(CheckpointSaved, kind="state", state=1)
        )

    @pytest.mark.parametrize(
        ("work", "worked"),
        [
            (do(Run.report_progress, ME, 1), fact(ProgressReported, completed=1, unit="units")),
            (
                do(Run.start_attempt, PERSON, OWNER, live_owner=None),
                fact(AttemptStarted, epoch=2, owner=OWNER),
            ),
        ],
        ids=["report", "attempt"],
    )
    def test_work_shows_that_a_run_was_not_left_too_long(self, work: Do, worked: Fact) -> None:
        running(raised("resume_window_passed")).when_asked(work).then(
            worked, cleared("resume_window_passed")
        )

    def test_a_longer_window_is_looked_at_anew(self) -> None:
        running(raised("resume_window_passed")).when(
            Run.declare_recovery, PERSON, Recovery(resume_window_seconds=9), reason="take time"
        ).then(
            fact(RecoveryDeclared, recovery={"resume_window_seconds": 9}, reason="take time"),
            cleared("resume_window_passed"),
        )

    def test_a_resume_that_progressed_clears_what_was_raised_meanwhile(self) -> None:
        running(UNATTENDED, SAVED, raised("no_adapter")).when_asked(RETURNED).then(
            fact(ResumeReturned, result={"exit_code": 0}, progressed=True), cleared("no_adapter")
        )

    def test_a_resume_without_progress_clears_nothing(self) -> None:
        running(UNATTENDED, raised("no_adapter")).when_asked(RETURNED).then(
            fact(ResumeReturned, result={"exit_code": 0}, progressed=False)
        )

    @pytest.mark.parametrize("reason", sorted(attention.OF_ATTEMPT))
    def test_what_concerns_one_attempt_is_void_when_another_starts(self, reason: str) -> None:
        running(raised(reason), raised("card_edited")).when(
            Run.start_attempt, PERSON, OWNER, live_owner=None
        ).then(fact(AttemptStarted, epoch=2, owner=OWNER), cleared(reason))

    def test_exhausted_retries_stay_visible_over_another_attempt(self) -> None:
        """Spec §8.3."""
        case = running(raised("max_retries_reached"))
        case.when(Run.start_attempt, PERSON, OWNER, live_owner=None).then(
            fact(AttemptStarted, epoch=2, owner=OWNER)
        )

        assert list(case.run.attention) == ["max_retries_reached"]


class TestDoubtIsSettled:
    """What a person decides about effects, that person is asked about no more."""

    ASKED = (INTENDED, raised("effects_in_doubt"))

    def test_by_saying_that_it_happened(self) -> None:
        running(*self.ASKED).when(
            Run.complete_effect, PERSON, "mail", reason="it is in the outbox"
        ).then(
            fact(EffectDone, key="mail", reason="it is in the outbox"),
            cleared("effects_in_doubt"),
        )

    def test_by_allowing_it_again(self) -> None:
        running(*self.ASKED).when(
            Run.allow_effect_retry, PERSON, "mail", "the outbox is empty"
        ).then(
            fact(EffectRetryAllowed, key="mail", reason="the outbox is empty"),
            cleared("effects_in_doubt"),
        )

    def test_by_the_job_that_reports_it(self) -> None:
        running(*self.ASKED).when(Run.complete_effect, ME, "mail").then(
            fact(EffectDone, key="mail"), cleared("effects_in_doubt")
        )

    def test_by_the_job_that_declares_it_idempotent(self) -> None:
        running(*self.ASKED).when(Run.intend_effect, ME, "mail", idempotent=True).then(
            fact(EffectIntended, key="mail", idempotent=True), cleared("effects_in_doubt")
        )

    def test_not_before_the_last_one(self) -> None:
        running(*self.ASKED, do(Run.intend_effect, ME, "post")).when(
            Run.complete_effect, PERSON, "mail", reason="it is in the outbox"
        ).then(fact(EffectDone, key="mail", reason="it is in the outbox"))

    def test_whatever_may_be_done_twice(self) -> None:
        running(*self.ASKED, do(Run.intend_effect, ME, "post", idempotent=True)).when(
            Run.complete_effect, PERSON, "mail", reason="it is in the outbox"
        ).then(
            fact(EffectDone, key="mail", reason="it is in the outbox"),
            cleared("effects_in_doubt"),
        )
