"""Whatever a run has done: a fork at any of its versions has done the same, and nothing else."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from given_when_then import NOW_US, OWNER, PERSON, RUN_ID, replayed
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from run_commands import ANYBODY, BOOKKEEPING, OWNED, REMARKS, TAKEOVER

from tachograph.domain.errors import RefusalError
from tachograph.domain.event import Cause
from tachograph.domain.expectations import Expectations
from tachograph.domain.recovery_state import ending_key
from tachograph.domain.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.domain.event import Event

keys = st.sampled_from(["a", "b"])
indexes = st.integers(0, 4)
counts = st.none() | st.integers(0, 9)
FIXED = OWNED | ANYBODY | BOOKKEEPING | REMARKS | TAKEOVER

PLACES = ("version", "last_version", "batch_version", "last_batch_version", "epoch", "spans")
"""What a state says about where its events are: a fork has other versions, and no attempts."""


def work(run: Run, translated: Callable[[int], int]) -> dict[str, Any]:
    """Return what a run has done, each event by the version that it has in a fork."""
    state = run.to_snapshot()
    found = {name: state[name] for name in ("artifacts", "progress")}
    found["phases"] = [_placeless(phase) for phase in state["phases"]]
    found["answers"] = {name: _placeless(each) for name, each in state["answers"].items()}
    found["effects"] = {key: _in_a_fork(each) for key, each in state["effects"].items()}
    found["steps"] = {key: translated(version) for key, version in state["steps"].items()}
    found["checkpoint"] = state["checkpoint"] and _placeless(state["checkpoint"])
    found["expectations"] = {
        name: value
        for name, value in (state["expectations"] or {}).items()
        if name != "deadline_us"
    }
    found["times"] = [(each["started_us"], each["ended_us"]) for each in state["phases"]]
    return found


def _in_a_fork(effect: dict[str, Any]) -> dict[str, Any]:
    """Return an effect as a fork has it: that it may be done again was said of one run (G10)."""
    status = "intended" if effect["status"] == "retry_allowed" else effect["status"]
    return {**_placeless(effect), "status": status}


def _placeless(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in PLACES}


def forked(events: list[Event]) -> tuple[Run, dict[int, int]]:
    """Return a fork of a history, and the version that each of its events has there."""
    run = Run.create(PERSON, "fork", command="c", fingerprint="f", inputs=None, inputs_digest="d")
    versions: dict[int, int] = {}
    epoch = 0
    for event in events:
        fields = vars(event)
        if event.TOPIC == "run.attempt-started":
            epoch = fields["epoch"]
        then = Cause(event.time_us, "mira", "ada", 1)
        if run.inherit(then, event.TOPIC, fields, epoch=epoch):
            versions[event.originator_version] = run.version
    return run, versions


class ForkMachine(RuleBasedStateMachine):
    """A run that does all kinds of things, and is forked at every version in the end."""

    def __init__(self) -> None:
        super().__init__()
        self.run = Run()
        self.events: list[Event] = []
        self.clock = NOW_US

    def ask(self, method: Callable[..., object], *args: Any, **kwargs: Any) -> None:
        """Give a command for the present attempt; it may be refused."""
        self.clock += 1
        with suppress(RefusalError):
            method(self.run, Cause(self.clock, "tacho", "ada", 17, self.run.epoch), *args, **kwargs)
        self.events += self.run.collect_events()

    @initialize()
    def begin(self) -> None:
        self.run = Run.create(
            PERSON, RUN_ID, command="c", fingerprint="f", inputs=None, inputs_digest="d"
        )
        self.ask(Run.start_attempt, OWNER, live_owner=None)

    @rule()
    def start_attempt(self) -> None:
        self.ask(Run.start_attempt, OWNER, live_owner=None)

    @rule(name=st.sampled_from(sorted(FIXED.keys() - {"cancel", "expire", "finish"})))
    def do_something(self, name: str) -> None:
        with suppress(RefusalError):
            FIXED[name](Cause(self.clock, "tacho", "ada", 17, self.run.epoch)).call(self.run)
        self.events += self.run.collect_events()

    @rule(name=keys, safe=st.booleans())
    def start_phase(self, name: str, safe: bool) -> None:
        self.ask(Run.start_phase, name, safe_to_retry=safe)

    @rule(name=keys, total=indexes)
    def plan_batches(self, name: str, total: int) -> None:
        self.ask(Run.plan_batches, name, total=total, size=2, items_digest="i")

    @rule(name=keys, index=indexes, inputs=counts, parsed=counts, output=st.text(max_size=2))
    def complete_batch(
        self, name: str, index: int, inputs: int | None, parsed: int | None, output: str
    ) -> None:
        self.ask(Run.complete_batch, name, index, inputs=inputs, parsed=parsed, output=output)

    @rule(name=keys, status=st.sampled_from(["completed", "failed", "skipped"]))
    def end_phase(self, name: str, status: str) -> None:
        self.ask(Run.end_phase, name, status=status, summary="so")

    @rule(phase=st.none() | keys, state=st.integers())
    def save_checkpoint(self, phase: str | None, state: int) -> None:
        self.ask(Run.save_checkpoint, phase=phase, state=state)

    @rule(key=keys, result=st.integers())
    def complete_step(self, key: str, result: int) -> None:
        self.ask(Run.complete_step, key, result)

    @rule()
    def end_a_wrapped_command(self) -> None:
        self.ask(Run.complete_step, ending_key(self.run.epoch), {"exit_code": 1})

    @rule(key=keys, idempotent=st.booleans())
    def intend_effect(self, key: str, idempotent: bool) -> None:
        self.ask(Run.intend_effect, key, idempotent=idempotent)

    @rule(key=keys, reason=st.none() | st.just("seen"))
    def complete_effect(self, key: str, reason: str | None) -> None:
        self.ask(Run.complete_effect, key, reason=reason)

    @rule(key=keys)
    def allow_effect_retry(self, key: str) -> None:
        self.ask(Run.allow_effect_retry, key, "looked")

    @rule(phase=st.none() | keys, batch=st.none() | indexes, asked=indexes, parsed=counts)
    def receive_answer(
        self, phase: str | None, batch: int | None, asked: int, parsed: int | None
    ) -> None:
        self.ask(
            Run.receive_answer,
            asked=asked,
            answered=asked,
            phase=phase,
            batch=batch,
            parsed=parsed,
            fault=None if parsed else "parser",
        )

    @rule(inputs=counts, deadline=st.none() | st.integers(0, 9))
    def expect(self, inputs: int | None, deadline: int | None) -> None:
        self.ask(Run.expect, Expectations(inputs=inputs, deadline_us=deadline))

    @rule(completed=indexes)
    def report_progress(self, completed: int) -> None:
        self.ask(Run.report_progress, completed, 9)

    @rule(name=keys, size=indexes)
    def record_artifact(self, name: str, size: int) -> None:
        self.ask(Run.record_artifact, name, path="p", size=size, sha256="ab")

    @rule(result=st.sampled_from(["failed", "partial", "success"]))
    def finish(self, result: str) -> None:
        self.ask(Run.finish, result)

    def teardown(self) -> None:
        """Fork it at every version."""
        for version in range(1, len(self.events) + 1):
            source = replayed(self.events[:version])
            for epoch in range(1, source.epoch + 1):
                source.steps.pop(ending_key(epoch), None)
            fork, versions = forked(self.events[:version])

            assert work(fork, lambda place: place) == work(source, versions.__getitem__)
            assert (fork.epoch, fork.outcome, fork.verdict, fork.ended) == (0, None, None, None)
            assert fork.effects_in_doubt == [
                key
                for key, effect in source.effects.items()
                if effect["status"] in ("intended", "retry_allowed")
            ]


TestFork = ForkMachine.TestCase
TestFork.settings = settings(max_examples=40, stateful_step_count=30)
