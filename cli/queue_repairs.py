"""What requeue, cancel, prune and restore share: options, dry run, and how it is told."""

from __future__ import annotations

from tachograph.cli.exit_codes import FAILURE, NEEDS_PERSON, OK, TRY_LATER
from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.options import WHOLE, Option, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.queue_selection import Rule, Selection
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.domain.repair_errors import RepairDeniedError
    from tachograph.queue_plans import QueuePlans
    from tachograph.queues.repairing import Gate, RepairResult
    from tachograph.queues.sweeping import Swept

IDS = Option("--ids", "Jobs by their ids, whatever their age.", metavar="A,B")
APPLY = flag("--apply", "Do it; without it, only show what would be done.")
REASON = Option("--reason", "Why; every event of it says so. Needed to --apply.", metavar="TEXT")
ACTOR = Option(
    "--actor", "Who asks; a program is held to more rules.", choices=("operator", "agent"),
    default="operator",
)  # fmt: skip
FORCE = flag("--force", "Overrule cooldown, budget and halt; for a person, with --reason.")
WHO = (
    APPLY,
    flag("--dry-run", "Only show what would be done, as without --apply."),
    REASON,
    ACTOR,
    FORCE,
    CONFIG,
)
OPTIONS = (
    IDS,
    Option("--queues", "Only jobs of these queues; all without it.", metavar="A,B"),
    Option("--tables", "The same as --queues.", metavar="A,B"),
    Option("--older-than", "Only what has been so for longer: 2h, 30d.", metavar="SPAN"),
    Option(
        "--error-pattern",
        "Only with this text in the error; * is any text, case does not matter.",
        metavar="T",
    ),
    Option("--status", "Only jobs that are this.", metavar="A,B"),
    Option("--max-batch", "How many at most, of all queues together.", kind=WHOLE, metavar="N"),
    *WHO,
)
DETAILS = """Shows what would be done, and changes nothing, unless --apply is given. A duration,
queue, status, id or number that makes no sense is an error that changes nothing. The age of a job
counts from the event that made it what it is: from its death, if it is dead. --ids names jobs
whatever their age, each by its id or the unique beginning of one.

Where more match than are taken, the oldest are, and each queue that has any gets its share. All
is done in one commit of up to 1,000 jobs; what has changed since it was found is passed over.

\b
Ends with
  0   done, or shown
  1   it failed, or one of the --ids could not be taken (the others were)
  2   the command makes no sense: nothing was changed
  3   there is no such job: nothing was changed
  8   repairs are frozen, switched off for programs, or halted
  75  denied by its cooldown or its hourly budget; the message says when to try again"""

_SHOWN = 10
_MOST_ERROR = 60


def repair(rule: Rule, params: Params, out: Output) -> int:
    """Show or do a repair, and return the exit code."""
    reason = reason_in(params)
    selection = selection_in(params)
    rule.check(selection)
    services, plans = opened(params, out)
    return run_repair(rule, selection, reason, params, out, services, plans)


def run_repair(
    rule: Rule,
    selection: Selection,
    reason: str | None,
    params: Params,
    out: Output,
    services: Services,
    plans: QueuePlans,
    *,
    exact: bool = False,
) -> int:
    """Show or do a repair with a selection; `exact`: its ids are whole ones."""
    from tachograph.cli.bars import Bar
    from tachograph.cli.finding import warn
    from tachograph.domain.repair_errors import RepairDeniedError
    from tachograph.queue_repairkeeping import full_ids_of, repairing_of

    if selection.ids is not None and not exact:
        selection.ids = full_ids_of(services, selection.ids, report=warn(out))
    repairing = repairing_of(services, plans, gate_in(services, plans, params), report=warn(out))
    denial = None
    if reason is None:
        result = repairing.preview(rule, selection)
    else:
        try:
            with Bar(out, rule.verb) as bar:
                result = repairing.apply(rule, selection, reason, bar)
        except RepairDeniedError as error:
            result, denial = repairing.preview(rule, selection), error
            result.success, result.message = False, str(error)
    if out.json:
        out.document({**shape(result, services.actor.now_us()), "denied": told(denial)})
    else:
        _show(result, out, denied=denial is not None)
    if denial is not None:
        return denied_code(denial)
    return OK if result.success else FAILURE


def reason_in(params: Params) -> str | None:
    """Return why it is done; None for a dry run. Raises UsageError."""
    if params.apply and params.dry_run:
        raise UsageError("--apply and --dry-run exclude each other.")
    if params.force and params.actor != "operator":
        raise UsageError("--force is for a person: leave it out, or --actor agent.")
    if not params.apply:
        return None
    if params.reason is None or not params.reason.strip():
        raise UsageError(
            "Why? --apply needs --reason, which the events of it will say. Nothing was changed."
        )
    return str(params.reason)


def selection_in(params: Params) -> Selection:
    """Return what is asked for. Raises UsageError, InvalidValueError and InvalidSpanError."""
    from tachograph.domain.queue_selection import Selection
    from tachograph.infra.clock import parse_span

    if params.queues is not None and params.tables is not None:
        raise UsageError("--queues and --tables are the same: give one of them.")
    flag_ = "--tables" if params.queues is None else "--queues"
    queues = params.tables if params.queues is None else params.queues
    return Selection(
        ids=listed("--ids", params.ids),
        queues=listed(flag_, queues),
        older_than_us=None if params.older_than is None else parse_span(params.older_than),
        error_pattern=params.error_pattern,
        statuses=listed("--status", params.status),
        max_batch=params.max_batch,
    )


