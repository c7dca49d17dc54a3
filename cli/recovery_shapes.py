"""The JSON of the commands that plan, resume, approve and watch, as models; see `shapes`.

A watchdog's report keeps the names under which its readers know it.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tachograph.cli.reading_shapes import Outcome, Shape

Ranges = list[tuple[int, int]]


class PlannedPhase(Shape):
    """What a resume does with a phase."""

    name: str
    status: Literal["running", "completed", "failed", "skipped", "pending"]
    safe_to_retry: bool
    batches_reused: Ranges = Field(description="First and last index of each range.")
    batches_to_run: Ranges
    batches: int | None = Field(description="Planned batches.")
    action: Literal["reuse", "go on", "run again"]


class PlannedEffect(Shape):
    """What a resume does about a side effect."""

    key: str
    action: Literal["reuse", "do again", "count as done", "ask a person"]
    why: str


class CheckedArtifact(Shape):
    """An artifact, and what was found of it."""

    name: str
    path: str
    state: str = Field(description="good, or what is wrong with it.")


class TracedFile(Shape):
    """A file of code or input, and whether it is as it was."""

    path: str
    what: str
    state: str = Field(description="good, or how it differs.")


class PlannedCheckpoint(Shape):
    """Where a resume goes on."""

    version: int
    phase: str | None
    kind: Literal["offset", "state", "batch"]


class Execution(Shape):
    """What would be run."""

    kind: Literal["function", "entry_point", "executable", "command"]
    name: str
    argv: list[str]
    folder: str | None
    code_path: str | None
    timeout_seconds: float | None


class Retries(Shape):
    """Unattended resumes in a row without progress, and how many there may be."""

    futile: int
    max_retries: int


class Obstacle(Shape):
    """Something that stands in the way of a resume."""

    code: str
    text: str
    despite: bool = Field(description="Whether a person may resume all the same.")


class Plan(Shape):
    """`run plan`."""

    job_run_id: str
    version: int
    epoch: int = Field(description="The attempt that the resume would be.")
    unattended: bool
    from_version: int
    checkpoint: PlannedCheckpoint | None
    phases: list[PlannedPhase]
    steps: list[str] = Field(description="Steps whose results are reused.")
    effects: list[PlannedEffect]
    artifacts: list[CheckedArtifact]
    files: list[TracedFile]
    approvals: dict[str, Literal["requested", "granted", "rejected"]]
    waiting_for: list[str]
    execute: Execution | None
    retries: Retries
    obstacles: list[Obstacle]
    can_resume: bool
    digest: str = Field(description="Give it to `run resume --plan`.")


class Resumed(Shape):
    """`run resume`."""

    job_run_id: str
    epoch: int
    progressed: bool = Field(description="Whether the run got further.")
    fenced: bool = Field(description="Whether another attempt took over meanwhile.")
    outcome: Outcome | Literal["cancelled", "expired"] | None
    error: str | None = Field(description="What went wrong with the adapter.")
    from_version: int
    execute: Execution | None
    result: dict[str, Any]


class Declared(Shape):
    """`run recovery`."""

    job_run_id: str
    recovery: dict[str, Any]


class Decided(Shape):
    """`run approve` and `run reject`."""

    job_run_id: str
    approval: str
    status: Literal["granted", "rejected"]
    subject_digest: str
    pending: list[str] = Field(description="Approvals that the run still waits for.")


class Asked(Shape):
    """`run approval`."""

    approval: str
    status: Literal["granted", "requested"]
    subject_digest: str


class Signal(BaseModel):
    """A run that a watchdog tells of; more members by its kind."""

    model_config = ConfigDict(extra="allow", strict=True)

    task_id: str
    task_type: str


class Report(BaseModel):
    """`watchdog run`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    checked_at: str
    running_count: int
    running: list[Signal] = Field(description="At most 100, latest created first.")
    stale_count: int
    stale: list[Signal]
    alerts: list[Signal] = Field(description="New: a run went silent.")
    recoveries: list[Signal] = Field(description="New: a run got further by a resume.")
    resumed: list[Signal] = Field(description="Every resume that was tried.")
    skipped: list[Signal]
    expired: list[Signal]
    needs_attention: list[Signal] = Field(description="New: a person is needed.")
    active_needs_attention: list[Signal] = Field(description="All that is still open.")


RECOVERY: dict[str, TypeAdapter[Any]] = {
    "run-plan": TypeAdapter(Plan),
    "run-resume": TypeAdapter(Resumed),
    "run-recovery": TypeAdapter(Declared),
    "run-approve": TypeAdapter(Decided),
    "run-reject": TypeAdapter(Decided),
    "run-approval": TypeAdapter(Asked),
    "watchdog-run": TypeAdapter(Report),
}
