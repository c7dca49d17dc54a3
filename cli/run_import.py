"""`tacho run import`: take over the job runs that another tool has left in folders."""

from __future__ import annotations

from tachograph.cli.options import Argument, Spec, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.import_desk import Row

SPEC = Spec(
    "Take over job runs that another tool has left in folders.",
    Argument("roots", "Folders to look through.", multiple=True, metavar="ROOT", complete="path"),
    flag("--apply", "Record them; without it, only show what would be."),
    details="""Reads every job-runs/ID and job-runs-standalone/ID (summary.json, events.jsonl,
checkpoint.json) and every *.summary.json of an orchestrator below the folders, and changes none of
them. Times stay those of the files. Attempts at the same inputs become attempts of one run until
it has ended; the next one is another run, ID~2. A record that was never finished becomes an
interrupted run, whatever outcome it names, and is never resumed by itself.

What was imported before is known by its SHA-256 and records nothing; what has grown since is told
on. What cannot be read or contradicts itself is named with the reason.

Ends with 1 when something is.""",
)


def run(params: Params, out: Output) -> int:
    """Show what would be taken over, or take it over."""
    from tachograph.cli.bars import Bar
    from tachograph.cli.exit_codes import FAILURE, OK
    from tachograph.cli.folders import existing
    from tachograph.taking_over import import_trees

    roots = [existing(root) for root in params.roots]
    services = store_of(out, apply=params.apply, create=True)
    with Bar(out, "import") as bar:
        rows = import_trees(services, roots, apply=params.apply, progress=bar)
    show(rows, out, applied=params.apply)
    return FAILURE if any(row.problems for row in rows) else OK


def store_of(out: Output, *, apply: bool, create: bool = False) -> Services | None:
    """Return the store, to be written with `apply`; None where there is none, and none is made."""
    from tachograph.cli.opening import open_store
    from tachograph.domain.errors import StoreNotFoundError

    try:
        return open_store(out, create=create and apply, read_only=not apply)
    except StoreNotFoundError:
        return None


def show(rows: Sequence[Row], out: Output, *, applied: bool) -> None:
    """Print what came of each folder or file."""
    from tachograph.import_desk import CONTINUED, IMPORTED, STATES

    counts = {state: sum(row.state == state for row in rows) for state in STATES}
    if out.json:
        entries = [shape(row) for row in rows]
        out.document({"applied": applied, "counts": _camel(counts), "entries": entries})
        return
    if rows:
        out.table(("PATH", "RUN", "STATUS", "RESULT"), [_row(row, applied=applied) for row in rows])
    for row in rows:
        for problem in row.problems:
            out.warn(f"{problem.path}: {problem.text}")
    if not rows:
        out.note("There are no job runs in there.")
        return
    new = counts[IMPORTED] + counts[CONTINUED]
    verb = "Imported" if applied else "Would import"
    hint = " Add --apply to record them." if new and not applied else ""
    rest = ", ".join(
        f"{count} {state}" for state, count in counts.items() if state != IMPORTED and count
    )
    out.note(f"{verb} {new} of {len(rows)}{f' ({rest})' if rest else ''}.{hint}")


def shape(row: Row) -> dict[str, Any]:
    """Return what came of a folder or file, as JSON has it."""
    return {
        "kind": row.kind,
        "path": row.path,
        "state": row.state,
        "jobRunIds": row.runs,
        "status": row.status,
        "attempts": row.attempts,
        "problems": [{"path": each.path, "text": each.text} for each in row.problems],
    }


def _camel(counts: dict[str, int]) -> dict[str, int]:
    return {state.replace("left-alone", "leftAlone"): count for state, count in counts.items()}


def _row(row: Row, *, applied: bool) -> tuple[str, str, str, str]:
    from tachograph.cli.folders import short
    from tachograph.import_desk import CONTINUED, IMPORTED, KNOWN, LEFT_ALONE, UNREADABLE

    said = {
        IMPORTED: "imported" if applied else "to be imported",
        CONTINUED: "told on" if applied else "to be told on",
        KNOWN: "in the store already",
        LEFT_ALONE: "left alone",
        UNREADABLE: "cannot be imported",
    }
    return short(row.path), ", ".join(row.runs) or "-", row.status or "-", said[row.state]
