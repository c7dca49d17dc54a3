"""The run that a person means: an id, or the unique beginning of one. Guesses nothing."""

from __future__ import annotations

from tachograph import looking
from tachograph.domain.errors import RunNotFoundError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from tachograph.bootstrap import Services
    from tachograph.cli.output import Output
    from tachograph.domain.run import Run
    from tachograph.portions import ProjectionStoppedError
    from tachograph.projections.views import ViewReader

    T = TypeVar("T")


def warn(out: Output) -> Callable[[ProjectionStoppedError], None]:
    """Return what tells a person that a view could not go on; its answer may be old."""
    return lambda error: out.warn(f"tacho: warning: {error}")


def ask(services: Services, out: Output, question: Callable[[ViewReader], T]) -> T:
    """Return what `question` answers from the views, caught up as far as they can be."""
    return looking.ask(services, question, report=warn(out))


def find_run(services: Services, text: str, out: Output) -> str:
    """Return the id of a run. Raises AmbiguousRunError or RunNotFoundError."""
    return looking.find_run(services, text, report=warn(out))


def load_run(services: Services, text: str, out: Output) -> Run:
    """Return a run as the log tells it."""
    run_id = find_run(services, text, out)
    run = services.repository.get(run_id)
    if run is None:
        raise RunNotFoundError(run_id, "")
    return run
