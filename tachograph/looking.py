"""Build what reading needs: the views of an open store, caught up, and who judges liveness.

Like bootstrap it knows both sides. It imports little: `run list` starts as fast as a script.
"""

from __future__ import annotations

from tachograph import projecting, reading
from tachograph.domain.errors import StoreFullError, StoreReadOnlyError
from tachograph.domain.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from tachograph.bootstrap import Services
    from tachograph.portions import ProjectionStoppedError
    from tachograph.projections.views import ViewReader
    from tachograph.reading import Judge

    T = TypeVar("T")
    Fields = dict[str, Any]
    Report = Callable[[ProjectionStoppedError], None]


def ask(
    services: Services, question: Callable[[ViewReader], T], *, report: Report | None = None
) -> T:
    """Let the views catch up and return what `question` answers from them, as of one moment.

    In a store that cannot be written, or on a full disk, the views are made in memory. A view
    that cannot go on is given to `report`, and answers from what it has; without `report` its
    error is raised.
    """
    log, codec = services.log, services.codec
    try:
        return projecting.ask(log, codec, services.views(), question, report=report)
    except (StoreReadOnlyError, StoreFullError):
        from tachograph.infra.memory_views import MemoryViews

        return projecting.ask(log, codec, MemoryViews(codec), question, report=report)


def judge_of(services: Services) -> Judge:
    """Return what says, now, whether the owner of an attempt is alive (G7)."""
    return services.judge


def find_run(services: Services, text: str, *, report: Report | None = None) -> str:
    """Return the id of the run that a person means, by an id or the unique beginning of one.

    Raises AmbiguousRunError or RunNotFoundError.
    """
    if text and services.log.stream_version(text):
        return text
    return ask(services, lambda view: reading.find_run(view, text), report=report)


def summary_of(services: Services, run_id: str, *, report: Report | None = None) -> Fields:
    """Return what is known of a run, with its status as of now. Raises RunNotFoundError."""
    judging = judge_of(services)
    found = ask(services, lambda view: reading.summary(view, judging, run_id), report=report)
    bodies = found["bodies"]
    if bodies is not None and bodies["state"] == "archived" and _has_body(services, run_id):
        found["bodies"] = None  # a copy of a store: the archive was that of the original
    return found


def _has_body(services: Services, run_id: str) -> bool:
    """Say whether the first event of a run has its body in the log: those go first."""
    return any(
        type(record) is Record and not record.absent
        for record in services.log.read_stream(run_id, limit=1)
    )


def audit_of(services: Services, run_id: str, *, report: Report | None = None) -> Fields:
    """Return everything that explains a run. Raises RunNotFoundError."""
    from tachograph.auditing import audit

    summary = summary_of(services, run_id, report=report)
    return audit(services.repository, services.payloads, summary)
