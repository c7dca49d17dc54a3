"""Requeue, cancel, prune and restore jobs: seen before it is done, within limits, undone again.

All jobs of one call change in one commit, up to 1,000 of them. What was found is looked at again
within that commit, so that nothing is done to a job that has changed since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain import checks
from tachograph.domain.queue_errors import JobStatusError, KeyTakenError
from tachograph.domain.queue_selection import (
    CANCEL_RULE,
    MOST,
    PRUNE_RULE,
    REQUEUE_RULE,
    RESTORE_RULE,
)
from tachograph.domain.queued_job import LIVE, STATUSES
from tachograph.domain.records import _Fields
from tachograph.projections.queue_health import matters_us
from tachograph.queues.choosing import choose

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any, Protocol, Self

    from tachograph.domain.errors import TachographError
    from tachograph.domain.event import Cause
    from tachograph.domain.queue_selection import Rule, Selection
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.ports import Progress
    from tachograph.projections.queue_health import QueuesView
    from tachograph.queues.choosing import Choice
    from tachograph.queues.pruning import Pruner
    from tachograph.queues.queueing import Queueing

    Look = Callable[[Callable[[QueuesView], Any]], Any]
    """Answers a question from the view of queues, caught up."""

    class Permit(Protocol):
        """A repair that may be done; its block's end is the repair's end."""

        repair: str

        def step(self, affected: int, detail: Any = None) -> None:
            """Record that a part is done and durable."""
            ...

        def done(
            self,
            affected: int | None = None,
            message: str = "",
            *,
            success: bool = True,
            watched: Sequence[str] = (),
        ) -> None:
            """Say what came of it."""
            ...

        def __enter__(self) -> Self: ...

        def __exit__(
            self,
            _kind: type[BaseException] | None,
            error: BaseException | None,
            _traceback: TracebackType | None,
        ) -> None: ...

    class Gate(Protocol):
        """Says whether a repair may begin now. Raises RepairDeniedError."""

        def __call__(self, action: str, reason: str, selection: dict[str, Any]) -> Permit:
            """Return the permit to do it."""
            ...


class RepairResult(_Fields):
    """What a repair did, or would do."""

    __slots__ = (
        "action",
        "affected",
        "applied",
        "archives",
        "by_queue",
        "message",
        "preview",
        "repair",
        "skipped",
        "success",
        "total",
        "verb",
    )

    def __init__(self, rule: Rule, choice: Choice, *, applied: bool) -> None:
        self.action = rule.action
        self.verb = rule.verb
        self.applied = applied
        self.success = True
        self.affected = 0
        self.message = ""
        self.total = choice.total
        """Jobs that matched, however few were to be changed."""
        self.by_queue = {name: (number, 0) for name, number in choice.by_queue.items()}
        """Of each queue, how many matched and how many were changed."""
        self.preview = choice.preview
        """The first 100 that were to be changed, as they were before."""
        self.skipped = dict(choice.skipped)
        """Why jobs were not changed, by their ids."""
        self.repair: str | None = None
        """Name of the repair in the log; events of the jobs have it too."""
        self.archives: list[str] = []


class Repairing:
    """The repairs of the queues of a store."""

    def __init__(
        self, queueing: Queueing, look: Look, gate: Gate, pruner: Pruner | None = None
    ) -> None:
        self._queueing = queueing
        self._look = look
        self._gate = gate
        self._pruner = pruner

    def requeue(self, selection: Selection, reason: str) -> RepairResult:
        """Let dead jobs wait again, with all their attempts and without their error."""
        return self.apply(REQUEUE_RULE, selection, reason)

    def cancel(self, selection: Selection, reason: str) -> RepairResult:
        """Let nobody do jobs; a holder is refused from then on."""
        return self.apply(CANCEL_RULE, selection, reason)

    def prune(self, selection: Selection, reason: str) -> RepairResult:
        """Take ended jobs out of the lists, their events into an archive."""
        return self.apply(PRUNE_RULE, selection, reason)

    def restore(self, selection: Selection, reason: str) -> RepairResult:
        """Make cancelled and pruned jobs what they were before."""
        return self.apply(RESTORE_RULE, selection, reason)

    def preview(self, rule: Rule, selection: Selection) -> RepairResult:
        """Return what `apply` would do now. Changes nothing, and nobody can deny it.

        Raises InvalidValueError, UnknownQueueError and JobNotFoundError.
        """
        choice = self._choose(rule, selection, self._queueing.now_us())
        result = RepairResult(rule, choice, applied=False)
        shown = len(choice.preview)
        result.message = f"{choice.total} job(s) match {rule.verb} filter; preview shows {shown}"
        return result

    def apply(
        self, rule: Rule, selection: Selection, reason: str, progress: Progress | None = None
    ) -> RepairResult:
        """Do a repair, and return what it did. Where nothing matches, nothing is asked or recorded.

        Raises what `preview` raises, InvalidValueError without a reason, RepairDeniedError; nothing
        was changed then. A job that is refused is named, and does not stop the others.
        """
        checks.text("reason", reason)
        now_us = self._queueing.now_us()
        choice = self._choose(rule, selection, now_us)
        result = RepairResult(rule, choice, applied=True)
        if not choice.ids:
            result.message = _message(rule, [], choice)
            result.success = not choice.skipped
            return result
        with self._gate(rule.action, reason, selection.to_fields()) as permit:
            result.repair = permit.repair or None
            done: list[tuple[str, str]] = []
            ids: list[str] = []
            for start in range(0, len(choice.ids), MOST):
                portion = choice.ids[start : start + MOST]
                changed = self._change(rule, selection, portion, reason, result, now_us)
                ids += [job_id for job_id, _, _ in changed]
                done += [(status, queue) for _, status, queue in changed]
                if len(choice.ids) > MOST:
                    permit.step(len(changed), {"of": len(choice.ids)})
                if progress is not None:
                    progress(start + len(portion), len(choice.ids))
            _tell(result, rule, choice, done)
            some = bool(result.affected) and selection.ids is None
            result.success = some or not result.skipped
            watched = ids if rule is REQUEUE_RULE else ()
            permit.done(result.affected, result.message, success=result.success, watched=watched)
        return result

    def _choose(self, rule: Rule, selection: Selection, now_us: int) -> Choice:
        queues = self._queueing.plan.queues
        get = self._queueing.repository.get
        held = _Held(self._queueing, rule, now_us)
        found: Choice = self._look(
            lambda view: choose(view, get, rule, selection, queues, now_us, held.why)
        )
        return found

    def _change(
        self,
        rule: Rule,
        selection: Selection,
        ids: Sequence[str],
        reason: str,
        result: RepairResult,
        now_us: int,
    ) -> list[tuple[str, str, str]]:
        """Change some jobs in one commit; return of each its id, its status before, its queue."""
        before: dict[str, str] = {}
        repair = result.repair

        def check(job: QueuedJob) -> None:
            before[job.id] = job.status
            why = rule.mismatch(selection, job, matters_us(job), now_us)
            if why is not None:
                raise JobStatusError(job.id, job.status, rule.done, f"It has changed: {why}.")

        def command(job: QueuedJob, cause: Cause) -> None:
            check(job)
            commands = {
                REQUEUE_RULE.verb: job.requeue,
                CANCEL_RULE.verb: job.cancel,
                RESTORE_RULE.verb: job.restore,
            }
            commands[rule.verb](cause, reason, repair=repair)

        refused: dict[str, TachographError]
        if rule.verb == PRUNE_RULE.verb:
            if self._pruner is None:
                raise ValueError("pruning needs a place for archives")
            pruned = self._pruner.prune(ids, reason, repair, check)
            done, refused = pruned.done, pruned.refused
            result.archives += [] if pruned.archive is None else [pruned.archive]
        else:
            changed = self._queueing.change(ids, command)
            done, refused = changed.done, changed.refused
        result.skipped |= {job_id: str(error) for job_id, error in refused.items()}
        return [(job.id, before[job.id], job.queue) for job in done]


class _Held:
    """Says which jobs cannot wait again, as another one has their unique key."""

    def __init__(self, queueing: Queueing, rule: Rule, now_us: int) -> None:
        self._queueing = queueing
        self._rule = rule
        self._now_us = now_us
        self._taken: dict[tuple[str, str], str] = {}
        """Keys of the jobs that were chosen."""

    def why(self, job: QueuedJob) -> str | None:
        """Return why a job cannot wait again; None for one that can, or that will not wait."""
        key = job.key
        if key is None or not self._is_to_wait(job):
            return None
        place = job.queue, key
        store = self._queueing.store
        holder = self._taken.get(place) or store.look(
            lambda index: index.holder(job.queue, key, self._now_us)
        )
        if holder not in (None, job.id):
            return str(KeyTakenError(job.id, holder, key))
        self._taken[place] = job.id
        return None

    def _is_to_wait(self, job: QueuedJob) -> bool:
        if self._rule is REQUEUE_RULE:
            return True
        return self._rule is RESTORE_RULE and job.before is not None and job.before[0] in LIVE


class Unlimited:
    """Stands in for a permit where a repair has no limits and no record of its own."""

    repair = ""

    def step(self, affected: int, detail: Any = None) -> None:
        """Take note of nothing."""

    def done(
        self,
        affected: int | None = None,
        message: str = "",
        *,
        success: bool = True,
        watched: Sequence[str] = (),
    ) -> None:
        """Take note of nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        return None


