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
    class_version: ClassVar[int] = 3
    epoch: int
    """1 for the first attempt, one more for each resume."""
    owner: Any
    """Fields of `domain.owner.Owner`."""
    reason: str | None
    """Why it was taken over, when a person did so."""
    orchestrator: str | None
    """Id of the orchestrator run that it was started for; the run itself may be of an earlier
    one."""

    @staticmethod
    def upcast_v1_v2(fields: Fields) -> None:
        """Turn v1's flat host and pid into an owner.

        Version 1 knew neither boot id nor process start time, so such an owner can be judged
        by its lease alone.
        """
        fields["owner"] = {"kind": "process", "host": fields.pop("host"), "pid": fields.pop("pid")}
        fields["reason"] = None

    @staticmethod
    def upcast_v2_v3(fields: Fields) -> None:
        """Name what version 2 left unsaid: an orchestrator was known of the run alone."""
        fields["orchestrator"] = None


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
    """`offset` (state holds offset, total and counters), `state` (free form), or `batch` (what a
    batch checkpoint says besides the finished batches)."""
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


class ExpectationsDeclared(Event):
    """What the run is measured by, said before it is done; the last declaration counts."""

    TOPIC: ClassVar[str] = "run.expectations-declared"
    expectations: Any
    """Fields of `domain.expectations.Expectations`."""
    reason: str | None
    """Why, when a person changed it."""


class AnswerReceived(Event):
    """A model, parser, filter or tool was asked, and this came back: or nothing did."""

    TOPIC: ClassVar[str] = "run.answer-received"
    phase: str | None
    batch: int | None
    """Index of the batch that the question was about."""
    source: str | None
    """Who was asked, such as the name of a model."""
    asked: int
    """Items that were put to it."""
    answered: int
    """Items it answered at all."""
    parsed: int | None
    """Items of the answer that could be read."""
    accepted: int | None
    """Items that passed validation."""
    filtered: int | None
    """Items that the answer, a readable one, took out: they are no work any more."""
    declared: str | None
    """The explicit word that there is nothing to do about these items, and why."""
    fault: str | None
    """What went wrong: `provider`, `parser`, `truncated`, `filter` or `tool`."""
    error: str | None
    text: Any
    """What came back, or a BlobRef of it: what a person looks at who asks why."""


class SemanticGateJudged(Event):
    """The semantic gate compared inputs, outputs and declared reasons (G12)."""

    TOPIC: ClassVar[str] = "run.semantic-gate-judged"
    class_version: ClassVar[int] = 2
    gate: str
    outcome: str
    rule: str
    """Id of the rule that decided."""
    rule_version: int
    """Version of that rule; 0 when it was judged before rules had one."""
    reason_code: str
    reason: str
    """The rule's text with the facts in it."""
    facts: Any
    """The facts the rules saw, by name; unsaid ones are None or left out."""
    evidence: Any
    """By fact: first and last version, and number, of the events it was counted from. A fact that
    is missing here was said by the job itself."""
    policy: Any
    """The policy: id, version, digest of its rules, and a BlobRef of the rules unless they come
    with Tachograph."""

    @staticmethod
    def upcast_v1_v2(fields: Fields) -> None:
        """Name what version 1 left unsaid: one policy existed, and its rules had no versions.

        Its list of versions named the last event of each phase, from which the gate had its
        counts.
        """
        versions = fields["evidence"]
        span = [[min(versions), max(versions), len(versions)]] if versions else []
        fields["evidence"] = {name: span[0] for name in ("inputs", "outputs") if span}
        fields["rule_version"] = 0
        fields["policy"] = _first_policy(fields.pop("policy_version"))


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
    class_version: ClassVar[int] = 2
    outcome: str
    rule: str
    rule_version: int
    reason_code: str
    reason: str
    facts: Any
    """The facts the rules saw, as the log holds them."""
    evidence: Any
    """As in SemanticGateJudged."""
    policy: Any
    """As in SemanticGateJudged."""
    revises: int
    """Version of the verdict it differs from; 0 when the run had none."""
    why: str
    """Why a person has it judged again."""

    @staticmethod
    def upcast_v1_v2(fields: Fields) -> None:
        """Name what version 1 left unsaid."""
        fields["rule_version"] = fields["revises"] = 0
        fields["facts"], fields["evidence"] = {}, {}
        fields["policy"] = _first_policy(fields.pop("policy_version"))
        fields["why"] = ""


