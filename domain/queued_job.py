"""A job in a queue: what may happen to it, and what each event makes of it. No I/O, no clock.

One stream per job. What concerns several jobs at once (keys, rates, room) is decided by who asks
for an event, within the commit that records it.
"""

from __future__ import annotations

from operator import itemgetter

from tachograph.domain import checks
from tachograph.domain import queue_events as events
from tachograph.domain.errors import InvalidValueError, VersionGapError
from tachograph.domain.queue_errors import JobStatusError, LeaseLostError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tachograph.domain.event import Cause
    from tachograph.domain.queue_events import JobEvent

    Fields = dict[str, Any]

PENDING = "pending"
"""It waits: for a worker, for its time, or for another attempt after a failed one."""
LEASED = "leased"
COMPLETED = "completed"
DEAD = "dead"
CANCELLED = "cancelled"
PRUNED = "pruned"
STATUSES = (PENDING, LEASED, COMPLETED, DEAD, CANCELLED, PRUNED)
LIVE = (PENDING, LEASED)
"""Not ended: these hold their key."""

OWNER_GONE = "owner_gone"
LEASE_EXPIRED = "lease_expired"
STOPPED = "stopped"
BY_HAND = "by_hand"
RELEASES = (OWNER_GONE, LEASE_EXPIRED, STOPPED, BY_HAND)
"""The holder's process has ended, it was silent too long, it gave the job back, a person did."""

ATTEMPTS_EXHAUSTED = "attempts_exhausted"
TERMINAL_ERROR = "terminal_error"
DEATHS = (ATTEMPTS_EXHAUSTED, TERMINAL_ERROR, LEASE_EXPIRED, OWNER_GONE)
"""All attempts failed, no attempt can help, or the last holder never ended it."""

EXPIRED = "lease expired before completion"
"""Error of a job whose last holder was lost, and that has none of its own."""

MAX_NAME = 60
MAX_TEXT = 500
"""Characters of a key."""
MAX_PRIORITY = 1_000_000
MOST_ATTEMPTS = 1_000
LATEST_US = 2**62
"""Times and durations beyond it have no place in an index."""
FIELDS = (
    "id",
    "queue",
    "type",
    "status",
    "version",
    "position",
    "priority",
    "enqueued_us",
    "waiting_us",
    "available_us",
    "attempts",
    "max_attempts",
    "epoch",
    "key",
    "key_window_us",
    "concurrency_key",
    "owner",
    "lease_seconds",
    "leased_us",
    "leased_boot_us",
    "metered",
    "error",
    "code",
    "failed_us",
    "ended_us",
    "before",
)
"""What is kept of a job, in the order of its rows."""
_values = itemgetter(*FIELDS)


