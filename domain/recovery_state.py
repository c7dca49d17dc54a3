"""The part of a run's state that recovery is about: who works, what was tried, who is needed.

Facts only, folded from events: it decides nothing and refuses nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Fields = dict[str, Any]

GONE = "gone"
SILENT = "silent"
"""Kinds of stall: the owner has ended, or it lives and records nothing."""
MOST_PROCESSES = 50
MOST_HISTORY = 80
"""Entries of a card's history that the state keeps; the log keeps all of them."""

WORK = frozenset(
    {
        "run.attempt-started",
        "run.phase-started",
        "run.phase-ended",
        "run.batches-planned",
        "run.batch-completed",
        "run.checkpoint-saved",
        "run.step-completed",
        "run.progress-reported",
        "run.artifact-recorded",
        "run.effect-intended",
        "run.effect-done",
        "run.answer-received",
        "run.maintenance-step-started",
        "run.maintenance-step-ended",
    }
)
"""What shows that an attempt is at work. Retries do not: a job may retry for ever."""


def ending_key(epoch: int) -> str:
    """Return the key of the step that says how an attempt's wrapped command ended.

    It brings nobody further: a command that fails would else be resumed for ever.

    >>> ending_key(2)
    'exec:2'
    """
    return f"exec:{epoch}"


class RecoveryState:
    """What recovery knows of a run."""

    def __init__(self) -> None:
        self.version = 0
        self.epoch = 0
        self.owner: Any = None
        self.worker: Any = None
        """Fields of the process that does the work for the owner, when it is another one."""
        self.joiners: list[Fields] = []
        """Fields of the newest processes that the worker has started, and that record for it."""
        self.processes: list[list[Any]] = []
        """[epoch, boot id, pid, start time] of the newest owners and workers."""
        self.recovery: Any = None
        """Fields of `domain.recovery.Recovery`; None when nothing was declared."""
        self.depends_on: list[str] = []
        self.worked_us = 0
        """Time of the last event of WORK."""
        self.checkpoint_us: int | None = None
        self.progress_version = 0
        """Version of the last event that brought the run further: a resume goes on from there."""
        self.dispatch: Fields | None = None
        """The resume under way: version, epoch, adapter, kind, progress_version, unattended, and
        timeout_seconds."""
        self.sent_epoch = 0
        """The last attempt that a dispatcher began, and whose first owner it was."""
        self.resumes = 0
        self.futile = 0
        """Unattended resumes in a row since the run got further the last time."""
        self.dispatched_us: int | None = None
        self.returned_us: int | None = None
        """When the last resume returned; None while it is under way."""
        self.attempt_open = False
        """Whether the current attempt has not ended: by what it says, or by its resume's return."""
        self.resume_error: str | None = None
        self.stall: Fields | None = None
        """What was last noted: epoch, progress_version, kind, version."""
        self.noted: str | None = None
        """Its kind, until the attempt shows work again."""
        self.blocked: str | None = None
        self.approvals: dict[str, Fields] = {}
        """By name: status (`requested`, `granted` or `rejected`) and subject_digest."""
        self.attention: dict[str, str | None] = {}
        """Detail of each reason for which a person is needed."""
        self.card: Fields = {}
        self.history: list[Any] = []

    @property
    def joiner(self) -> Fields | None:
        """Fields of the process that was the last to join the worker."""
        return self.joiners[-1] if self.joiners else None

    @property
    def own_processes(self) -> list[Fields]:
        """Fields of the processes that work for this run alone, the worker first.

        A dispatcher is none of them, not even when its resume has returned: it may be a watchdog
        that serves other runs too.
        """
        was_sent = self.sent_epoch == self.epoch
        found = [self.worker] if was_sent else [self.worker, self.owner]
        return [process for process in found if process is not None]

    @property
    def approvals_pending(self) -> list[str]:
        """Names of what a person has to decide."""
        return [name for name, each in self.approvals.items() if each["status"] == "requested"]

    @property
    def approvals_rejected(self) -> list[str]:
        """Names of what a person has refused."""
        return [name for name, each in self.approvals.items() if each["status"] == "rejected"]

    def got_further(self, fields: Fields) -> None:
        """Note that an event brought the run further."""
        self.progress_version = fields["originator_version"]
        self.futile = 0
        self.resume_error = None

    def knows_process(self, owner: Fields) -> None:
        """Remember the process of an owner or worker, so that it can be fenced later."""
        if owner.get("pid") is not None:
            process = [self.epoch, owner.get("boot_id"), owner["pid"], owner.get("started")]
            self.processes = [*self.processes, process][-MOST_PROCESSES:]


