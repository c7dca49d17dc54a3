"""What the projections share: which topics are theirs, and bounds on what they keep. No I/O."""

from __future__ import annotations

from tachograph.domain.bodies import ERASED, LOST
from tachograph.domain.errors import UnknownEventTypeError
from tachograph.domain.events import EVENT_TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    Fields = dict[str, Any]

    class Projection(Protocol):
        """Folds events, in the order of their positions, into one view.

        `fold` changes memory alone; `flush` then writes what changed, once per run.
        """

        def fold(self, topic: str, fields: Fields, position: int, stream: str) -> None:
            """Apply one event. Raises UnknownEventTypeError for an unknown `run.` topic."""
            ...

        def flush(self) -> None:
            """Write every run that changed to the view."""
            ...


__all__ = ["ERASED", "LOST"]

PREFIX = "run."
"""Topics that start so are ours; all others belong to other applications in the same log."""
RUN_TOPICS = frozenset(EVENT_TYPES)
"""Every topic of a run."""

LONGEST_TEXT = 500
"""Characters of a free text that a view keeps; the log keeps all of it."""
_LARGEST_VALUE = 1000
"""Characters and elements of a free value that a view keeps; a larger one is left out."""

_SCALARS = frozenset({type(None), bool, int, float})
_NESTING = 10
"""What a list or dict counts beside its elements: it bounds the depth too."""


def unknown(topic: str, position: int) -> UnknownEventTypeError:
    """Return the error for one of our topics that this version does not know."""
    return UnknownEventTypeError(topic, f"position {position}")


def clip(text: Any) -> Any:
    """Return a text cut to what a view keeps; anything else as it is.

    >>> clip("short"), len(clip("x" * 9999))
    ('short', 500)
    """
    if isinstance(text, str) and len(text) > LONGEST_TEXT:
        return text[: LONGEST_TEXT - 1] + "…"
    return text


def small(value: Any) -> Any:
    """Return a free value when it is small and plain, else None: it stays in the log.

    >>> small({"root": "/srv", "days": [1, 2]}), small(list(range(9999)))
    ({'root': '/srv', 'days': [1, 2]}, None)
    """
    return value if _size(value, _LARGEST_VALUE) <= _LARGEST_VALUE else None


def keep_newest(mapping: dict[str, Any], limit: int) -> None:
    """Drop the oldest entries of a mapping beyond `limit`.

    >>> kept = {"a": 1, "b": 2, "c": 3}
    >>> keep_newest(kept, 2)
    >>> kept
    {'b': 2, 'c': 3}
    """
    while len(mapping) > limit:
        del mapping[next(iter(mapping))]


def _size(value: Any, limit: int) -> int:
    """Return roughly how large a value is; stops counting beyond `limit`."""
    kind = type(value)
    if kind is str:
        return len(value)
    if kind in _SCALARS:
        return 1
    if kind is dict:
        parts = [*value, *value.values()]
    elif kind is list:
        parts = value
    else:
        return limit + 1
    size = _NESTING + len(parts)
    for part in parts if size <= limit else ():
        kind = type(part)
        if kind is str:  # most parts are texts and numbers: no call for each of them
            size += len(part)
        elif kind not in _SCALARS:
            size += _size(part, limit - size)
        if size > limit:
            break
    return size
