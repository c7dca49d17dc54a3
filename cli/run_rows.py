"""Runs as rows of a table."""

from __future__ import annotations

from tachograph.cli.statuses import paint, progress
from tachograph.cli.tables import table as _table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.cli.output import Output

    Card = dict[str, Any]

_COLUMNS = ("RUN", "STATUS", "PROGRESS", "ATTEMPTS", "CREATED", "LAST SEEN", "WHY")
_QUIET_STATUSES = ("running", "success")
"""Statuses that need no reason in a list."""


def table(cards: list[Card], out: Output) -> None:
    """Print cards as a table whose statuses are coloured on a terminal."""
    rows = [_row(card, out) for card in cards]
    styled = out.styled()
    lines = _table(_COLUMNS, rows, width=out.width(), bold=styled)
    head = next(lines)
    out.line(head)
    place = head.removeprefix("\033[1m").index(_COLUMNS[1])
    for line, card in zip(lines, cards, strict=True):
        status = card["status"]
        if styled and line.startswith(status, place):
            out.line(line[:place] + paint(status) + line[place + len(status) :])
        else:  # plain, or too narrow for the whole status
            out.line(line)


def _row(card: Card, out: Output) -> tuple[str, ...]:
    return (
        card["id"],
        card["status"],
        progress(card["progress"]),
        str(card["epoch"]),
        out.when(card["created_us"]),
        out.when(card["seen_us"] or card["updated_us"]),
        "; ".join(_why(card)),
    )


def _why(card: Card) -> Iterator[str]:
    """Yield what there is to say of a run besides its status."""
    if card["status"] not in _QUIET_STATUSES and card["status_reason"]:
        yield card["status_reason"]
    if card["revision"] is not None:
        yield f"revised: {card['revision']['outcome']}"
    if card["origin"] is not None and "run" in card["origin"]:
        yield f"fork of {card['origin']['run']}"
