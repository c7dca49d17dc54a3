"""The JSON of the commands that read, as models; see `shapes`. Never imported to print."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

Micros = Annotated[int, Field(description="Microseconds since 1970 in UTC.")]
Free = Annotated[Any, Field(description="A value that a job recorded, of whatever shape.")]
Anchor = Annotated[str, Field(pattern="^[0-9]+:[0-9a-f]{64}$")]
Outcome = Literal[
    "success",
    "success_with_review",
    "partial",
    "failed",
    "skipped",
    "empty",
    "failed_semantic_empty",
]


class Shape(BaseModel):
    """A JSON object with exactly these members."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class Progress(Shape):
    """How far a run is, in its own units."""

    completed: int
    total: int | None
    unit: str


class Card(Shape):
    """A run in `run list`."""

    id: str
    command: str
    title: str | None
    parent: str | None
    status: str = Field(description="As of now: running only while the owner is alive.")
    status_reason: str | None
    outcome: Outcome | None
    reason_code: str | None
    liveness: Literal["alive", "gone", "unknown"] | None
    attempts: int
    progress: Progress | None
    needs_attention: bool
    created_us: Micros
    updated_us: Micros
    finished_us: Micros | None
    seen_us: Micros | None


class Attempt(Shape):
    """An attempt of a run."""

    epoch: int
    owner: dict[str, Any]
    reason: str | None
    started_us: Micros
    ended_us: Micros | None
    outcome: Outcome | Literal["interrupted", "cancelled", "expired"] | None
    reason_code: str | None
    events: int


class Phase(Shape):
    """A phase of a run."""

    phase: str
    status: Literal["running", "completed", "failed", "skipped", "interrupted"]
    summary: str | None
    epoch: int
    started_us: Micros
    finished_us: Micros | None
    total: int | None = Field(description="Planned batches.")
    batches: int = Field(description="Finished batches.")
    inputs: int | None
    parsed: int | None


class Checkpoint(Shape):
    """Where a resume goes on; `run checkpoint --show` prints its state."""

    version: int
    phase: str | None
    kind: Literal["offset", "state"]
    time_us: Micros


class Verdict(Shape):
    """What the semantic gate concluded."""

    gate: str
    outcome: Outcome
    rule: str
    reason_code: str
    policy_version: int
    reason: str
    version: int


class Revision(Shape):
    """What another policy concluded later."""

    outcome: Outcome
    rule: str
    reason_code: str
    policy_version: int
    reason: str
    version: int


class Attention(Shape):
    """Why a person is needed."""

    reason: str
    detail: str | None


class RecordedFile(Shape):
    """A file that a run made."""

    name: str
    path: str
    size: int
    sha256: str


class TimedFile(RecordedFile):
    """A file that a run made, and when."""

    time_us: Micros


class Status(Shape):
    """`run status`."""

    id: str
    command: str
    title: str | None
    parent: str | None
    fingerprint: str
    inputs: Free
    model_policy: Free
    status: str
    status_reason: str | None
    liveness: Literal["alive", "gone", "unknown"] | None
    owner: dict[str, Any] | None
    outcome: Outcome | None
    reason_code: str | None
    reason: str | None
    progress: Progress | None
    version: int
    created_us: Micros
    updated_us: Micros
    finished_us: Micros | None
    seen_us: Micros | None
    attempts: list[Attempt]
    phases: list[Phase]
    phases_omitted: int
    checkpoint: Checkpoint | None
    verdict: Verdict | None
    revision: Revision | None
    effects_in_doubt: list[str]
    approvals: list[str]
    attention: list[Attention]
    artifacts: list[TimedFile]
    blocked: str | None
    archived: str | None
    counters: dict[str, int]
    next_step: str


class Entry(BaseModel):
    """An entry of a timeline: these members, and more by its kind."""

    model_config = ConfigDict(extra="allow", strict=True, alias_generator=to_camel)

    kind: str
    version: int
    position: int
    epoch: int
    time_us: Micros


class Timeline(Shape):
    """`run timeline`."""

    run: str
    entries: list[Entry]


class EventLine(Shape):
    """An event: a line of `run events` and of `store export`."""

    position: int
    stream: Any
    version: int
    type: str
    time: str | None = Field(None, description="For people; timeUs counts.")
    time_us: Micros
    data: Free = None
    raw: str | None = Field(None, description="Stored bytes in base64 that JSON cannot give back.")
    body_digest: str | None = Field(None, description="What is left of an erased body.")
    digest: str
    previous_digest: str


class CheckedFile(RecordedFile):
    """A file, and whether it is still what it was."""

    state: str


class Artifacts(Shape):
    """`run artifacts`."""

    run: str
    artifacts: list[CheckedFile]


class Change(Shape):
    """A part of a run's state that an event changed."""

    path: str
    kind: str
    old: Free
    new: Free


class Moment(Shape):
    """A line of `run replay --diff`."""

    version: int
    position: int
    type: str
    time_us: Micros
    by: list[str | int]
    changes: list[Change]


class State(Shape):
    """`run replay`."""

    run: str
    version: int
    position: int
    time_us: Micros
    state: dict[str, Any]


class Agreement(Shape):
    """`run replay --strict`."""

    run: str
    agrees: Literal[True]
    events: int
    snapshots: int
    views: int


class View(Shape):
    """A view, and how far it is behind the log."""

    name: str
    version: str
    position: int
    lag: int


class Views(Shape):
    """`view list`."""

    head: int
    views: list[View]


class Rebuilt(Shape):
    """`view rebuild`."""

    position: int
    snapshots_mended: int


class ViewsChecked(Shape):
    """`view check`."""

    same: bool
    differences: list[str]


READING: dict[str, TypeAdapter[Any]] = {
    "run-list": TypeAdapter(list[Card]),
    "run-status": TypeAdapter(Status),
    "run-timeline": TypeAdapter(Timeline),
    "run-events": TypeAdapter(EventLine),
    "run-artifacts": TypeAdapter(Artifacts),
    "run-replay": TypeAdapter(State | Moment | Agreement),
    "view-list": TypeAdapter(Views),
    "view-rebuild": TypeAdapter(Rebuilt),
    "view-check": TypeAdapter(ViewsChecked),
}