class CardEdited(Event):
    """Fields of the run's card that no other event holds got new values."""

    TOPIC: ClassVar[str] = "run.card-edited"
    changes: Any
    """New values by field; None removes a field."""
    entries: list[Any]
    """What was added to the card's history."""


class OriginRecorded(Event):
    """Where a run's history comes from, when it was not recorded here as it happened."""

    TOPIC: ClassVar[str] = "run.origin-recorded"
    origin: Any
    """`kind` (such as `fork`, `job-runs`, `checkpoint-file`) and what that kind knows: the run and
    version it was forked from, the files it was read from with their SHA-256."""


class MaintenancePlanned(Event):
    """An orchestrator run is about to go through these steps."""

    TOPIC: ClassVar[str] = "run.maintenance-planned"
    tier: str
    """`cycle`, `nightly`, `full`, or `step` for one alone."""
    steps: list[str]
    """Names of the steps, in order."""
    options: Any
    """What was asked for: force, dry_run, include, exclude, allow_skip."""
    deadline_us: int | None
    """When no further step is begun, microseconds since 1970 in UTC."""


class MaintenanceStepStarted(Event):
    """A step of an orchestrator run is about to be run."""

    TOPIC: ClassVar[str] = "run.maintenance-step-started"
    step: str


class MaintenanceStepEnded(Event):
    """A step of an orchestrator run was run, or passed over."""

    TOPIC: ClassVar[str] = "run.maintenance-step-ended"
    step: str
    status: str
    """One of `domain.outcome.STEP_STATUSES`."""
    summary: str
    """In words: what came of it, or why it was passed over."""
    duration_us: int
    runs: list[str]
    """Ids of the runs that it started."""
    outcome: str | None
    """Outcome of the step's work; None when it was not run."""
    reason_code: str | None
    guard: bool
    """Whether it counts as done: it is not due again before its guard interval has passed."""
    once: bool
    """Whether it is done for good, as a one-time step."""


class ExitValidated(Event):
    """The traces of a cron job were held against its required steps, once."""

    TOPIC: ClassVar[str] = "run.exit-validated"
    report: Any
    """What the validator found."""
    guard: str
    """What became of the guard file: `written`, `write_failed` or `skipped_…`."""


class FilesRemoved(Event):
    """Files that the run had left were removed, as a rule of retention says."""

    TOPIC: ClassVar[str] = "run.files-removed"
    what: str
    """What they were, such as `checkpoint`, `events`, `summary`."""
    paths: list[str]
    size: int
    """Bytes."""
    rule: str
    """Id of the rule, such as `success-drops-checkpoint`."""
    reason: str | None
    """Why, when a person said so."""


class BodiesArchived(Event):
    """The bodies of the run's events were moved to an archive; their digests stay in the log."""

    TOPIC: ClassVar[str] = "run.bodies-archived"
    archive: str
    """Name of the file in the store's archive folder."""
    sha256: str
    """Of the run's section in that file."""
    up_to: int
    """Version of the last event whose body was moved."""
    records: int
    """Number of bodies that were moved."""
    reason: str | None
    """Why, when a person said so."""


class BodiesErased(Event):
    """The bodies of the run's events are destroyed for good; that they were there, stays proven."""

    TOPIC: ClassVar[str] = "run.bodies-erased"
    reason: str
    up_to: int
    """Version of the last event whose body is gone."""
    records: int
    blobs: list[str]
    """Digests of the payloads that are gone."""
    outcome: str | None
    """Outcome that the run had."""
    ended: str | None
    """`cancelled` or `expired`, when that had ended the run; `unreadable` when its end is lost."""


class RunArchived(Event):
    """The run's files were moved to an archive."""

    TOPIC: ClassVar[str] = "run.archived"
    location: str
    sha256: str


def _first_policy(version: int) -> Fields:
    """Return what is known of a policy from the time when only its version was recorded."""
    return {"id": "default", "version": version, "digest": "", "rules": None}


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
