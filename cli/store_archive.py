"""`tacho store archive`: move the bodies of finished runs out of the log, into archives."""

from __future__ import annotations

from tachograph.cli.options import Argument, Option, Spec, UsageError, flag
from tachograph.cli.sizes import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.offloading import Offload, Offloaded

SPEC = Spec(
    "Move the events' bodies of finished runs out of the log, into compressed archives.",
    Argument("runs", "Runs, by their whole ids; all that qualify when none is named.",
             required=False, multiple=True, complete="run"),
    Option("--before", "Runs that ended before: a time, or how long ago, such as 30d.",
           metavar="TIME"),
    Option("--reason", "Why; kept with each run.", metavar="TEXT"),
    flag("--apply", "Move them; without it, only show what would be moved."),
    details="""The digests stay in the log, so that `tacho store verify` still proves the chain, and
everything that reads a run reads its bodies from the archive. An unfinished run stays whole, and
so does one whose orchestrator run is unfinished. Killed at any moment, nothing is lost; running it
again takes up what was begun. The log's pages are used again; `tacho store compact` gives them
back to the disk.""",
)  # fmt: skip


def run(params: Params, out: Output) -> None:
    """Show what would be moved, or move it."""
    from tachograph import bodykeeping, offloading
    from tachograph.cli.bars import Bar
    from tachograph.cli.opening import open_store

    if params.before is None and not params.runs:
        raise UsageError("Which runs? Name them, or say --before, as in --before 30d.")
    services = open_store(out, read_only=not params.apply)
    plans = offloading.plan(services.repository, _wanted(services, params, out))
    if not params.runs:
        plans = [plan for plan in plans if plan.why != offloading.ALREADY]
    done = None
    if params.apply:
        with Bar(out, "archive") as bar:
            done = bodykeeping.offload(services, plans, params.reason, bar)
    _show(plans, done, out)


def _wanted(services: Services, params: Params, out: Output) -> list[tuple[str, str]]:
    """Return id and status of the runs that are meant."""
    from tachograph.cli.exact import exact_run
    from tachograph.cli.finding import ask
    from tachograph.infra.clock import now_us, parse_time
    from tachograph.looking import judge_of, summary_of
    from tachograph.retiring import FINISHED, ended_before

    named = list(dict.fromkeys(exact_run(services, text, out) for text in params.runs))
    old: list[tuple[str, str]] = []
    if params.before is not None:
        before_us, judge = parse_time(params.before, now_us()), judge_of(services)
        cards: list[dict[str, Any]] = ask(
            services, out, lambda view: ended_before(view, judge, before_us, FINISHED)
        )
        old = [(card["id"], card["status"]) for card in cards]
        if not named:
            return old
        too_young = set(named) - {run_id for run_id, _ in old}
        for run_id in sorted(too_young):
            out.warn(f"{run_id} stays: it has not ended before {params.before}.")
        return [each for each in old if each[0] in named]
    return [(run_id, summary_of(services, run_id)["status"]) for run_id in named]


def _show(plans: Sequence[Offload], done: Offloaded | None, out: Output) -> None:
    going = [plan for plan in plans if plan.why is None]
    events, room = sum(plan.events for plan in going), sum(plan.bytes for plan in going)
    if out.json:
        out.document(
            {
                "applied": done is not None,
                "events": events,
                "bytes": room,
                "runs": [_shape(plan) for plan in plans],
                "archives": [] if done is None else done.archives,
                "archiveBytes": 0 if done is None else done.written,
                "movedEvents": 0 if done is None else done.events,
            }
        )
        return
    if going:
        rows = [(each.run_id, each.status, str(each.events), size(each.bytes)) for each in going]
        out.table(("RUN", "STATUS", "EVENTS", "SIZE"), rows)
    for plan in plans:
        if plan.why is not None:
            out.note(f"{plan.run_id} stays: {plan.why}.")
    if done is None:
        hint = " Add --apply to move them." if going else ""
        out.note(f"Would move {events} bodies ({size(room)}) of {len(going)} runs.{hint}")
        return
    if not done.events:
        out.note("Nothing was moved.")
        return
    names = ", ".join(done.archives) or "archives that were there"
    out.note(
        f"Moved {done.events} bodies of {done.runs} runs to {names} ({size(done.written)}). "
        "`tacho store compact` gives the room in the log back."
    )


def _shape(plan: Offload) -> dict[str, Any]:
    return {
        "jobRunId": plan.run_id,
        "status": plan.status,
        "events": plan.events,
        "bytes": plan.bytes,
        "why": plan.why,
    }
