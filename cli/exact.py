"""The run that a command changes, by its whole id. Never guesses what a beginning stands for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.bootstrap import Services
    from tachograph.cli.output import Output


def exact_run(services: Services, text: str, out: Output) -> str:
    """Return the text when it is the id of a run.

    Raises RunNotFoundError, naming the run whose id begins so, and AmbiguousRunError when
    there are several.
    """
    if text and services.log.stream_version(text):
        return text
    from tachograph.cli.finding import find_run
    from tachograph.domain.errors import RunNotFoundError

    found = find_run(services, text, out)
    hint = f" {found} begins so: write the whole id, since this changes the run."
    raise RunNotFoundError(text, hint)
