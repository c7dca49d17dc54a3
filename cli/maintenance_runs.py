"""What the commands of `tacho maintenance run` share: one run, and its record as of now."""

from __future__ import annotations

from tachograph.cli.finding import ask, find_run, warn
from tachograph.cli.opening import open_store
from tachograph.domain.errors import AmbiguousRunError, RunNotFoundError
from tachograph.reading import MOST_CANDIDATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.run import Run


def opened(params: Params, out: Output) -> tuple[Services, Run]:
    """Return the store and the run that is meant, however old it is.

    Raises AmbiguousRunError, which lists the candidates, or RunNotFoundError.
    """
    services = open_store(out, read_only=True)
    run_id = found_id(services, params.run, out)
    run = services.repository.get(run_id)
    if run is None:
        raise RunNotFoundError(run_id, "")
    return services, run


def found_id(services: Services, text: str, out: Output) -> str:
    """Return the id of a run as the original finds it, which takes no notice of capitals.

    What was written counts first: two of our ids may differ by capitals alone. Raises
    AmbiguousRunError or RunNotFoundError.
    """
    try:
        return find_run(services, text, out)
    except RunNotFoundError:
        wanted = text.lower()
        ids = ask(services, out, lambda view: [str(card["id"]) for card in view.cards()])
        fitting = [each for each in ids if wanted and each.lower().startswith(wanted)]
        whole = [each for each in fitting if each.lower() == wanted]
        found = whole or fitting
        if len(found) > 1:
            raise AmbiguousRunError(text, ", ".join(found[:MOST_CANDIDATES])) from None
        if not found:
            raise
        return found[0]


def record(services: Services, run: Run) -> dict[str, Any]:
    """Return the record of a run, without what is so at this moment only."""
    from tachograph.cli.artifact_roots import finder
    from tachograph.maintenance_runs import names_of, record_of

    find = finder(services, run)
    there = {kind: path for kind, name in names_of(run).items() if (path := find(name))}
    return record_of(services.repository, services.payloads, run, there)


def record_now(services: Services, run: Run, out: Output) -> dict[str, Any]:
    """Return the record of a run with its status as of this moment (G7)."""
    from tachograph.looking import summary_of
    from tachograph.maintenance_runs import as_of_now

    summary = summary_of(services, run.id, report=warn(out))
    return as_of_now(record(services, run), summary["status"], summary["status_reason"])
