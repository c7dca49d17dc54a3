"""Which runs have ended long ago, and whether their archive still stands. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.outcome import OUTCOMES, traits
from tachograph.reading import list_runs

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from tachograph.projections.views import ViewReader
    from tachograph.reading import Judge
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]

WELL = tuple(outcome for outcome in OUTCOMES if traits(outcome).terminal)
"""Statuses of runs that ended well."""
FINISHED = (*WELL, "cancelled", "expired")
"""Statuses that nothing moves any more (G6)."""
DONE = "done"
"""Stands for all of WELL."""
AT_A_TIME = 50
"""Events that are read at a time, newest first."""
_REMARKS = frozenset(
    {
        "run.archived",
        "run.note-added",
        "run.attention-raised",
        "run.attention-cleared",
        "run.card-edited",
        "run.resume-returned",
        "run.verdict-revised",
    }
)
"""What may be recorded of a finished run: no file comes with it."""


def named(statuses: Collection[str]) -> tuple[str, ...]:
    """Return the statuses that were asked for; all finished ones when none was.

    >>> named(["done", "expired"])
    ('success', 'success_with_review', 'skipped', 'empty', 'expired')
    """
    if not statuses:
        return FINISHED
    wanted = [each for name in statuses for each in (WELL if name == DONE else (name,))]
    return tuple(dict.fromkeys(wanted))


def ended_before(
    view: ViewReader, judge: Judge, time_us: int, statuses: Collection[str]
) -> list[Fields]:
    """Return the cards of the runs that ended before a time, the earliest first.

    A run that has not ended counts from its last event.
    """
    cards = list_runs(view, judge, statuses=statuses)
    return sorted(
        (card for card in cards if ended_us(card) < time_us),
        key=lambda card: (ended_us(card), card["created_position"]),
    )


def ended_us(card: Fields) -> int:
    """Return when a run ended; its last event when it has not."""
    return int(card["finished_us"] or card["updated_us"])


def standing_archive(repository: RunRepository, run_id: str) -> tuple[str, str] | None:
    """Return the location and the SHA-256 of the archive that holds a run as it is now.

    None when there is none, or when the run went on since it was made.
    """
    log, up_to = repository.log, None
    while records := log.read_stream(run_id, up_to=up_to, limit=AT_A_TIME, reverse=True):
        for record in records:
            if record.topic == "run.archived":
                fields = repository.fields(record)
                return fields["location"], fields["sha256"]
            if record.topic not in _REMARKS:
                return None
        up_to = records[-1].version - 1
    return None
