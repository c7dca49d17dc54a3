"""Every event of a run. Topics and fields are frozen: old logs must stay readable (G9).

An event that changes its fields raises `class_version` and gets an upcaster
`upcast_vN_vN+1(fields)`, which brings stored fields one version up, in place.
"""

from __future__ import annotations

from tachograph.domain.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    Fields = dict[str, Any]


class RunCreated(Event):
    """A run exists: one execution of a command over one set of inputs."""

    TOPIC: ClassVar[str] = "run.created"
    command: str
    """Logical command, such as `code-report`."""
    fingerprint: str
    """Fingerprint of the inputs, 8 hex digits for inputs that Tachograph hashed."""
    inputs: Any
    """The whole input set (or a BlobRef), so that a resume never extracts it again."""
    inputs_digest: str
    """BLAKE2b-128 of the packed inputs: what "the same inputs" means."""
    title: str | None
    """A line for people."""
    parent: str | None
    """Id of the orchestrator run it belongs to."""
    model_policy: Any
    """Model and its fallbacks, where a model is asked: {"model": ..., "fallbacks": [...]}."""


class AttemptStarted(Event):
    """A process (or nobody in particular) took the run over; earlier epochs are fenced (G5)."""

    TOPIC: ClassVar[str] = "run.attempt-started"
    class_version: ClassVar[int] = 2
    epoch: int
    """1 for the first attempt, one more for each resume."""
    owner: Any
    """Fields of `domain.owner.Owner`."""
    reason: str | None
    """Why it was taken over, when a person did so."""

    @staticmethod
    def upcast_v1_v2(fields: Fields) -> None:
        """Turn v1's flat host and pid into an owner.

        Version 1 knew neither boot id nor process start time, so such an owner can be judged
        by its lease alone.
        """
        fields["owner"] = {"kind": "process", "host": fields.pop("host"), "pid": fields.pop("pid")}
        fields["reason"] = None


class WorkerStarted(Event):
    """A process does the work for the attempt's owner: while it lives, the attempt is alive."""

    TOPIC: ClassVar[str] = "run.worker-started"
    worker: Any
    """Fields of `domain.owner.Owner`."""
    joined: bool
    """Whether it was started by the process that was sent to do the work, and took that over."""


class RecoveryDeclared(Event):
    """How the run may be continued when its process is gone; the last one counts."""

    TOPIC: ClassVar[str] = "run.recovery-declared"
    recovery: Any
    """Fields of `domain.recovery.Recovery`."""
    reason: str | None
    """Why, when a person changed it."""


class DependenciesDeclared(Event):
    """The run waits for other runs; the last declaration counts."""

    TOPIC: ClassVar[str] = "run.dependencies-declared"
    runs: list[str]
    """Ids of the runs that have to end well first."""


class PhaseStarted(Event):
    """A phase began, or began again in a later attempt."""

    TOPIC: ClassVar[str] = "run.phase-started"
    phase: str
    safe_to_retry: bool
    """Whether repeating the phase from its start does no harm."""


class PhaseEnded(Event):
    """A phase ended."""

    TOPIC: ClassVar[str] = "run.phase-ended"
    phase: str
    status: str
    """`completed`, `failed` or `skipped`."""
    summary: str | None


class BatchesPlanned(Event):
    """A phase will work through this many batches of these items."""

    TOPIC: ClassVar[str] = "run.batches-planned"
    phase: str
    total: int
    """Number of batches; indexes run from 0 to total - 1."""
    size: int
    """Items in a batch, the last one may hold fewer; 0 when the job does not say."""
    items_digest: str | None
    """BLAKE2b-128 of the packed items; a resume over other items is refused."""


class BatchCompleted(Event):
    """A batch was finished and its output accepted."""

    TOPIC: ClassVar[str] = "run.batch-completed"
    phase: str
    index: int
    inputs: int | None
    """Items that went in."""
    parsed: int | None
    """Items that came out usable."""
    output: Any
    """The batch's result (or a BlobRef), restored on resume."""


class CheckpointSaved(Event):
    """Where a resume may go on."""

    TOPIC: ClassVar[str] = "run.checkpoint-saved"
    phase: str | None
    kind: str
    """`offset` (state holds offset, total and counters) or `state` (free form)."""
    state: Any


class StepCompleted(Event):
    """A recorded function returned; a resume restores its result instead of calling it."""

    TOPIC: ClassVar[str] = "run.step-completed"
    key: str
    """Name of the function and fingerprint of its arguments."""
    result: Any


class ProgressReported(Event):
    """How far the run is, in its own units."""

    TOPIC: ClassVar[str] = "run.progress-reported"
    completed: int
    total: int | None
    unit: str


class RetryScheduled(Event):
    """Something failed and will be tried again within this attempt."""

    TOPIC: ClassVar[str] = "run.retry-scheduled"
    kind: str
    """What is retried, such as `transient` or `parse`."""
    attempt: int
    delay_seconds: float
    error: str | None
    model: str | None


class FallbackTaken(Event):
    """The job went on with something else than it wanted."""

    TOPIC: ClassVar[str] = "run.fallback-taken"
    source: str
    target: str
    reason: str | None


