"""Maintenance cycles: what is repaired, what is only told, and what stops helping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tachograph.domain.health import DomainHealth, Health
from tachograph.domain.queue_thresholds import HealthThresholds
from tachograph.domain.repair_policy import (
    CANCEL,
    CHECK_VIEWS,
    EXECUTE,
    HOUR_US,
    OBSERVE,
    OPERATOR,
    PRUNE,
    RELEASE,
    REQUEUE,
    SECOND_US,
    SWEEP,
    RepairPolicy,
)
from tachograph.health import acting, fates
from tachograph.health.caring import Carer, CareReport
from tachograph.health.diagnosing import Domain
from tachograph.health.judging import (
    AGAIN,
    DONE,
    GONE,
    PATIENCE_US,
    WAITS,
    Judging,
    by_what_went,
)
from tachograph.health.keeping_diary import end_of
from tachograph.health.queue_domain import queue_domain
from tachograph.infra.codec import Codec
from tachograph.infra.memory_log import MemoryLog
from tachograph.packing import Packing
from tachograph.queues.gatekeeping import Gatekeeper
from tachograph.queues.queueing import Released
from tachograph.session import Actor

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.queues.gatekeeping import Permit

NOW = 1_700_000_000_000_000


class Diary:
    """A run that is kept nowhere."""

    id = "run-1"

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.kept: dict[str, Any] = {}
        self.end: tuple[str, str] | None = None

    def phase(self, name: str, work: Callable[[], Any]) -> Any:
        """Do the work."""
        self.phases.append(name)
        return work()

    def keep(self, name: str, value: Any) -> None:
        """Keep a value."""
        self.kept[name] = value

    def finish(self, report: CareReport) -> None:
        """Note how it ended."""
        outcome, code, _reason = end_of(report)
        self.end = (outcome, code)


class Ward:
    """Queues by their numbers, and what is done about them, with a clock moved by hand."""

    def __init__(self, policy: RepairPolicy | None = None) -> None:
        self.now = NOW
        self.log = MemoryLog()
        self.policy = policy or RepairPolicy()
        self.dead: list[str] = []
        self.completed = 0
        self.stale = 0
        self.expired = 0
        self.stopped = 0
        self.fates: dict[str, str] = {}
        self.called: list[str] = []
        self.more: list[Domain] = []
        self.actions: dict[str, Callable[[Permit], None]] = {
            REQUEUE: self.requeue,
            RELEASE: self.release,
            SWEEP: self.sweep,
            CHECK_VIEWS: self.useless,
        }

    @property
    def gatekeeper(self) -> Gatekeeper:
        """The gate, as each new process has it."""
        actor = Actor("tacho", "ada", 17, lambda: self.now)
        return Gatekeeper(self.log, Packing(Codec()), actor, self.policy)

    def facts(self) -> dict[str, Any]:
        """Return the facts about the queues."""
        ended = len(self.dead) + self.completed
        return {
            "depth": 0,
            "deadRate": len(self.dead) / ended if ended else 0.0,
            "leaseAnomalies": self.stale,
            "expired": self.expired,
            "queues": {
                "summary": {"dead": len(self.dead), "oldestAgeSec": 0, "oldestDeadAgeSec": 0}
            },
        }

    def domains(self) -> list[Domain]:
        """Return the domains."""
        views = Domain("views", 0.15, lambda: {"stoppedViews": self.stopped})
        return [queue_domain(self.facts, HealthThresholds()), views, *self.more]

    def cycle(self, mode: str = EXECUTE, *, wait_us: int = HOUR_US) -> CareReport:
        """Do a cycle, an hour after the last one."""
        self.now += wait_us
        self.called = []
        self.diary = Diary()
        keeper = self.gatekeeper
        judging = Judging(keeper, lambda _action, job, _kept: self.fates[job], lambda: self.now)
        carer = Carer(self.domains, keeper, self.actions, judging, lambda: self.now)
        return carer.cycle(self.diary, mode)

    # Actions.

    def requeue(self, permit: Permit) -> None:
        """Let all dead jobs wait again."""
        self.called.append(REQUEUE)
        jobs, self.dead = self.dead, []
        self.fates |= dict.fromkeys(jobs, WAITS)
        permit.done(len(jobs), f"requeued {len(jobs)}", watched=jobs)

    def release(self, permit: Permit) -> None:
        """Release all stale leases."""
        self.called.append(RELEASE)
        permit.done(self.stale, f"released {self.stale}")
        self.stale = 0

    def sweep(self, permit: Permit) -> None:
        """Remove what is expired."""
        self.called.append(SWEEP)
        permit.done(self.expired, f"swept {self.expired}")
        self.expired = 0

    def useless(self, permit: Permit) -> None:
        """Do what does not help."""
        self.called.append(permit.action)
        permit.done(0, "nothing to do")

    def end_jobs(self, fate: str) -> None:
        """Let all requeued jobs end so."""
        waiting = [job for job, was in self.fates.items() if was == WAITS]
        self.fates |= dict.fromkeys(waiting, fate)
        if fate == AGAIN:
            self.dead += waiting


def outcomes(report: CareReport) -> list[tuple[str, bool]]:
    """Return what was executed, and whether well."""
    return [(each.action, each.success) for each in report.executed]


class TestCycle:
    """Spec §3.2, cases 35 to 38."""

    def test_where_all_is_well_nothing_is_done(self) -> None:
        """Case 35."""
        ward = Ward()
        report = ward.cycle()

        assert (report.recommendations, report.executed, report.after) == ([], [], None)
        assert ward.diary.phases == ["diagnose"]
        assert ward.diary.end == ("empty", "nothing_to_repair")

    def test_dead_jobs_are_requeued(self) -> None:
        """Case 35."""
        ward = Ward()
        ward.dead, ward.completed = list("abcde"), 5
        report = ward.cycle()

        assert [each.action for each in report.recommendations] == [REQUEUE]
        assert outcomes(report) == [(REQUEUE, True)]
        assert ward.dead == []
        assert ward.diary.end == ("success", "repairs_done")

    def test_observed_only_nothing_is_changed(self) -> None:
        """Case 35."""
        ward = Ward()
        ward.dead = ["a"]
        report = ward.cycle(OBSERVE)

        assert [each.action for each in report.recommendations] == [REQUEUE]
        assert (report.executed, ward.called, ward.dead) == ([], [], ["a"])
        assert ward.diary.end == ("success", "repairs_observed")

    def test_stale_leases_are_released(self) -> None:
        """Case 36."""
        ward = Ward()
        ward.stale = 1
        report = ward.cycle()

        assert ward.stale == 0
        assert report.after is not None
        assert report.delta > 0

    def test_the_sweep_is_called_once(self) -> None:
        """Case 36."""
        ward = Ward()
        ward.expired = 7
        ward.cycle()

        assert ward.called == [SWEEP]

    def test_what_nobody_can_do_is_told(self) -> None:
        """Case 36: the original passed over the sweep in silence."""
        ward = Ward()
        ward.expired = 7
        del ward.actions[SWEEP]
        report = ward.cycle()

        assert outcomes(report) == [(SWEEP, False)]
        assert report.executed[0].failed
        assert ward.diary.end == ("success_with_review", "repairs_not_done")

    def test_switched_off_a_tick_still_works(self) -> None:
        """Case 36: a person asked for it."""
        ward = Ward(RepairPolicy(enabled=False))
        ward.stale = 1

        assert outcomes(ward.cycle()) == [(RELEASE, True)]

    def test_frozen_each_action_is_denied_and_told(self) -> None:
        ward = Ward(RepairPolicy(frozen=True))
        ward.stale, ward.dead = 1, ["a"]
        report = ward.cycle()

        assert [each.denied for each in report.executed] == ["frozen", "frozen"]
        assert (ward.called, report.after) == ([], None)

    def test_the_second_diagnosis_sees_the_repair(self) -> None:
        """Case 13 and the trap of the cache."""
        ward = Ward()
        ward.stale = 1
        report = ward.cycle()

        assert report.after is not None
        assert report.after.fact("queue", "leaseAnomalies") == 0
        assert ward.diary.phases == ["diagnose", "repair", "diagnose-again"]
        assert ward.diary.kept["after"]["delta"] == report.delta

    def test_one_failing_action_stops_no_other(self) -> None:
        """Case 38."""
        ward = Ward()
        ward.dead, ward.stale = ["a"], 1

        def broken(_permit: Permit) -> None:
            raise OSError("no room")

        ward.actions[REQUEUE] = broken
        report = ward.cycle()

        assert outcomes(report) == [(REQUEUE, False), (RELEASE, True)]
        assert report.executed[0].message == "no room"

    def test_a_domain_that_cannot_be_looked_at_stops_nothing(self) -> None:
        """Case 38: no provider, and the cycle returns."""

        def broken() -> dict[str, Any]:
            raise RuntimeError("no provider")

        ward = Ward()
        ward.more = [Domain("providers", 0.2, broken)]
        ward.stale = 1
        report = ward.cycle()

        assert outcomes(report) == [(RELEASE, True)]

    def test_it_is_no_clean_cycle_then(self) -> None:
        def broken() -> dict[str, Any]:
            raise RuntimeError("no provider")

        ward = Ward()
        ward.stopped = 1
        ward.cycle()
        ward.stopped, ward.more = 0, [Domain("providers", 0.2, broken)]
        ward.cycle()

        assert ward.gatekeeper.get(CHECK_VIEWS).strikes == 1

    def test_a_cooldown_only_puts_off(self) -> None:
        ward = Ward()
        ward.stale = 1
        ward.cycle()
        ward.stale = 1
        report = ward.cycle(wait_us=10 * SECOND_US)

        assert report.executed[0].denied == "cooldown"
        assert ward.gatekeeper.get(RELEASE).strikes == 0
        assert ward.diary.end == ("skipped", "repairs_put_off")

    def test_a_gate_that_cannot_be_asked_is_told(self) -> None:
        ward = Ward()
        ward.stale = 1
        ward.cycle(OBSERVE)

        def full(*_records: Any, **_more: Any) -> list[int]:
            from tachograph.domain.errors import StoreFullError

            raise StoreFullError("there", "full")

        ward.log.append = full  # type: ignore[method-assign]
        report = ward.cycle()

        assert outcomes(report) == [(RELEASE, False)]
        assert "could not be asked" in report.executed[0].message


class TestHalt:
    """Case 37 and the traps of spec §3.2."""

    def test_three_cycles_that_do_not_help_halt_the_action(self) -> None:
        """Case 37, trap (c)."""
        ward = Ward()
        ward.stopped = 1
        for _ in range(3):
            assert ward.cycle().executed[0].denied is None
        report = ward.cycle()

        assert ward.called == []
        assert report.executed[0].denied == "halted"
        assert "explain-action" in report.executed[0].message
        assert ward.diary.end == ("success_with_review", "repairs_not_done")

    def test_a_clean_cycle_resets(self) -> None:
        """Case 37."""
        ward = Ward()
        ward.stopped = 1
        for _ in range(4):
            ward.cycle()
        ward.stopped = 0
        report = ward.cycle()
        ward.stopped = 1
        ward.cycle()

        assert report.reset == [CHECK_VIEWS]
        assert ward.called == [CHECK_VIEWS]

    def test_one_that_helps_does_not_clear_another_that_does_not(self) -> None:
        """Trap (a): the original gave all actions of a cycle one common flag."""
        ward = Ward()
        ward.stopped = 1
        for _ in range(3):
            ward.stale = 1
            ward.cycle()

        assert ward.gatekeeper.get(RELEASE).strikes == 0
        assert ward.gatekeeper.get(CHECK_VIEWS).halted

    def test_a_denied_one_is_no_strike(self) -> None:
        """Trap (a): in the original it was."""
        ward = Ward()
        ward.stopped = 1
        ward.cycle()
        for _ in range(5):
            ward.cycle(wait_us=SECOND_US)

        assert ward.gatekeeper.get(CHECK_VIEWS).strikes == 1

    def test_a_requeue_whose_jobs_die_again_is_halted(self) -> None:
        """Trap (b): the original judged it before the jobs ran, and it never ended."""
        ward = Ward()
        ward.dead = ["a", "b"]
        for _ in range(3):
            ward.cycle()
            ward.end_jobs(AGAIN)
        report = ward.cycle()

        assert [judged.improved for judged in report.judged] == [False]
        assert report.executed[0].denied == "halted"

    def test_it_is_not_judged_before_its_jobs_have_ended(self) -> None:
        """Trap (b)."""
        ward = Ward()
        ward.dead = ["a", "b"]
        report = ward.cycle()

        assert report.judged == []
        assert ward.gatekeeper.get(REQUEUE).unjudged.keys() == {f"{REQUEUE}~1"}

    def test_while_they_wait_a_cycle_is_not_clean(self) -> None:
        """Jobs that wait look like health: they must not reset what is known."""
        ward = Ward()
        ward.dead = ["a"]
        ward.cycle()
        ward.end_jobs(AGAIN)
        ward.cycle()
        report = ward.cycle()

        assert (report.recommendations, report.reset) == ([], [])
        assert ward.gatekeeper.get(REQUEUE).strikes == 1

    def test_jobs_that_are_completed_clear_it(self) -> None:
        ward = Ward()
        ward.dead = ["a"]
        ward.cycle()
        ward.end_jobs(AGAIN)
        ward.cycle()
        ward.end_jobs(DONE)
        report = ward.cycle()

        assert [judged.improved for judged in report.judged] == [True]
        assert ward.gatekeeper.get(REQUEUE).strikes == 0

    def test_a_repair_by_a_person_is_judged_too(self) -> None:
        ward = Ward()
        with ward.gatekeeper.gate(REQUEUE, OPERATOR, "by hand") as permit:
            permit.done(1, watched=["a"])
        ward.fates["a"] = AGAIN

        assert [judged.improved for judged in ward.cycle().judged] == [False]


class TestJudging:
    """What says that a repair helped."""

    def seen(self, *fates: str, action: str = REQUEUE, ended_us: int = NOW, **said: Any) -> Any:
        """Return what is seen of a repair whose jobs had these fates."""
        jobs = {str(number): fate for number, fate in enumerate(fates)}
        judging = Judging(Ward().gatekeeper, lambda _action, job, _kept: jobs[job], lambda: NOW)
        kept = {"success": True, "affected": len(jobs), "message": "", "baseline": None}
        seen = judging.seen(action, kept | {"watched": list(jobs), "ended_us": ended_us} | said)
        return None if seen is None else seen[0]

    @pytest.mark.parametrize(
        ("fates", "helped"),
        [
            ((DONE,), True),
            ((AGAIN,), False),
            ((DONE, AGAIN, AGAIN), True),
            ((DONE, *[AGAIN] * 10), False),
            ((GONE, AGAIN), False),
            ((GONE,), None),
        ],
    )
    def test_by_its_jobs(self, fates: tuple[str, ...], helped: bool | None) -> None:
        assert self.seen(*fates) is helped

    def test_it_is_waited_for_them(self) -> None:
        assert self.seen(AGAIN, WAITS) is None
        assert self.seen(WAITS) is None

    def test_not_for_those_that_can_change_nothing(self) -> None:
        """Else one job that waits for its time would let the others be requeued for ever."""
        assert self.seen(DONE, WAITS) is True
        assert self.seen(*[AGAIN] * 30, WAITS) is False

    def test_not_for_ever(self) -> None:
        late = NOW - PATIENCE_US - 1

        assert self.seen(AGAIN, WAITS, ended_us=late) is False
        assert self.seen(WAITS, ended_us=late) is None

    def test_one_that_failed_did_not_help(self) -> None:
        assert self.seen(WAITS, success=False) is False

    @pytest.mark.parametrize("action", [SWEEP, CANCEL, PRUNE])
    @pytest.mark.parametrize(
        ("affected", "expected", "helped"), [(3, 7, True), (0, 7, False), (0, 0, None)]
    )
    def test_by_what_went(
        self, action: str, affected: int, expected: int, helped: bool | None
    ) -> None:
        kept: dict[str, Any] = {"affected": affected, "baseline": {"expected": expected}}

        assert by_what_went(kept)[0] is helped
        assert self.seen(action=action, **kept) is helped


def told(*events: str, **fields: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return events of a job, a second apart; `~` and the name of a repair follow a requeue."""
    found = []
    for second, event in enumerate(events, start=1):
        kind, _, repair = event.partition("~")
        said = {"time_us": second * SECOND_US, "repair": repair or None, **fields}
        found.append((f"queue.job-{kind}", said))
    return found


