"""`tacho queue list`: the jobs of the queues, the latest first. Changes nothing."""

from __future__ import annotations

from itertools import islice, takewhile

from tachograph.cli.finding import ask
from tachograph.cli.limits import limit, limit_of
from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.opening import open_store
from tachograph.cli.options import Option, Spec
from tachograph.cli.queue_jobs import QUEUES, TABLES, job_shape, queues_in, table
from tachograph.domain import checks
from tachograph.domain.queue_selection import fits
from tachograph.domain.queued_job import PENDING
from tachograph.projections.queue_health import SCHEDULED, WAITING, matters_us

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.projections.queue_health import QueuesView

STATES = (
    *("pending", "scheduled", "failed", "leased"),
    *("completed", "dead", "cancelled", "pruned"),
)

SPEC = Spec(
    "List the jobs of the queues, the latest first.",
    QUEUES,
    TABLES,
    Option("--status", "Only this state; may be repeated.", choices=STATES, multiple=True),
    Option("--older-than", "Only jobs that are in their state for longer.", metavar="2h"),
    Option("--error-pattern", "Only jobs whose error has this in it.", metavar="TEXT"),
    limit("At most so many; 0 for all.", 50),
    CONFIG,
    details="A job is as old as the event that brought it into its state: a dead one counts from "
    "its death, a pending one from when it could be taken. In --error-pattern, * is any "
    "text, and case does not matter. Pruned jobs are listed only where they are asked for.",
)


def run(params: Params, out: Output) -> None:
    """Print a row for each job."""
    from tachograph.queue_plans import plan_of

    most = limit_of(params) or None
    services = open_store(out, read_only=True)
    now_us = services.actor.now_us()
    before_us = _before_us(params, now_us)
    if params.error_pattern is not None:
        checks.text("error pattern", params.error_pattern)
    plan = plan_of(services, params.config).plan

    def question(view: Any) -> list[QueuedJob]:
        names: Sequence[str | None] = queues_in(params, plan, view.queues) or [None]
        return list(islice(_found(view.queues, names, params, before_us, now_us), most))

    jobs = ask(services, out, question)
    if out.json:
        out.document([job_shape(job, now_us) for job in jobs])
    elif jobs:
        table(jobs, now_us, out)
    else:
        out.note("There are no such jobs.")


def _before_us(params: Params, now_us: int) -> int | None:
    if params.older_than is None:
        return None
    from tachograph.infra.clock import parse_span

    return now_us - parse_span(params.older_than)


def _found(
    view: QueuesView,
    names: Sequence[str | None],
    params: Params,
    before_us: int | None,
    now_us: int,
) -> Iterator[QueuedJob]:
    """Yield the jobs that are asked for, the latest first, and read little more."""
    from heapq import merge

    lists = [
        each
        for name in names
        for state in params.status or (None,)
        for each in _lists(view, name, state, before_us, now_us)
    ]
    for job in merge(*lists, key=lambda job: (matters_us(job), job.id), reverse=True):
        if fits(params.error_pattern, job.error):
            yield job


def _lists(
    view: QueuesView, name: str | None, state: str | None, before_us: int | None, now_us: int
) -> Iterator[Iterator[QueuedJob]]:
    """Yield the lists in which the jobs of a state are, each the latest first."""
    if state == SCHEDULED:
        later = view.jobs(name, SCHEDULED, older_than_us=before_us, reverse=True)
        yield takewhile(lambda job: job.waiting_us > now_us, later)
    elif state == PENDING:
        due_us = now_us + 1 if before_us is None else min(before_us, now_us + 1)
        yield view.jobs(name, WAITING, older_than_us=before_us, reverse=True)
        yield view.jobs(name, SCHEDULED, older_than_us=due_us, reverse=True)
    else:
        yield view.jobs(name, state, older_than_us=before_us, reverse=True)