class QueuedJob:
    """A job as its events have left it; its methods are the commands.

    Each command records its event or raises, and has recorded nothing then.
    """

    def __init__(self) -> None:
        self.id = ""
        """A UUID (version 7) as text: the later enqueued, the greater."""
        self.queue = ""
        self.type = ""
        self.status = ""
        self.version = 0
        self.position = 0
        """Where in the log it was enqueued: the order in which jobs are taken."""
        self.priority = 0
        self.enqueued_us = 0
        self.waiting_us = 0
        """Since when it waits: enqueued, due, requeued or released."""
        self.available_us: int | None = None
        self.attempts = 0
        """Leases that count since it was enqueued or requeued."""
        self.max_attempts = 3
        self.epoch = 0
        """Leases ever: each fences the holders before it."""
        self.key: str | None = None
        self.key_window_us: int | None = None
        self.concurrency_key: str | None = None
        self.owner: dict[str, Any] | None = None
        """Fields of the holder's process while it is leased."""
        self.lease_seconds = 0.0
        self.leased_us: int | None = None
        """When it was last leased; None before, and once the lease was taken back."""
        self.leased_boot_us: int | None = None
        """The same by the clock that counts since the boot of the holder's machine."""
        self.metered = False
        self.error: str | None = None
        """Of the last failed attempt; None once requeued or completed."""
        self.code: str | None = None
        self.failed_us: int | None = None
        """When it last failed, or its lease was last taken back."""
        self.ended_us: int | None = None
        """When it was completed, died, or was cancelled; None while it is not ended."""
        self.before: list[Any] | None = None
        """What a cancelled or pruned job was before: status, ended_us, and its own `before`."""
        self._pending: list[JobEvent] = []

    # Rows: what an index or a snapshot keeps.

    def to_row(self) -> list[Any]:
        """Return plain values, from which `from_row` makes the same job."""
        return list(_values(vars(self)))

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> QueuedJob:
        """Return the job of a row. Raises ValueError for one of another shape."""
        job = cls.__new__(cls)
        vars(job).update(zip(FIELDS, row, strict=True), _pending=[])
        return job

    # Events.

    @property
    def pending_events(self) -> list[JobEvent]:
        """Events that were recorded and not collected yet."""
        return self._pending

    def collect_events(self) -> Sequence[JobEvent]:
        """Return the pending events and forget them."""
        collected, self._pending = self._pending, []
        return collected

    @property
    def live(self) -> bool:
        """Whether it waits or is leased: then it holds its key."""
        return self.status in LIVE

    @property
    def failing(self) -> bool:
        """Whether it waits for another attempt after a failed one."""
        return self.status == PENDING and self.error is not None

    # Commands.

    @classmethod
    def enqueue(
        cls,
        cause: Cause,
        job_id: str,
        queue: str,
        kind: str,
        payload: Any,
        *,
        priority: int = 0,
        available_us: int | None = None,
        max_attempts: int = 3,
        key: str | None = None,
        key_window_us: int | None = None,
        concurrency_key: str | None = None,
    ) -> QueuedJob:
        """Put a job in a queue. Raises InvalidValueError."""
        check_name("queue", queue)
        check_name("type", kind)
        _check_between("priority", priority, -MAX_PRIORITY, MAX_PRIORITY)
        _check_between("max attempts", max_attempts, 1, MOST_ATTEMPTS)
        for what, text in (("key", key), ("concurrency key", concurrency_key)):
            if text is not None:
                check_key(what, text)
        if available_us is not None:
            _check_between("time", available_us, 0, LATEST_US)
        if key_window_us is not None:
            _check_between("key window", key_window_us, 0, LATEST_US)
            if key is None:
                raise InvalidValueError("key window", key_window_us, "name a key too")
        job = cls()
        job.id = job_id
        job._record(
            events.JobEnqueued,
            cause,
            queue=queue,
            type=kind,
            payload=payload,
            priority=priority,
            available_us=available_us,
            max_attempts=max_attempts,
            key=key,
            key_window_us=key_window_us,
            concurrency_key=concurrency_key,
        )
        return job

    def lease(
        self,
        cause: Cause,
        owner: Fields,
        lease_seconds: float,
        *,
        boottime_us: int | None = None,
        metered: bool = False,
    ) -> None:
        """Give the job to a holder; the attempt counts from now on."""
        self._in(PENDING, doing="leased")
        self._record(
            events.JobLeased,
            cause,
            epoch=self.epoch + 1,
            attempt=self.attempts + 1,
            owner=owner,
            lease_seconds=lease_seconds,
            boottime_us=boottime_us,
            metered=metered,
        )

    def complete(
        self,
        cause: Cause,
        result: Any = None,
        *,
        outcome: str | None = None,
        run: str | None = None,
    ) -> None:
        """Record the holder's success. Raises LeaseLostError when the lease is not its any more."""
        self._held(cause)
        self._record(
            events.JobCompleted, cause, epoch=self.epoch, result=result, outcome=outcome, run=run
        )

    def fail(
        self,
        cause: Cause,
        error: str,
        *,
        code: str = "error",
        terminal: bool = False,
        retry_us: int | None = None,
        max_attempts: int | None = None,
        run: str | None = None,
    ) -> None:
        """Record the holder's failure: the job waits until `retry_us`, or is dead.

        `max_attempts` is a bound of the queue, which may be lower than the job's own. Raises
        LeaseLostError.
        """
        self._held(cause)
        checks.text("error", error)
        dead = terminal or self.exhausted(max_attempts)
        self._record(
            events.JobFailed,
            cause,
            epoch=self.epoch,
            attempt=self.attempts,
            error=error,
            code=code,
            terminal=terminal,
            retry_us=None if dead else retry_us,
            run=run,
        )
        if dead:
            self._die(cause, TERMINAL_ERROR if terminal else ATTEMPTS_EXHAUSTED, error)

    def release(
        self,
        cause: Cause,
        code: str,
        reason: str,
        *,
        retry_us: int | None = None,
        max_attempts: int | None = None,
    ) -> None:
        """Take the job back from its holder, which did not end it.

        The attempt stays counted unless the holder gave it back in good order (STOPPED); with all
        attempts used up the job is dead. Only the holder itself, or who is no holder (epoch 0),
        may do so.
        """
        if cause.epoch:
            self._held(cause)
        self._in(LEASED, doing="released")
        checks.one_of("release", code, RELEASES)
        checks.text("reason", reason)
        counted = code != STOPPED
        dead = counted and self.exhausted(max_attempts)
        self._record(
            events.JobReleased,
            cause,
            epoch=self.epoch,
            code=code,
            reason=reason,
            counted=counted,
            retry_us=None if dead else retry_us,
        )
        if dead:
            self._die(cause, code if code in DEATHS else ATTEMPTS_EXHAUSTED, self.error or EXPIRED)

    def die_of_attempts(self, cause: Cause, max_attempts: int | None = None) -> bool:
        """End a waiting job whose attempts are used up, as after the bound was lowered."""
        if self.status != PENDING or not self.exhausted(max_attempts):
            return False
        self._die(cause, ATTEMPTS_EXHAUSTED, self.error or EXPIRED)
        return True

    def exhausted(self, max_attempts: int | None = None) -> bool:
        """Say whether no attempt is left, by the job's bound and the queue's."""
        bound = self.max_attempts if max_attempts is None else min(self.max_attempts, max_attempts)
        return self.attempts >= bound

    def requeue(self, cause: Cause, reason: str, *, repair: str | None = None) -> None:
        """Let a dead or cancelled job wait again, with all its attempts."""
        checks.text("reason", reason)
        self._in(DEAD, CANCELLED, doing="requeued")
        self._record(
            events.JobRequeued, cause, status_before=self.status, reason=reason, repair=repair
        )

    def cancel(self, cause: Cause, reason: str, *, repair: str | None = None) -> None:
        """Let nobody do the job; a holder's completion is refused from now on."""
        checks.text("reason", reason)
        self._in(PENDING, LEASED, COMPLETED, DEAD, doing="cancelled")
        self._record(
            events.JobCancelled, cause, status_before=self.status, reason=reason, repair=repair
        )

    def prune(self, cause: Cause, reason: str, archive: str, *, repair: str | None = None) -> None:
        """Take an ended job out of all lists; `archive` holds its events."""
        checks.text("reason", reason)
        checks.text("archive", archive)
        self._in(COMPLETED, DEAD, CANCELLED, doing="pruned")
        self._record(
            events.JobPruned,
            cause,
            status_before=self.status,
            reason=reason,
            repair=repair,
            archive=archive,
        )

    def restore(self, cause: Cause, reason: str, *, repair: str | None = None) -> None:
        """Make a cancelled or pruned job what it was before; what was leased waits."""
        checks.text("reason", reason)
        self._in(CANCELLED, PRUNED, doing="restored")
        before = self.before[0] if self.before else PENDING
        status = PENDING if before == LEASED else before
        self._record(events.JobRestored, cause, status=status, reason=reason, repair=repair)

    # Rules.

    def _held(self, cause: Cause) -> None:
        """G5: only the holder of the current lease may end it."""
        if self.status != LEASED or cause.epoch != self.epoch:
            what = self.status
            if self.status == LEASED:
                what = f"epoch {self.epoch} holds it"
            raise LeaseLostError(self.id, cause.epoch, what)

    def _in(self, *statuses: str, doing: str) -> None:
        if self.status not in statuses:
            raise JobStatusError(
                self.id, self.status, doing, f"Only what is {' or '.join(statuses)} can be."
            )

    def _die(self, cause: Cause, code: str, error: str) -> None:
        self._record(events.JobDied, cause, code=code, error=error)

    def _record(self, event_type: type[JobEvent], cause: Cause, **fields: Any) -> None:
        event = event_type(
            originator_id=self.id,
            originator_version=self.version + 1,
            time_us=cause.time_us,
            by=cause.by(),
            **fields,
        )
        self.evolve(event.TOPIC, vars(event))
        self._pending.append(event)

    # What each event makes of the job.

    def evolve(self, topic: str, fields: Fields) -> None:
        """Apply an event.

        Raises VersionGapError for one that does not follow (G3), and KeyError for a topic that is
        not one of a job.
        """
        if fields["originator_version"] != self.version + 1:
            raise VersionGapError(self.id, fields["originator_version"], self.version)
        _HANDLERS[topic](self, fields)
        self.version = fields["originator_version"]

    def _enqueued(self, fields: Fields) -> None:
        self.id = str(fields["originator_id"])
        for name in ("queue", "type", "priority", "available_us", "max_attempts"):
            setattr(self, name, fields[name])
        for name in ("key", "key_window_us", "concurrency_key"):
            setattr(self, name, fields[name])
        self.enqueued_us = fields["time_us"]
        self._wait(fields["time_us"], fields["available_us"])

    def _leased(self, fields: Fields) -> None:
        self.status = LEASED
        self.epoch = fields["epoch"]
        self.attempts = fields["attempt"]
        self.owner = fields["owner"]
        self.lease_seconds = fields["lease_seconds"]
        self.metered = fields["metered"]
        self.leased_us = fields["time_us"]
        self.leased_boot_us = fields["boottime_us"]
        self.available_us = None

    def _completed(self, fields: Fields) -> None:
        self._end(COMPLETED, fields["time_us"])
        self.error = self.code = None

    def _failed(self, fields: Fields) -> None:
        self.error, self.code = fields["error"], fields["code"]
        self.failed_us = fields["time_us"]
        self._let_go()
        self._wait(fields["time_us"], fields["retry_us"])

    def _released(self, fields: Fields) -> None:
        if not fields["counted"]:
            self.attempts -= 1
        else:
            self.failed_us = fields["time_us"]
        self._let_go()
        self._wait(fields["time_us"], fields["retry_us"])

    def _died(self, fields: Fields) -> None:
        self._end(DEAD, fields["time_us"])
        self.error, self.code = fields["error"], fields["code"]

    def _requeued(self, fields: Fields) -> None:
        self.attempts = 0
        self.error = self.code = self.failed_us = self.before = self.ended_us = None
        self._wait(fields["time_us"], None)

    def _cancelled(self, fields: Fields) -> None:
        self.before = [self.status, self.ended_us, self.available_us, None]
        if self.status == LEASED:
            self._let_go()
        self._end(CANCELLED, fields["time_us"])

    def _pruned(self, _fields: Fields) -> None:
        self.before = [self.status, self.ended_us, None, self.before]
        self.status = PRUNED

    def _restored(self, fields: Fields) -> None:
        _, ended_us, available_us, before = self.before or (PENDING, None, None, None)
        self.before = before
        if fields["status"] == PENDING:
            self.ended_us = None
            self._wait(fields["time_us"], available_us)
        else:
            self.status, self.ended_us = fields["status"], ended_us

    def _wait(self, since_us: int, available_us: int | None) -> None:
        self.status = PENDING
        self.available_us = available_us
        self.waiting_us = since_us if available_us is None else max(since_us, available_us)

    def _let_go(self) -> None:
        self.owner = self.leased_us = self.leased_boot_us = None
        self.metered = False

    def _end(self, status: str, time_us: int) -> None:
        self.status = status
        self.ended_us = time_us
        self.available_us = None
        self.owner = self.leased_boot_us = None
        self.metered = False


