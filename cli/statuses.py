"""How a status looks to people. Decides no status."""

from __future__ import annotations

from tachograph.domain.outcome import is_outcome, traits

_GREEN, _YELLOW, _RED, _BLUE = "32", "33", "31", "34"
_COLOURS = {
    "running": _BLUE,
    "interrupted": _RED,
    "blocked": _YELLOW,
    "waiting": _YELLOW,
    "cancelled": _YELLOW,
    "expired": _YELLOW,
}


def paint(status: str) -> str:
    r"""Return a status in its colour, for a terminal.

    >>> paint("success"), paint("failed"), paint("odd")
    ('\x1b[32msuccess\x1b[0m', '\x1b[31mfailed\x1b[0m', 'odd')
    """
    colour = _COLOURS.get(status)
    if is_outcome(status):
        meaning = traits(status)
        colour = _RED if not meaning.terminal else _YELLOW if meaning.alerts else _GREEN
    return f"\033[{colour}m{status}\033[0m" if colour else status


def progress(found: dict[str, object] | None) -> str:
    """Return how far a run is.

    >>> progress({"completed": 3, "total": 12, "unit": "batches"}), progress(None)
    ('3/12 batches', '')
    """
    if found is None:
        return ""
    total = "" if found["total"] is None else f"/{found['total']}"
    return f"{found['completed']}{total} {found['unit']}"
