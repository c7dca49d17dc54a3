"""Resuming does what the plan says, once, and judges by what the run recorded."""

from __future__ import annotations

import json
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
from stores import LARGE

from tachograph.domain import errors
from tachograph.domain.blobref import BlobRef
from tachograph.domain.recovery import Recovery

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.session import Session


@pytest.fixture
def bench() -> Recovering:
    return Recovering()


def returned(bench: Recovering) -> dict[str, Any]:
    """Return the fields of the last ResumeReturned."""
    fields: dict[str, Any] = bench.fields("job", "resume-returned")[-1]
    return fields


def dispatched(bench: Recovering) -> dict[str, Any]:
    """Return the fields of the last ResumeDispatched."""
    fields: dict[str, Any] = bench.fields("job", "resume-dispatched")[-1]
    return fields


class TestThePlanIsWhatHappens:
    """G11."""

    def test_what_is_recorded_is_the_plan_that_was_shown(self, bench: Recovering) -> None:
        session = bench.cut_off(recovery=AUTO.changed(in_doubt="retry"))
        bench.attempt("job", session.epoch).intend_effect("mail")
        bench.attempt("job", session.epoch).save_checkpoint({"row": 7})
        shown = bench.planner.plan("job")

        done = bench.dispatcher.resume("job", agreed=bench.dispatcher.digest(shown))
        recorded = dispatched(bench)

        assert recorded["plan"] == {**shown.to_fields(), "digest": bench.dispatcher.digest(shown)}
        assert recorded["from_version"] == shown.from_version
        assert recorded["adapter"] == "jobs:resume"
        assert recorded["by"][-1] == shown.epoch == done.epoch == 2
        assert bench.adapters.calls == [shown.execute]

    def test_it_is_recorded_at_the_version_of_the_plan_in_one_piece(
        self, bench: Recovering
    ) -> None:
        bench.cut_off()
        shown = bench.planner.plan("job")
        bench.dispatcher.resume("job")
        (record,) = bench.log.read_stream("job", after=shown.version, limit=1)

        assert record.topic == "run.attempt-started"
        assert dispatched(bench)["originator_version"] == shown.version + 2

    def test_showing_a_plan_writes_nothing(self, bench: Recovering) -> None:
        bench.cut_off()
        before = bench.log.head()
        bench.planner.plan("job")
        bench.planner.plan("job", unattended=True)

        assert bench.log.head() == before

    def test_the_same_plan_has_the_same_digest_however_late(self, bench: Recovering) -> None:
        bench.cut_off()
        first = bench.dispatcher.digest(bench.planner.plan("job"))
        bench.passes(3600)

        assert bench.dispatcher.digest(bench.planner.plan("job")) == first

    def test_another_plan_than_the_agreed_one_is_not_carried_out(self, bench: Recovering) -> None:
        bench.cut_off()
        agreed = bench.dispatcher.digest(bench.planner.plan("job"))
        bench.person().execute(lambda run, why: run.add_note(why, "look here"))
        before = bench.log.head()

        with pytest.raises(errors.PlanChangedError, match=agreed):
            bench.dispatcher.resume("job", agreed=agreed)

        assert bench.log.head() == before
        assert bench.adapters.calls == []

    def test_a_file_that_changed_since_makes_it_another_plan(
        self, bench: Recovering, tmp_path: Path
    ) -> None:
        from tachograph.declaring import traced

        code = tmp_path / "job.py"
        code.write_text("1")
        bench.cut_off(recovery=traced(AUTO, code=[str(code)]))
        agreed = bench.dispatcher.digest(bench.planner.plan("job"))
        code.write_text("2")

        with pytest.raises(errors.PlanChangedError):
            bench.dispatcher.resume("job", agreed=agreed)

    @pytest.mark.parametrize(
        ("in_doubt", "status", "topic"),
        [("retry", "retry_allowed", "effect-retry-allowed"), ("skip", "done", "effect-done")],
    )
    def test_effects_in_doubt_are_decided_as_the_job_says(
        self, in_doubt: str, status: str, topic: str, bench: Recovering
    ) -> None:
        """G10."""
        bench.cut_off(recovery=AUTO.changed(in_doubt=in_doubt))
        bench.attempt().intend_effect("mail")
        seen: list[str] = []
        bench.adapters.work = lambda session: seen.append(session.run.effects["mail"]["status"])
        bench.dispatcher.resume("job")

        assert seen == [status]
        assert (
            bench.fields("job", topic)[0]["reason"] == f"the job says: {in_doubt} what is in doubt"
        )
        assert bench.topics("job").index(topic) < bench.topics("job").index("resume-dispatched")

    def test_an_effect_that_does_no_harm_twice_stays_the_jobs_own_affair(
        self, bench: Recovering
    ) -> None:
        bench.cut_off()
        bench.attempt().intend_effect("mail", idempotent=True)
        bench.dispatcher.resume("job")

        assert bench.run().effects["mail"]["status"] == "intended"


