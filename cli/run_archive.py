"""`tacho run archive`: put runs with all their files into one archive, or look into one."""

from __future__ import annotations

from tachograph.cli.exit_codes import CORRUPT, OK
from tachograph.cli.options import Argument, Option, Spec, UsageError, flag
from tachograph.reading import RUNNING, STATUSES
from tachograph.retiring import DONE, FINISHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.archiving import RunPlan
    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.run import Run

_CHOICES = (DONE, *(status for status in STATUSES if status != RUNNING))

SPEC = Spec(
    "Put runs with their files into one archive, or look into one.",
    Argument("runs", "Runs, by their whole ids.", required=False, multiple=True, complete="run"),
    Option("--older-than", "Runs that ended so long ago, such as 30d.", metavar="TIME"),
    Option(
        "--status",
        "Of those, only this status; may be repeated. `done`: all that ended well.",
        choices=_CHOICES,
        multiple=True,
    ),
    Option("--output", "Folder of the archive.", metavar="DIR", complete="path"),
    flag("--force", "Unfinished runs, too."),
    flag("--dry-run", "Only say what would be archived."),
    Option("--list", "Show what is in an archive.", metavar="FILE", complete="path"),
    Option(
        "--check", "Compare all of an archive with its checksums.", metavar="FILE", complete="path"
    ),
    details="""Writes one .tar.zst file that is read without Tachograph: for each run its card,
its events as lines of JSON, its payloads, and the files that it recorded; files that are missing
or have changed are named and left out. The file goes to the folder `archives` of the store, or to
--output, never over another one, and each run records where it is. Nothing is removed: see
`tacho run clean`.

A run that is at work is never archived; an unfinished one, which may go on and make the archive
old, only with --force. With --older-than, runs whose archive still stands are left out. --list
sees at once when a file was cut off; --check reads all of it. Both end with 4 when it is
damaged.""",
)


def run(params: Params, out: Output) -> int:
    """Make an archive, or look into one."""
    from tachograph.cli import archive_lines

    if params.list is not None or params.check is not None:
        if params.runs or params.older_than or (params.list and params.check):
            raise UsageError("--list and --check take one FILE and nothing else.")
        if params.list is not None:
            return archive_lines.show_contents(params.list, out)
        return archive_lines.show_check(params.check, out)
    _refuse_nonsense(params)
    return _archive(params, out)


def _refuse_nonsense(params: Params) -> None:
    if bool(params.runs) == (params.older_than is not None):
        raise UsageError("Which runs? Name them, or say --older-than, and not both.")
    if params.status and params.older_than is None:
        raise UsageError("--status goes with --older-than.")
    unfinished = [status for status in params.status if status not in (DONE, *FINISHED)]
    if unfinished and not params.force:
        raise UsageError(
            f"Runs that are {', '.join(unfinished)} may go on, and their archive would be old "
            "then. Archive them all the same with --force."
        )


def _archive(params: Params, out: Output) -> int:
    from tachograph import lifecycle
    from tachograph.cli import archive_lines
    from tachograph.cli.bars import Bar
    from tachograph.cli.opening import open_store

    before_us = _before_us(params)
    services = open_store(out, read_only=params.dry_run)
    runs = _named(services, params, out) if before_us is None else _old(services, params, out)
    planner = lifecycle.planner(services, archive_lines.card_text)
    plans: list[RunPlan] = []
    with Bar(out, "look") as bar:
        for run in runs:
            plans.append(planner.plan(run))
            bar(len(plans), len(runs))
    made = None
    if plans and not params.dry_run:
        with Bar(out, "archive") as bar:
            made = lifecycle.archive(services, plans, params.output, bar)
    archive_lines.show_plans(plans, made, out, dry_run=params.dry_run)
    return CORRUPT if any(plan.fields["missingBlobs"] for plan in plans) else OK


def _before_us(params: Params) -> int | None:
    from tachograph.infra.clock import now_us, parse_time

    return None if params.older_than is None else parse_time(params.older_than, now_us())


def _named(services: Services, params: Params, out: Output) -> list[Run]:
    """Return the runs that were named. Raises RunOwnedError or RunUnfinishedError."""
    from tachograph.archiving import refuse_unfinished
    from tachograph.cli.exact import exact_run
    from tachograph.cli.finding import load_run
    from tachograph.domain.errors import RunOwnedError
    from tachograph.looking import summary_of

    found = []
    for text in dict.fromkeys(params.runs):
        run = load_run(services, exact_run(services, text, out), out)
        owner = services.live_owner(run)
        if owner is not None:
            raise RunOwnedError(run.id, owner)
        if not params.force:
            refuse_unfinished(run, summary_of(services, run.id)["status"])
        found.append(run)
    return found


def _old(services: Services, params: Params, out: Output) -> list[Run]:
    """Return the runs that ended long ago and have no archive, or an old one."""
    from tachograph.cli.finding import ask
    from tachograph.looking import judge_of
    from tachograph.retiring import ended_before, named, standing_archive

    before_us, statuses = _before_us(params) or 0, named(params.status)
    judge = judge_of(services)
    cards: list[dict[str, Any]] = ask(
        services, out, lambda view: ended_before(view, judge, before_us, statuses)
    )
    wanted = [
        card["id"] for card in cards if standing_archive(services.repository, card["id"]) is None
    ]
    found = [services.repository.get(run_id) for run_id in wanted]
    return [run for run in found if run is not None]
