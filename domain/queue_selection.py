"""Which jobs a repair is to take, and what each repair takes by itself. No I/O, no clock.

A filter that makes no sense is an error: to leave it out would let the repair take more than was
asked for.
"""

from __future__ import annotations

from tachograph.domain import checks, repair_policy
from tachograph.domain.errors import InvalidValueError
from tachograph.domain.liveness import span
from tachograph.domain.queue_settings import DAY_US
from tachograph.domain.queued_job import (
    CANCELLED,
    COMPLETED,
    DEAD,
    LEASED,
    PENDING,
    PRUNED,
    STATUSES,
    check_name,
)
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.domain.queued_job import QueuedJob

MOST = 1_000
"""Jobs that one commit changes."""
ENDED = (COMPLETED, DEAD, CANCELLED, PRUNED)
"""Statuses to which the age counts that a repair asks for by itself."""
RESTORE = "restoreJobs"
"""Undoes a cancelling or pruning. Not one of the repairs that have limits."""


class Selection(_Fields):
    """Which jobs are meant. What is None is not asked for; all that is asked for must hold."""

    __slots__ = ("error_pattern", "ids", "max_batch", "older_than_us", "queues", "statuses")

    def __init__(
        self,
        *,
        ids: Sequence[str] | None = None,
        queues: Sequence[str] | None = None,
        older_than_us: int | None = None,
        error_pattern: str | None = None,
        statuses: Sequence[str] | None = None,
        max_batch: int | None = None,
    ) -> None:
        """Say what is asked for. Raises InvalidValueError for what makes no sense."""
        self.ids = _listed("ids", ids)
        """Jobs by their ids, whatever their age."""
        self.queues = _listed("queues", queues)
        self.older_than_us = older_than_us
        """Only jobs that have been in their state for longer: dead ones since their death."""
        self.error_pattern = error_pattern
        """Only jobs whose error has this text in it; `*` stands for any text, case for nothing."""
        self.statuses = _listed("statuses", statuses)
        self.max_batch = max_batch
        """How many at most, of all queues together."""
        for queue in self.queues or ():
            check_name("queue", queue)
        for status in self.statuses or ():
            checks.one_of("status", status, STATUSES)
        if older_than_us is not None:
            _check_age(older_than_us)
        if error_pattern is not None:
            checks.text("error pattern", error_pattern)
        if max_batch is not None:
            checks.whole("max batch", max_batch, 1)

    def to_fields(self) -> dict[str, Any]:
        """Return what is asked for as plain values, for events."""
        return {
            name: value for name in self.__slots__ if (value := getattr(self, name)) is not None
        }


class Rule(_Fields):
    """What a repair takes, and how many."""

    __slots__ = ("action", "age_us", "cap", "default", "done", "most", "takes", "verb")

    def __init__(
        self,
        action: str,
        verb: str,
        done: str,
        *,
        takes: Sequence[str],
        default: Sequence[str],
        age_us: int | None,
        cap: int,
        most: int | None,
    ) -> None:
        self.action = action
        self.verb = verb
        self.done = done
        """The verb as what has happened to a job."""
        self.takes = tuple(takes)
        """Statuses that can be asked for."""
        self.default = tuple(default)
        """Statuses where none is asked for, and no ids."""
        self.age_us = age_us
        """How long ended jobs must have been so, where nothing is asked for, and no ids."""
        self.cap = cap
        """How many, where no number is asked for."""
        self.most = most
        """How many can be asked for."""

    def check(self, selection: Selection) -> None:
        """Require a selection that this repair can take. Raises InvalidValueError."""
        for status in selection.statuses or ():
            checks.one_of(f"status to {self.verb}", status, self.takes)
        advice = f"{self.verb} takes at most {self.most} jobs in one call; run it again for more"
        if self.most is not None:
            if (selection.max_batch or 0) > self.most:
                raise InvalidValueError("max batch", selection.max_batch, advice)
            if len(selection.ids or ()) > self.most:
                raise InvalidValueError("number of ids", len(selection.ids or ()), advice)

    def statuses(self, selection: Selection) -> tuple[str, ...]:
        """Return the statuses that are taken."""
        if selection.statuses is not None:
            return tuple(selection.statuses)
        return self.default if selection.ids is None else self.takes

    def age(self, selection: Selection, status: str) -> int | None:
        """Return how long, in µs, a job of a status must have been in it; None: no matter."""
        if selection.older_than_us is not None:
            return selection.older_than_us
        return self.age_us if selection.ids is None and status in ENDED else None

    def bound(self, selection: Selection) -> int:
        """Return how many jobs are taken at most."""
        if selection.max_batch is not None:
            return selection.max_batch
        return self.cap if selection.ids is None else max(1, len(selection.ids))

    def mismatch(
        self, selection: Selection, job: QueuedJob, since_us: int, now_us: int
    ) -> str | None:
        """Say why a job, in its state since a time, is not meant; None when it is."""
        statuses = self.statuses(selection)
        if job.status not in statuses:
            return f"it is {job.status}; {self.verb} was to take {', '.join(statuses)}"
        if selection.queues is not None and job.queue not in selection.queues:
            return f"it is in queue {job.queue}"
        age_us = self.age(selection, job.status)
        if age_us is not None and now_us - since_us <= age_us:
            return (
                f"it is {job.status} for {span(now_us - since_us)}, no longer than {span(age_us)}"
            )
        if not fits(selection.error_pattern, job.error):
            return "its error does not match"
        return None


