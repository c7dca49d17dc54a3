"""Who may begin a repair now, and when an action that does not help is halted."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from tachograph.domain.errors import InvalidValueError, UnknownEventTypeError, VersionConflictError
from tachograph.domain.event import Cause
from tachograph.domain.records import NewRecord, SnapshotRecord
from tachograph.domain.repair_errors import (
    BUDGET,
    COOLDOWN,
    DISABLED,
    FROZEN,
    HALTED,
    RepairDeniedError,
    RepairWaitError,
    denied,
)
from tachograph.domain.repair_events import REPAIR_EVENTS, RepairAllowed
from tachograph.domain.repair_policy import (
    ACTIONS,
    AGENT,
    CHECK_VIEWS,
    DAEMON,
    HOUR_US,
    MINUTE_US,
    OBSERVE,
    OPERATOR,
    REQUEUE,
    SECOND_US,
    ActionLimits,
    RepairPolicy,
)
from tachograph.domain.repairs import MOST_UNJUDGED, Repairs, check_action, some_of, stream_of
from tachograph.infra.codec import Codec
from tachograph.infra.memory_log import MemoryLog
from tachograph.packing import Packing
from tachograph.queues.gatekeeping import SNAPSHOT_EVERY, Gatekeeper
from tachograph.session import Actor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.domain.repairs import Denial

NOW = 1_700_000_000_000_000
STEP = Codec().pack(
    {
        "action": REQUEUE,
        "repair": f"{REQUEUE}~1",
        "number": 1,
        "affected": 1,
        "detail": None,
        "time_us": NOW,
        "by": ["tacho", "ada", 17, 0],
    }
)
"""The body of an event."""
POLICY = RepairPolicy()


def at(time_us: int) -> Cause:
    """A cause of that moment."""
    return Cause(time_us, "mira", "ada", 17)


class Case:
    """The repairs of one action, with a clock that is moved by hand."""

    def __init__(self, policy: RepairPolicy = POLICY, action: str = REQUEUE) -> None:
        self.policy = policy
        self.now = NOW
        self.repairs = Repairs(action)

    def asked(self, kind: str = DAEMON, **options: Any) -> Denial | None:
        """Ask the gate now."""
        return self.repairs.begin(at(self.now), self.policy, kind, "because", **options)

    def rule(self, kind: str = DAEMON, **options: Any) -> str | None:
        """Ask the gate now; the rule that denies, None when none does."""
        denial = self.asked(kind, **options)
        return None if denial is None else denial.rule

    def done(self, affected: int = 3, *, improved: bool | None = None, **said: Any) -> str:
        """Do a repair beyond the cooldown, and judge it unless `improved` is None."""
        self.now += HOUR_US
        assert self.rule() is None
        repair = f"{self.repairs.action}~{self.repairs.count}"
        self.repairs.end(at(self.now), repair, affected, "done", **said)
        if improved is not None:
            self.judge(repair, improved)
        return repair

    def judge(self, repair: str, improved: bool | None) -> None:
        """Judge a repair."""
        evidence = {"text": "seen"}
        self.repairs.judge(at(self.now), self.policy, repair, evidence, improved=improved)

    def topics(self) -> list[str]:
        """Return what was recorded and not collected."""
        return [event.TOPIC.removeprefix("repair.") for event in self.repairs.collect_events()]


class TestCooldown:
    """Case 19: the first passes, the next only once the cooldown is over."""

    def test_the_first_repair_is_allowed(self) -> None:
        assert Case().rule() is None

    def test_within_the_cooldown_it_is_denied_with_the_time_that_is_left(self) -> None:
        case = Case()
        case.asked()
        case.now += 20 * SECOND_US

        denial = case.asked()

        assert denial is not None
        assert (denial.rule, denial.remaining_us) == (COOLDOWN, 40 * SECOND_US)

    def test_exactly_at_the_cooldown_it_is_allowed(self) -> None:
        case = Case()
        case.asked()
        case.now += 60 * SECOND_US

        assert case.rule() is None

    def test_one_microsecond_before_it_is_not(self) -> None:
        case = Case()
        case.asked()
        case.now += 60 * SECOND_US - 1

        assert case.rule() == COOLDOWN

    @pytest.mark.parametrize("kind", [OPERATOR, AGENT, DAEMON])
    def test_it_binds_everybody_alike(self, kind: str) -> None:
        """The original never asked the limiter for operators and daemons (#1784)."""
        case = Case()
        case.asked(DAEMON)

        assert case.rule(kind) == COOLDOWN

    def test_each_action_has_its_own(self) -> None:
        assert POLICY.of(CHECK_VIEWS) == ActionLimits(5 * MINUTE_US, 5)
        assert POLICY.of(REQUEUE) == ActionLimits(MINUTE_US, 50)


class TestBudget:
    """Case 19: so many within any hour."""

    def filled(self, runs: int = 50) -> Case:
        """A case in which so many were allowed, a minute apart."""
        case = Case()
        for _ in range(runs):
            assert case.rule() is None
            case.now += MINUTE_US
        return case

    def test_the_fiftieth_is_allowed(self) -> None:
        assert self.filled(49).rule() is None

    def test_the_fifty_first_is_denied_until_the_first_is_an_hour_ago(self) -> None:
        case = self.filled()

        denial = case.asked()

        assert denial is not None
        assert (denial.rule, denial.remaining_us) == (BUDGET, 10 * MINUTE_US)

    def test_when_the_first_is_an_hour_ago_there_is_room_for_one(self) -> None:
        case = self.filled()
        case.now = NOW + HOUR_US

        assert case.rule() is None
        case.now += MINUTE_US - 1
        assert case.rule() == COOLDOWN

    def test_an_hour_after_the_last_all_of_it_is_there_again(self) -> None:
        case = self.filled()
        case.now += HOUR_US

        assert [case.repairs.denies(POLICY, DAEMON, case.now + n) for n in range(3)] == [None] * 3

    @over(
        st.lists(st.integers(0, 40 * SECOND_US), min_size=1, max_size=120),
        st.integers(1, 4),
        st.integers(0, 30 * SECOND_US),
    )
    def test_never_more_than_the_budget_in_any_hour(
        self, waits: list[int], budget: int, cooldown_us: int
    ) -> None:
        limits = {REQUEUE: ActionLimits(cooldown_us, budget)}
        case = Case(RepairPolicy(limits=limits))
        allowed = []
        for wait in waits:
            case.now += wait * 20
            if case.rule() is None:
                allowed.append(case.now)

        for since in allowed:
            assert sum(0 <= each - since < HOUR_US for each in allowed) <= budget

    @over(st.lists(st.integers(-2 * HOUR_US, HOUR_US // 4), min_size=1, max_size=80))
    def test_a_clock_that_is_set_back_lets_no_more_through(self, moves: list[int]) -> None:
        """Within an hour of the time that the stream has seen to pass."""
        case = Case(RepairPolicy(limits={REQUEUE: ActionLimits(0, 3)}))
        allowed = []
        for move in moves:
            case.now += move
            if case.rule() is None:
                allowed.append(case.repairs.log_us)

        for since in allowed:
            assert sum(0 <= each - since < HOUR_US for each in allowed) <= 3


class TestSetBack:
    """A clock that was wrong does not block an action for as long as it was wrong."""

    def test_time_goes_on_from_the_denial_that_met_it(self) -> None:
        case = Case()
        case.asked()
        case.now -= 24 * HOUR_US

        assert case.rule() == COOLDOWN
        case.now += MINUTE_US
        assert case.rule() is None

    def test_without_any_time_passed_it_stays_denied(self) -> None:
        case = Case()
        case.asked()
        case.now -= 24 * HOUR_US
        case.asked()

        assert case.rule() == COOLDOWN


class TestWho:
    """Case 20: frozen denies all, enabled=false agents only."""

    @pytest.mark.parametrize("kind", [OPERATOR, AGENT, DAEMON])
    @pytest.mark.parametrize("force", [False, True])
    def test_frozen_denies_everybody(self, kind: str, *, force: bool) -> None:
        case = Case(RepairPolicy(frozen=True))

        assert case.rule(kind, force=force and kind == OPERATOR) == FROZEN

    def test_switched_off_denies_agents_alone(self) -> None:
        off = RepairPolicy(enabled=False)

        assert [Case(off).rule(kind) for kind in (OPERATOR, AGENT, DAEMON)] == [
            None,
            DISABLED,
            None,
        ]

    @pytest.mark.parametrize("kind", ["", "root", "Operator"])
    def test_an_unknown_kind_of_actor_is_refused(self, kind: str) -> None:
        """The original took any text."""
        with pytest.raises(InvalidValueError):
            Case().asked(kind)

    def test_a_reason_is_needed(self) -> None:
        with pytest.raises(InvalidValueError):
            Repairs(REQUEUE).begin(at(NOW), POLICY, OPERATOR, " ")

    def test_an_unknown_action_is_refused(self) -> None:
        with pytest.raises(InvalidValueError):
            check_action("requeueAll")


class TestForce:
    """A person may overrule limits and halt, with a reason that is kept."""

    def test_it_overrules_the_cooldown_and_says_so(self) -> None:
        case = Case()
        case.asked()

        assert case.rule(OPERATOR, force=True) is None
        last = case.repairs.last
        assert last is not None
        assert (last["forced"], last["reason"], last["actor_kind"]) == (
            COOLDOWN,
            "because",
            OPERATOR,
        )

    def test_where_nothing_had_to_be_overruled_nothing_is_said(self) -> None:
        case = Case()
        case.asked(OPERATOR, force=True)

        assert case.repairs.last is not None
        assert case.repairs.last["forced"] is None

    @pytest.mark.parametrize("kind", [AGENT, DAEMON])
    def test_nobody_else_may(self, kind: str) -> None:
        with pytest.raises(InvalidValueError):
            Case().asked(kind, force=True)

    def test_a_forced_run_counts_for_the_others(self) -> None:
        case = Case()
        case.asked(OPERATOR, force=True)

        assert case.rule(DAEMON) == COOLDOWN


class TestDenials:
    """They are recorded, and an agent that asks again and again does not fill the log."""

    def test_one_event_for_each_rule_and_kind_of_actor(self) -> None:
        case = Case()
        case.asked()
        for _ in range(1000):
            case.now += 1
            case.asked(AGENT)
            case.asked(OPERATOR)

        assert case.topics() == ["allowed", "denied", "denied"]

    def test_once_more_an_hour_later(self) -> None:
        case = Case(RepairPolicy(frozen=True))
        for _ in range(3):
            case.asked(AGENT)
            case.now += HOUR_US

        assert case.topics() == ["denied"] * 3

    def test_the_last_one_is_known(self) -> None:
        case = Case()
        case.asked()
        case.asked(AGENT)

        assert case.repairs.denial is not None
        assert case.repairs.denial["rule"] == COOLDOWN

    def test_to_look_records_nothing(self) -> None:
        case = Case()
        case.repairs.denies(RepairPolicy(frozen=True), AGENT, NOW)

        assert case.topics() == []


class TestHalt:
    """Case 37, and trap (a): by the action alone, three times in a row."""

    def test_three_that_did_not_help_halt_it(self) -> None:
        case = Case()
        for _ in range(3):
            case.done(improved=False)
        case.now += HOUR_US

        assert case.rule() == HALTED
        assert case.repairs.useless == [f"{REQUEUE}~{n}" for n in (1, 2, 3)]

    def test_two_do_not(self) -> None:
        case = Case()
        case.done(improved=False)
        case.done(improved=False)
        case.now += HOUR_US

        assert case.rule() is None

    def test_one_that_helped_clears_what_was_against_it(self) -> None:
        case = Case()
        for improved in (False, False, True, False, False):
            case.done(improved=improved)

        assert (case.repairs.strikes, case.repairs.halted) == (2, False)

    def test_what_could_not_be_seen_is_neither(self) -> None:
        case = Case()
        case.done(improved=False)
        case.judge(case.done(), None)

        assert case.repairs.strikes == 1

    def test_a_denied_one_is_no_strike(self) -> None:
        case = Case()
        case.done(improved=False)
        for _ in range(5):
            case.asked()

        assert case.repairs.strikes == 1

    @pytest.mark.parametrize("kind", [OPERATOR, AGENT, DAEMON])
    def test_it_binds_everybody(self, kind: str) -> None:
        case = self.halted()

        assert case.rule(kind) == HALTED

    def test_a_clean_cycle_ends_it(self) -> None:
        case = self.halted()

        assert case.repairs.reset(at(case.now), "run-1")
        assert (case.rule(), case.repairs.strikes) == (None, 0)

    def test_a_cycle_is_not_clean_while_an_effect_is_waited_for(self) -> None:
        """Jobs that wait after a requeue, and will die again, look like health."""
        case = Case()
        case.done(improved=False)
        case.done(watched=["a"])

        assert not case.repairs.reset(at(case.now), "run-1")
        assert case.repairs.strikes == 1

    def test_a_clean_cycle_with_nothing_to_forget_records_nothing(self) -> None:
        case = Case()

        assert not case.repairs.reset(at(case.now), None)
        assert case.topics() == []

    def test_a_person_lifts_it_with_a_reason(self) -> None:
        case = self.halted()

        with pytest.raises(InvalidValueError):
            case.repairs.lift(at(case.now), "")
        assert case.repairs.lift(at(case.now), "the cause is gone")
        assert not case.repairs.lift(at(case.now), "again")
        assert case.rule() is None

    def test_a_forced_run_that_helps_ends_it(self) -> None:
        case = self.halted()
        assert case.rule(OPERATOR, force=True) is None
        repair = f"{REQUEUE}~{case.repairs.count}"
        case.repairs.end(at(case.now), repair, 1, "done")
        case.judge(repair, improved=True)
        case.now += HOUR_US

        assert case.rule() is None

    def test_it_is_halted_once(self) -> None:
        case = self.halted()
        case.asked(OPERATOR, force=True)
        repair = f"{REQUEUE}~{case.repairs.count}"
        case.repairs.end(at(case.now), repair, 1, "done")
        case.judge(repair, improved=False)

        assert case.topics().count("halted") == 1

    def halted(self) -> Case:
        """A case whose action is halted, an hour after its last run."""
        case = Case()
        for _ in range(3):
            case.done(improved=False)
        case.now += HOUR_US
        return case


class TestEnds:
    """A repair ends once, and is judged once."""

    def test_a_second_end_records_nothing(self) -> None:
        case = Case()
        repair = case.done()
        case.topics()
        case.repairs.end(at(case.now), repair, 9, "again")

        assert case.topics() == []

    def test_a_second_judgement_records_nothing(self) -> None:
        case = Case()
        repair = case.done(improved=False)
        case.judge(repair, improved=False)

        assert case.repairs.strikes == 1

    def test_only_so_many_effects_are_waited_for(self) -> None:
        case = Case()
        for _ in range(MOST_UNJUDGED + 3):
            case.done(watched=["a"])

        assert len(case.repairs.unjudged) == MOST_UNJUDGED

    def test_of_many_jobs_some_are_watched(self) -> None:
        case = Case()
        repair = case.done(watched=[str(n) for n in range(1000)])

        assert len(case.repairs.unjudged[repair]["watched"]) == 200

    def test_steps_are_counted(self) -> None:
        case = Case()
        case.asked()
        case.repairs.do_step(at(case.now), f"{REQUEUE}~1", 1, 500)

        assert case.repairs.last is not None
        assert case.repairs.last["steps"] == 1
        assert case.repairs.open.keys() == {f"{REQUEUE}~1"}

    def test_the_aggregate_is_made_by_its_events(self) -> None:
        """The protocol of the eventsourcing library."""
        case = Case()
        case.asked()
        (event,) = case.repairs.collect_events()
        made = event.mutate(None)

        assert made.to_snapshot() == case.repairs.to_snapshot()
        assert made.begun(f"{REQUEUE}~1")


class TestPolicy:
    """What makes no sense is refused."""

    @pytest.mark.parametrize(
        "wrong",
        [
            {"mode": "dry"},
            {"interval_us": 59 * SECOND_US},
            {"interval_us": 25 * HOUR_US},
            {"halt_after": 0},
            {"limits": {"requeueAll": ActionLimits()}},
        ],
    )
    def test_of_a_policy(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidValueError):
            RepairPolicy(**wrong)

    @pytest.mark.parametrize("wrong", [(-1, 5), (0, 0), (0, 1001), (1.5, 5)])
    def test_of_limits(self, wrong: tuple[Any, Any]) -> None:
        with pytest.raises(InvalidValueError):
            ActionLimits(*wrong)

    def test_by_default_it_repairs_every_half_hour(self) -> None:
        assert (POLICY.mode, POLICY.interval_us, POLICY.halt_after) == (
            "execute",
            30 * MINUTE_US,
            3,
        )
        assert RepairPolicy(mode=OBSERVE).limits.keys() == set(ACTIONS)


class RacingLog(MemoryLog):
    """A log in which somebody else is quicker once."""

    def __init__(self) -> None:
        super().__init__()
        self.quicker: Any = None

    def append(
        self, records: Sequence[NewRecord], *, snapshot: SnapshotRecord | None = None, **more: Any
    ) -> list[int]:
        """Let the other one append first."""
        quicker, self.quicker = self.quicker, None
        if quicker is not None:
            quicker()
        return super().append(records, snapshot=snapshot, **more)


class Door:
    """A log with its gatekeepers and one clock."""

    def __init__(self, policy: RepairPolicy = POLICY) -> None:
        self.now = NOW
        self.log = RacingLog()
        self.policy = policy

    def keeper(self) -> Gatekeeper:
        """Return the gatekeeper of another process."""
        actor = Actor("tacho", "ada", 17, lambda: self.now)
        return Gatekeeper(self.log, Packing(Codec()), actor, self.policy)

    def topics(self, action: str = REQUEUE) -> list[str]:
        """Return the topics of an action's events."""
        records = self.log.read_stream(stream_of(action))
        return [record.topic.removeprefix("repair.") for record in records]


class TestGate:
    """The use case: permits, in the log."""

    def test_a_permit_ends_with_its_block(self) -> None:
        door = Door()
        with door.keeper().gate(REQUEUE, OPERATOR, "backlog", selection={"ids": ["a"]}) as permit:
            permit.done(1, "requeued 1", watched=["a"])

        assert door.topics() == ["allowed", "ended"]
        assert permit.repair == f"{REQUEUE}~1"
        assert door.keeper().get(REQUEUE).unjudged[permit.repair]["watched"] == ["a"]

    def test_steps_add_up(self) -> None:
        door = Door()
        with door.keeper().gate(REQUEUE, DAEMON, "old") as permit:
            permit.step(500)
            permit.step(20, {"until": 5})

        last = door.keeper().get(REQUEUE).last
        assert last is not None
        assert (last["affected"], last["message"], last["steps"]) == (520, "520 affected", 2)

    def test_an_error_in_the_block_is_its_end(self) -> None:
        door = Door()
        with pytest.raises(OSError, match="disk"), door.keeper().gate(REQUEUE, DAEMON, "old"):
            raise OSError("disk")

        last = door.keeper().get(REQUEUE).last
        assert last is not None
        assert (last["success"], last["message"]) == (False, "disk")

    def test_a_denial_says_the_rule_and_what_to_do(self) -> None:
        door = Door()
        door.keeper().gate(REQUEUE, OPERATOR, "backlog")

        with pytest.raises(RepairWaitError, match=r"60 s.*--force") as caught:
            door.keeper().gate(REQUEUE, AGENT, "again")

        assert (caught.value.rule, caught.value.remaining_seconds) == (COOLDOWN, 60.0)
        assert door.topics() == ["allowed", "denied"]

    def test_of_two_at_once_one_passes(self) -> None:
        """To check and to record is one step; the original did them apart."""
        door = Door()
        passed = []

        def other() -> None:
            passed.append(door.keeper().gate(REQUEUE, OPERATOR, "first"))

        door.log.quicker = other
        with pytest.raises(RepairWaitError):
            door.keeper().gate(REQUEUE, OPERATOR, "second")

        assert len(passed) == 1
        assert door.topics() == ["allowed", "denied"]

    def test_it_gives_up_when_others_are_always_quicker(self) -> None:
        class Never(RacingLog):
            def append(self, *_records: Any, **_more: Any) -> list[int]:
                raise VersionConflictError("repair", 1, 2)

        door = Door()
        door.log = Never()

        with pytest.raises(VersionConflictError):
            door.keeper().gate(REQUEUE, OPERATOR, "backlog")

    def test_limits_survive_a_restart(self) -> None:
        door = Door()
        door.keeper().gate(REQUEUE, OPERATOR, "backlog")

        denial = door.keeper().look(REQUEUE, DAEMON)

        assert denial is not None
        assert denial.rule == COOLDOWN
        assert door.topics() == ["allowed"]

    def test_a_halt_survives_a_restart_and_binds_every_process(self) -> None:
        door = Door()
        for _ in range(3):
            door.now += HOUR_US
            keeper = door.keeper()
            with keeper.gate(REQUEUE, DAEMON, "dead") as permit:
                permit.done(3)
            keeper.decide(
                REQUEUE,
                lambda repairs, cause: repairs.judge(
                    cause, POLICY, f"{REQUEUE}~{repairs.count}", {"text": "x"}, improved=False
                ),
            )
        door.now += HOUR_US

        with pytest.raises(RepairDeniedError, match="explain-action") as caught:
            door.keeper().gate(REQUEUE, OPERATOR, "once more")
        assert caught.value.rule == HALTED
        assert door.keeper().history(REQUEUE, 2)[0][0] == "repair.halted"

    def test_a_load_starts_at_the_snapshot(self) -> None:
        door = Door(RepairPolicy(limits={REQUEUE: ActionLimits(0, 1000)}))
        for _ in range(SNAPSHOT_EVERY // 2 + 1):
            with door.keeper().gate(REQUEUE, OPERATOR, "backlog") as permit:
                permit.done(1)
        snapshot = door.log.snapshot(stream_of(REQUEUE))
        whole = Repairs(REQUEUE)
        for record in door.log.read_stream(stream_of(REQUEUE)):
            whole.evolve(record.topic, door.keeper().fields(record))

        assert snapshot is not None
        assert snapshot.version == SNAPSHOT_EVERY
        assert door.keeper().get(REQUEUE).to_snapshot() == whole.to_snapshot()

    @pytest.mark.parametrize("body", [Codec().pack([99]), Codec().pack(None)])
    def test_a_snapshot_that_cannot_be_read_is_not_needed(self, body: bytes) -> None:
        door = Door()
        door.keeper().gate(REQUEUE, OPERATOR, "backlog")
        again = NewRecord(stream_of(REQUEUE), 2, "repair.step-done", NOW, STEP)
        door.log.append([again], snapshot=SnapshotRecord(stream_of(REQUEUE), 2, body))

        assert (door.keeper().get(REQUEUE).count, door.keeper().get(REQUEUE).version) == (1, 2)

    def test_an_event_of_a_newer_version_is_not_passed_over(self) -> None:
        """A limit that is not understood must not let more through."""
        door = Door()
        newer = NewRecord(stream_of(REQUEUE), 1, "repair.of-tomorrow", NOW, Codec().pack({}))
        door.log.append([newer])

        with pytest.raises(UnknownEventTypeError):
            door.keeper().gate(REQUEUE, OPERATOR, "backlog")

    def test_what_its_steps_affected_counts_where_nothing_else_is_said(self) -> None:
        door = Door()
        with door.keeper().gate(REQUEUE, DAEMON, "old") as permit:
            permit.step(3)
            permit.done(message="swept")

        assert permit.affected == 3


@pytest.mark.parametrize("rule", [FROZEN, DISABLED, HALTED, COOLDOWN, BUDGET])
def test_an_error_survives_pickling(rule: str) -> None:
    error = denied(REQUEUE, rule, 5_000_000)
    again = pickle.loads(pickle.dumps(error))

    assert (type(again), str(again), again.rule) == (type(error), str(error), rule)


def test_every_event_has_its_own_topic() -> None:
    assert len(REPAIR_EVENTS) == 7
    assert REPAIR_EVENTS["repair.allowed"] is RepairAllowed


def test_of_few_jobs_all_are_watched() -> None:
    assert some_of(["a", "b"], 2) == ["a", "b"]


class TestTwoAtOnce:
    """A person may begin one repair by force while another one of the action is under way."""

    def test_what_the_earlier_one_does_is_not_told_of_the_later_one(self) -> None:
        repairs = Repairs(REQUEUE)
        cause = Cause(NOW, "tester", "here", 7)
        repairs.begin(cause, RepairPolicy(), OPERATOR, "first")
        first = f"{REQUEUE}~1"
        repairs.begin(cause, RepairPolicy(), OPERATOR, "second", force=True)
        repairs.do_step(cause, first, 1, 3)
        repairs.end(cause, first, 3, "three of the first")

        assert repairs.last is not None
        assert (repairs.last["repair"], repairs.last["reason"]) == (f"{REQUEUE}~2", "second")
        assert "message" not in repairs.last
        assert list(repairs.open) == [f"{REQUEUE}~2"]


def test_a_denial_names_its_action() -> None:
    assert denied(REQUEUE, COOLDOWN, SECOND_US).action == REQUEUE
