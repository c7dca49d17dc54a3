"""`tacho maintenance run list`: the runs, newest first, with the fields of the original."""

from __future__ import annotations

from tachograph.cli.finding import ask
from tachograph.cli.opening import open_store
from tachograph.cli.options import Option, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "List job runs and orchestrator runs, newest first.",
    Option("--since", "Runs in which something happened since.", default="7d", metavar="TIME"),
    details="The fields are those of the original's `maintenance run list`, and `status`, which "
    "says what is so now. `path` is the run's summary.json, or the store where there is none.",
)


def run(params: Params, out: Output) -> None:
    """Print a row for each run."""
    from tachograph.infra.clock import now_us, parse_time
    from tachograph.looking import judge_of
    from tachograph.reading import list_runs

    since_us = parse_time(params.since, now_us())
    services = open_store(out, read_only=True)
    judge = judge_of(services)
    cards = ask(services, out, lambda view: list_runs(view, judge, since_us=since_us))
    rows = [row for card in cards if (row := _row(services, card)) is not None]
    rows.sort(key=lambda row: str(row["startedAt"]), reverse=True)
    if out.json:
        out.document(rows)
    elif rows:
        for row in rows:
            out.line(_text(row))
    else:
        out.note("No maintenance runs found.")


def _row(services: Services, card: dict[str, Any]) -> dict[str, Any] | None:
    """Return a row; None for a run of which nothing can be read any more."""
    from tachograph.cli.artifact_roots import finder
    from tachograph.cli.maintenance_runs import record
    from tachograph.domain.artifact_places import SUMMARY
    from tachograph.maintenance_runs import ORCHESTRATOR, kind_of, names_of, row

    run = services.repository.get(card["id"])
    if run is None or run.bodies == "erased":
        return None
    path = finder(services, run)(names_of(run)[SUMMARY]) or services.folder
    known = record(services, run) if kind_of(run) == ORCHESTRATOR else {}
    return row(run, path, card["status"], known)


def _text(row: dict[str, Any]) -> str:
    if row["kind"] == "job":
        more = f"command={row['command']} semantic={row['semanticOutcome']}"
    else:
        more = f"exit={row.get('exitCode', '-')}"
    return (
        f"{row['kind']:<14} {row['id']} {more} status={row['status']}  started={row['startedAt']}"
    )
