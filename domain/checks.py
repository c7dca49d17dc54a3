"""Checks of single values that commands share. Each returns nothing or raises InvalidValueError."""

from __future__ import annotations

from tachograph.domain.errors import InvalidValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.domain.facts import Facts


def text(what: str, value: object) -> None:
    """Require some text."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidValueError(what, value, "write some text")


def at_least(what: str, value: object, bound: int) -> None:
    """Require a number of at least `bound`."""
    # `not >=` rather than `<`: NaN is neither.
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= bound:
        raise InvalidValueError(what, value, f"it must be a number, {bound} or more")


def whole(what: str, value: object, bound: int) -> None:
    """Require a whole number of at least `bound`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < bound:
        raise InvalidValueError(what, value, f"it must be a whole number, {bound} or more")


def one_of(what: str, value: object, allowed: Sequence[str]) -> None:
    """Require one of the allowed texts."""
    if value not in allowed:
        raise InvalidValueError(what, value, f"it must be one of {', '.join(allowed)}")


def offset(state: object) -> None:
    """Require the state of an offset checkpoint."""
    if not isinstance(state, dict):
        raise InvalidValueError("offset checkpoint", state, "it must hold offset and total")
    whole("offset", state.get("offset"), 0)
    whole("total", state.get("total"), 0)
    if state["offset"] > state["total"]:
        raise InvalidValueError("offset", state["offset"], f"the total is {state['total']}")


def facts(said: Facts) -> None:
    """Require counts that are whole numbers, and reasons that say something."""
    from tachograph.domain.facts import COUNT, MEANINGS, TEXT

    for what, value in said.said().items():
        kind = MEANINGS[what][0]
        if kind == COUNT:
            whole(what, value, 0)
        elif kind == TEXT:
            text(what, value)