REQUEUE_RULE = Rule(
    repair_policy.REQUEUE,
    "requeue",
    "requeued",
    takes=(DEAD, CANCELLED),
    default=(DEAD,),
    age_us=None,
    cap=50,
    most=None,
)
CANCEL_RULE = Rule(
    repair_policy.CANCEL,
    "cancel",
    "cancelled",
    takes=(PENDING, LEASED, COMPLETED, DEAD),
    default=(DEAD, COMPLETED),
    age_us=30 * DAY_US,
    cap=MOST,
    most=MOST,
)
PRUNE_RULE = Rule(
    repair_policy.PRUNE,
    "prune",
    "pruned",
    takes=(COMPLETED, DEAD, CANCELLED),
    default=(COMPLETED, DEAD, CANCELLED),
    age_us=90 * DAY_US,
    cap=MOST,
    most=MOST,
)
RESTORE_RULE = Rule(
    RESTORE,
    "restore",
    "restored",
    takes=(CANCELLED, PRUNED),
    default=(CANCELLED, PRUNED),
    age_us=None,
    cap=50,
    most=None,
)
RULES = {rule.verb: rule for rule in (REQUEUE_RULE, CANCEL_RULE, PRUNE_RULE, RESTORE_RULE)}


def fits(pattern: str | None, text: str | None) -> bool:
    """Say whether a text has a pattern in it: `*` is any text, every other character is itself.

    >>> fits("out*time", "Timed OUT"), fits("100%", "100 times"), fits("*", None), fits(None, None)
    (False, False, False, True)
    >>> fits("tim*out", "it Timed OUT again"), fits("a_b", "a_b"), fits("a_b", "axb")
    (True, True, False)
    """
    if pattern is None:
        return True
    if text is None:
        return False
    text, place = text.casefold(), 0
    for part in pattern.casefold().split("*"):
        found = text.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True


def _check_age(age_us: object) -> None:
    if isinstance(age_us, bool) or not isinstance(age_us, int) or age_us < 1:
        raise InvalidValueError(
            "older than", age_us, "it must be some time; for jobs of any age write 1ms"
        )


def _listed(what: str, values: Sequence[str] | None) -> list[str] | None:
    """Return a list of texts without doubles. Raises InvalidValueError for an empty one."""
    if values is None:
        return None
    advice = "name at least one, or leave it out"
    if isinstance(values, str) or not values:
        raise InvalidValueError(what, values, advice)
    for value in values:
        if not isinstance(value, str) or not value.strip():
            raise InvalidValueError(what, value, f"one of them is empty: {advice}")
    return list(dict.fromkeys(values))