class TestFates:
    """What became of a job, by its events."""

    @pytest.mark.parametrize(
        ("events", "fate"),
        [
            (("died", "requeued~r1"), WAITS),
            (("died", "requeued~r1", "leased"), WAITS),
            (("died", "requeued~r1", "leased", "completed"), DONE),
            (("died", "requeued~r1", "leased", "failed", "died"), AGAIN),
            (("died", "requeued~r1", "cancelled"), GONE),
            (("died", "requeued~r1", "leased", "died", "requeued~r2", "completed"), AGAIN),
            (("died", "requeued", "leased", "died"), AGAIN),
        ],
    )
    def test_after_a_requeue(self, events: tuple[str, ...], fate: str) -> None:
        assert fates.after_requeue(told(*events), "r1", 100 * SECOND_US) == fate

    def test_after_another_requeue_only(self) -> None:
        events = told("died", "requeued~r2", "completed")

        assert fates.after_requeue(events, "r1", 100 * SECOND_US) == WAITS

    @pytest.mark.parametrize(
        ("events", "fate"),
        [
            (("leased", "released"), WAITS),
            (("leased", "released", "died"), DONE),
            (("leased", "released", "leased"), DONE),
            (("leased", "released", "cancelled"), GONE),
        ],
    )
    def test_after_a_release(self, events: tuple[str, ...], fate: str) -> None:
        assert fates.after_release(told(*events, code="owner_gone"), 100 * SECOND_US) == fate

    def test_after_a_release_that_was_lost_again(self) -> None:
        events = told("leased", "released", "leased", "released", code="owner_gone")

        assert fates.after_release(events, 2 * SECOND_US) == AGAIN

    def test_after_a_release_whose_holder_is_lost_now(self) -> None:
        events = told("leased", "released", "leased", code="owner_gone")

        assert fates.after_release(events, 100 * SECOND_US, lost_now=lambda: True) == AGAIN


