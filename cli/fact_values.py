"""Facts that are written on the command line as NAME=VALUE. Judges nothing."""

from __future__ import annotations

from tachograph.cli.options import Option, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FACT = Option(
    "--fact",
    "A fact, such as extracted=9; `tacho policy facts` lists them.",
    multiple=True,
    metavar="NAME=VALUE",
)


def read_facts(texts: Sequence[str]) -> dict[str, Any]:
    """Return the facts that NAME=VALUE pairs state. Raises UsageError.

    >>> read_facts(["extracted=9", "declared=all up to date", "minimum_fraction=0.9"])
    {'extracted': 9, 'declared': 'all up to date', 'minimum_fraction': 0.9}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--fact is {text!r}: write NAME=VALUE, such as extracted=9.")
        if name in found:
            raise UsageError(f"--fact {name} is given twice.")
        found[name] = _value(name, value)
    return found


def _value(name: str, text: str) -> Any:
    from tachograph.domain.facts import COUNT, DERIVED, MEANINGS, TEXT

    if name in DERIVED:
        raise UsageError(
            f"--fact {name}: it follows from other facts ({DERIVED[name][1]}): state those."
        )
    if name not in MEANINGS:
        raise UsageError(f"--fact {name}: there is no such fact. {_near(name)}")
    kind = MEANINGS[name][0]
    if kind == TEXT:
        if not text.strip():
            raise UsageError(f"--fact {name}: write some text after the =.")
        return text
    if kind == COUNT:
        if not (text.isascii() and text.isdecimal() and len(text) < 19):
            raise UsageError(f"--fact {name}={text}: it is a count: write a whole number from 0.")
        return int(text)
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number - number != 0:  # not a number, or infinite
        raise UsageError(f"--fact {name}={text}: write a number.")
    return number


def _near(name: str) -> str:
    from difflib import get_close_matches

    from tachograph.domain.facts import MEANINGS

    near = get_close_matches(name, MEANINGS, 1)
    return f"Did you mean {near[0]}?" if near else f"There are {', '.join(MEANINGS)}."
