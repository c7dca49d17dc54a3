"""The JSON of the commands about expectations, answers and gate policies; see `shapes`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Micros, Outcome, Shape

Fault = Literal["provider", "parser", "truncated", "filter", "tool"]
FactValue = int | float | str | None


class Expected(Shape):
    """`run expect`: all that the run is measured by now."""

    job_run_id: str
    inputs: int | None
    extracted: int | None
    minimum_fraction: float | int | None
    files: list[str] = Field(description="Absolute paths.")
    deadline_us: Micros | None


class Answered(Shape):
    """`run answer`."""

    phase: str | None
    batch: int | None
    source: str | None
    asked: int
    answered: int
    parsed: int | None
    accepted: int | None
    filtered: int | None
    declared: str | None
    fault: Fault | None
    error: str | None


class Rule(Shape):
    """A rule of a gate policy."""

    id: str
    version: int
    when: list[str] = Field(description="Conditions; all of them have to hold.")
    outcome: Outcome
    reason_code: str
    text: str = Field(description="The reason for people; {fact} stands for a fact.")
    otherwise: str | None = Field(description="What is said when the rule does not hold.")


class PolicyId(Shape):
    """What tells a policy from others."""

    id: str
    version: int
    digest: str = Field(pattern="^[0-9a-f]{32}$", description="BLAKE2b-128 of its rules.")


class Policy(PolicyId):
    """`policy show`: the rules in the order in which they are tried."""

    origin: str = Field(description="The file, or `package` for one that comes with Tachograph.")
    rules: list[Rule]


class Unreached(Shape):
    """A rule that can never decide."""

    rule: str
    decided_by: str = Field(description="The earlier rule that holds whenever it does.")


class CheckedPolicy(Policy):
    """`policy check`."""

    unreached: list[Unreached]


class Fact(Shape):
    """A fact that rules can ask for."""

    name: str
    kind: Literal["count", "number", "text"]
    unsaid: int | None = Field(description="Its value when nobody states or counts it.")
    derived: bool = Field(description="Whether it follows from others, and cannot be stated.")
    meaning: str


class Concluded(Shape):
    """What a policy concludes."""

    outcome: Outcome
    rule: str
    rule_version: int
    reason_code: str
    reason: str


class Change(Concluded):
    """The nearest other value of one fact that leads to another outcome."""

    fact: str
    was: FactValue
    to: FactValue


class Tried(Concluded):
    """`policy try`."""

    policy: PolicyId
    facts: dict[str, FactValue] = Field(description="The facts that were stated.")
    changes: list[Change]


POLICIES: dict[str, TypeAdapter[Any]] = {
    "run-expect": TypeAdapter(Expected),
    "run-answer": TypeAdapter(Answered),
    "policy-show": TypeAdapter(Policy),
    "policy-check": TypeAdapter(CheckedPolicy),
    "policy-facts": TypeAdapter(list[Fact]),
    "policy-try": TypeAdapter(Tried),
}
