"""Who is watched, and when a run is due: it may be named too early, and never too late."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import pytest
from given_when_then import CREATED, NOW_US, OWNER, PERSON, RUN_ID, attempt, do, given, started
from hypothesis import given as drawn
from hypothesis import note, settings
from hypothesis import strategies as st
from viewed import summary_of

from tachograph.domain import attention
from tachograph.domain.errors import RefusalError
from tachograph.domain.event import Cause
from tachograph.domain.liveness import Liveness
from tachograph.domain.plan import Findings, Plan
from tachograph.domain.recovery import Recovery
from tachograph.domain.recovery_state import ending_key
from tachograph.domain.run import Run
from tachograph.projections.run_summaries import apply, new_summary
from tachograph.projections.watch_list import counts_on, due_us
from tachograph.watching import NEEDS_PERSON

if TYPE_CHECKING:
    from collections.abc import Callable

    from given_when_then import Do, Fact

    Fields = dict[str, Any]

P = ParamSpec("P")

ME = attempt(1)
SECOND = 1_000_000
AT_ONCE = 0
WORKER = {**OWNER, "pid": 18}
SAVED = do(Run.save_checkpoint, ME, state=1)
GONE = do(Run.detect_stall, PERSON, "gone", {"reason": "process 17 has ended"})
SILENT = do(Run.detect_stall, PERSON, "silent", {})
ASKED = do(Run.request_approval, ME, "deploy", subject=1, subject_digest="d")
RESUMED = do(Run.dispatch_resume, ME, "a", {"unattended": True})
RETURNED = do(Run.return_resume, ME, {})


def declared(**named: Any) -> Do:
    return do(Run.declare_recovery, PERSON, Recovery(adapter="a", **named))


AUTO = declared(auto_resume=True)
STALE = declared(stale_after_seconds=60)
KILL = declared(stale_after_seconds=60, kill_stalled=True, auto_resume=True)


def summary(*history: Do | Fact) -> Fields:
    return summary_of(given(CREATED, *history).events)


def working(*history: Do | Fact) -> Fields:
    """Return the summary of a run in its first attempt."""
    return summary(started(1), *history)


def raised(reason: str) -> Do:
    return do(Run.raise_attention, PERSON, reason)


class TestCountsOn:
    def test_a_run_counts_on_its_owner(self) -> None:
        assert counts_on(working()) == OWNER

    def test_a_run_counts_on_its_worker_while_it_has_one(self) -> None:
        assert counts_on(working(do(Run.start_worker, ME, WORKER))) == WORKER
        assert counts_on(working(do(Run.start_worker, ME, WORKER), started(2))) == OWNER

    @pytest.mark.parametrize(
        "end",
        [
            do(Run.finish, ME, "failed"),
            do(Run.finish, ME, "success"),
            do(Run.cancel, PERSON, "enough"),
        ],
    )
    def test_a_run_without_an_open_attempt_counts_on_nobody(self, end: Do) -> None:
        assert counts_on(working(end)) is None
        assert counts_on(summary()) is None

    def test_a_resume_that_returned_counts_on_nobody(self) -> None:
        assert counts_on(working(RESUMED, RETURNED)) is None

    def test_what_an_adapter_left_running_is_counted_on(self) -> None:
        left = do(Run.return_resume, ME, {"left_running": [18]})

        assert counts_on(working(RESUMED, do(Run.start_worker, ME, WORKER), left)) == WORKER

    @pytest.mark.parametrize(
        "end",
        [
            do(Run.finish, ME, "success"),
            do(Run.finish, ME, "failed"),
            do(Run.cancel, PERSON, "enough"),
        ],
        ids=["finished", "failed", "cancelled"],
    )
    def test_a_run_that_ended_counts_on_its_dispatcher_until_the_resume_has_returned(
        self, end: Do
    ) -> None:
        """A dispatcher that was killed by then returns nothing: somebody has to do it for it."""
        under_way = (RESUMED, do(Run.start_worker, ME, WORKER), end)

        assert counts_on(working(*under_way)) == OWNER
        assert counts_on(working(*under_way, RETURNED)) is None

    def test_what_joined_an_adapter_is_not_counted_on(self) -> None:
        joined = do(Run.start_worker, ME, {**OWNER, "pid": 19}, joined=True)

        assert counts_on(working(RESUMED, do(Run.start_worker, ME, WORKER), joined)) == WORKER

    def test_a_resume_that_was_taken_over_is_waited_for_by_nobody(self) -> None:
        taken = started(2)

        assert counts_on(working(RESUMED, taken)) == OWNER
        assert counts_on(working(RESUMED, taken, do(Run.finish, attempt(2), "success"))) is None

    def test_nobody_is_watched_whose_end_was_noted(self) -> None:
        assert counts_on(working(GONE)) is None

    def test_an_attempt_that_is_only_silent_is_watched_on(self) -> None:
        assert counts_on(working(SILENT)) == OWNER

    def test_who_was_taken_for_gone_and_works_is_watched_again(self) -> None:
        assert counts_on(working(GONE, do(Run.report_progress, ME, 1))) == OWNER

    def test_the_next_attempt_is_watched(self) -> None:
        assert counts_on(working(GONE, started(2))) == OWNER


class TestNeverDue:
    @pytest.mark.parametrize(
        "end",
        [
            do(Run.finish, ME, "success"),
            do(Run.cancel, PERSON, "enough"),
            do(Run.expire, PERSON, "old"),
        ],
        ids=["finished", "cancelled", "expired"],
    )
    def test_a_run_that_ended_for_good(self, end: Do) -> None:
        everything = declared(auto_resume=True, stale_after_seconds=1, resume_window_seconds=1)

        assert due_us(working(everything, end)) is None

    def test_a_run_that_declares_nothing(self) -> None:
        assert due_us(working(GONE)) is None
        assert due_us(working(do(Run.declare_recovery, PERSON, Recovery()), GONE)) is None

    def test_a_run_at_work_that_may_take_its_time(self) -> None:
        assert due_us(working(AUTO)) is None

    def test_a_run_that_nobody_may_resume_unattended(self) -> None:
        assert due_us(working(declared(), GONE)) is None


class TestDueAtOnce:
    """When it can go on unattended."""

    def test_an_attempt_that_is_gone(self) -> None:
        assert due_us(working(AUTO, GONE)) == AT_ONCE

    def test_a_failed_run(self) -> None:
        assert due_us(working(AUTO, do(Run.finish, ME, "failed"))) == AT_ONCE

    def test_a_run_whose_resume_left_it_unfinished(self) -> None:
        further = do(Run.save_checkpoint, ME, state=2)

        assert due_us(working(AUTO, RESUMED, further, RETURNED)) == AT_ONCE

    def test_a_run_that_waits_for_others(self) -> None:
        assert due_us(summary(AUTO, do(Run.depend_on, PERSON, ["job-a"]))) == AT_ONCE

    def test_but_not_a_run_that_nobody_has_started(self) -> None:
        assert due_us(summary(AUTO)) is None

    @pytest.mark.parametrize("code", ["stopped_by_budget", "stopped_by_person"])
    def test_but_not_what_stopped_itself(self, code: str) -> None:
        assert due_us(working(AUTO, do(Run.finish, ME, "partial", reason_code=code))) is None

    def test_an_approval_that_was_given(self) -> None:
        stopped = do(Run.finish, ME, "partial", reason_code="waits_for_approval")
        approved = do(Run.approve, PERSON, "deploy", "fine")

        assert due_us(working(AUTO, ASKED, stopped)) is None
        assert due_us(working(AUTO, ASKED, stopped, approved)) == AT_ONCE

    def test_but_not_while_it_is_blocked(self) -> None:
        assert due_us(working(AUTO, GONE, do(Run.block, PERSON, "waits for a disk"))) is None

    @pytest.mark.parametrize("reason", ["no_adapter", "adapter_asks", "of a job's own"])
    def test_but_not_while_it_needs_a_person(self, reason: str) -> None:
        assert due_us(working(AUTO, GONE, raised(reason))) is None

    @pytest.mark.parametrize("reason", ["card_edited", "owner_not_judged", "status_unknown"])
    def test_and_what_only_tells_something_delays_nothing(self, reason: str) -> None:
        assert due_us(working(AUTO, raised(reason), GONE)) == AT_ONCE

    def test_and_again_when_a_person_has_changed_what_stood_in_the_way(self) -> None:
        changed = do(
            Run.declare_recovery, PERSON, Recovery(adapter="b", auto_resume=True), reason="found"
        )

        assert due_us(working(AUTO, GONE, raised("no_adapter"), changed)) == AT_ONCE


class TestDueLater:
    def test_a_futile_resume_is_tried_again_after_a_pause(self) -> None:
        assert due_us(working(AUTO, RESUMED, RETURNED)) == NOW_US + 60 * SECOND

    def test_a_resume_that_never_returned_as_well(self) -> None:
        assert due_us(working(AUTO, RESUMED, GONE)) == NOW_US + 60 * SECOND

    def test_the_pause_begins_with_the_last_resume(self) -> None:
        later = Cause(NOW_US + 100 * SECOND, "tacho", "ada", 17, 2)
        again = do(Run.dispatch_resume, later, "a", {"unattended": True})

        assert due_us(working(AUTO, RESUMED, RETURNED, started(2), again, GONE)) == (
            NOW_US + 220 * SECOND
        )

    def test_a_pause_is_not_counted_from_before_a_clock_was_set_back(self) -> None:
        past = Cause(NOW_US - 100_000 * SECOND, "tacho", "ada", 17, 2)
        again = do(Run.dispatch_resume, past, "a", {"unattended": True})

        assert due_us(working(AUTO, RESUMED, RETURNED, started(2), again, GONE)) == (
            past.time_us + 120 * SECOND
        )

    def test_silence_is_noted_after_its_time(self) -> None:
        later = Cause(NOW_US + 5 * SECOND, "tacho", "ada", 17, 1)

        assert due_us(working(STALE)) == NOW_US + 60 * SECOND
        assert due_us(working(STALE, do(Run.report_progress, later, 1))) == NOW_US + 65 * SECOND

    def test_retries_are_no_sign_of_work(self) -> None:
        later = Cause(NOW_US + 5 * SECOND, "tacho", "ada", 17, 1)

        assert due_us(working(STALE, do(Run.schedule_retry, later, "parse", 1))) == (
            NOW_US + 60 * SECOND
        )

    def test_silence_is_noted_once(self) -> None:
        assert due_us(working(STALE, SILENT)) is None
        assert due_us(working(STALE, SILENT, SAVED)) == NOW_US + 60 * SECOND

    def test_silence_that_is_to_be_ended_stays_due(self) -> None:
        """A watchdog may have noted it that was not allowed to end it."""
        assert due_us(working(KILL, SILENT)) == NOW_US + 60 * SECOND

    def test_unless_it_could_not_be_ended(self) -> None:
        assert due_us(working(KILL, SILENT, raised("not_stopped"))) is None

    def test_nobody_is_silent_after_the_attempt(self) -> None:
        assert due_us(working(STALE, do(Run.finish, ME, "failed"))) is None
        assert due_us(working(STALE, GONE)) is None

    def test_a_run_expires_after_its_window(self) -> None:
        window = declared(resume_window_seconds=3600)

        assert due_us(working(window)) == NOW_US + 3600 * SECOND
        assert due_us(working(window, do(Run.finish, ME, "failed"))) == NOW_US + 3600 * SECOND
        assert due_us(summary(window)) == NOW_US + 3600 * SECOND

    def test_a_resume_is_looked_at_when_its_time_is_up(self) -> None:
        """Its dispatcher may have been killed, and nobody else would end the adapter."""
        limited = do(
            Run.dispatch_resume, ME, "a", {"unattended": True, "execute": {"timeout_seconds": 30}}
        )

        assert due_us(working(AUTO, limited)) == NOW_US + 30 * SECOND
        assert due_us(working(declared(), limited)) == NOW_US + 30 * SECOND
        assert due_us(working(declared(), limited, RETURNED)) is None
        assert due_us(working(declared(), limited, do(Run.finish, ME, "failed"))) is None
        assert due_us(working(declared(), limited, started(2))) is None

    def test_a_resume_that_may_take_its_time_is_not(self) -> None:
        for plan in ({}, {"execute": None}, {"execute": {"timeout_seconds": None}}):
            resumed = do(Run.dispatch_resume, ME, "a", plan)

            assert due_us(working(AUTO, resumed)) is None

    def test_what_a_returned_resume_left_running_has_no_time_limit(self) -> None:
        limited = do(Run.dispatch_resume, ME, "a", {"execute": {"timeout_seconds": 30}})
        left = do(Run.return_resume, ME, {"left_running": [18]})

        assert due_us(working(AUTO, limited, left)) is None

    def test_a_run_that_could_not_be_looked_at_is_looked_at_again(self) -> None:
        assert due_us(working(AUTO, GONE, raised("not_looked_at"))) == AT_ONCE

    def test_the_earliest_counts(self) -> None:
        both = declared(stale_after_seconds=60, resume_window_seconds=30)

        assert due_us(working(both)) == NOW_US + 30 * SECOND

    @pytest.mark.parametrize("seconds", [1e18, 1e300, float("inf")])
    def test_for_ever_is_a_time_that_can_be_stored(self, seconds: float) -> None:
        forever = declared(
            stale_after_seconds=seconds, resume_window_seconds=seconds, auto_resume=True
        )
        pause = declared(auto_resume=True, backoff_seconds=seconds)

        for run in (working(forever), working(pause, RESUMED, RETURNED)):
            due = due_us(run)
            assert due is not None
            assert NOW_US + 10**18 <= due < 2**63


class Walk:
    """A run under random commands and a watchdog, beside the summary folded from its events."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.run = Run.create(
            PERSON, RUN_ID, command="c", fingerprint="f", inputs=1, inputs_digest="d"
        )
        self.summary = new_summary(RUN_ID)
        self.position = 0
        self.clock = NOW_US
        self.told: list[str] = []
        self.follow()
        declared = Recovery(
            adapter="a",
            auto_resume=self.likely(75),
            max_retries=self.pick(0, 1, 2, 3),
            safe_to_retry=self.likely(75),
            in_doubt=self.pick("ask", "ask", "retry", "skip"),
            resume_window_seconds=self.pick(None, None, None, 1000),
            stale_after_seconds=self.pick(None, 60),
        )
        self.ask(Run.declare_recovery, 0, declared)
        if self.likely(33):
            self.ask(Run.depend_on, 0, ["job-a"])

    def pick(self, *choices: Any) -> Any:
        return self.chance.choice(choices)

    def likely(self, percent: int) -> bool:
        return self.chance.randrange(100) < percent

    def follow(self) -> None:
        for event in self.run.collect_events():
            self.position += 1
            apply(self.summary, event.TOPIC, dict(vars(event)), self.position)

    def ask(
        self,
        method: Callable[Concatenate[Run, Cause, P], object],
        epoch: int,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Give a command, which may be refused."""
        self.told.append(f"{method.__name__}{args}{kwargs or ''}"[:200])
        try:
            method(self.run, Cause(self.clock, "tacho", "ada", 17, epoch), *args, **kwargs)
        except RefusalError:
            assert self.run.pending_events == []
        self.follow()

    def work(self, method: Callable[..., object], *args: Any, **kwargs: Any) -> None:
        """Give a command as the current attempt does."""
        self.ask(method, self.run.epoch, *args, **kwargs)

    def plan(self) -> Plan:
        """Return what a watchdog finds when nobody is there, and all files are in order."""
        gone = Liveness("gone", "process 17 has ended") if self.run.attempt_open else None
        found = Findings(self.clock, liveness=gone, execute={"kind": "command"})
        return Plan(self.run, found, unattended=True)

    # What happens.

    def wait(self) -> None:
        """Let time pass; now and then the clock is set back, but not to before a verdict."""
        began = self.run.returned_us or self.run.dispatched_us or 0
        later = self.clock + self.pick(1, 60, 60, 4000, -100_000) * SECOND
        if attention.WINDOW in self.run.attention:
            later = max(later, self.clock)
        self.clock = max(later, began if self.run.futile else 0)

    def start(self) -> None:
        self.ask(Run.start_attempt, 0, OWNER, live_owner=None)

    def declare(self) -> None:
        change = self.pick(
            {"auto_resume": True},
            {"safe_to_retry": True},
            {"in_doubt": "ask"},
            {"in_doubt": "skip"},
            {"max_retries": 1},
            {"max_retries": 3},
        )
        changed = Recovery.from_fields(self.run.recovery).changed(**change)
        self.ask(Run.declare_recovery, 0, changed, reason=self.pick(None, "why"))

    def phase(self) -> None:
        name = self.pick("safe", "unsafe")
        self.work(Run.start_phase, name, safe_to_retry=name == "safe")
        if self.likely(50):
            self.work(Run.end_phase, name, status=self.pick("completed", "failed"))

    def save(self) -> None:
        self.work(Run.save_checkpoint, state=self.pick("1", "2") * self.pick(1, 5000))

    def complete_step(self) -> None:
        key = self.pick(ending_key(self.run.epoch), f"step {self.run.version}")
        self.work(Run.complete_step, key, 1)

    def report(self) -> None:
        self.work(Run.report_progress, 1)

    def intend(self) -> None:
        key = f"effect {len(self.run.effects) // 2}"
        self.work(Run.intend_effect, key, idempotent=self.likely(50))

    def settle(self) -> None:
        for key in self.run.effects_in_doubt[:1]:
            if self.likely(50):
                self.ask(Run.allow_effect_retry, 0, key, "why")
            elif self.likely(50):
                self.ask(Run.complete_effect, 0, key, reason="why")
            else:
                self.work(Run.complete_effect, key)

    def request(self) -> None:
        digest = self.pick("d1", "d2")
        self.work(Run.request_approval, "deploy", subject=1, subject_digest=digest)

    def decide(self) -> None:
        self.ask(self.pick(Run.approve, Run.reject), 0, "deploy", "why")

    def block(self) -> None:
        self.ask(Run.block, 0, "why")

    def depend(self) -> None:
        self.ask(Run.depend_on, 0, self.pick([], ["job-a"], ["job-b"]))

    def finish(self) -> None:
        code = self.pick(None, "waits_for_approval", "stopped_by_budget")
        self.work(Run.finish, self.pick("failed", "partial"), reason_code=code)

    def end_well(self) -> None:
        if self.likely(25):
            self.work(Run.finish, "success")

    def note_silence(self) -> None:
        if self.run.attempt_open:
            self.ask(Run.detect_stall, 0, "silent", {})

    def look(self) -> None:
        """Find the attempt gone, and call a person for what stands in the way of a resume."""
        if self.run.attempt_open:
            self.ask(Run.detect_stall, 0, "gone", {})
        for obstacle in self.plan().obstacles:
            if obstacle.code in NEEDS_PERSON:
                self.ask(Run.raise_attention, 0, obstacle.code)

    def tell(self) -> None:
        self.ask(
            Run.raise_attention, 0, self.pick("card_edited", "owner_not_judged", "not_stopped")
        )

    def adapter_asks(self) -> None:
        if not self.run.attempt_open:
            self.ask(Run.raise_attention, 0, attention.ADAPTER_ASKS)

    def resume(self) -> None:
        """Resume it unattended, where its plan lets that."""
        if not self.plan().obstacles:
            self.start()
            self.work(Run.dispatch_resume, "a", {"unattended": True})

    def come_back(self) -> None:
        result = {"left_running": [18]} if self.likely(33) else {}
        self.ask(Run.return_resume, self.pick(0, self.run.epoch), result)

    STEPS = (
        wait, wait, wait, start, start, declare, phase, phase, save, save,
        complete_step, report, intend, settle,
        settle, request, decide, block, depend, finish, end_well, note_silence, look, look, look,
        tell, adapter_asks, resume, resume, resume, come_back, come_back,
    )  # fmt: skip

    def step(self) -> None:
        self.chance.choice(self.STEPS)(self)

    # What holds after every step.

    def it_is_named_never_too_late(self) -> None:
        """Whenever it could go on unattended, it is due, or its process is watched."""
        if self.plan().obstacles:
            return
        due = due_us(self.summary)

        assert counts_on(self.summary) is not None or (due is not None and due <= self.clock)

    def silence_and_age_are_noticed(self) -> None:
        """Who may have gone silent, or was left too long, is due then."""
        if self.run.finished:
            return
        said = Recovery.from_fields(self.run.recovery)
        due = due_us(self.summary)
        since_us = self.run.worked_us or self.run.created_us
        if said.resume_window_seconds is not None:
            assert due is not None
            assert due <= since_us + said.resume_window_seconds * SECOND
        if said.stale_after_seconds is not None and self.run.attempt_open and not self.run.noted:
            assert due is not None
            assert due <= since_us + said.stale_after_seconds * SECOND

    def the_summary_knows_what_the_run_knows(self) -> None:
        names = ("attention", "worked_us", "noted", "blocked", "worker", "recovery", "returned_us")

        assert {name: self.summary[name] for name in names} == {
            name: getattr(self.run, name) for name in names
        }
        assert list(self.summary["approvals"]) == self.run.approvals_pending
        # A large state is not compared with the one before.
        assert self.summary["futile"] <= self.run.futile


@settings(max_examples=400)
@drawn(seed=st.integers(0, 2**32))
def test_whatever_happens_a_run_is_named_never_too_late(seed: int) -> None:
    walk = Walk(Random(seed))
    try:
        for _ in range(60):
            walk.it_is_named_never_too_late()
            walk.silence_and_age_are_noticed()
            walk.the_summary_knows_what_the_run_knows()
            walk.step()
    except AssertionError:
        note("\n".join(walk.told))
        raise
