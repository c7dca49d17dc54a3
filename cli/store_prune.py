"""`tacho store prune`: let the artifact files and leftovers go that retention lets go."""

from __future__ import annotations

import os

from tachograph.cli.options import Option, Spec, UsageError, flag
from tachograph.cli.sizes import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.artifact_trees import Pruning
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.pruning import Plan

SPEC = Spec(
    "Remove artifact files and leftovers of runs, by the rules of retention.",
    Option("--root", "A folder of artifact files, besides those that are looked at anyway.",
           multiple=True, metavar="DIR", complete="path"),
    Option("--older-than", "Summaries and reports of runs that ended so long ago; 30d without it.",
           metavar="SPAN"),
    flag("--apply", "Remove them; without it, only show what would go."),
    flag("--dry-run", "Only show what would go, as without --apply."),
    details="""When a run has ended well, its checkpoint.json and events.jsonl go, and its summary
and report 30 days later. A run that may go on keeps all its files, until it has ended well or a
person has ended it. Files that adapters of finished runs have left go after a day, temporary files
of killed writers after an hour.

Looked at are the folder of the setting `artifacts`, and those where cron lines leave their files
that name none. Every removal is an event of its run, recorded before the file goes. Events,
payloads and files that runs made are never removed here: see `store archive`, `store erase`,
`store compact` and `run clean`.""",
)  # fmt: skip


def run(params: Params, out: Output) -> None:
    """Show what would go, or let it go."""
    if params.apply and params.dry_run:
        raise UsageError("--apply and --dry-run exclude each other.")
    from tachograph.artifact_trees import Pruning
    from tachograph.artifact_trees import roots as roots_of
    from tachograph.cli.artifact_roots import root_of
    from tachograph.cli.bars import Bar
    from tachograph.cli.finding import ask
    from tachograph.cli.opening import open_store
    from tachograph.infra.clock import parse_span

    older_than_us = None if params.older_than is None else parse_span(params.older_than)
    services = open_store(out, read_only=not params.apply)
    named = [root_of(services, root) for root in params.root]
    for root in named:
        if not os.path.isdir(root or ""):  # noqa: PTH112
            raise UsageError(f"--root {root}: there is no such folder.")
    roots = list(dict.fromkeys([*roots_of(services), *filter(None, named)]))
    pruning = Pruning(services, roots, older_than_us)
    pruning.look(ask(services, out, lambda view: [card["id"] for card in view.cards()]))
    if params.apply:
        with Bar(out, "prune") as bar:
            pruning.apply(bar)
    _show(pruning, roots, out, applied=params.apply)


def _show(pruning: Pruning, roots: list[str], out: Output, *, applied: bool) -> None:
    plan = pruning.plan
    if out.json:
        out.document(_shape(plan, roots, applied=applied))
        return
    rows = [
        (each.run_id or "-", ", ".join(each.kinds), size(each.size), each.rule.id)
        for each in plan.removals
    ]
    if rows:
        out.table(("RUN", "FILES", "SIZE", "RULE"), rows)
    for left in plan.left:
        out.note(f"{left.path} stays: {left.why}.")
    if not roots:
        out.note(
            "The setting `artifacts` names no folder, and no cron line has left files: only the "
            "store itself was looked at."
        )
    verb = "Removed" if applied else "Would remove"
    hint = "" if applied or not plan.files else " Add --apply to remove them."
    out.note(f"{verb} {plan.files} files ({size(plan.size)}).{hint}")


def _shape(plan: Plan, roots: list[str], *, applied: bool) -> dict[str, object]:
    removals = [
        {
            "jobRunId": each.run_id,
            "rule": each.rule.id,
            "text": each.rule.text,
            "kinds": each.kinds,
            "paths": each.paths,
            "bytes": each.size,
        }
        for each in plan.removals
    ]
    return {
        "applied": applied,
        "roots": roots,
        "files": plan.files,
        "bytes": plan.size,
        "removals": removals,
        "left": [{"path": left.path, "why": left.why} for left in plan.left],
    }
