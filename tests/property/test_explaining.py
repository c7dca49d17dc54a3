"""However a run came about, it is explained: nothing raises, and what the gate judged follows."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

from audit.bench import Audited
from audit.pages import Page
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tachograph.audit_page import page
from tachograph.cli.shapes import SHAPES
from tachograph.domain.errors import RefusalError
from tachograph.domain.expectations import Expectations
from tachograph.domain.facts import Facts
from tachograph.replaying import states

PHASES = st.sampled_from(["read", "parse"])
COUNT = st.integers(0, 4)
SOME = st.none() | COUNT
TEXTS = st.none() | st.text(max_size=12) | st.sampled_from(["(no output)", "</script>", "\ud800"])
FAULTS = st.none() | st.sampled_from(["provider", "parser", "truncated", "filter", "tool"])


class Histories(RuleBasedStateMachine):
    """A run to which anything happens, in any order; what is refused did not happen."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.bench = Audited(Path(self.folder.name))
        self.bench.job("work", run_id="job")

    def teardown(self) -> None:
        self.folder.cleanup()

    def do(self, command: str, *args: Any, **options: Any) -> None:
        session = self.bench.attempt("job")
        with contextlib.suppress(RefusalError):
            getattr(session, command)(*args, **options)

    @rule(phase=PHASES)
    def start_phase(self, phase: str) -> None:
        self.do("start_phase", phase)

    @rule(phase=PHASES, total=st.integers(0, 3))
    def plan_batches(self, phase: str, total: int) -> None:
        self.do("plan_batches", phase, total, 2, "items")

    @rule(phase=PHASES, index=st.integers(0, 3), inputs=SOME, parsed=SOME, output=TEXTS)
    def complete_batch(
        self, phase: str, index: int, inputs: int | None, parsed: int | None, output: str | None
    ) -> None:
        self.do("complete_batch", phase, index, inputs=inputs, parsed=parsed, output=output)

    @rule(phase=PHASES, status=st.sampled_from(["completed", "failed", "skipped"]))
    def end_phase(self, phase: str, status: str) -> None:
        self.do("end_phase", phase, status=status)

    @rule(
        phase=st.none() | PHASES,
        batch=st.none() | st.integers(0, 3),
        asked=COUNT,
        lost=COUNT,
        parsed=SOME,
        filtered=SOME,
        fault=FAULTS,
        text=TEXTS,
        declared=st.none() | st.just("nothing new"),
    )
    def receive_answer(self, asked: int, lost: int, text: str | None, **said: Any) -> None:
        answered = max(0, asked - lost)
        if said["filtered"] is not None:
            said["filtered"] = min(said["filtered"], answered)
        self.do("receive_answer", asked=asked, answered=answered, text=text, **said)

    @rule(inputs=SOME, fraction=st.none() | st.sampled_from([0.5, 1.0]), minutes=SOME)
    def expect(self, inputs: int | None, fraction: float | None, minutes: int | None) -> None:
        deadline_us = None if minutes is None else self.bench.now + minutes * 60_000_000
        self.do(
            "expect",
            Expectations(inputs=inputs, minimum_fraction=fraction, deadline_us=deadline_us),
        )

    @rule(
        inputs=SOME,
        outputs=SOME,
        stopped=st.none() | st.just("budget"),
        declared=st.none() | st.just("nothing new"),
        faults=SOME,
    )
    def judge(self, **facts: Any) -> None:
        self.do("judge", Facts(**facts))

    @rule()
    def do_effect(self) -> None:
        self.do("intend_effect", "mail", idempotent=True)
        self.do("complete_effect", "mail")

    @rule(outcome=st.none() | st.sampled_from(["failed", "partial", "success", "skipped"]))
    def finish(self, outcome: str | None) -> None:
        self.do("finish", outcome, reason_code=None if outcome is None else "exception")

    @rule()
    def start_again(self) -> None:
        if not self.bench.run().finished:
            if self.bench.run().attempt_open:
                self.bench.kill()
            self.bench.job("work", run_id="job")

    @rule(hours=st.integers(1, 3))
    def wait(self, hours: int) -> None:
        self.bench.passes(hours * 3_600)

    @invariant()
    def it_is_explained(self) -> None:
        audit = self.bench.audit("job")
        shape = self.bench.shape("job")

        # A lone surrogate is no Unicode: the validator of shapes knows no such text.
        SHAPES["run-explain"].validate_json(json.dumps(shape).replace("\\ud800", "?"))
        assert Page(page(audit)).data == shape
        assert all(each.isprintable() or each == "\n" for each in self.bench.screen("job"))
        if audit["judged"] is not None:
            assert audit["check"]["follows"] is True, audit["check"]["text"]
            assert self.evidence_is_where_it_says(audit)
        for fact in audit["facts"]:
            assert len(fact["events"]) == min(fact["count"], 5), fact["name"]

    def evidence_is_where_it_says(self, audit: dict[str, Any]) -> bool:
        """Fold the run from its events up to the verdict, and count once more."""
        before = audit["judged"]["version"] - 1
        (*_, moment) = states(self.bench.repository, "job", up_to_version=before)
        counted = moment.run.counted(audit["judged"]["time_us"])
        told = {each["name"]: each for each in audit["facts"] if each["source"] == "counted"}
        return all(getattr(counted.facts, name) == fact["value"] for name, fact in told.items())


Histories.TestCase.settings = settings(max_examples=40, stateful_step_count=14)
TestHistories = Histories.TestCase
