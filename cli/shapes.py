"""The JSON that commands print, as models: their JSON Schemas stand in docs/schemas.

Heavy, and never imported to print: a test compares what commands print with these models.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.artifact_shapes import ARTIFACTS
from tachograph.cli.audit_shapes import AUDIT
from tachograph.cli.body_shapes import BODIES
from tachograph.cli.comparing_shapes import COMPARING
from tachograph.cli.cron_shapes import CRON
from tachograph.cli.enqueue_shapes import ENQUEUE
from tachograph.cli.health_shapes import HEALTH
from tachograph.cli.import_shapes import IMPORTS
from tachograph.cli.keeping_shapes import KEEPING
from tachograph.cli.lifecycle_shapes import LIFECYCLE
from tachograph.cli.maintenance_shapes import MAINTENANCE
from tachograph.cli.policy_shapes import POLICIES
from tachograph.cli.queue_shapes import QUEUES
from tachograph.cli.reading_shapes import READING, Free, Outcome, Progress, Shape
from tachograph.cli.recovery_shapes import RECOVERY
from tachograph.cli.repair_shapes import REPAIRS
from tachograph.cli.timer_shapes import TIMERS
from tachograph.cli.worker_shapes import WORKER
from tachograph.cli.workspace_shapes import WORKSPACE


class Error(Shape):
    """What is printed on stderr when a command fails, with `--json`."""

    error: str = Field(description="Class of the error.")
    message: str = Field(description="What happened, to what, and what to do next.")
    exit_code: int = Field(description="The exit code of the command.")


class Started(Shape):
    """`run start`."""

    job_run_id: str
    epoch: int = Field(description="Number of the attempt, from 1.")
    resumed: bool = Field(description="Whether an earlier attempt recorded something.")


class PhaseState(Shape):
    """`run phase start` and `run phase end`."""

    phase: str
    status: Literal["running", "completed", "failed", "skipped"]


class BatchDone(Shape):
    """`run batch` that recorded a batch."""

    phase: str
    index: int


class BatchesPending(Shape):
    """`run batch` with `--pending`, or `--next` (at most one)."""

    phase: str
    pending: list[int]


class CheckpointSaved(Shape):
    """`run checkpoint` that saved one."""

    kind: Literal["offset", "state", "batch"]
    phase: str | None
    version: int


class CheckpointShown(CheckpointSaved):
    """`run checkpoint --show`."""

    state: Free


class Beat(Shape):
    """`run heartbeat`."""

    job_run_id: str
    epoch: int


class EffectState(Shape):
    """`run effect` without a command."""

    key: str
    status: Literal["intended", "done", "retryAllowed"]


class Artifact(Shape):
    """`run artifact`."""

    name: str
    path: str = Field(description="Absolute path.")
    size: int = Field(description="Bytes.")
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Retry(Shape):
    """`run retry`."""

    kind: str
    attempt: int
    delay_seconds: float


class Fallback(Shape):
    """`run fallback`."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    reason: str | None


class Note(Shape):
    """`run note`."""

    job_run_id: str
    level: Literal["note", "warning", "error"]
    text: str


class Judged(Shape):
    """`run judge`."""

    outcome: Outcome
    rule: str
    reason_code: str
    reason: str


class Finished(Shape):
    """`run finish` and `run fail`."""

    job_run_id: str
    outcome: Outcome
    reason_code: str | None
    reason: str | None


class Executed(Shape):
    """`run exec`; on stderr, since stdout belongs to the command."""

    job_run_id: str
    epoch: int
    outcome: Outcome | Literal["cancelled", "expired"]
    reason_code: str | None
    reason: str | None
    exit_code: int = Field(description="Of the command; 128 and the signal that killed it.")
    missing: dict[str, str] = Field(description="What is wrong with each expected file.")


class Script(Shape):
    """`completion`."""

    shell: Literal["bash", "zsh", "fish"]
    script: str


SHAPES: dict[str, TypeAdapter[Any]] = {
    "error": TypeAdapter(Error),
    "run-start": TypeAdapter(Started),
    "run-phase-start": TypeAdapter(PhaseState),
    "run-phase-end": TypeAdapter(PhaseState),
    "run-batch": TypeAdapter(BatchDone | BatchesPending),  # --show prints what was recorded
    "run-checkpoint": TypeAdapter(CheckpointSaved | CheckpointShown | None),
    "run-heartbeat": TypeAdapter(Beat),
    "run-effect": TypeAdapter(EffectState),
    "run-artifact": TypeAdapter(Artifact),
    "run-progress": TypeAdapter(Progress),
    "run-retry": TypeAdapter(Retry),
    "run-fallback": TypeAdapter(Fallback),
    "run-note": TypeAdapter(Note),
    "run-judge": TypeAdapter(Judged),
    "run-finish": TypeAdapter(Finished),
    "run-fail": TypeAdapter(Finished),
    "run-exec": TypeAdapter(Executed),
    "completion": TypeAdapter(Script),
    **READING,
    **ARTIFACTS,
    **AUDIT,
    **COMPARING,
    **CRON,
    **IMPORTS,
    **KEEPING,
    **BODIES,
    **LIFECYCLE,
    **QUEUES,
    **ENQUEUE,
    **HEALTH,
    **MAINTENANCE,
    **POLICIES,
    **RECOVERY,
    **REPAIRS,
    **TIMERS,
    **WORKER,
    **WORKSPACE,
}
"""By the words of the command; `error` is for all of them."""
