"""Limits that are given on the command line: how much is printed, how long a command may take."""

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


def check_time_limit(flag: str, seconds: float | None) -> None:
    """Refuse a time limit that is none. Raises UsageError."""
    if seconds is None:
        return
    if seconds != seconds or seconds == float("inf"):
        raise UsageError(f"{flag} is {seconds}: give a number of seconds, or leave it out.")
    if seconds <= 0:
        raise UsageError(f"{flag} is {seconds:g}: give a time above 0, or leave it out.")
