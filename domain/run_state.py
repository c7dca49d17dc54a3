"""What a run is, folded from its events. Facts only: it decides nothing and refuses nothing."""

from __future__ import annotations

from tachograph.domain import audit_state, maintenance_state, recovery_state
from tachograph.domain.bodies import ERASED, erasure
from tachograph.domain.errors import VersionGapError
from tachograph.domain.index_set import IndexSet
from tachograph.domain.maintenance_state import MaintenanceState
from tachograph.domain.outcome import is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.domain.answers import Answers

    Fields = dict[str, Any]

SNAPSHOT_FORMAT = 4
"""Raised whenever the meaning of a stored snapshot changes; older ones are then ignored."""


class Phase:
    """A phase of a run."""

    __slots__ = (
        "batch_version",
        "blank",
        "done",
        "ended_us",
        "epoch",
        "inputs",
        "items_digest",
        "last_batch_version",
        "last_version",
        "name",
        "parsed",
        "safe_to_retry",
        "size",
        "started_us",
        "status",
        "summary",
        "total",
        "version",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.status = "pending"
        """`running`, `completed`, `failed` or `skipped`."""
        self.epoch = 0
        """The attempt that started it last."""
        self.version = 0
        """Version of the event that started it first: its batches come later."""
        self.last_version = 0
        """Version of its latest event."""
        self.started_us = 0
        self.ended_us: int | None = None
        self.safe_to_retry = True
        self.summary: str | None = None
        self.total: int | None = None
        """Planned batches; None when the phase has no batch plan."""
        self.size = 0
        self.items_digest: str | None = None
        self.batch_version = 0
        self.last_batch_version = 0
        """Versions of the events that finished its first and its latest batch."""
        self.blank = 0
        """Batches that had items, and whose output is whitespace or a placeholder."""
        self.done = IndexSet()
        self.inputs: int | None = None
        """Items that went into finished batches; None when no batch said."""
        self.parsed: int | None = None
        """Items that came out of finished batches; None when no batch said."""

    def missing(self, most: int | None = None) -> list[int]:
        """Return the indexes of planned batches that are not finished; `most` at most."""
        return self.done.missing(self.total or 0, most)

    def count_missing(self) -> int:
        """Return how many planned batches are not finished."""
        return self.done.count_missing(self.total or 0)

    def to_fields(self) -> Fields:
        """Return the stored form."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        fields["done"] = [list(pair) for pair in self.done.ranges]
        return fields

    @classmethod
    def from_fields(cls, fields: Fields) -> Phase:
        """Restore a phase from its stored form."""
        phase = cls(fields["name"])
        for name, value in fields.items():
            setattr(phase, name, value)
        phase.done = IndexSet([list(pair) for pair in fields["done"]])
        return phase


class RunState(MaintenanceState):
    """The state of a run after its first `version` events."""

    def __init__(self) -> None:
        super().__init__()
        self.id = ""
        self.created_us = 0
        self.updated_us = 0
        self.command = ""
        self.fingerprint = ""
        self.inputs: Any = None
        self.inputs_digest = ""
        self.title: str | None = None
        self.parent: str | None = None
        self.model_policy: Any = None
        self.phases: dict[str, Phase] = {}
        self.checkpoint: Fields | None = None
        """The last saved checkpoint: version, phase, kind, state."""
        self.steps: dict[str, int] = {}
        """Version of the event that holds each finished step's result."""
        self.effects: dict[str, Fields] = {}
        """By key: status (`intended`, `retry_allowed` or `done`), idempotent, version, epoch."""
        self.artifacts: dict[str, Fields] = {}
        self.progress: Fields | None = None
        self.retries = 0
        self.fallbacks = 0
        self.notes = 0
        self.outcome: str | None = None
        self.reason_code: str | None = None
        self.reason: str | None = None
        self.ended: str | None = None
        """`cancelled` or `expired`, when that ended the run for good; `erased` thereafter."""
        self.ended_us: int | None = None
        self.archived: str | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing can move this run any more (G6)."""
        return self.ended is not None or is_terminal(self.outcome, self.reason_code)

    @property
    def effects_in_doubt(self) -> list[str]:
        """Keys of effects that may have happened: intended, with no result (G10)."""
        return [key for key, effect in self.effects.items() if effect["status"] == "intended"]

    @property
    def effects_to_ask_about(self) -> list[str]:
        """Keys of those in doubt that may do harm when they are done twice."""
        return [key for key in self.effects_in_doubt if not self.effects[key]["idempotent"]]

    def evolve(self, topic: str, fields: Fields) -> None:
        """Apply one event, given by its topic and its fields as of today's version.

        Raises KeyError for an unknown topic.
        """
        if fields["originator_version"] != self.version + 1:
            raise VersionGapError(self.id, fields["originator_version"], self.version)
        if ERASED in fields:
            self._skip(fields)
        else:
            _HANDLERS[topic](self, fields)
        if topic in recovery_state.WORK and ERASED not in fields:
            self.worked_us = fields["time_us"]
            self.blocked = None
            self.noted = None
        self.version = fields["originator_version"]
        self.updated_us = fields["time_us"]

    def _skip(self, fields: Fields) -> None:
        """Take an event in of which nothing is known but that it was there."""
        self.id = fields["originator_id"]
        self.created_us = self.created_us or fields["time_us"]
        self.bodies = "gone"

    def to_snapshot(self) -> Fields:
        """Return the whole state as plain values; `restore` is its inverse."""
        fields = _unshared({name: value for name, value in vars(self).items() if name[0] != "_"})
        fields["phases"] = [phase.to_fields() for phase in self.phases.values()]
        fields["answers"] = {phase: each.to_fields() for phase, each in self.answers.items()}
        fields["snapshot_format"] = SNAPSHOT_FORMAT
        return fields

    def restore(self, fields: Fields) -> bool:
        """Take the state from a snapshot; False when its format is not today's."""
        if fields.get("snapshot_format") != SNAPSHOT_FORMAT:
            return False
        state = _unshared(fields)
        del state["snapshot_format"]
        phases = [Phase.from_fields(phase) for phase in state.pop("phases")]
        answers = _answers(state.pop("answers"))
        vars(self).update(state)
        self.answers = answers
        self.phases = {phase.name: phase for phase in phases}
        return True


def _answers(stored: Fields) -> dict[str, Answers]:
    """Restore what was asked and answered; most runs record nothing of it."""
    if not stored:
        return {}
    from tachograph.domain.answers import Answers

    return {name: Answers.from_fields(each) for name, each in stored.items()}


def _unshared(fields: Fields) -> Fields:
    """Copy what later events change in place, so that a snapshot and its run go separate ways."""
    copied = dict(fields)
    for name in ("steps", "artifacts"):
        copied[name] = dict(fields[name])
    for name in ("effects", "approvals", "maintenance_steps"):
        copied[name] = {key: dict(entry) for key, entry in fields[name].items()}
    for name in ("attention", "card"):
        copied[name] = dict(fields[name])
    for name in ("history", "processes", "depends_on"):
        copied[name] = list(fields[name])
    return copied


def _bodies_archived(run: RunState, fields: Fields) -> None:
    if run.bodies == "gone":  # a copy of a store that had lost the archive
        run.ended = "unreadable"
        run.reason = f"its events are in the archive {fields['archive']}, which is lost"
    run.bodies = "archived"


def _bodies_erased(run: RunState, fields: Fields) -> None:
    """Forget everything: the state is the one that the events without bodies fold to."""
    kept = run.id, run.version, run.created_us, run.updated_us
    vars(run).update(vars(RunState()))
    run.id, run.version, run.created_us, run.updated_us = kept
    run.bodies = "erased"
    run.outcome = fields["outcome"]
    run.ended = "erased"
    run.reason = erasure(fields)
    run.ended_us = fields["time_us"]


def _created(run: RunState, fields: Fields) -> None:
    run.id = fields["originator_id"]
    run.created_us = fields["time_us"]
    for name in (
        "command",
        "fingerprint",
        "inputs",
        "inputs_digest",
        "title",
        "parent",
        "model_policy",
    ):
        setattr(run, name, fields[name])


def _attempt_started(run: RunState, fields: Fields) -> None:
    run.epoch = fields["epoch"]
    run.owner = fields["owner"]
    run.attempt_open = True
    run.outcome = run.reason_code = run.reason = None
    run.ended_us = None
    run.verdict = run.revision = None
    recovery_state.attempt_started(run, fields)
    audit_state.attempt_started(run, fields)


def _phase_started(run: RunState, fields: Fields) -> None:
    phase = run.phases.setdefault(fields["phase"], Phase(fields["phase"]))
    phase.last_version = fields["originator_version"]
    phase.status = "running"
    phase.epoch = run.epoch
    phase.version = phase.version or fields["originator_version"]
    phase.started_us = phase.started_us or fields["time_us"]
    phase.ended_us = None
    phase.summary = None
    phase.safe_to_retry = fields["safe_to_retry"]


def _phase_ended(run: RunState, fields: Fields) -> None:
    phase = run.phases[fields["phase"]]
    phase.last_version = fields["originator_version"]
    phase.status = fields["status"]
    phase.ended_us = fields["time_us"]
    phase.summary = fields["summary"]
    if phase.status != "failed":
        run.got_further(fields)


def _batches_planned(run: RunState, fields: Fields) -> None:
    phase = run.phases[fields["phase"]]
    phase.last_version = fields["originator_version"]
    phase.total = fields["total"]
    phase.size = fields["size"]
    phase.items_digest = fields["items_digest"]


def _is_blank(output: Any) -> bool:
    if output is None:  # nothing was handed over: that is no blank output
        return False
    from tachograph.domain.blank import says_nothing

    return says_nothing(output)


def _batch_completed(run: RunState, fields: Fields) -> None:
    phase = run.phases[fields["phase"]]
    phase.last_version = fields["originator_version"]
    phase.done.add(fields["index"])
    phase.last_batch_version = fields["originator_version"]
    phase.batch_version = phase.batch_version or fields["originator_version"]
    if not fields["parsed"] and _is_blank(fields["output"]):
        phase.blank += 1
    if fields["inputs"] is not None:
        phase.inputs = (phase.inputs or 0) + fields["inputs"]
    if fields["parsed"] is not None:
        phase.parsed = (phase.parsed or 0) + fields["parsed"]
    if run.answers:
        _mend(run, fields)
    run.got_further(fields)


def _mend(run: RunState, fields: Fields) -> None:
    answers = run.answers.get(fields["phase"])
    if answers is not None:
        answers.finish_batch(fields["index"], fields["inputs"], fields["parsed"])


def _checkpoint_saved(run: RunState, fields: Fields) -> None:
    said = {name: fields[name] for name in ("phase", "kind", "state")}
    run.checkpoint_us = fields["time_us"]
    # Saving the same once more is a sign of life, and no progress.
    if run.checkpoint is None or any(run.checkpoint[name] != said[name] for name in said):
        run.got_further(fields)
    run.checkpoint = {"version": fields["originator_version"], **said}


def _step_completed(run: RunState, fields: Fields) -> None:
    run.steps[fields["key"]] = fields["originator_version"]
    if fields["key"] != recovery_state.ending_key(run.epoch):
        run.got_further(fields)


def _progress_reported(run: RunState, fields: Fields) -> None:
    run.progress = {name: fields[name] for name in ("completed", "total", "unit")}


def _retry_scheduled(run: RunState, _fields: Fields) -> None:
    run.retries += 1


def _fallback_taken(run: RunState, _fields: Fields) -> None:
    run.fallbacks += 1


def _artifact_recorded(run: RunState, fields: Fields) -> None:
    names = ("path", "size", "sha256")
    run.artifacts[fields["name"]] = {name: fields[name] for name in names}


def _effect_intended(run: RunState, fields: Fields) -> None:
    run.effects[fields["key"]] = {
        "status": "intended",
        "idempotent": fields["idempotent"],
        "version": fields["originator_version"],
        "epoch": run.epoch,
    }


def _effect_done(run: RunState, fields: Fields) -> None:
    effect = run.effects[fields["key"]]
    effect["status"] = "done"
    effect["version"] = fields["originator_version"]
    if fields["reason"] is None:  # else a person, or a rule, has decided about it
        run.got_further(fields)


def _effect_retry_allowed(run: RunState, fields: Fields) -> None:
    effect = run.effects[fields["key"]]
    effect["status"] = "retry_allowed"
    effect["version"] = fields["originator_version"]


def _noted(run: RunState, _fields: Fields) -> None:
    run.notes += 1


def _finished(run: RunState, fields: Fields) -> None:
    run.outcome = fields["outcome"]
    run.reason_code = fields["reason_code"]
    run.reason = fields["reason"]
    run.ended_us = fields["time_us"]
    run.attempt_open = False
    if is_terminal(run.outcome, run.reason_code):
        run.got_further(fields)


def _cancelled(run: RunState, fields: Fields) -> None:
    _end(run, "cancelled", fields)


def _expired(run: RunState, fields: Fields) -> None:
    _end(run, "expired", fields)


def _end(run: RunState, ended: str, fields: Fields) -> None:
    run.ended = ended
    run.reason = fields["reason"]
    run.ended_us = fields["time_us"]
    run.attempt_open = False


def _archived(run: RunState, fields: Fields) -> None:
    run.archived = fields["location"]


_HANDLERS: dict[str, Callable[[RunState, Fields], None]] = {
    **recovery_state.HANDLERS,
    **audit_state.HANDLERS,
    **maintenance_state.HANDLERS,
    "run.bodies-archived": _bodies_archived,
    "run.bodies-erased": _bodies_erased,
    "run.created": _created,
    "run.attempt-started": _attempt_started,
    "run.phase-started": _phase_started,
    "run.phase-ended": _phase_ended,
    "run.batches-planned": _batches_planned,
    "run.batch-completed": _batch_completed,
    "run.checkpoint-saved": _checkpoint_saved,
    "run.step-completed": _step_completed,
    "run.progress-reported": _progress_reported,
    "run.retry-scheduled": _retry_scheduled,
    "run.fallback-taken": _fallback_taken,
    "run.artifact-recorded": _artifact_recorded,
    "run.effect-intended": _effect_intended,
    "run.effect-done": _effect_done,
    "run.effect-retry-allowed": _effect_retry_allowed,
    "run.finished": _finished,
    "run.cancelled": _cancelled,
    "run.expired": _expired,
    "run.note-added": _noted,
    "run.archived": _archived,
}
