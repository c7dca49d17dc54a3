"""What a resume would do, and everything that may stand in its way: one case a rule (G11)."""

from __future__ import annotations

from typing import Any

import pytest
from given_when_then import (
    CREATED,
    NOW_US,
    PERSON,
    Do,
    Fact,
    attempt,
    do,
    given,
    running,
    started,
)

from tachograph.domain import plan as plans
from tachograph.domain.event import Cause
from tachograph.domain.liveness import Liveness
from tachograph.domain.plan import Findings, Obstacle, Plan
from tachograph.domain.recovery import Recovery
from tachograph.domain.run import Run

ME = attempt(1)
SECOND = 1_000_000
EXECUTE = {"kind": "command", "argv": ["make"], "folder": None, "timeout_seconds": None}
WATCHED = do(Run.declare_recovery, PERSON, Recovery(adapter="jobs:resume", auto_resume=True))
PHASE = do(Run.start_phase, ME, "parse")
UNSAFE = do(Run.start_phase, ME, "publish", safe_to_retry=False)
INTENDED = do(Run.intend_effect, ME, "mail")
ASKED = do(Run.request_approval, ME, "deploy", subject=1, subject_digest="d1")


def declared(**named: Any) -> Do:
    return do(Run.declare_recovery, PERSON, Recovery(adapter="a", **named))


def found(**named: Any) -> Findings:
    return Findings(**{"now_us": NOW_US, "execute": EXECUTE, **named})


def plan(*history: Fact | Do, unattended: bool = False, **named: Any) -> Plan:
    """Make the plan of a run in its first attempt."""
    return Plan(running(*history).run, found(**named), unattended=unattended)


def obstacles(*history: Fact | Do, unattended: bool = False, **named: Any) -> list[Obstacle]:
    return plan(*history, unattended=unattended, **named).obstacles


def batch(index: int) -> Do:
    return do(Run.complete_batch, ME, "parse", index)


class TestParts:
    def test_a_run_that_did_nothing_has_an_empty_plan(self) -> None:
        made = plan()

        assert (made.checkpoint, made.phases, made.steps, made.effects) == (None, [], [], [])
        assert (made.artifacts, made.traces, made.approvals, made.obstacles) == ([], [], {}, [])

    def test_it_is_made_for_the_next_attempt_at_this_version(self) -> None:
        made = plan(do(Run.save_checkpoint, ME, state=1), do(Run.add_note, ME, "hm"))

        assert (made.version, made.epoch, made.from_version) == (4, 2, 3)
        assert (made.run_id, made.execute) == (running().run.id, EXECUTE)

    def test_it_goes_on_from_the_last_checkpoint(self) -> None:
        made = plan(PHASE, do(Run.save_checkpoint, ME, phase="parse", state={"row": 7}))

        assert made.checkpoint == {"version": 4, "phase": "parse", "kind": "state"}

    def test_steps_are_reused(self) -> None:
        made = plan(do(Run.complete_step, ME, "b", 1), do(Run.complete_step, ME, "a", 2))

        assert made.steps == ["a", "b"]

    def test_it_says_how_often_resumes_were_futile(self) -> None:
        made = plan(declared(max_retries=5), futile())

        assert made.retries == {"futile": 1, "max_retries": 5}

    def test_approvals_are_listed_with_what_was_decided(self) -> None:
        made = plan(ASKED, do(Run.approve, PERSON, "deploy", "fine"))

        assert (made.approvals, made.obstacles) == ({"deploy": "granted"}, [])

    def test_it_reports_which_code_and_inputs_changed(self) -> None:
        traces = [{"path": "job.py", "what": "code", "state": "has another checksum"}]

        assert plan(traces=traces).traces == traces

    def test_artifacts_are_as_they_were_found(self) -> None:
        record = [
            do(Run.record_artifact, ME, name, path=f"{name}.txt", size=1, sha256="a")
            for name in ("here", "lost")
        ]
        made = plan(*record, artifacts={"here": "good", "lost": "is missing"})

        assert made.artifacts == [
            {"name": "here", "path": "here.txt", "state": "good"},
            {"name": "lost", "path": "lost.txt", "state": "is missing"},
        ]

    def test_it_is_stored_as_plain_values(self) -> None:
        made = plan(ASKED, waiting_for=["job-a"])
        fields = made.to_fields()

        assert fields["obstacles"] == [
            {
                "code": "waiting",
                "text": "it waits for job-a",
                "despite": True,
            },
            {
                "code": "approval:deploy",
                "text": "it waits for approval of 'deploy'",
                "despite": False,
            },
        ]
        assert fields.keys() == vars(made).keys()

    def test_the_same_run_and_findings_give_the_same_plan(self) -> None:
        history = (PHASE, INTENDED, ASKED, do(Run.complete_step, ME, "load", 1))

        assert plan(*history).to_fields() == plan(*history).to_fields()

    def test_findings_share_nothing_with_their_maker(self) -> None:
        execute = dict(EXECUTE)
        findings = found(execute=execute)
        execute["kind"] = "adapter"

        assert findings.execute == EXECUTE


