"""The JSON of artifact files, and of the commands about them, as models; see `shapes`.

A member whose default is None is left out where there is nothing to say.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import CheckedFile, Outcome, Shape
from tachograph.cli.recovery_shapes import Resumed


class ArtifactFile(Shape):
    """A file that tells of a run."""

    kind: Literal["summary", "events", "checkpoint", "report", "validation"]
    path: str
    size: int | None = Field(description="Bytes; null for a file that is not there.")
    rule: str | None = Field(description="The rule of retention that lets it go by now.")


class Tree(Shape):
    """The files that tell of a run, below a folder."""

    root: str
    files: list[ArtifactFile]


class Artifacts(Shape):
    """`run artifacts`."""

    job_run_id: str
    artifacts: list[CheckedFile] = Field(description="Files that the run made.")
    tree: Tree | None = Field(description="Null where no folder is named.")


class Problem(Shape):
    """A run whose files were not written."""

    job_run_id: str
    problem: str


class WholeTree(Shape):
    """`run artifacts --all`."""

    root: str
    problems: list[Problem]


class Removed(Shape):
    """Files of a run that go by one rule."""

    job_run_id: str | None = Field(
        description="Null for temporary files of the folder itself, which belong to no run."
    )
    rule: str
    text: str = Field(description="What the rule says.")
    kinds: list[str]
    paths: list[str]
    bytes: int


class Left(Shape):
    """A file that looks like one of ours, and stays."""

    path: str
    why: str


class Pruned(Shape):
    """`store prune`."""

    applied: bool
    roots: list[str]
    files: int
    bytes: int
    removals: list[Removed]
    left: list[Left]


class Row(Shape):
    """A run in `maintenance run list`."""

    kind: Literal["job", "orchestrator"]
    id: str
    path: str
    started_at: str | None = None
    command: str | None = None
    semantic_outcome: Outcome | None = None
    exit_code: int | None = None
    status: str = Field(description="What it is now.")


class ModelPolicy(Shape):
    """The model of a job run, and what it falls back to."""

    model: str
    fallbacks: list[str]


class RecordedPhase(Shape):
    """A phase of a job run."""

    name: str
    status: Literal["pending", "running", "completed", "failed", "skipped"]
    summary: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class RecordedProgress(Shape):
    """How far a job run is."""

    completed_units: int
    total_units: int
    unit_label: str


class ArtifactPaths(Shape):
    """Absolute paths of the files of a job run."""

    summary: str | None = None
    events: str | None = None
    checkpoint: str | None = None
    report: str | None = None


class JobRecord(Shape):
    """The record of a job run, as its summary.json holds it."""

    schema_version: Literal[1]
    job_run_id: str
    command: str
    orchestrator_run_id: str | None = None
    input_fingerprint: str
    llm_policy: ModelPolicy | None = Field(None, alias="modelPolicy")
    started_at: str
    finished_at: str | None = Field(None, description="Left out until an attempt has ended.")
    phases: list[RecordedPhase]
    semantic_outcome: Outcome = Field(description="`partial` while there is none.")
    semantic_reason: str | None = None
    progress: RecordedProgress | None = None
    diagnostics: dict[str, int] | None = None
    artifact_paths: ArtifactPaths
    resume_command: str | None = None
    status: str = Field(description="The outcome, or what stands in for one.")
    attempt: int
    reason_code: str | None = None
    rule: str | None = Field(None, description="Rule of the gate that judged.")
    revised_outcome: Outcome | None = None
    effects_in_doubt: list[str] | None = None
    needs_attention: list[str] | None = None
    run_digest: str = Field(description="Digest of the run's first event.")


class OrchestratorStep(Shape):
    """A step of an orchestrator run."""

    name: str
    status: str
    summary: str
    duration_ms: int
    job_run_id: str | None = None
    semantic_outcome: Outcome | None = None


class OrchestratorRecord(Shape):
    """The summary of an orchestrator run; what is known at its end is left out before."""

    schema_version: Literal[1]
    run_id: str
    job: str | None = None
    tier_label: str
    started_at: str
    finished_at: str | None = None
    duration_ms: int | None = None
    exit_code: Literal[0, 1, 2] | None = None
    summary_line: str | None = None
    steps: list[OrchestratorStep]
    counts: dict[str, int] | None = None
    validation: dict[str, Any] | None = None
    run_digest: str = Field(description="Digest of the run's first event.")
    status: str


class JobFiles(Shape):
    """Where the files of a job run are; null for one that is not there."""

    summary: str | None
    events: str | None
    checkpoint: str | None
    report: str | None


class OrchestratorFiles(Shape):
    """Where the files of an orchestrator run are; null for one that is not there."""

    summary: str | None
    log: str | None
    exit: str | None
    validation: str | None


class JobExplained(Shape):
    """Why a job run stands as it does."""

    diagnosis: str
    last_event: str | None = Field(None, description="The last line of events.jsonl.")
    resume_hint: str | None = None


class OrchestratorExplained(Shape):
    """Why an orchestrator run stands as it does."""

    diagnosis: str
    failed_steps: list[OrchestratorStep]


ARTIFACTS: dict[str, TypeAdapter[Any]] = {
    "run-artifacts": TypeAdapter(Artifacts | WholeTree),
    "store-prune": TypeAdapter(Pruned),
    "maintenance-run-list": TypeAdapter(list[Row]),
    "maintenance-run-status": TypeAdapter(JobRecord | OrchestratorRecord),
    "maintenance-run-artifacts": TypeAdapter(JobFiles | OrchestratorFiles),
    "maintenance-run-explain": TypeAdapter(JobExplained | OrchestratorExplained),
    "maintenance-run-resume": TypeAdapter(Resumed),
}
"""By the words of the command."""
