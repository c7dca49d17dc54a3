"""Check what jobs, steps and runs of cron are called before anything is named so. Light."""

from __future__ import annotations

from tachograph.cli.options import UsageError
from tachograph.domain.exit_ledger import OF_THE_HARNESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@+-"
LEDGER = ".exit.txt"
_LONGEST_NUMBER = 20


def check_name(what: str, name: str | None) -> str:
    """Return the name of a job or step as it may stand in ledgers and file names.

    Raises UsageError.
    """
    if not name:
        raise UsageError(f"{what} has no name.")
    odd = sorted(set(name) - set(NAME_CHARACTERS))
    if odd or name[0] in ".-" or len(name) > 100:
        raise UsageError(
            f"{what} cannot be called {name!r}: use letters, digits and . _ : @ + -, "
            "at most 100, and begin with none of . and -"
        )
    if name in OF_THE_HARNESS:
        raise UsageError(
            f"{what} cannot be called {name!r}: rows of that name are the harness's own. "
            "Use another name."
        )
    return name


def split_steps(given: Iterable[str]) -> list[str]:
    """Return the names of steps, which may be separated by commas.

    >>> split_steps(["prune, distill", "reflect"])
    ['prune', 'distill', 'reflect']
    """
    return [name for each in given for name in each.replace(",", " ").split()]


def check_steps(given: Iterable[str]) -> list[str]:
    """Return the names of required steps. Raises UsageError, also for the name of a ledger.

    A shell makes several names of `--exit-path backup-*.exit.txt`, and all but the first would be
    steps that never ran.
    """
    names = split_steps(given)
    for name in names:
        if name.endswith(LEDGER):
            raise UsageError(
                f"{name} is a ledger, and no step: one run is judged at a time. Name one ledger "
                "with --exit-path."
            )
    return [check_name("A step", name) for name in names]


def check_run_id(text: str | None) -> None:
    """Refuse an id that is no RUN_ID: it says which day the files belong to. Raises UsageError."""
    if text is None:
        return
    time, _, number = text.partition("-")
    plain = number.isascii() and number.isdecimal() and len(number) <= _LONGEST_NUMBER
    if not plain or not _is_moment(time):
        raise UsageError(
            f"--id is {text!r}, no RUN_ID: write the time in UTC and a number, as in "
            "20260131T020000Z-17."
        )


def _is_moment(text: str) -> bool:
    """Say whether a text is a time that there is, written as in 20260131T020000Z."""
    shape = "".join("0" if letter in "0123456789" else letter for letter in text)
    if shape != "00000000T000000Z":
        return False
    from datetime import datetime

    try:
        datetime.strptime(text + "+0000", "%Y%m%dT%H%M%SZ%z")
    except ValueError:
        return False
    return True
