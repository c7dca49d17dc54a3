"""The JSON of the commands that compare, fork and rejudge runs, as models; see `shapes`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Free, Outcome, Shape

Count = dict[Literal["same", "different", "unjudgeable", "skipped", "revised"], int]


class ComparedRun(Shape):
    """One of the two runs."""

    job_run_id: str
    events: int
    events_unread: int = Field(description="Events whose bodies are erased or lost.")
    semantic_outcome: Outcome | None


class Difference(Shape):
    """A place at which two runs differ; a large value is shown as {digest, bytes}."""

    path: str
    kind: Literal["added", "removed", "changed"] = Field(description="Seen from the left run.")
    left: Free
    right: Free


class Differing(Shape):
    """How many batches of a phase, or steps, were finished by both runs and differ."""

    kind: Literal["batch", "step"]
    phase: str | None
    count: int


class Piece(Shape):
    """A finished batch or step."""

    version: int
    position: int
    inputs: int | None
    parsed: int | None
    digest: str = Field(pattern="^[0-9a-f]{64}$", description="BLAKE2b-256 of the output.")
    output: Free


class FirstDiffering(Shape):
    """The first batch or step, in the order of the left run, whose output differs."""

    kind: Literal["batch", "step"]
    name: str = Field(description="Of the phase, or of the step.")
    index: int | None
    left: Piece
    right: Piece


class Happening(Shape):
    """An event of one of the runs."""

    version: int
    position: int
    type: str
    data: dict[str, Any] | None = Field(description="Null when its body is erased or lost.")


class Divergence(Shape):
    """The first events that differ; null for a run that has no further event."""

    left: Happening | None
    right: Happening | None
    differences: list[Difference] = Field(description="Of two events of one type.")


class Timing(Shape):
    """How long a phase took in each run, in seconds; the whole run where the phase is null."""

    phase: str | None
    left: float | None
    right: float | None


class Compared(Shape):
    """`run diff`."""

    left: ComparedRun
    right: ComparedRun
    same: bool | None = Field(description="Null when that cannot be told.")
    differences: list[Difference]
    differences_omitted: int
    differing: list[Differing]
    first_differing: FirstDiffering | None
    first_divergence: Divergence | None
    timings: list[Timing]
    not_compared: list[str]


class Forked(Shape):
    """`run fork`."""

    job_run_id: str
    fork_of: str
    version: int = Field(description="The last event of that run that the fork shares.")
    shared_events: int
    effects_in_doubt: list[str]
    effects_to_repeat: list[str] = Field(
        description="Begun elsewhere after that version; a person let them be done again."
    )
    source_goes_on: bool = Field(
        description="Whether the other run has not ended: it may still begin effects."
    )
    effects_unknown: list[str] = Field(
        description="Runs of the same history of which nobody can tell what they have begun."
    )
    next_step: str


class RecordedVerdict(Shape):
    """The newest verdict or revision of a run, or the outcome it was given without one."""

    outcome: Outcome
    rule: str | None
    reason_code: str | None
    reason: str | None
    version: int | None


class OtherVerdict(Shape):
    """What a policy concludes."""

    outcome: Outcome
    rule: str
    rule_version: int
    reason_code: str
    reason: str


class RejudgedRun(Shape):
    """A run in `run rejudge`."""

    job_run_id: str
    state: Literal["same", "different", "unjudgeable", "skipped", "revised"]
    why: str | None = Field(description="Why it is not judged.")
    other_rules: bool = Field(
        description="Whether other rules that are called the same have judged it before."
    )
    recorded: RecordedVerdict | None
    judged: OtherVerdict | None


class PolicyName(Shape):
    """Which policy it was."""

    id: str
    version: int
    digest: str


class Rejudged(Shape):
    """`run rejudge`."""

    policy: PolicyName
    applied: bool
    counts: Count
    runs: list[RejudgedRun]


COMPARING: dict[str, TypeAdapter[Any]] = {
    "run-diff": TypeAdapter(Compared),
    "run-fork": TypeAdapter(Forked),
    "run-rejudge": TypeAdapter(Rejudged),
}
