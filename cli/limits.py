"""The option that says how many of something a command prints."""

from __future__ import annotations

from tachograph.cli.options import WHOLE, Option, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params


def limit(text: str, default: int | None = None) -> Option:
    """Return the option."""
    return Option("--limit", text, kind=WHOLE, default=default, metavar="N")


def limit_of(params: Params) -> int | None:
    """Return what was given, None when nothing was. Raises UsageError below 0."""
    given: int | None = params.limit
    if given is not None and given < 0:
        raise UsageError(f"--limit is {given}: give 0 or more.")
    return given