def _tell(
    result: RepairResult, rule: Rule, choice: Choice, done: Sequence[tuple[str, str]]
) -> None:
    """Put into a result what was done: status before and queue of each job."""
    result.affected = len(done)
    queues = [queue for _, queue in done]
    for name, (matched, _) in result.by_queue.items():
        result.by_queue[name] = matched, queues.count(name)
    result.message = _message(rule, done, choice)


def _message(rule: Rule, done: Sequence[tuple[str, str]], choice: Choice) -> str:
    """Say what was done, as people read it.

    Requeued jobs are told by what they were and by queue, in the order of their names.
    """
    number = len(done)
    if rule is CANCEL_RULE:
        return f"cancelled {number} obsolete job(s)"
    if rule is PRUNE_RULE:
        return f"pruned {number} terminal job(s) (archived)"
    if rule is RESTORE_RULE:
        return f"restored {number} job(s)"
    groups = [(status, queue) for queue in choice.by_queue for status in STATUSES]
    told = [
        f"{count} {status} {queue} job(s)"
        for status, queue in groups
        if (count := done.count((status, queue)))
    ]
    if not told:
        return "requeued 0 job(s)"
    return f"requeued {_joined(told)} to pending"


def _joined(parts: Sequence[str]) -> str:
    """Return parts as a list for people.

    >>> _joined(["a", "b", "c"]), _joined(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
