"""What the commands that explain and compare verdicts print as JSON; as in reading_shapes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Attention, Moment, Outcome, Shape, Stall


class Author(Shape):
    """Who caused an event."""

    actor: str
    host: str
    pid: int
    epoch: int = Field(description="The attempt; 0 is a person or tool outside any.")


class Place(Shape):
    """Where an event stands."""

    version: int
    position: int
    at: Moment
    topic: str


class NamedPolicy(Shape):
    """The policy of a verdict."""

    id: str
    version: int
    digest: str = Field(description="BLAKE2b-128 of its rules; empty for the oldest verdicts.")
    problem: str | None = Field(description="Why its rules are not known any more.")


class JudgedCondition(Shape):
    """A condition of the rule that decided."""

    condition: str
    value: int | float | str | None
    against: int | float | None = Field(description="What other facts come to that it names.")
    state: Literal["holds", "fails", "unsaid"]


class JudgedVerdict(Shape):
    """A verdict of the semantic gate, and its rule."""

    outcome: Outcome
    rule: str
    rule_version: int
    reason_code: str
    reason: str
    gate: str
    meaning: str | None
    rule_text: str | None
    conditions: list[JudgedCondition]
    policy: NamedPolicy
    by: Author
    version: int
    position: int
    at: Moment


class Fact(Shape):
    """A fact that the rules saw."""

    name: str
    value: int | float | str
    meaning: str
    source: Literal["counted", "stated", "derived"]
    events: list[Place] = Field(description="The first and the last events that say it.")
    count: int = Field(description="Number of the events that say it.")


class Excerpt(Shape):
    """What a model, parser or command had said."""

    what: Literal["answer", "batch", "command", "retry"]
    phase: str | None
    batch: int | None
    source: str | None
    fault: str | None
    error: str | None
    declared: str | None
    version: int
    position: int
    at: Moment
    topic: str
    text: str | None
    digest: str | None = Field(description="BLAKE2b-256 of all of it.")
    characters: int
    kept: Literal["event", "blob"] | None


class RuledOut(Shape):
    """A rule that came first and did not hold."""

    rule: str
    outcome: Outcome
    reason_code: str
    condition: str
    value: int | float | str | None
    text: str | None


class WhatIf(Shape):
    """One fact that is otherwise, and what the policy then concludes."""

    fact: str
    was: int | float | str | None
    to: int | float | str | None
    outcome: Outcome
    rule: str
    rule_version: int
    reason_code: str
    reason: str
    text: str


class WouldBe(Shape):
    """What the gate says now."""

    outcome: Outcome
    rule: str
    rule_version: int
    reason_code: str
    reason: str
    had: str | None = Field(description="What would have let it judge; None where it did.")
    refused: str | None = Field(description="What has to be done before it can be judged.")


class FactDifference(Shape):
    """A fact for which the verdict and the events before it do not say the same."""

    fact: str
    meaning: str
    recorded: int | float | str | None
    counted: int | float | str | None
    stated: bool


class Check(Shape):
    """The verdict, judged again from the log."""

    follows: bool | None = Field(description="None where that cannot be told.")
    problem: str | None
    would_be: WouldBe | None
    stated: list[str] = Field(description="Facts that only the job's word, or a look, stands for.")
    text: str = Field(description="All of this in a sentence.")
    differences: list[FactDifference]


class ExpectedFile(Shape):
    """A file that the run was to make."""

    path: str
    recorded: bool


class Expected(Shape):
    """What the run is measured by."""

    inputs: int | None
    extracted: int | None
    minimum_fraction: float | None
    deadline_at: Moment | None
    files: list[ExpectedFile]
    version: int


class Ending(Shape):
    """The event that ended the run, or its last attempt."""

    outcome: Outcome | None
    reason_code: str | None
    reason: str | None
    version: int
    position: int
    at: Moment
    topic: str
    meaning: str | None
    by: Author


class Revision(Shape):
    """A later verdict by another policy."""

    outcome: Outcome
    rule: str
    rule_version: int
    reason_code: str
    reason: str
    revises: int
    why: str
    rule_text: str | None
    policy: NamedPolicy
    by: Author
    version: int
    position: int
    at: Moment
    topic: str


class OpenPhase(Shape):
    """A phase that has not ended."""

    phase: str
    status: str
    since_at: Moment | None
    batches: int
    total: int | None


class OpenStep(Shape):
    """A step of an orchestrator run that has not ended."""

    step: str
    since_at: Moment | None


class Doing(Shape):
    """What an unfinished run was doing."""

    attempt: int = Field(description="0 before the first.")
    alive: bool
    since_at: Moment = Field(description="When it began; before the first one, when it was made.")
    phases: list[OpenPhase]
    steps: list[OpenStep]
    last_event: Place | None
    worked_at: Moment | None


class ReturnedResume(Shape):
    """What the last resume left."""

    version: int
    at: Moment
    progressed: bool
    error: str | None
    stderr: str = Field(description="The end of what the adapter wrote to stderr.")
    stderr_omitted: int = Field(description="Characters before that.")
    result: dict[str, Any]


class Bodies(Shape):
    """That the bodies of the run's events are no longer in the log."""

    state: Literal["archived", "erased"]
    archive: str | None
    reason: str | None
    at: Moment
    by: str


class Step(Shape):
    """What became of a step of an orchestrator run."""

    step: str
    status: str | None = Field(description="None while it is at work, or was cut off.")
    summary: str | None
    outcome: str | None
    reason_code: str | None
    meaning: str | None
    runs: list[str] | None
    guard: bool | None = Field(description="Whether it counts as done for its interval.")


class Fault(Shape):
    """A step of an orchestrator run that is at fault, and the run and rule behind it."""

    step: str
    status: str
    summary: str
    run: str | None
    outcome: str | None
    reason_code: str | None
    reason: str | None
    rule: str | None


class Explained(Shape):
    """`run explain`."""

    job_run_id: str
    command: str
    title: str | None
    kind: Literal["judged", "named", "unfinished", "erased", "unreadable"]
    status: str
    status_reason: str | None
    semantic_outcome: Outcome | None
    reason_code: str | None
    semantic_reason: str | None
    meaning: str | None
    origin: dict[str, Any] | None
    parent: str | None
    ending: Ending | None
    steps: list[Step]
    faults: list[Fault]
    verdict: JudgedVerdict | None
    facts: list[Fact]
    excerpts: list[Excerpt]
    expected: Expected | None
    ruled_out: list[RuledOut]
    what_if: list[WhatIf]
    check: Check | None
    revisions: list[Revision]
    doing: Doing | None
    stall: Stall | None
    resume: ReturnedResume | None
    effects_in_doubt: list[str]
    attention: list[Attention]
    bodies: Bodies | None
    next_step: str


AUDIT: dict[str, TypeAdapter[Any]] = {
    "run-explain": TypeAdapter(Explained),
}
