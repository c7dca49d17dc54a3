"""What a list shows of each run: a card, cut from its summary so that the two never disagree."""

from __future__ import annotations

from tachograph.domain.outcome import is_terminal
from tachograph.projections.run_summaries import progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    Summary = dict[str, Any]
    Card = dict[str, Any]

    class RunCardsView(Protocol):
        """Where cards are found. `created_position` is the position of a run's first event."""

        def cards(self) -> Iterator[Card]:
            """Yield the cards of all runs, latest created first."""
            ...

        def open_cards(self) -> Iterator[Card]:
            """Yield the cards of runs that are open (see `is_open`), latest created first."""
            ...

        def touched(self) -> Iterator[tuple[int, int]]:
            """Yield (latest_us, created_position) of all runs, latest touched first.

            `latest_us` is the latest time of any event up to the run's last one: unlike the
            run's own times it never rises along the way, whatever the clocks did.
            """
            ...

        def card_at(self, created_position: int) -> Card:
            """Return the card of the run created at a position."""
            ...

        def ids(self, prefix: str, limit: int) -> list[tuple[int, str]]:
            """Return (created_position, id) of at most `limit` runs whose id starts so."""
            ...


NAME = "run_cards"
VERSION = 3
"""Raised whenever the content changes for the same log: stored views are then rebuilt."""

_COPIED = (
    "id",
    "command",
    "title",
    "parent",
    "created_us",
    "created_position",
    "created_latest_us",
    "updated_us",
    "updated_position",
    "latest_us",
    "finished_us",
    "epoch",
    "owner",
    "worker",
    "depends_on",
    "active_us",
    "attempt_open",
    "outcome",
    "reason_code",
    "reason",
    "ended",
    "blocked",
    "origin",
    "revision",
)


FIELDS = (*_COPIED, "progress", "attention", "approval")
"""Every field of a card, in order: part of its stored form."""


def card(run: Summary) -> Card:
    """Return the card of a summary: what a list shows, filters by, or needs to judge liveness."""
    return dict(zip(FIELDS, values(run), strict=True))


def values(run: Summary) -> list[Any]:
    """Return the values of the card of a summary, in the order of FIELDS."""
    cut = [run[name] for name in _COPIED]
    cut += progress(run), bool(run["attention"]), next(iter(run["approvals"]), None)
    return cut


def is_open(run: Summary | Card) -> bool:
    """Say whether a run may still be at work or waits for something: nothing says it ended.

    A blocked run is open even when its attempt ended, unless it ended for good.
    """
    if run["ended"] is not None or is_terminal(run["outcome"], run["reason_code"]):
        return False
    return run["outcome"] is None or run["blocked"] is not None