class SemanticGateJudged(Event):
    """The semantic gate compared inputs, outputs and declared reasons (G12)."""

    TOPIC: ClassVar[str] = "run.semantic-gate-judged"
    gate: str
    outcome: str
    rule: str
    """Id of the rule that decided."""
    reason_code: str
    reason: str
    facts: Any
    """The facts the rule saw."""
    evidence: list[int]
    """Versions of the events the facts come from."""
    policy_version: int


class ArtifactRecorded(Event):
    """A file the run made."""

    TOPIC: ClassVar[str] = "run.artifact-recorded"
    name: str
    path: str
    size: int
    """Bytes."""
    sha256: str


class EffectIntended(Event):
    """A side effect is about to happen; without its EffectDone it is in doubt (G10)."""

    TOPIC: ClassVar[str] = "run.effect-intended"
    key: str
    description: str | None
    idempotent: bool
    """Whether doing it twice does no harm."""


class EffectDone(Event):
    """A side effect happened, or a person decided that it did."""

    TOPIC: ClassVar[str] = "run.effect-done"
    key: str
    result: Any
    reason: str | None
    """Why a person decided so; None when the job itself reports it."""


class EffectRetryAllowed(Event):
    """A person looked, and decided that an effect in doubt may be done again."""

    TOPIC: ClassVar[str] = "run.effect-retry-allowed"
    key: str
    reason: str


class ApprovalRequested(Event):
    """A person has to agree before the run goes on."""

    TOPIC: ClassVar[str] = "run.approval-requested"
    approval: str
    subject: Any
    subject_digest: str
    """BLAKE2b-128 of exactly what is to be approved; an approval of anything else is void."""


class ApprovalGranted(Event):
    """A person agreed."""

    TOPIC: ClassVar[str] = "run.approval-granted"
    approval: str
    subject_digest: str
    reason: str


class ApprovalRejected(Event):
    """A person refused."""

    TOPIC: ClassVar[str] = "run.approval-rejected"
    approval: str
    subject_digest: str
    reason: str


class StallDetected(Event):
    """The run made no progress for too long."""

    TOPIC: ClassVar[str] = "run.stall-detected"
    evidence: Any


class ResumeDispatched(Event):
    """An adapter is about to be run to continue the run."""

    TOPIC: ClassVar[str] = "run.resume-dispatched"
    adapter: str
    from_version: int
    """Version of the checkpoint it goes on from."""
    plan: Any


class ResumeReturned(Event):
    """The adapter ended."""

    TOPIC: ClassVar[str] = "run.resume-returned"
    result: Any
    progressed: bool
    """Whether a newer checkpoint, batch or phase was recorded, whatever the exit code said."""


class AttentionRaised(Event):
    """A person is needed."""

    TOPIC: ClassVar[str] = "run.attention-raised"
    reason: str
    detail: str | None


class AttentionCleared(Event):
    """A person is no longer needed for this reason."""

    TOPIC: ClassVar[str] = "run.attention-cleared"
    reason: str


class RunBlocked(Event):
    """The run waits for something outside it."""

    TOPIC: ClassVar[str] = "run.blocked"
    reason: str


class RunFinished(Event):
    """The attempt ended with an outcome; whether it is final, the outcome table says."""

    TOPIC: ClassVar[str] = "run.finished"
    outcome: str
    reason_code: str | None
    reason: str | None


class RunCancelled(Event):
    """A person ended the run for good."""

    TOPIC: ClassVar[str] = "run.cancelled"
    reason: str


class RunExpired(Event):
    """The run was left unfinished too long to be resumed."""

    TOPIC: ClassVar[str] = "run.expired"
    reason: str


class NoteAdded(Event):
    """A remark by a person, or a warning that the job logged."""

    TOPIC: ClassVar[str] = "run.note-added"
    level: str
    """`note`, `warning` or `error`."""
    text: str
    source: str | None
    """Name of the logger, for logged warnings."""


class VerdictRevised(Event):
    """Another policy judges the run otherwise; the first verdict stays in the log."""

    TOPIC: ClassVar[str] = "run.verdict-revised"
    outcome: str
    rule: str
    reason_code: str
    reason: str
    policy_version: int


class CardEdited(Event):
    """Fields of the run's card that no other event holds got new values."""

    TOPIC: ClassVar[str] = "run.card-edited"
    changes: Any
    """New values by field; None removes a field."""
    entries: list[Any]
    """What was added to the card's history."""


class RunArchived(Event):
    """The run's files were moved to an archive."""

    TOPIC: ClassVar[str] = "run.archived"
    location: str
    sha256: str


EVENT_TYPES: dict[str, type[Event]] = {
    cls.TOPIC: cls
    for cls in list(globals().values())
    if isinstance(cls, type) and issubclass(cls, Event) and cls is not Event
}
"""Every event by its topic."""


def upcast(topic: str, fields: Fields) -> Fields:
    """Bring stored fields to today's version of their event, in place, and return them.

    Raises KeyError for an unknown topic, and for a version that only a newer Tachograph knows.
    """
    stored = fields.pop("class_version", 1)
    cls = EVENT_TYPES[topic]
    if stored > cls.class_version:
        raise KeyError(f"{topic} version {stored}")
    for version in range(stored, cls.class_version):
        getattr(cls, f"upcast_v{version}_v{version + 1}")(fields)
    return fields