class Views:
    """Views that are wrong so many times."""

    def __init__(self, *found: tuple[int, str | None]) -> None:
        self.found = list(found)
        self.rebuilt = 0

    def wrong(self) -> tuple[int, str | None]:
        """Return the next finding."""
        return self.found.pop(0)

    def rebuild(self) -> None:
        """Count it."""
        self.rebuilt += 1


class TestActions:
    """Those that need no choice of jobs."""

    def done(self, work: Callable[[Permit], None], action: str = CHECK_VIEWS) -> Any:
        """Do one, and return the permit."""
        with Ward().gatekeeper.gate(action, OPERATOR, "by hand") as permit:
            work(permit)
        return permit

    def test_views_that_are_right_stay(self) -> None:
        views = Views((0, None))
        permit = self.done(lambda permit: acting.check_views(views, permit))

        assert (permit.success, permit.affected, views.rebuilt) == (True, 0, 0)

    def test_views_that_differ_are_made_anew(self) -> None:
        views = Views((3, None), (0, None))
        permit = self.done(lambda permit: acting.check_views(views, permit))

        assert (permit.success, permit.affected, views.rebuilt) == (True, 3, 1)

    def test_where_that_does_not_help_it_says_so(self) -> None:
        views = Views((0, "stopped at 7"), (0, "stopped at 7"))
        permit = self.done(lambda permit: acting.check_views(views, permit))

        assert (permit.success, permit.affected) == (False, 0)
        assert "stopped at 7" in permit.message

    def test_a_release_says_how_many_died(self) -> None:
        class Queues:
            def release_stale(self) -> Released:
                return Released(["a"], ["b", "c"])

        permit = self.done(lambda permit: acting.release_stale(Queues(), permit), RELEASE)  # type: ignore[arg-type]

        assert permit.message == (
            "released 1 stale lease(s) back to pending and dead-lettered 2 exhausted job(s)"
        )

    def test_readers_are_counted(self) -> None:
        permit = self.done(lambda permit: acting.clear_readers(lambda: 2, permit))

        assert (permit.affected, permit.message) == (2, "cleared 2 slot(s) of killed readers")


def test_the_reason_names_what_was_not_done() -> None:
    ward = Ward(RepairPolicy(frozen=True))
    ward.stale = 1
    outcome, code, reason = end_of(ward.cycle())

    assert (outcome, code) == ("success_with_review", "repairs_not_done")
    assert reason.startswith("releaseStaleLeases: ")


def test_a_report_is_plain() -> None:
    report = CareReport("run-1", EXECUTE, Health(0, [DomainHealth("queue", 1.0, {})]), [])

    assert report.to_fields()["report"]["composite"] == {"score": 1.0, "status": "healthy"}
