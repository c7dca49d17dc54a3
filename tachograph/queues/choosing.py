"""Find the jobs that a repair is to take, in the view of queues. Changes none.

The view may be behind the log: who changes what was found looks at each job again.
"""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING

from tachograph.domain import queue_events as events
from tachograph.domain.errors import BodyLostError
from tachograph.domain.queue_errors import AmbiguousJobError, JobNotFoundError, UnknownQueueError
from tachograph.domain.queue_shares import shares
from tachograph.domain.queued_job import PENDING, PRUNED
from tachograph.domain.records import _Fields
from tachograph.projections.folding import LONGEST_TEXT
from tachograph.projections.queue_health import matters_us

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tachograph.domain.queue_selection import Rule, Selection
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.projections.queue_health import QueuesView
    from tachograph.queues.repository import QueueRepository

    Get = Callable[[str], QueuedJob | None]
    Held = Callable[[QueuedJob], str | None]
    """Says why a job cannot wait again: another one has its unique key."""
    Place = tuple[int, str, str]
    """Since when a job is in its state, its queue, its id."""

PREVIEWED = 100
"""Jobs that a preview names."""
_PAGE = 1_000
_NAMED = 5
"""Jobs that an ambiguous id is told to begin."""


class Choice(_Fields):
    """What a repair would take."""

    __slots__ = ("by_queue", "ids", "preview", "skipped", "total")

    def __init__(self, by_queue: dict[str, int], skipped: dict[str, str]) -> None:
        self.total = sum(by_queue.values())
        """All that match, however few are taken."""
        self.by_queue = by_queue
        """The same by queue."""
        self.ids: list[str] = []
        """Those that are taken: oldest first."""
        self.preview: list[QueuedJob] = []
        """The first of these."""
        self.skipped = skipped
        """Why jobs are not taken that were named by their ids, or that cannot wait again."""


def choose(
    view: QueuesView,
    get: Get,
    rule: Rule,
    selection: Selection,
    queues: Iterable[str],
    now_us: int,
    held: Held = lambda _job: None,
) -> Choice:
    """Return what a repair would take of some jobs, as of now.

    Jobs that are named by their ids are looked at as `get` gives them. One that `held` gives a
    reason for is skipped, and holds up no younger one. Raises InvalidValueError
    for a selection that the repair cannot take, UnknownQueueError, and JobNotFoundError for an
    id that no job has.
    """
    rule.check(selection)
    names = _queues(view, selection, queues)
    skipped: dict[str, str] = {}
    bound = rule.bound(selection)
    if selection.ids is not None:
        counts, oldest = _named(get, rule, selection, now_us, skipped)
    else:
        counts, oldest = {}, {}
        for name in names:
            taking = _Taking(get, rule, selection, now_us, held, skipped)
            counts[name], oldest[name] = _listed(view, name, taking, bound)
    # The queue whose job waits longest comes first, so that none is starved by a small bound.
    order = sorted(counts, key=lambda name: (oldest[name][:1], name))
    given = shares({name: counts[name] for name in order}, bound)
    choice = Choice({name: counts[name] for name in sorted(counts)}, skipped)
    taken = sorted(place for name in order for place in oldest[name][: given[name]])
    choice.ids = [job_id for _, _, job_id in taken]
    look = view.job if selection.ids is None else get
    choice.preview = [job for each in choice.ids[:PREVIEWED] if (job := look(each)) is not None]
    return choice


def _queues(view: QueuesView, selection: Selection, declared: Iterable[str]) -> list[str]:
    """Return the queues that are meant: declared ones, and those that have, or had, jobs."""
    known = list(dict.fromkeys([*declared, *view.names()]))
    for name in selection.queues or ():
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UnknownQueueError(name, hint, ", ".join(known))
    return known if selection.queues is None else selection.queues