class TestWhatTheAdapterIsTold:
    def test_run_epoch_and_checkpoint(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.attempt().save_checkpoint({"page": 7, "title": "naïve"})
        bench.dispatcher.resume("job")
        (variables,) = bench.adapters.variables

        assert variables["TACHO_RUN_ID"] == "job"
        assert variables["TACHO_EPOCH"] == "2"
        assert json.loads(variables["TACHO_CHECKPOINT"]) == {"page": 7, "title": "naïve"}

    def test_any_text_in_a_checkpoint_gets_through(self, bench: Recovering) -> None:
        """Names of files that are no UTF-8, and zeros, which no variable can hold."""
        bench.cut_off()
        bench.attempt().save_checkpoint({"name": "\udcff\ud800\0"})
        bench.dispatcher.resume("job")
        text = bench.adapters.variables[0]["TACHO_CHECKPOINT"]

        assert text.isascii()
        assert json.loads(text) == {"name": "\udcff\ud800\0"}

    def test_a_checkpoint_that_was_put_away_is_fetched(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.attempt().save_checkpoint({"text": LARGE})
        bench.dispatcher.resume("job")

        assert json.loads(bench.adapters.variables[0]["TACHO_CHECKPOINT"]) == {"text": LARGE}

    def test_without_a_checkpoint_it_is_null(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.dispatcher.resume("job")

        assert bench.adapters.variables[0]["TACHO_CHECKPOINT"] == "null"

    def test_a_time_limit_on_top_counts_for_this_resume(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(timeout_seconds=900))
        bench.dispatcher.resume("job", timeout_seconds=5)
        bench.dispatcher.resume("job")

        assert [call["timeout_seconds"] for call in bench.adapters.calls] == [5, 900]

    def test_the_adapter_is_the_worker_and_the_lease_is_kept(self, bench: Recovering) -> None:
        bench.cut_off()
        seen: list[Any] = []
        bench.adapters.work = lambda session: seen.append(session.run.worker)
        bench.dispatcher.resume("job")

        assert seen == [process(100).to_fields()]
        assert bench.adapters.beaten == 1
        assert bench.lasting.leases["job"].epoch == 2


class TestRefusals:
    """Each with its class, before anything is changed."""

    def refused(
        self, bench: Recovering, kind: type[errors.TachographError], text: str, **options: Any
    ) -> None:
        before = bench.log.head()
        with pytest.raises(kind, match=text) as raised:
            bench.dispatcher.resume("job", **options)

        assert type(raised.value) is kind
        assert bench.log.head() == before
        assert bench.adapters.calls == []

    def test_a_run_that_is_not_there(self, bench: Recovering) -> None:
        self.refused(bench, errors.RunNotFoundError, "job")

    def test_a_finished_run(self, bench: Recovering) -> None:
        """G6."""
        bench.begin().finish("success")

        self.refused(bench, errors.RunFinishedError, "success", takeover=True, reason="once more")

    def test_a_run_that_ended_for_good(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.person().execute(lambda run, why: run.cancel(why, "no longer wanted"))

        self.refused(bench, errors.RunFinishedError, "cancelled")

    def test_a_living_owner(self, bench: Recovering) -> None:
        """G5."""
        bench.begin()

        self.refused(bench, errors.RunOwnedError, "process 1001 is running")

    def test_an_owner_that_nobody_can_judge(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.here.pid_namespace = "another container"
        bench.lasting.leases.clear()

        self.refused(bench, errors.PersonNeededError, "--despite owner_not_judged")

    @pytest.mark.parametrize("status", ["running", "failed"])
    def test_a_phase_that_is_not_safe_to_repeat(self, status: str, bench: Recovering) -> None:
        session = bench.cut_off()
        session.start_phase("deliver", safe_to_retry=False)
        if status == "failed":
            session.end_phase("deliver", status="failed")

        self.refused(bench, errors.PersonNeededError, "phase 'deliver' was cut off")

    def test_an_unsafe_phase_that_ended_is_no_obstacle(self, bench: Recovering) -> None:
        session = bench.cut_off()
        session.start_phase("deliver", safe_to_retry=False)
        session.end_phase("deliver")

        assert bench.dispatcher.resume("job").progressed

    def test_a_job_that_says_that_it_is_not_safe(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(safe_to_retry=False))

        self.refused(bench, errors.PersonNeededError, "the job says it is not safe to repeat")

    def test_a_run_that_was_left_too_long(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(resume_window_seconds=60))
        bench.passes(61)

        self.refused(bench, errors.PersonNeededError, "longer than its resume window of 60 s")

    def test_an_approval_that_nobody_has_given(self, bench: Recovering) -> None:
        bench.cut_off().execute(
            lambda run, why: run.request_approval(why, "deploy", subject=1, subject_digest="d")
        )

        self.refused(
            bench, errors.ApprovalPendingError, "tacho run approve job deploy", despite=["deploy"]
        )

    def test_an_approval_that_was_refused(self, bench: Recovering) -> None:
        bench.cut_off().execute(
            lambda run, why: run.request_approval(why, "deploy", subject=1, subject_digest="d")
        )
        bench.person().execute(lambda run, why: run.reject(why, "deploy", "not on a Friday"))

        self.refused(bench, errors.PersonNeededError, "approval of 'deploy' was rejected")

    def test_a_run_that_waits_for_others(self, bench: Recovering) -> None:
        bench.begin("first")
        session = bench.cut_off()
        session.execute(lambda run, why: run.depend_on(why, ["first"]))

        self.refused(bench, errors.DependenciesWaitingError, "waits for first")

    def test_a_run_that_waits_for_one_which_can_no_more(self, bench: Recovering) -> None:
        bench.begin("first").execute(lambda run, why: run.cancel(why, "no"))
        session = bench.cut_off()
        session.execute(lambda run, why: run.depend_on(why, ["first"]))

        self.refused(bench, errors.PersonNeededError, "first, which ended without success")

    def test_an_effect_in_doubt_that_a_person_has_to_decide(self, bench: Recovering) -> None:
        """G10."""
        bench.cut_off().intend_effect("mail")

        self.refused(bench, errors.EffectInDoubtError, "mail", despite=["effects_in_doubt"])

    def test_a_damaged_artifact(self, bench: Recovering, tmp_path: Path) -> None:
        path = tmp_path / "report"
        path.write_text("whole")
        record_artifact(bench.cut_off(), path)
        path.write_text("half!")

        self.refused(bench, errors.PersonNeededError, "artifact report has another checksum")

    def test_a_missing_artifact(self, bench: Recovering, tmp_path: Path) -> None:
        path = tmp_path / "report"
        path.write_text("whole")
        record_artifact(bench.cut_off(), path)
        path.unlink()

        self.refused(bench, errors.PersonNeededError, "artifact report is missing")

    def test_nothing_says_what_would_resume_it(self, bench: Recovering) -> None:
        bench.cut_off(recovery=None)

        self.refused(bench, errors.NotResumableError, "nothing says what would resume it")

    def test_an_adapter_that_is_not_there(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.missing = "a module jobs"

        self.refused(bench, errors.NotResumableError, "jobs:resume.*a module jobs")

    def test_a_blocked_run(self, bench: Recovering) -> None:
        bench.cut_off().execute(lambda run, why: run.block(why, "waits for a disk"))

        self.refused(bench, errors.PersonNeededError, "it is blocked: waits for a disk")

    def test_a_watchdog_is_refused_more(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(auto_resume=False))

        self.refused(bench, errors.NotResumableError, "unattended", unattended=True)
        assert bench.dispatcher.resume("job").progressed

    def test_a_watchdog_waits_between_tries(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(backoff_seconds=60))
        bench.adapters.work = nothing
        bench.dispatcher.resume("job", unattended=True)
        bench.adapters.calls.clear()
        bench.passes(20.5)

        self.refused(bench, errors.TryLaterError, "the next try is due in 40 s", unattended=True)

    def test_a_watchdog_does_not_resume_what_a_person_stopped(self, bench: Recovering) -> None:
        bench.cut_off().finish("partial", reason_code="stopped_by_person")

        self.refused(bench, errors.NotResumableError, "ended as partial", unattended=True)


class TestAPersonKnowsBetter:
    def test_despite_goes_on_in_spite_of_what_is_named(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(safe_to_retry=False))
        done = bench.dispatcher.resume("job", despite=["unsafe_to_retry"], reason="I looked")

        assert done.progressed
        assert bench.fields("job", "attempt-started")[1]["reason"] == "I looked"

    def test_despite_leaves_other_obstacles_standing(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(safe_to_retry=False, resume_window_seconds=1))
        bench.passes(2)

        with pytest.raises(errors.PersonNeededError, match="resume window"):
            bench.dispatcher.resume("job", despite=["unsafe_to_retry"], reason="I looked")

    def test_a_takeover_robs_a_living_owner_which_is_fenced(self, bench: Recovering) -> None:
        """G5."""
        first = bench.begin()
        first.start_phase("parse")
        first.plan_batches("parse", 3, 1, None)
        done = bench.dispatcher.resume("job", takeover=True, reason="it hangs")

        assert (done.epoch, done.progressed) == (2, True)
        assert bench.fields("job", "attempt-started")[1]["reason"] == "it hangs"
        with pytest.raises(errors.FencedError):
            first.complete_batch("parse", 2)

    def test_despite_is_recorded_with_the_plan(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(safe_to_retry=False))
        bench.dispatcher.resume("job", despite=["unsafe_to_retry"], reason="I looked")
        (obstacle,) = dispatched(bench)["plan"]["obstacles"]

        assert obstacle["code"] == "unsafe_to_retry"


class TestWhatCameOfIt:
    def test_one_attempt_more(self, bench: Recovering) -> None:
        bench.cut_off()
        epochs = [bench.dispatcher.resume("job").epoch for _ in range(2)]

        assert epochs == [2, 3]
        assert bench.run().resumes == 2

    def test_a_run_that_got_further_has_progressed(self, bench: Recovering) -> None:
        bench.cut_off()
        done = bench.dispatcher.resume("job")

        assert (done.progressed, done.outcome, done.error) == (True, None, None)
        assert returned(bench)["progressed"] is True

    def test_a_run_that_finished_tells_how(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.adapters.work = to_the_end
        done = bench.dispatcher.resume("job")

        assert (done.progressed, done.outcome) == (True, "success")
        assert bench.topics("job")[-2:] == ["finished", "resume-returned"]

    def test_exit_code_0_without_progress_is_no_progress(self, bench: Recovering) -> None:
        """G12."""
        bench.cut_off()
        bench.adapters.work = nothing
        bench.adapters.says = b'{"ok": true}', b""
        done = bench.dispatcher.resume("job")

        assert (done.progressed, done.error) == (False, None)
        assert bench.run().resume_error == "the run got no further"

    def test_the_same_checkpoint_once_more_is_no_progress(self, bench: Recovering) -> None:
        session = bench.cut_off()
        session.save_checkpoint({"row": 7})
        bench.adapters.work = lambda session: session.save_checkpoint({"row": 7})

        assert not bench.dispatcher.resume("job").progressed

    def test_exit_code_1_after_a_batch_is_progress_with_an_error(self, bench: Recovering) -> None:
        bench.cut_off()

        def work(session: Session) -> FakeEnd:
            one_batch(session)
            return FakeEnd(exit_code=1)

        bench.adapters.work = work
        done = bench.dispatcher.resume("job")

        assert (done.progressed, done.error) == (True, "exit code 1")

    @pytest.mark.parametrize(
        ("end", "error"),
        [
            ({"exit_code": 3}, "exit code 3"),
            ({"exit_code": None, "signal": 9}, "it was killed by signal 9"),
            ({"timed_out": True, "seconds": 12.4}, "stopped at its time limit, after 12 s"),
            ({"too_large": "stdout"}, "it was stopped: its stdout grew too large"),
        ],
    )
    def test_how_it_ended_is_told(self, end: dict[str, Any], error: str, bench: Recovering) -> None:
        bench.cut_off()
        bench.adapters.work = lambda session: FakeEnd(**end)
        done = bench.dispatcher.resume("job")

        assert error in str(done.error)
        assert returned(bench)["result"]["error"] == done.error

    @pytest.mark.parametrize(
        ("reply", "error"),
        [
            (b'{"ok": false, "error": "no disk"}', "no disk"),
            (b'{"ok": false, "message": "no net"}', "no net"),
            (b'{"ok": false}', "it says that it failed"),
        ],
    )
    def test_an_adapter_that_says_it_failed_has_failed(
        self, reply: bytes, error: str, bench: Recovering
    ) -> None:
        bench.cut_off()
        bench.adapters.says = reply, b""

        assert bench.dispatcher.resume("job").error == error

    def test_the_reply_is_kept(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.adapters.says = b'{"ok": true, "rows": 3}', b"on the way\n"
        done = bench.dispatcher.resume("job")

        assert done.reply == {"ok": True, "rows": 3}
        assert returned(bench)["result"]["reply"] == {"ok": True, "rows": 3}
        assert returned(bench)["result"]["stderr"] == "on the way\n"
        assert returned(bench)["result"]["seconds"] == 1.25

    def test_what_is_no_json_is_kept_as_it_was_printed(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.adapters.says = b"done!", b""
        done = bench.dispatcher.resume("job")

        assert done.reply["raw_stdout"] == "done!"
        assert "stdout is no JSON" in done.reply["problem"]
        assert done.progressed

    def test_a_command_owes_no_reply(self, bench: Recovering) -> None:
        bench.cut_off(recovery=Recovery(command=["make"], auto_resume=True))
        bench.adapters.says = b"compiling\n", b""

        assert bench.dispatcher.resume("job").reply == {"raw_stdout": "compiling\n"}

    def test_a_long_reply_and_a_long_stderr_are_put_away(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.adapters.says = json.dumps({"text": LARGE}).encode(), LARGE.encode()
        done = bench.dispatcher.resume("job")
        result = returned(bench)["result"]

        assert done.reply == {"text": LARGE}
        assert isinstance(result["stderr"], BlobRef)
        assert bench.payloads.load(result["stderr"]) == LARGE
        assert bench.payloads.load(result["reply"]) == {"text": LARGE}

    @pytest.mark.parametrize(
        ("reply", "detail"),
        [
            ({"needs_attention": "which page?"}, "which page?"),
            ({"status": "needs_attention", "message": "no key"}, "no key"),
            ({"status": "needs_attention"}, "it does not say why"),
        ],
    )
    def test_an_adapter_may_ask_for_a_person(
        self, reply: dict[str, str], detail: str, bench: Recovering
    ) -> None:
        bench.cut_off()
        bench.adapters.says = json.dumps(reply).encode(), b""
        bench.dispatcher.resume("job")

        assert bench.run().attention == {"adapter_asks": detail}

    def test_the_files_of_its_output_are_removed(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.dispatcher.resume("job")

        assert [each.removed for each in bench.adapters.files.values()] == [True]


class TestWhatGoesWrong:
    def test_an_adapter_that_cannot_be_run(self, bench: Recovering) -> None:
        bench.cut_off()

        def work(session: Session) -> None:
            raise PermissionError(13, "Permission denied", "job.sh")

        bench.adapters.work = work
        done = bench.dispatcher.resume("job")

        assert done.error is not None
        assert done.error.startswith("it could not be run: ")
        assert not bench.run().attempt_open

    def test_an_error_in_the_dispatcher_leaves_no_run_that_seems_to_work(
        self, bench: Recovering
    ) -> None:
        bench.cut_off()

        def work(session: Session) -> None:
            raise ZeroDivisionError("division by zero")

        bench.adapters.work = work
        done = bench.dispatcher.resume("job")

        assert done.error == "ZeroDivisionError: division by zero"
        assert returned(bench)["result"] == {"error": done.error}
        assert not bench.run().attempt_open

    def test_a_person_who_took_over_meanwhile_is_not_overwritten(self, bench: Recovering) -> None:
        """G5."""
        bench.cut_off()
        bench.adapters.work = lambda session: taken_over(bench)
        done = bench.dispatcher.resume("job")

        assert (done.fenced, done.progressed) == (True, False)
        assert bench.run().epoch == 3
        assert "resume-returned" not in bench.topics("job")

    def test_an_adapter_whose_attempt_is_lost_before_it_starts_does_not_start(
        self, bench: Recovering
    ) -> None:
        """G5: the worker is recorded before the adapter begins."""
        bench.cut_off()
        worked: list[int] = []
        bench.adapters.work = lambda session: worked.append(session.epoch)
        describe = bench.adapters.owner

        def owner(pid: int | None = None) -> Any:
            if pid is not None:
                taken_over(bench)
            return describe(pid)

        bench.adapters.owner = owner  # type: ignore[method-assign]
        done = bench.dispatcher.resume("job")

        assert done.fenced
        assert worked == []

    def test_a_time_limit_is_part_of_the_plan(self, bench: Recovering) -> None:
        """G11: what is shown with it is what is run with it, and the adapter is told."""
        bench.cut_off()
        shown = bench.planner.plan("job", timeout_seconds=7.0)
        bench.dispatcher.resume("job", timeout_seconds=7.0, agreed=bench.dispatcher.digest(shown))

        assert dispatched(bench)["plan"]["execute"]["timeout_seconds"] == 7.0
        assert bench.adapters.calls == [shown.execute]

    def test_something_that_happens_meanwhile_makes_the_plan_anew(self, bench: Recovering) -> None:
        bench.cut_off()
        plan_of = bench.planner.plan_of
        versions: list[int] = []

        def interrupted(run: Any, **how: Any) -> Any:
            plan = plan_of(run, **how)
            versions.append(plan.version)
            if len(versions) == 1:
                bench.person().execute(lambda run, why: run.add_note(why, "look here"))
            return plan

        bench.planner.plan_of = interrupted  # type: ignore[method-assign]
        done = bench.dispatcher.resume("job")

        assert versions == [versions[0], versions[0] + 1]
        assert dispatched(bench)["plan"]["version"] == versions[1]
        assert done.epoch == 2
        assert len(bench.adapters.calls) == 1

    def test_what_lives_on_after_its_adapter_keeps_the_attempt_alive(
        self, bench: Recovering
    ) -> None:
        bench.cut_off()
        bench.processes[500] = 500
        bench.adapters.work = lambda session: FakeEnd(left_running=(500, 501))
        bench.dispatcher.resume("job")

        assert bench.run().attempt_open
        assert bench.run().worker == bench.run().owner == process(500).to_fields()
        with pytest.raises(errors.RunOwnedError):
            bench.dispatcher.resume("job")

    def test_when_that_has_ended_too_the_attempt_has(self, bench: Recovering) -> None:
        """Though the process that dispatched lives on: a watchdog does for weeks."""
        bench.cut_off()
        bench.processes[500] = 500
        bench.adapters.work = lambda session: FakeEnd(left_running=(500,))
        bench.dispatcher.resume("job")
        del bench.processes[500]
        bench.adapters.work = one_batch

        assert bench.dispatcher.resume("job").progressed

    def test_what_ended_just_now_is_not_left_running(self, bench: Recovering) -> None:
        bench.cut_off()
        describe = bench.adapters.owner

        def owner(pid: int | None = None) -> Any:
            if pid == 500:
                raise errors.ProcessNotFoundError(pid)
            return describe(pid)

        def work(session: Session) -> FakeEnd:
            one_batch(session)
            return FakeEnd(left_running=(500,))

        bench.adapters.owner = owner  # type: ignore[method-assign]
        bench.adapters.work = work
        done = bench.dispatcher.resume("job")

        assert (done.progressed, done.error) == (True, None)
        assert returned(bench)["result"]["left_running"] == []
        assert not bench.run().attempt_open


class TestAKilledDispatcher:
    def killed(self, bench: Recovering, *, adapter_lives: bool = False) -> None:
        """Dispatch, and die while the adapter is at work."""
        bench.cut_off()

        class Killed(BaseException):
            pass

        def work(session: Session) -> None:
            one_batch(session)
            raise Killed

        bench.adapters.work = work
        bench.adapters.says = b'{"ok": true, "rows": 3}', b"on the way"
        with pytest.raises(Killed):
            bench.dispatcher.resume("job")
        # The process that dispatched is gone; another one asks from now on.
        del bench.processes[7]
        bench.adapters.owner = lambda pid=None: process(8 if pid is None else pid)  # type: ignore[method-assign]
        if adapter_lives:
            bench.processes[100] = 100

    def test_what_its_adapter_did_is_adopted(self, bench: Recovering) -> None:
        self.killed(bench)

        assert bench.dispatcher.adopt("job")
        result = returned(bench)
        assert result["progressed"] is True
        assert result["result"]["adopted"] is True
        assert result["result"]["reply"] == {"ok": True, "rows": 3}
        assert result["result"]["stderr"] == "on the way"
        assert not bench.dispatcher.adopt("job")

    def test_an_adapter_that_lives_on_is_left_alone(self, bench: Recovering) -> None:
        self.killed(bench, adapter_lives=True)
        before = bench.log.head()

        assert not bench.dispatcher.adopt("job")
        with pytest.raises(errors.RunOwnedError):
            bench.dispatcher.resume("job")
        assert bench.log.head() == before

    @pytest.mark.parametrize("outcome", ["success", "partial"])
    def test_nobody_adopts_what_its_living_dispatcher_is_about_to_record(
        self, outcome: str, bench: Recovering
    ) -> None:
        """The run has said how it ended, and its adapter has not ended yet."""
        bench.cut_off()
        refused: list[type[Exception]] = []

        def work(session: Session) -> None:
            session.end_phase("parse", status="skipped")
            session.finish(outcome)
            assert not bench.dispatcher.adopt("job")
            try:
                bench.dispatcher.resume("job")
            except errors.RefusalError as error:
                refused.append(type(error))

        def take_up(session: Session) -> None:
            session.start_phase("parse")
            work(session)

        bench.adapters.work = take_up
        done = bench.dispatcher.resume("job")

        expected = errors.RunFinishedError if outcome == "success" else errors.RunOwnedError
        assert refused == [expected]
        assert (done.progressed, done.outcome) == (True, outcome)
        assert bench.topics("job").count("resume-returned") == 1

    def test_the_next_resume_adopts_first(self, bench: Recovering) -> None:
        self.killed(bench)
        bench.adapters.work = one_batch
        bench.dispatcher.resume("job")
        topics = [topic for topic in bench.topics("job") if topic.startswith("resume-")]

        assert topics == ["resume-dispatched", "resume-returned"] * 2

    def test_the_plan_is_that_of_the_resume_which_adopts_first(self, bench: Recovering) -> None:
        """G11: with the digest that was shown it resumes, although it records a return before."""
        self.killed(bench)
        shown = bench.planner.plan("job")
        bench.adapters.work = one_batch
        bench.dispatcher.resume("job", agreed=bench.dispatcher.digest(shown))

        assert dispatched(bench)["plan"]["version"] == shown.version

    def test_a_run_that_its_adapter_finished_is_not_run_again(self, bench: Recovering) -> None:
        self.killed(bench)
        finisher = bench.attempt("job", 2)
        finisher.complete_batch("parse", 2)
        finisher.end_phase("parse")
        finisher.finish("success")
        bench.adapters.calls.clear()

        with pytest.raises(errors.RunFinishedError):
            bench.dispatcher.resume("job")
        assert bench.adapters.calls == []
        assert returned(bench)["progressed"] is True

    def test_the_files_of_the_killed_one_are_removed(self, bench: Recovering) -> None:
        self.killed(bench)
        bench.dispatcher.adopt("job")

        assert bench.adapters.files["job", 2].removed

    def test_without_a_resume_there_is_nothing_to_adopt(self, bench: Recovering) -> None:
        bench.cut_off()

        assert not bench.dispatcher.adopt("job")


class TestAReturnThatCouldNotBeRecorded:
    """Such as on a full disk: the dispatcher lives, and has no hand in that resume any more."""

    def lost(self, bench: Recovering, work: Any = one_batch) -> None:
        """Resume, and fail to record the return."""
        bench.cut_off()
        bench.adapters.work = work
        bench.adapters.says = b'{"ok": true, "rows": 3}', b""
        refuse_return(bench)
        with pytest.raises(errors.StoreFullError):
            bench.dispatcher.resume("job")
        bench.adapters.owner = lambda pid=None: living(bench, pid)  # type: ignore[method-assign]

    def test_its_own_dispatcher_records_it_later(self, bench: Recovering) -> None:
        self.lost(bench)
        done = bench.dispatcher.adopt("job", given_up=True)

        assert done is not None
        assert (done.progressed, done.reply) == (True, {"ok": True, "rows": 3})
        assert done.error == "how it ended could not be recorded; what it had done by then is kept"
        assert bench.topics("job").count("resume-returned") == 1
        assert not bench.run().attempt_open
        assert bench.adapters.files["job", 2].removed

    def test_unless_it_did_not_give_it_up(self, bench: Recovering) -> None:
        self.lost(bench)
        before = bench.log.head()

        assert bench.dispatcher.adopt("job") is None
        assert bench.log.head() == before

    def test_nobody_else_does_while_that_one_lives(self, bench: Recovering) -> None:
        self.lost(bench)
        bench.adapters.owner = lambda pid=None: process(8 if pid is None else pid)  # type: ignore[method-assign]
        before = bench.log.head()

        assert bench.dispatcher.adopt("job", given_up=True) is None
        assert bench.log.head() == before

    def test_what_its_adapter_left_running_keeps_others_away(self, bench: Recovering) -> None:
        """It was recorded as the worker; only the return that says so was lost."""
        bench.processes[500] = 500
        self.lost(bench, lambda session: FakeEnd(left_running=(500,)))
        bench.dispatcher.adopt("job", given_up=True)

        assert returned(bench)["result"]["left_running"] == [500]
        assert bench.run().owner == process(500).to_fields()
        with pytest.raises(errors.RunOwnedError):
            bench.dispatcher.resume("job")
        del bench.processes[500]
        bench.adapters.work = one_batch
        assert bench.dispatcher.resume("job").progressed

    def test_a_resume_whose_worker_was_never_known_is_over(
        self, bench: Recovering, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench.cut_off()
        bench.adapters.owner = lambda pid=None: living(bench, pid)  # type: ignore[method-assign]

        def fails_early(*_: Any) -> FakeEnd:
            refuse_return(bench)
            raise OSError("no shell")

        monkeypatch.setattr(bench.adapters, "run", fails_early)
        with pytest.raises(errors.StoreFullError):
            bench.dispatcher.resume("job")

        assert bench.dispatcher.adopt("job", given_up=True) is not None
        assert not bench.run().attempt_open


class TestAnybodyMayGoOn:
    @pytest.mark.parametrize("outcome", ["failed", "partial", "failed_semantic_empty"])
    def test_what_is_not_final_can_be_resumed(self, outcome: str, bench: Recovering) -> None:
        bench.cut_off().finish(outcome)

        assert bench.dispatcher.resume("job").progressed

    def test_the_job_goes_on_in_the_attempt_that_it_was_started_for(
        self, bench: Recovering
    ) -> None:
        from tachograph.starting import Start

        bench.cut_off()
        epochs: list[int] = []

        def work(session: Session) -> None:
            want = Start("work", run_id="job", joins=(session.run_id, session.epoch))
            epochs.append(bench.starter.start(want, process(100)).epoch)

        bench.adapters.work = work
        bench.dispatcher.resume("job")

        assert epochs == [2]
        assert bench.topics("job").count("attempt-started") == 2

    def test_a_resume_from_a_snapshot_is_the_same(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.attempt().save_checkpoint({"row": 7})
        run = bench.run()
        copy = type(run)()
        copy.restore(run.to_snapshot())

        assert bench.dispatcher.digest(bench.planner.plan_of(copy)) == bench.dispatcher.digest(
            bench.planner.plan_of(run)
        )


def refuse_return(bench: Recovering) -> None:
    """Let the disk be full once, at the next return of a resume."""
    save = bench.repository.save

    def full(run: Any) -> list[int]:
        if run.dispatch is None and run.returned_us is not None:
            bench.repository.save = save  # type: ignore[method-assign]
            raise errors.StoreFullError("/store", "the disk is full")
        return save(run)

    bench.repository.save = full  # type: ignore[method-assign]


def living(bench: Recovering, pid: int | None) -> Any:
    """Describe a process, if it lives."""
    if pid is not None and pid not in bench.processes:
        raise errors.ProcessNotFoundError(pid)
    return process(7 if pid is None else pid)


def taken_over(bench: Recovering) -> None:
    """Let somebody else take the run."""
    bench.processes[300] = 300
    session = bench.person()
    session.execute(
        lambda run, why: run.start_attempt(
            why, process(300).to_fields(), live_owner="it", reason="it hangs"
        )
    )


def record_artifact(session: Session, path: Path) -> None:
    from tachograph.measuring import measure

    size, sha256 = measure(path)
    session.execute(
        lambda run, why: run.record_artifact(
            why, "report", path=str(path), size=size, sha256=sha256
        )
    )


def test_a_failing_adapter_is_no_exception(bench: Recovering) -> None:
    bench.cut_off()
    bench.adapters.work = fails

    assert bench.dispatcher.resume("job").error == "exit code 3"