class TestPhases:
    def only(self, *history: Fact | Do) -> dict[str, Any]:
        (phase,) = plan(*history).phases
        return phase

    @pytest.mark.parametrize("status", ["completed", "skipped"])
    def test_a_phase_that_ended_well_is_reused(self, status: str) -> None:
        phase = self.only(PHASE, do(Run.end_phase, ME, "parse", status=status))

        assert (phase["action"], phase["status"]) == ("reuse", status)

    def test_a_phase_that_was_cut_off_runs_again(self) -> None:
        assert self.only(PHASE) == {
            "name": "parse",
            "status": "running",
            "safe_to_retry": True,
            "batches_reused": [],
            "batches_to_run": [],
            "batches": None,
            "action": "run again",
        }

    def test_a_phase_that_failed_runs_again(self) -> None:
        phase = self.only(PHASE, do(Run.end_phase, ME, "parse", status="failed"))

        assert (phase["action"], phase["status"]) == ("run again", "failed")

    def test_a_phase_goes_on_where_its_batches_end(self) -> None:
        planned = do(Run.plan_batches, ME, "parse", total=9, size=1, items_digest=None)
        phase = self.only(PHASE, planned, *map(batch, (0, 1, 2, 5)))

        assert phase["action"] == "go on"
        assert phase["batches_reused"] == [[0, 2], [5, 5]]
        assert phase["batches_to_run"] == [[3, 4], [6, 8]]
        assert phase["batches"] == 9

    def test_batches_without_a_plan_are_reused_too(self) -> None:
        phase = self.only(PHASE, batch(4))

        assert (phase["action"], phase["batches_reused"], phase["batches_to_run"]) == (
            "go on",
            [[4, 4]],
            [],
        )

    def test_an_unsafe_phase_is_named_so(self) -> None:
        assert self.only(UNSAFE)["safe_to_retry"] is False


class TestEffects:
    @pytest.mark.parametrize(
        ("history", "in_doubt", "action", "why"),
        [
            ([do(Run.complete_effect, ME, "mail")], "ask", "reuse", "it is done"),
            ([do(Run.allow_effect_retry, PERSON, "mail", "empty")], "ask", "do again", "a person"),
            ([], "ask", "ask a person", "in doubt, and the job says 'ask'"),
            ([], "retry", "do again", "in doubt, and the job says 'retry'"),
            ([], "skip", "count as done", "in doubt, and the job says 'skip'"),
            (
                [do(Run.intend_effect, ME, "mail", idempotent=True)],
                "ask",
                "do again",
                "doing it twice does no harm",
            ),
        ],
        ids=["done", "allowed", "ask", "retry", "skip", "idempotent"],
    )
    def test_what_is_done_about_an_effect(
        self, history: list[Do], in_doubt: str, action: str, why: str
    ) -> None:
        made = plan(declared(in_doubt=in_doubt), INTENDED, *history)
        (effect,) = made.effects

        assert (effect["key"], effect["action"]) == ("mail", action)
        assert why in effect["why"]
        assert made.decided(action) == ["mail"]
        assert [each.code for each in made.obstacles] == (
            ["effects_in_doubt"] if action == "ask a person" else []
        )

    def test_effects_are_decided_one_by_one(self) -> None:
        made = plan(
            INTENDED,
            do(Run.intend_effect, ME, "post", idempotent=True),
            do(Run.intend_effect, ME, "ping"),
            do(Run.complete_effect, ME, "ping"),
        )

        assert made.decided("ask a person") == ["mail"]
        assert made.decided("do again") == ["post"]
        assert made.decided("reuse") == ["ping"]
        assert made.decided("count as done") == []


