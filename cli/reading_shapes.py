"""The JSON of the commands that read, as models; see `shapes`. Never imported to print."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

Micros = Annotated[int, Field(description="Microseconds since 1970 in UTC.")]
Moment = Annotated[str, Field(description="A time in UTC, as ISO 8601.")]
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

    completed_units: int
    total_units: int | None
    unit_label: str


class Revision(Shape):
    """What another policy concluded later."""

    outcome: Outcome
    rule: str
    reason_code: str
    policy: str = Field(description="Id of the policy.")
    policy_version: int
    reason: str
    version: int


class Origin(BaseModel):
    """Where a run's history comes from: these members, as far as its kind has them."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)

    kind: str | None = None
    run: str | None = Field(None, description="The run that it was forked from.")
    version: int | None = Field(None, description="The last event of that run that it shares.")
    path: str | None = None


class Card(Shape):
    """A run in `run list`."""

    job_run_id: str
    command: str
    title: str | None
    orchestrator_run_id: str | None
    status: str = Field(description="As of now: running only while the owner is alive.")
    status_reason: str | None
    liveness: Literal["alive", "gone", "unknown"] | None
    semantic_outcome: Outcome | None = Field(description="Null until an attempt has ended.")
    reason_code: str | None
    started_at: Moment
    finished_at: Moment | None
    updated_at: Moment
    last_seen_at: Moment | None = Field(description="The last event or heartbeat.")
    epoch: int = Field(description="Number of the current attempt.")
    owner: dict[str, Any] | None
    worker: dict[str, Any] | None = Field(
        description="The process that does the work for the owner, where it is another one."
    )
    depends_on: list[str] = Field(description="Runs that have to end well first.")
    progress: Progress | None
    blocked: str | None
    needs_attention: bool
    origin: Origin | None = Field(description="Null for a run that was recorded as it happened.")
    revision: Revision | None


class Attempt(Shape):
    """An attempt of a run."""

    epoch: int
    owner: dict[str, Any] | None
    reason: str | None
    started_at: Moment
    ended_at: Moment | None
    outcome: Outcome | Literal["interrupted", "cancelled", "expired"] | None
    reason_code: str | None
    events: int


class Phase(Shape):
    """A phase of a run."""

    name: str
    status: Literal["running", "completed", "failed", "skipped", "interrupted"]
    summary: str | None
    epoch: int
    started_at: Moment | None
    finished_at: Moment | None
    total: int | None = Field(description="Planned batches.")
    batches: int = Field(description="Finished batches.")
    inputs: int | None
    parsed: int | None


class Checkpoint(Shape):
    """Where a resume goes on; `run checkpoint --show` prints its state."""

    version: int
    phase: str | None
    kind: Literal["offset", "state", "batch"]
    at: Moment


class Verdict(Shape):
    """What the semantic gate concluded."""

    gate: str
    outcome: Outcome
    rule: str
    reason_code: str
    policy: str = Field(description="Id of the policy.")
    policy_version: int
    reason: str
    version: int


class Attention(Shape):
    """Why a person is needed."""

    reason: str
    detail: str | None


class Doubt(Shape):
    """A side effect that may have happened."""

    key: str
    description: str | None
    idempotent: bool
    epoch: int
    at: Moment


class Approval(Shape):
    """Something a person has to agree to."""

    approval: str
    requested_at: Moment


class RecordedFile(Shape):
    """A file that a run made."""

    name: str
    path: str
    size: int
    sha256: str


class TimedFile(RecordedFile):
    """A file that a run made, and when."""

    at: Moment


class Stall(Shape):
    """What a watchdog noticed last."""

    kind: Literal["gone", "silent"]
    reason: str | None
    epoch: int
    at: Moment


class Resume(Shape):
    """The last time that an adapter was sent to continue the run."""

    adapter: str
    from_version: int
    at: Moment
    timeout_seconds: float | None
    returned_at: Moment | None
    progressed: bool | None = Field(description="Whether the run got further by it.")
    error: str | None


class Bodies(Shape):
    """The bodies of a run's events, once they have left the log."""

    state: Literal["archived", "erased"]
    archive: str | None = Field(description="Name of the file in the store's `archive` folder.")
    reason: str | None
    at: Moment
    by: str


class Status(Card):
    """`run status`: the record of a job run, and what came to it."""

    schema_version: Literal[1]
    semantic_reason: str | None
    input_fingerprint: str
    inputs: Free
    model_policy: Free
    phases: list[Phase]
    phases_omitted: int
    verdict: Verdict | None
    checkpoint: Checkpoint | None
    diagnostics: dict[str, int]
    artifacts: list[TimedFile]
    effects_in_doubt: list[Doubt]
    approvals: list[Approval]
    attention: list[Attention]
    attempts: list[Attempt]
    recovery: dict[str, Any] | None = Field(description="What the job declared about resuming.")
    stall: Stall | None
    resume: Resume | None
    retry_count: int = Field(description="Unattended resumes in a row without progress.")
    archived: str | None
    bodies: Bodies | None = Field(description="Where the events' bodies are, when not in the log.")
    version: int
    last_position: int
    resume_command: str | None
    next_step: str


class Entry(BaseModel):
    """An entry of a timeline: these members, and more by its kind."""

    model_config = ConfigDict(extra="allow", strict=True, alias_generator=to_camel)

    kind: str
    version: int
    position: int
    epoch: int
    duration_seconds: float | None


class Timeline(Shape):
    """`run timeline`."""

    job_run_id: str
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


class Change(Shape):
    """A part of a run's state that an event changed."""

    path: str
    kind: str
    old: Free
    new: Free


class Step(Shape):
    """A line of `run replay --diff`."""

    version: int
    position: int
    type: str
    time_us: Micros
    by: list[str | int]
    changes: list[Change]


class State(Shape):
    """`run replay`."""

    job_run_id: str
    version: int
    position: int
    time_us: Micros
    state: dict[str, Any]


class Agreement(Shape):
    """`run replay --strict`."""

    job_run_id: str
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
    queue_index_rebuilt: bool = Field(description="False where the store has no queues.")


class ViewsChecked(Shape):
    """`view check`."""

    same: bool
    differences: list[str]


READING: dict[str, TypeAdapter[Any]] = {
    "run-list": TypeAdapter(list[Card]),
    "run-status": TypeAdapter(Status),
    "run-timeline": TypeAdapter(Timeline),
    "run-events": TypeAdapter(EventLine),
    "run-replay": TypeAdapter(State | Step | Agreement),
    "view-list": TypeAdapter(Views),
    "view-rebuild": TypeAdapter(Rebuilt),
    "view-check": TypeAdapter(ViewsChecked),
}