class _Taking:
    """Says of jobs as the view has them whether a repair takes them."""

    def __init__(
        self,
        get: Get,
        rule: Rule,
        selection: Selection,
        now_us: int,
        held: Held,
        skipped: dict[str, str],
    ) -> None:
        self.get = get
        self.rule = rule
        self.selection = selection
        self.now_us = now_us
        self._held = held
        self._skipped = skipped

    def matches(self, job: QueuedJob, since_us: int) -> bool:
        """Say whether a job is meant. The view keeps the beginning of a long error only."""
        if self.rule.mismatch(self.selection, job, since_us, self.now_us) is None:
            return True
        if self.selection.error_pattern is None or len(job.error or "") < LONGEST_TEXT:
            return False
        try:
            whole = self.get(job.id)
        except BodyLostError:  # the view's part of the error is all that is left
            return False
        if whole is None:
            return False
        return self.rule.mismatch(self.selection, whole, since_us, self.now_us) is None

    def skips(self, job: QueuedJob) -> bool:
        """Say whether a job that is meant cannot be taken, and keep why."""
        why = self._held(job)
        if why is not None:
            self._skipped[job.id] = why
        return why is not None


def _listed(view: QueuesView, queue: str, taking: _Taking, bound: int) -> tuple[int, list[Place]]:
    """Return how many jobs of a queue match, and where the oldest of them are."""
    rule, selection, now_us = taking.rule, taking.selection, taking.now_us
    total = 0
    kept: list[list[Place]] = []
    for status in rule.statuses(selection):
        age_us = rule.age(selection, status)
        before_us = None if age_us is None else now_us - age_us
        counted = before_us is None and selection.error_pattern is None and status != PRUNED
        number = passed = 0
        found: list[Place] = []
        for job in view.jobs(queue, status, older_than_us=before_us):
            since_us = matters_us(job)
            if taking.matches(job, since_us):
                if len(found) < bound and taking.skips(job):
                    passed += 1
                    continue
                number += 1
                if len(found) < bound:
                    found.append((since_us, queue, job.id))
                elif counted:  # the rest is known without reading it
                    break
        total += _count(view, queue, status, now_us) - passed if counted else number
        kept.append(found)
    return total, list(merge(*kept))[:bound]


def _count(view: QueuesView, queue: str, status: str, now_us: int) -> int:
    counts = view.counts(queue, now_us)
    if status == PENDING:
        return counts.pending + counts.scheduled + counts.failed
    return int(getattr(counts, status))


def _named(
    get: Get, rule: Rule, selection: Selection, now_us: int, skipped: dict[str, str]
) -> tuple[dict[str, int], dict[str, list[Place]]]:
    """Return which of the jobs that are named by ids match, by queue."""
    places: dict[str, list[Place]] = {}
    for job_id in selection.ids or ():
        job = get(job_id)
        if job is None:
            raise JobNotFoundError(job_id, " Nothing was changed.")
        since_us = matters_us(job)
        why = rule.mismatch(selection, job, since_us, now_us)
        if why is None:
            places.setdefault(job.queue, []).append((since_us, job.queue, job.id))
        else:
            skipped[job_id] = why
    return (
        {name: len(found) for name, found in places.items()},
        {name: sorted(found) for name, found in places.items()},
    )


def full_ids(view: QueuesView, get: Get, texts: Iterable[str]) -> list[str]:
    """Return the ids that are meant: each a whole id, or the unique beginning of one.

    Raises JobNotFoundError and AmbiguousJobError.
    """
    return [_full_id(view, get, text.strip()) for text in texts]


def _full_id(view: QueuesView, get: Get, text: str) -> str:
    job = get(text) if len(text) >= 32 else None  # digits of an id
    if job is not None:
        return job.id
    found = view.find(text, _NAMED)
    if not found:
        raise JobNotFoundError(text, " Nothing was changed.")
    if len(found) > 1:
        raise AmbiguousJobError(text, ", ".join(found))
    return found[0]


def ids_of_repair(repository: QueueRepository, repair: str) -> list[str]:
    """Return the jobs that a repair cancelled or pruned, in that order; reads all such events."""
    topics = (events.JobCancelled.TOPIC, events.JobPruned.TOPIC)
    found: dict[str, None] = {}
    after = 0
    while records := repository.log.read(after=after, limit=_PAGE, topics=topics):
        for record in records:
            try:
                fields = repository.fields(record)
            except BodyLostError:
                continue
            if fields.get("repair") == repair:
                found[str(record.stream)] = None
        after = records[-1].position
    return list(found)


def restorable(get: Get, job_ids: Sequence[str], takes: Sequence[str]) -> list[str]:
    """Return those of some jobs that are still as a repair left them."""
    return [job_id for job_id in job_ids if (job := get(job_id)) and job.status in takes]