class TestObstacles:
    """`despite` is what a person may disregard, with a reason."""

    @pytest.mark.parametrize(
        ("history", "named", "code", "text", "despite"),
        [
            ([], {"liveness": Liveness("alive", "process 17 is running")}, "owned",
             "it is at work: process 17 is running", False),
            ([], {"liveness": Liveness("unknown", "no heartbeat")}, "owner_not_judged",
             "nobody can say whether it is at work: no heartbeat", True),
            ([], {"cycle": ["job-a", "job-b"]}, "dependency_cycle",
             "it waits for job-a → job-b", False),
            ([], {"never": ["job-a", "job-b"], "waiting_for": ["job-c"]}, "dependency_ended",
             "it waits for job-a, job-b, which ended without success", True),
            ([], {"waiting_for": ["job-a", "job-b"]}, "waiting",
             "it waits for job-a, job-b", True),
            ([ASKED], {}, "approval:deploy", "it waits for approval of 'deploy'", False),
            ([ASKED, do(Run.reject, PERSON, "deploy", "no")], {}, "approval_rejected",
             "approval of 'deploy' was rejected", True),
            ([do(Run.block, ME, "the disk is full")], {}, "blocked",
             "it is blocked: the disk is full", True),
            ([INTENDED, do(Run.intend_effect, ME, "post")], {}, "effects_in_doubt",
             "effects may have happened: 'mail', 'post'", False),
            ([UNSAFE], {}, "unsafe_to_retry",
             "phase 'publish' was cut off, and is not safe to repeat", True),
            ([UNSAFE, do(Run.end_phase, ME, "publish", status="failed")], {}, "unsafe_to_retry",
             "phase 'publish' was cut off, and is not safe to repeat", True),
            ([declared(safe_to_retry=False)], {}, "unsafe_to_retry",
             "the job says it is not safe to repeat", True),
            ([], {"artifacts": {"a": "is missing", "b": "good", "c": "is odd"}},
             "artifact_damaged", "artifact a is missing, c is odd", True),
            ([], {"execute": None}, "no_adapter", "nothing says what would resume it", False),
            ([], {"execute": None, "problem": "no such file"}, "no_adapter",
             "no such file", False),
            ([declared(resume_window_seconds=60)], {"now_us": NOW_US + 61 * SECOND},
             "resume_window_passed", "it was left longer than its resume window of 60 s", True),
        ],
    )  # fmt: skip
    def test_each_is_named(
        self, history: list[Do], named: dict[str, Any], code: str, text: str, despite: bool
    ) -> None:
        made = plan(*history, **named)

        assert made.obstacles == [Obstacle(code, text, despite=despite)]
        assert made.without([code]) == ([] if despite else made.obstacles)
        assert made.without(["another"]) == made.obstacles

    def test_all_of_them_are_told_what_is_final_first(self) -> None:
        made = obstacles(
            ASKED,
            INTENDED,
            UNSAFE,
            liveness=Liveness("alive", "process 17 is running"),
            waiting_for=["job-a"],
            artifacts={"a": "is missing"},
            execute=None,
        )

        assert [each.code for each in made] == [
            "owned",
            "waiting",
            "approval:deploy",
            "effects_in_doubt",
            "unsafe_to_retry",
            "artifact_damaged",
            "no_adapter",
        ]

    @pytest.mark.parametrize(
        ("end", "text"),
        [
            (do(Run.finish, ME, "success"), "it is finished (success)"),
            (do(Run.cancel, PERSON, "enough"), "it is finished (cancelled)"),
            (do(Run.expire, PERSON, "old"), "it is finished (expired)"),
        ],
    )
    def test_a_finished_run_has_no_other(self, end: Do, text: str) -> None:
        """G6."""
        assert obstacles(end, unattended=True, execute=None) == [Obstacle("finished", text)]

    def test_an_attempt_that_is_gone_stands_in_nobodys_way(self) -> None:
        assert obstacles(liveness=Liveness("gone", "process 17 has ended")) == []

    def test_a_cycle_is_told_instead_of_whom_it_waits_for(self) -> None:
        made = obstacles(cycle=["job-a"], waiting_for=["job-a"])

        assert [each.code for each in made] == ["dependency_cycle"]

    @pytest.mark.parametrize("status", ["completed", "skipped"])
    def test_an_unsafe_phase_that_ended_well_is_not_repeated(self, status: str) -> None:
        assert obstacles(UNSAFE, do(Run.end_phase, ME, "publish", status=status)) == []

    def test_a_resume_window_counts_from_the_last_work(self) -> None:
        window = declared(resume_window_seconds=60)

        assert obstacles(window, now_us=NOW_US + 60 * SECOND) == []
        assert obstacles(window, now_us=NOW_US + 60 * SECOND + 1) != []

    def test_the_window_of_a_run_that_was_never_started_counts_from_its_creation(self) -> None:
        waits = given(CREATED, declared(resume_window_seconds=60)).run
        early, late = found(now_us=NOW_US + 60 * SECOND), found(now_us=NOW_US + 61 * SECOND)

        assert Plan(waits, early, unattended=False).obstacles == []
        assert Plan(waits, late, unattended=False).obstacles != []

    def test_a_person_may_disregard_several_but_not_all(self) -> None:
        made = plan(UNSAFE, ASKED, artifacts={"a": "is missing"})
        left = made.without(["unsafe_to_retry", "artifact_damaged", "approval:deploy"])

        assert [each.code for each in left] == ["approval:deploy"]