_HANDLERS: dict[str, Callable[[QueuedJob, Fields], None]] = {
    events.JobEnqueued.TOPIC: QueuedJob._enqueued,
    events.JobLeased.TOPIC: QueuedJob._leased,
    events.JobCompleted.TOPIC: QueuedJob._completed,
    events.JobFailed.TOPIC: QueuedJob._failed,
    events.JobReleased.TOPIC: QueuedJob._released,
    events.JobDied.TOPIC: QueuedJob._died,
    events.JobRequeued.TOPIC: QueuedJob._requeued,
    events.JobCancelled.TOPIC: QueuedJob._cancelled,
    events.JobPruned.TOPIC: QueuedJob._pruned,
    events.JobRestored.TOPIC: QueuedJob._restored,
}

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_CHARACTERS = _LETTERS | set("._-")


def check_name(what: str, name: object) -> None:
    """Require a name of a queue or job type: letters, digits, `.`, `_`, `-`; at most 60."""
    if (
        not isinstance(name, str)
        or not 0 < len(name) <= MAX_NAME
        or name[0] not in _LETTERS
        or not _CHARACTERS.issuperset(name)
    ):
        advice = "begin with a letter or digit; letters, digits, '.', '_' and '-', at most 60"
        raise InvalidValueError(what, name, advice)


def check_key(what: str, text: object) -> None:
    """Require a key: some text of at most 500 characters."""
    checks.text(what, text)
    if len(str(text)) > MAX_TEXT:
        raise InvalidValueError(what, f"{str(text)[:60]}…", f"at most {MAX_TEXT} characters")


def run_id_of(job: QueuedJob) -> str:
    """Return the id of the run that records the executions of a job."""
    return f"queue-{job.queue}-{job.id}"


def _check_between(what: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidValueError(what, value, f"it must be a whole number from {low} to {high}")