def attempt_started(run: RecoveryState, fields: Fields) -> None:
    """Forget what belonged to the attempt before."""
    run.worker = None
    run.joiners = []
    run.blocked = None
    run.dispatch = None
    run.knows_process(fields["owner"] or {})


def _worker_started(run: RecoveryState, fields: Fields) -> None:
    run.knows_process(fields["worker"] or {})
    if fields["joined"]:
        run.joiners = [*run.joiners, fields["worker"]][-MOST_PROCESSES:]
    else:
        run.worker = fields["worker"]


def _recovery_declared(run: RecoveryState, fields: Fields) -> None:
    run.recovery = fields["recovery"]
    if fields["reason"] is not None:  # a person changed it: resumes are counted anew
        run.futile = 0


def _dependencies_declared(run: RecoveryState, fields: Fields) -> None:
    run.depends_on = list(fields["runs"])


def _approval_requested(run: RecoveryState, fields: Fields) -> None:
    run.approvals[fields["approval"]] = {
        "status": "requested",
        "subject_digest": fields["subject_digest"],
    }
    run.got_further(fields)


def _approval_granted(run: RecoveryState, fields: Fields) -> None:
    run.approvals[fields["approval"]]["status"] = "granted"
    run.got_further(fields)


def _approval_rejected(run: RecoveryState, fields: Fields) -> None:
    run.approvals[fields["approval"]]["status"] = "rejected"


def _stall_detected(run: RecoveryState, fields: Fields) -> None:
    evidence = fields["evidence"] if isinstance(fields["evidence"], dict) else {}
    run.stall = {
        "epoch": run.epoch,
        "progress_version": run.progress_version,
        "kind": evidence.get("kind"),
        "version": fields["originator_version"],
    }
    run.noted = evidence.get("kind")


def _resume_dispatched(run: RecoveryState, fields: Fields) -> None:
    plan = fields["plan"] if isinstance(fields["plan"], dict) else {}
    unattended = bool(plan.get("unattended"))
    execute = plan.get("execute")
    run.dispatch = {
        "version": fields["originator_version"],
        "epoch": run.epoch,
        "adapter": fields["adapter"],
        "progress_version": run.progress_version,
        "unattended": unattended,
        "kind": execute.get("kind") if isinstance(execute, dict) else None,
        "timeout_seconds": execute.get("timeout_seconds") if isinstance(execute, dict) else None,
    }
    run.sent_epoch = run.epoch
    run.resumes += 1
    run.futile += unattended
    run.dispatched_us = fields["time_us"]
    run.returned_us = None


def _resume_returned(run: RecoveryState, fields: Fields) -> None:
    result = fields["result"] if isinstance(fields["result"], dict) else {}
    error = result.get("error")
    run.dispatch = None
    run.returned_us = fields["time_us"]
    if result.get("left_running"):
        run.owner = run.worker or run.owner  # its dispatcher has nothing to do with it any more
    else:
        run.attempt_open = False  # whoever worked for it has ended
    if not fields["progressed"]:
        run.resume_error = str(error) if error else "the run got no further"


def _attention_raised(run: RecoveryState, fields: Fields) -> None:
    run.attention.setdefault(fields["reason"], fields["detail"])


def _attention_cleared(run: RecoveryState, fields: Fields) -> None:
    run.attention.pop(fields["reason"], None)


def _blocked(run: RecoveryState, fields: Fields) -> None:
    run.blocked = fields["reason"]


def _card_edited(run: RecoveryState, fields: Fields) -> None:
    for name, value in fields["changes"].items():
        if value is None:
            run.card.pop(name, None)
        else:
            run.card[name] = value
    run.history = [*run.history, *fields["entries"]][-MOST_HISTORY:]


HANDLERS: dict[str, Callable[[RecoveryState, Fields], None]] = {
    "run.worker-started": _worker_started,
    "run.recovery-declared": _recovery_declared,
    "run.dependencies-declared": _dependencies_declared,
    "run.approval-requested": _approval_requested,
    "run.approval-granted": _approval_granted,
    "run.approval-rejected": _approval_rejected,
    "run.stall-detected": _stall_detected,
    "run.resume-dispatched": _resume_dispatched,
    "run.resume-returned": _resume_returned,
    "run.attention-raised": _attention_raised,
    "run.attention-cleared": _attention_cleared,
    "run.blocked": _blocked,
    "run.card-edited": _card_edited,
}
"""What each event that only recovery cares for changes."""