def futile() -> Do:
    """An unattended resume that is under way."""
    return do(Run.dispatch_resume, ME, "a", {"unattended": True})


def at(seconds: float, epoch: int) -> Cause:
    return Cause(NOW_US + round(seconds * SECOND), "tacho", "ada", 17, epoch)


def dispatched(seconds: float, epoch: int = 1) -> Do:
    return do(Run.dispatch_resume, at(seconds, epoch), "a", {"unattended": True})


def returned(seconds: float, epoch: int = 1) -> Do:
    return do(Run.return_resume, at(seconds, epoch), {})


class TestUnattended:
    """What keeps a watchdog from resuming, and no person."""

    def codes(self, *history: Fact | Do, **named: Any) -> list[str]:
        assert obstacles(*history, **named) == [], "a person may resume it"
        return [each.code for each in obstacles(*history, unattended=True, **named)]

    def test_nothing_when_the_job_lets_it(self) -> None:
        assert self.codes(WATCHED) == []

    def test_a_job_that_does_not_say_so_is_not_resumed_unattended(self) -> None:
        assert self.codes(declared()) == ["auto_resume_off"]

    @pytest.mark.parametrize(
        ("outcome", "reason_code", "goes_on"),
        [
            ("failed", None, True),
            ("failed", "boom", True),
            ("partial", None, True),
            ("partial", "waits_for_approval", True),
            ("partial", "stopped_by_budget", False),
            ("partial", "stopped_by_person", False),
            ("failed_semantic_empty", None, False),
        ],
    )
    def test_what_ended_by_itself_goes_on_where_the_outcome_table_says_so(
        self, outcome: str, reason_code: str | None, goes_on: bool
    ) -> None:
        end = do(Run.finish, ME, outcome, reason_code=reason_code)

        assert self.codes(WATCHED, end) == ([] if goes_on else ["ended_by_itself"])

    def test_retries_are_used_up(self) -> None:
        """Spec §8.3."""
        one, two = (
            declared(auto_resume=True, max_retries=number, backoff_seconds=0) for number in (1, 2)
        )

        assert self.codes(one, futile()) == ["max_retries_reached"]
        assert self.codes(two, futile()) == []

    def test_a_job_may_forbid_every_retry(self) -> None:
        assert self.codes(declared(auto_resume=True, max_retries=0)) == ["max_retries_reached"]

    def test_a_run_that_was_never_started_is_not_begun(self) -> None:
        run = given(CREATED, WATCHED).run

        assert Plan(run, found(), unattended=False).obstacles == []
        (obstacle,) = Plan(run, found(), unattended=True).obstacles
        assert obstacle.code == "not_begun"

    def test_a_run_that_waited_for_others_is_begun(self) -> None:
        run = given(CREATED, WATCHED, do(Run.depend_on, PERSON, ["job-a"])).run

        assert Plan(run, found(), unattended=True).obstacles == []

    @pytest.mark.parametrize(
        ("reason", "text"),
        [
            ("adapter_asks", "a person is asked: its adapter asks for a person"),
            ("which account?", "a person is asked: which account?"),
        ],
    )
    def test_a_run_that_asks_a_person_waits_for_the_answer(self, reason: str, text: str) -> None:
        made = obstacles(WATCHED, do(Run.raise_attention, ME, reason), unattended=True)

        assert made == [Obstacle("person_asked", text)]

    @pytest.mark.parametrize("reason", ["no_adapter", "card_edited", "owner_not_judged"])
    def test_what_a_plan_finds_out_itself_or_only_tells_keeps_nobody(self, reason: str) -> None:
        assert self.codes(WATCHED, do(Run.raise_attention, ME, reason)) == []


