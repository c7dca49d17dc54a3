"""Whatever happens to a run: its events alone, or a snapshot and the events since, tell the same.

Random commands, those that are refused included, against the three ways to know a run.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from given_when_then import NOW_US, OWNER, PERSON, RUN_ID, Fact, fact, replayed
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tachograph.domain import events, outcome
from tachograph.domain.answers import FAULTS
from tachograph.domain.errors import RefusalError
from tachograph.domain.event import Cause
from tachograph.domain.expectations import Expectations
from tachograph.domain.gate import Facts
from tachograph.domain.recovery import Recovery
from tachograph.domain.run import Run
from tachograph.infra.codec import Codec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.domain.event import Event

    Changes = dict[str, str | None]

P = ParamSpec("P")

CODEC = Codec()

keys = st.sampled_from(["a", "b"])
indexes = st.integers(-1, 6)
counts = st.none() | st.integers(0, 9)
texts = st.sampled_from(["", "why"])
values = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)
reasons = st.sampled_from(
    ["max_retries_reached", "effects_in_doubt", "approval_rejected", "adapter_asks", "own"]
)
digests = st.sampled_from(["d1", "d2"])
cards = st.dictionaries(st.sampled_from(["goal", "notes"]), st.none() | st.text(max_size=2))
FACTS_WITHOUT_A_COMMAND = st.sampled_from(
    [
        fact(events.StallDetected, evidence={"minutes": 30}),
        fact(events.ResumeDispatched, adapter="m:f", from_version=1),
        fact(events.ResumeReturned, progressed=True),
        fact(events.AttentionCleared, reason="never raised"),
        fact(events.VerdictRevised, outcome="partial", rule="r", reason_code="c", reason="so"),
    ]
)


class RunMachine(RuleBasedStateMachine):
    """A run, the events it recorded, and every snapshot that was taken of it."""

    def __init__(self) -> None:
        super().__init__()
        self.run = Run()
        self.events: list[Event] = []
        self.snapshots: list[tuple[dict[str, Any], bytes]] = []
        self.clock = NOW_US

    def now(self, epoch: int) -> Cause:
        self.clock += 1
        return Cause(self.clock, "tacho", "ada", 17, epoch)

    def ask(
        self,
        method: Callable[Concatenate[Run, Cause, P], object],
        epoch: int,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Give a command; a refusal must leave the run as it was."""
        before = deepcopy(self.run.to_snapshot())
        try:
            method(self.run, self.now(epoch), *args, **kwargs)
        except RefusalError:
            assert self.run.pending_events == []
            assert self.run.to_snapshot() == before
        self.events += self.run.collect_events()

    @initialize(inputs=values, begun=st.sampled_from([False, True, True, True]))
    def create(self, inputs: object, begun: bool) -> None:
        self.run = Run.create(
            PERSON, RUN_ID, command="c", fingerprint="f", inputs=inputs, inputs_digest="d"
        )
        self.events += self.run.collect_events()
        if begun:
            self.ask(Run.start_attempt, 0, OWNER, live_owner=None)

    @rule(reason=st.none() | texts, live_owner=st.none() | st.just("process 17"))
    def start_attempt(self, reason: str | None, live_owner: str | None) -> None:
        self.ask(Run.start_attempt, 0, OWNER, live_owner=live_owner, reason=reason)

    @rule(name=keys, safe=st.booleans())
    def start_phase(self, name: str, safe: bool) -> None:
        self.ask(Run.start_phase, self.run.epoch, name, safe_to_retry=safe)

    @rule(name=keys, total=indexes, digest=texts)
    def plan_batches(self, name: str, total: int, digest: str) -> None:
        self.ask(Run.plan_batches, self.run.epoch, name, total=total, size=2, items_digest=digest)

    @rule(name=keys, index=indexes, inputs=counts, parsed=counts, output=values)
    def complete_batch(
        self, name: str, index: int, inputs: int | None, parsed: int | None, output: object
    ) -> None:
        self.ask(
            Run.complete_batch,
            self.run.epoch,
            name,
            index,
            inputs=inputs,
            parsed=parsed,
            output=output,
        )

    @rule(name=keys, status=st.sampled_from(["completed", "failed", "skipped", "odd"]))
    def end_phase(self, name: str, status: str) -> None:
        self.ask(Run.end_phase, self.run.epoch, name, status=status, summary="so")

    @rule(phase=st.none() | keys, state=values)
    def save_checkpoint(self, phase: str | None, state: object) -> None:
        self.ask(Run.save_checkpoint, self.run.epoch, phase=phase, state=state)

    @rule(offset=indexes, total=indexes)
    def save_offset(self, offset: int, total: int) -> None:
        state = {"offset": offset, "total": total}
        self.ask(Run.save_checkpoint, self.run.epoch, kind="offset", state=state)

    @rule(key=keys, result=values)
    def complete_step(self, key: str, result: object) -> None:
        self.ask(Run.complete_step, self.run.epoch, key, result)

    @rule(key=keys, idempotent=st.booleans())
    def intend_effect(self, key: str, idempotent: bool) -> None:
        self.ask(Run.intend_effect, self.run.epoch, key, idempotent=idempotent)

    @rule(key=keys, reason=texts, epoch=st.integers(0, 2))
    def allow_effect_retry(self, key: str, reason: str, epoch: int) -> None:
        self.ask(Run.allow_effect_retry, epoch, key, reason)

    @rule(key=keys, result=values, reason=st.none() | texts, epoch=st.integers(0, 2))
    def complete_effect(self, key: str, result: object, reason: str | None, epoch: int) -> None:
        self.ask(Run.complete_effect, epoch, key, result, reason=reason)

    @rule(name=keys, size=indexes)
    def record_artifact(self, name: str, size: int) -> None:
        self.ask(Run.record_artifact, self.run.epoch, name, path="p", size=size, sha256="ab")

    @rule(completed=indexes, total=counts)
    def report_progress(self, completed: int, total: int | None) -> None:
        self.ask(Run.report_progress, self.run.epoch, completed, total)

    @rule(attempt=indexes)
    def schedule_retry(self, attempt: int) -> None:
        self.ask(Run.schedule_retry, self.run.epoch, "parse", attempt)

    @rule()
    def take_fallback(self) -> None:
        self.ask(Run.take_fallback, self.run.epoch, "large", "small")

    @rule(text=texts, epoch=st.integers(0, 2))
    def add_note(self, text: str, epoch: int) -> None:
        self.ask(Run.add_note, epoch, text)

    @rule(inputs=counts, outputs=counts, declared=st.none() | texts)
    def judge(self, inputs: int | None, outputs: int | None, declared: str | None) -> None:
        self.ask(Run.judge, self.run.epoch, Facts(inputs, outputs, declared))

    @rule(
        phase=st.none() | keys,
        batch=st.none() | st.integers(0, 3),
        asked=st.integers(0, 3),
        parsed=st.none() | st.integers(0, 3),
        filtered=st.none() | st.integers(0, 3),
        declared=st.none() | texts,
        fault=st.none() | st.sampled_from(FAULTS),
    )
    def receive_answer(self, asked: int, **said: Any) -> None:
        self.ask(Run.receive_answer, self.run.epoch, asked=asked, answered=asked, **said)

    @rule(inputs=counts, files=st.lists(keys, max_size=2), ahead=st.none() | st.integers(0, 9))
    def expect(self, inputs: int | None, files: list[str], ahead: int | None) -> None:
        deadline_us = None if ahead is None else self.clock + ahead
        said = Expectations(inputs=inputs, files=files, deadline_us=deadline_us)
        self.ask(Run.expect, self.run.epoch, said)

    @rule(result=st.none() | st.sampled_from(outcome.OUTCOMES))
    def finish(self, result: str | None) -> None:
        self.ask(Run.finish, self.run.epoch, result)

    @rule(how=st.sampled_from([Run.cancel, Run.expire, Run.block, Run.block]), reason=texts)
    def end_or_block(self, how: Callable[[Run, Cause, str], None], reason: str) -> None:
        self.ask(how, 0, reason)

    @rule(
        retries=st.integers(-1, 3),
        in_doubt=st.sampled_from(["ask", "retry", "skip", "odd"]),
        reason=st.none() | texts,
        epoch=st.integers(0, 2),
    )
    def declare_recovery(self, retries: int, in_doubt: str, reason: str | None, epoch: int) -> None:
        recovery = Recovery(adapter="m:f", max_retries=retries, in_doubt=in_doubt)
        self.ask(Run.declare_recovery, epoch, recovery, reason=reason)

    @rule(pid=st.integers(17, 19))
    def start_worker(self, pid: int) -> None:
        self.ask(Run.start_worker, self.run.epoch, {**OWNER, "pid": pid})

    @rule(runs=st.lists(st.sampled_from(["job-a", "job-b", ""]), max_size=3))
    def depend_on(self, runs: list[str]) -> None:
        self.ask(Run.depend_on, 0, runs)

    @rule(changes=cards, entries=st.lists(cards, max_size=2), epoch=st.integers(0, 2))
    def change_card(self, changes: Changes, entries: list[Changes], epoch: int) -> None:
        self.ask(Run.change_card, epoch, changes, entries)

    @rule(name=keys, subject=values, digest=digests)
    def request_approval(self, name: str, subject: object, digest: str) -> None:
        self.ask(Run.request_approval, self.run.epoch, name, subject=subject, subject_digest=digest)

    @rule(
        how=st.sampled_from([Run.approve, Run.reject]),
        name=keys,
        reason=texts,
        digest=st.none() | digests,
    )
    def decide(self, how: Callable[..., None], name: str, reason: str, digest: str | None) -> None:
        command: Any = how
        self.ask(command, 0, name, reason, subject_digest=digest)

    @rule(kind=st.sampled_from(["gone", "silent"]), epoch=st.integers(0, 2))
    def detect_stall(self, kind: str, epoch: int) -> None:
        self.ask(Run.detect_stall, epoch, kind, {"reason": "so"})

    @rule(adapter=st.sampled_from(["m:f", ""]), unattended=st.booleans())
    def dispatch_resume(self, adapter: str, unattended: bool) -> None:
        plan = {"unattended": unattended, "execute": {"kind": "command"}}
        self.ask(Run.dispatch_resume, self.run.epoch, adapter, plan)

    @rule(error=st.none() | texts, left=st.booleans(), epoch=st.integers(0, 2))
    def return_resume(self, error: str | None, left: bool, epoch: int) -> None:
        self.ask(Run.return_resume, epoch, {"error": error, "left_running": [18] * left})

    @rule(reason=reasons, detail=st.none() | texts, epoch=st.integers(0, 2))
    def raise_attention(self, reason: str, detail: str | None, epoch: int) -> None:
        self.ask(Run.raise_attention, epoch, reason, detail)

    @rule(reason=reasons, epoch=st.integers(0, 2))
    def clear_attention(self, reason: str, epoch: int) -> None:
        self.ask(Run.clear_attention, epoch, reason)

    @rule(location=st.sampled_from(["old.tar", ""]))
    def archive(self, location: str) -> None:
        self.ask(Run.archive, 0, location, "ab")

    @rule(happened=FACTS_WITHOUT_A_COMMAND)
    def happen(self, happened: Fact) -> None:
        event = happened.at(self.run.version + 1, self.now(0))
        event.mutate(self.run)
        self.events.append(event)

    @rule()
    def take_snapshot(self) -> None:
        snapshot = self.run.to_snapshot()
        self.snapshots.append((snapshot, CODEC.pack(snapshot)))

    @invariant()
    def its_events_alone_tell_the_same(self) -> None:
        """G8: state is derived; the log is the truth."""
        if self.events:
            assert replayed(self.events).to_snapshot() == self.run.to_snapshot()

    @invariant()
    def a_finished_run_needs_nobody(self) -> None:
        assert not (self.run.finished and self.run.attention)

    @invariant()
    def every_approval_that_waits_calls_a_person(self) -> None:
        if not self.run.finished:
            for name in self.run.approvals_pending:
                assert f"approval:{name}" in self.run.attention

    @invariant()
    def versions_rise_without_gaps(self) -> None:
        """G3."""
        versions = [event.originator_version for event in self.events]
        assert versions == list(range(1, self.run.version + 1))

    @invariant()
    def every_event_has_an_exact_stored_form(self) -> None:
        for event in self.events[-2:]:
            assert CODEC.unpack(CODEC.pack(vars(event))) == vars(event)

    def teardown(self) -> None:
        """Go on from every snapshot, as it was held in memory and as it was stored."""
        for held, stored in self.snapshots:
            assert CODEC.pack(held) == stored, "the run went on and changed a snapshot of it"
            for snapshot in (held, CODEC.unpack(stored)):
                run = Run()
                assert isinstance(snapshot, dict)
                assert run.restore(snapshot)
                for event in self.events[run.version :]:
                    event.mutate(run)

                assert run.to_snapshot() == self.run.to_snapshot()
            assert CODEC.pack(held) == stored, "a run restored from a snapshot changed it"


TestRun = RunMachine.TestCase
TestRun.settings = settings(max_examples=60, stateful_step_count=40)


def test_a_snapshot_of_another_format_is_not_taken() -> None:
    """It is derived: the run is folded from its events instead."""
    snapshot = replayed(
        [fact(events.RunCreated, command="c", fingerprint="f", inputs_digest="d").at(1, PERSON)]
    ).to_snapshot()
    run = Run()

    assert not run.restore({**snapshot, "snapshot_format": 0})
    assert not run.restore({})
    assert run.to_snapshot() == Run().to_snapshot()


def test_a_snapshot_holds_no_pending_events() -> None:
    run = Run.create(PERSON, RUN_ID, command="c", fingerprint="f", inputs=1, inputs_digest="d")

    assert run.pending_events != []
    assert not any(name.startswith("_") for name in run.to_snapshot())
