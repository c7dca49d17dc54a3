"""What is known of an event whose body is not there any more. No I/O, no clock."""

from __future__ import annotations

from time import gmtime, strftime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Fields = dict[str, Any]

ERASED = "erased"
"""Field that an event has instead of its own when its body is not there."""
LOST = "lost"
"""Field that it has besides when the body should be in an archive, and is not."""


def erasure(fields: Fields) -> str:
    """Say when, by whom and why a run was erased, from the fields of that event.

    >>> erasure({"time_us": 0, "by": ["shell", "ada", 7, 0], "reason": "it names a customer"})
    'on 1970-01-01 by shell on ada, because: it names a customer'
    """
    day = strftime("%Y-%m-%d", gmtime(fields["time_us"] // 1_000_000))
    actor, host = fields["by"][:2]
    return f"on {day} by {actor} on {host}, because: {fields['reason']}"
