"""`tacho run clean`: remove the files of runs that ended long ago, after a preview."""

from __future__ import annotations

from tachograph.cli.exit_codes import FAILURE, OK
from tachograph.cli.options import Option, Spec, UsageError, flag
from tachograph.cli.sizes import size
from tachograph.retiring import DONE, FINISHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.cleaning import Cleaning, Doomed
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Remove the files of runs that ended long ago.",
    Option("--older-than", "Runs that ended so long ago, such as 30d.", metavar="TIME"),
    Option(
        "--status",
        "Only this status; may be repeated. `done`: all that ended well.",
        choices=(DONE, *FINISHED),
        multiple=True,
    ),
    flag("--apply", "Remove them; without it, only show what would go."),
    flag("--without-archive", "Files that are in no archive, too."),
    Option("--reason", "Why; kept with each run.", metavar="TEXT"),
    details="""Removes the files that a finished run recorded (see `tacho run artifacts`), never
an event: the log stays as it is. A file stays when it is not the recorded one any more, when
another run has recorded it, or when no archive of the run holds it: that archive must be where
`tacho run archive` put it, and whole. What goes is noted in the run before it goes.""",
)


def run(params: Params, out: Output) -> int:
    """Show what would go, or remove it; exit code 1 when something could not be removed."""
    from tachograph import lifecycle
    from tachograph.cli.bars import Bar
    from tachograph.cli.finding import ask
    from tachograph.cli.opening import open_store
    from tachograph.infra.clock import now_us, parse_time
    from tachograph.looking import judge_of
    from tachograph.retiring import ended_before, named

    if params.older_than is None:
        raise UsageError("How long ago must a run have ended? Say so with --older-than, as in 30d.")
    before_us = parse_time(params.older_than, now_us())
    services = open_store(out, read_only=not params.apply)
    judge = judge_of(services)
    with Bar(out, "look") as bar:
        plans = ask(
            services,
            out,
            lambda view: lifecycle.plan_cleaning(
                services,
                view,
                ended_before(view, judge, before_us, named(params.status)),
                without_archive=params.without_archive,
                progress=bar,
            ),
        )
    failed = 0
    if params.apply:
        with Bar(out, "clean") as bar:
            failed = lifecycle.apply_cleaning(services, plans, reason=params.reason, progress=bar)
    _show(plans, out, applied=params.apply)
    return FAILURE if failed else OK


def _show(plans: Sequence[Cleaning], out: Output, *, applied: bool) -> None:
    files = sum(len(plan.going()) for plan in plans)
    room = sum(plan.bytes() for plan in plans)
    if out.json:
        runs = [_shape(plan) for plan in plans]
        out.document({"applied": applied, "files": files, "bytes": room, "runs": runs})
        return
    rows = [
        (plan.run_id, plan.status, out.when(plan.ended_us), str(len(plan.going())), size(room_of))
        for plan in plans
        if (room_of := plan.bytes()) or plan.going()
    ]
    if rows:
        out.table(("RUN", "STATUS", "ENDED", "FILES", "SIZE"), rows)
    for plan in plans:
        if plan.why is not None:
            out.note(f"{plan.run_id} stays as it is: {plan.why}.")
        for file in plan.staying():
            out.note(f"{plan.run_id}: {file.path} stays: {file.why}.")
    verb = "Removed" if applied else "Would remove"
    hint = "" if applied or not files else " Add --apply to remove them."
    out.note(f"{verb} {files} files ({size(room)}).{hint}")


def _shape(plan: Cleaning) -> dict[str, Any]:
    from tachograph.domain.iso_time import iso

    return {
        "jobRunId": plan.run_id,
        "status": plan.status,
        "endedAt": iso(plan.ended_us),
        "why": plan.why,
        "files": [_file(file) for file in plan.going()],
        "staying": [{**_file(file), "why": file.why} for file in plan.staying()],
    }


def _file(file: Doomed) -> dict[str, Any]:
    return {"name": file.name, "path": file.path, "size": file.size, "sha256": file.sha256}