class TestBackoff:
    HISTORY = (
        declared(auto_resume=True, max_retries=9, backoff_seconds=60),
        dispatched(0),
        returned(10),
    )

    def too_early(self, seconds: float, *history: Fact | Do) -> list[str]:
        now_us = NOW_US + round(seconds * SECOND)
        made = obstacles(*(history or self.HISTORY), unattended=True, now_us=now_us)
        assert all(each.code == "too_early" and not each.despite for each in made)
        return [each.text for each in made]

    def test_the_pause_begins_when_the_last_resume_returned(self) -> None:
        assert self.too_early(69.5) == ["the next try is due in 1 s"]
        assert self.too_early(10) == ["the next try is due in 61 s"]
        assert self.too_early(70) == []

    def test_it_doubles_with_every_futile_resume(self) -> None:
        again = (started(2), dispatched(70, 2), returned(80, 2))

        assert self.too_early(199, *self.HISTORY, *again) == ["the next try is due in 2 s"]
        assert self.too_early(200, *self.HISTORY, *again) == []

    def test_a_resume_that_never_returned_counts_from_its_beginning(self) -> None:
        again = (started(2), dispatched(70, 2))

        assert self.too_early(189, *self.HISTORY, *again) == ["the next try is due in 2 s"]
        assert self.too_early(190, *self.HISTORY, *again) == []

    def test_progress_ends_it(self) -> None:
        assert self.too_early(11, *self.HISTORY[:2], do(Run.save_checkpoint, ME, state=1)) == []

    def test_a_clock_that_was_set_back_does_not_prolong_it(self) -> None:
        """Spec §8.9."""
        assert self.too_early(9) == []
        assert self.too_early(-1e6) == []

    def test_a_person_does_not_wait(self) -> None:
        assert obstacles(*self.HISTORY, now_us=NOW_US + 11 * SECOND) == []


def test_the_codes_that_people_name_are_fixed() -> None:
    """They are typed after `--despite`, and read in reports."""
    assert (plans.FINISHED, plans.OWNED, plans.WAITING, plans.STOPPED) == (
        "finished",
        "owned",
        "waiting",
        "ended_by_itself",
    )
    assert (plans.RETRIES, plans.TOO_EARLY, plans.NOT_BEGUN, plans.PERSON_ASKED) == (
        "max_retries_reached",
        "too_early",
        "not_begun",
        "person_asked",
    )