def listed(flag_: str, text: str | None) -> list[str] | None:
    """Return what a comma-separated list names. Raises UsageError for an empty part."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise UsageError(
            f"{flag_} {text!r} has an empty part: name each, with commas between. "
            "Nothing was changed."
        )
    return parts


def opened(params: Params, out: Output) -> tuple[Services, QueuePlans]:
    """Return the store, open to read unless something is applied, and what is declared."""
    from tachograph.cli.opening import open_store
    from tachograph.queue_plans import plan_of

    services = open_store(out, read_only=not params.apply)
    return services, plan_of(services, params.config)


def gate_in(services: Services, plans: QueuePlans, params: Params) -> Gate:
    """Return the gate for who asks."""
    from tachograph.queue_repairkeeping import gate_of

    return gate_of(services, plans, params.actor, force=params.force)


def denied_code(error: RepairDeniedError) -> int:
    """Return the exit code for a denial: whether time alone helps."""
    from tachograph.domain.repair_errors import RepairWaitError

    return TRY_LATER if isinstance(error, RepairWaitError) else NEEDS_PERSON


def told(denial: RepairDeniedError | None) -> dict[str, Any] | None:
    """Return a denial for documents."""
    if denial is None:
        return None
    remaining_us = denial.remaining_us
    seconds = None if remaining_us is None else -(-remaining_us // 1_000_000)
    return {"rule": denial.rule, "retryAfterSec": seconds}


def shape(result: RepairResult, now_us: int) -> dict[str, Any]:
    """Return a result for documents."""
    return {
        "action": result.action,
        "applied": result.applied,
        "success": result.success,
        "affected": result.affected,
        "message": result.message,
        "totalMatching": result.total,
        "byQueue": {
            name: {"matching": matching, "affected": affected}
            for name, (matching, affected) in result.by_queue.items()
        },
        "preview": [job.id for job in result.preview],
        "jobs": [_job(job, now_us) for job in result.preview],
        "skipped": result.skipped,
        "repair": result.repair,
        "archives": result.archives,
    }


def _job(job: QueuedJob, now_us: int) -> dict[str, Any]:
    return {
        "jobId": job.id,
        "queue": job.queue,
        "type": job.type,
        "status": job.status,
        "ageSec": max(0, now_us - _since_us(job)) // 1_000_000,
        "error": job.error,
    }


def _since_us(job: QueuedJob) -> int:
    from tachograph.projections.queue_health import matters_us

    return matters_us(job)


def _show(result: RepairResult, out: Output, *, denied: bool) -> None:
    message = result.message.removeprefix(f"{result.action} was denied: ")
    out.line(f"{header(applied=result.applied, denied=denied)} {result.action}: {message}")
    queues = [f"{name} {number}" for name, (number, _) in result.by_queue.items() if number]
    of = f" ({', '.join(queues)})" if len(queues) > 1 else ""
    out.line(f"  total matching: {result.total}{of}")
    _list(out, "preview", result.preview, lambda job: _job_line(job, out))
    skipped = list(result.skipped.items())
    if skipped:
        _list(out, "skipped", skipped, lambda each: f"{each[0]}: {each[1]}")
    for name in result.archives:
        out.line(f"  archive: {name}")
    if result.repair is not None:
        out.line(f"  recorded as: {result.repair}")
    if not result.applied and not denied and result.total:
        out.note("Nothing was changed. Add --apply --reason TEXT to do it.")


def header(*, applied: bool, denied: bool) -> str:
    """Return how the first line begins."""
    if denied:
        return "[denied]"
    return "[apply]" if applied else "[dry-run]"


def _list(out: Output, what: str, items: list[Any], line: Callable[[Any], str]) -> None:
    if not items:
        return
    out.line(f"  {what} ({len(items)}):")
    for each in items[:_SHOWN]:
        out.line(f"    {line(each)}")
    if len(items) > _SHOWN:
        out.line(f"    …and {len(items) - _SHOWN} more")


def _job_line(job: QueuedJob, out: Output) -> str:
    error = " ".join((job.error or "").split())
    if len(error) > _MOST_ERROR:
        error = f"{error[: _MOST_ERROR - 1]}…"
    words = f"{job.id} {job.queue} {job.type}, {job.status} {out.when(_since_us(job))}"
    return f"{words}: {error}" if error else words


def show_sweep(swept: Swept, out: Output) -> None:
    """Tell of a sweep, done or not."""
    out.line(f"{header(applied=swept.applied, denied=False)} {swept.message()}")
    for queue, counts in swept.by_queue.items():
        numbers = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
        out.line(f"  {queue}: {numbers}")
    for job_id, why in list(swept.refused.items())[:_SHOWN]:
        out.line(f"  stays: {job_id}: {why}")
    if swept.archives:
        out.line(f"  archives: {', '.join(swept.archives)}")
    if swept.repair is not None:
        out.line(f"  recorded as: {swept.repair}")
