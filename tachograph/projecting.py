"""Fold the log into the views: catch up, rebuild, check. Never changes it, never skips an event.

Views are disposable (G8): what they hold depends on the log alone, whoever folds it and in
whatever portions.
"""

from __future__ import annotations

from tachograph.domain.errors import StoreCorruptError
from tachograph.domain.records import _Fields
from tachograph.portions import (
    DamagedLogError,
    OtherLogError,
    ProjectionStoppedError,
    fold,
)
from tachograph.projections.views import PROJECTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from tachograph.ports import Codec, EventLog, Progress
    from tachograph.projections.views import ViewReader, Views, ViewStore

    T = TypeVar("T")

MOST_DIFFERENCES = 1000
_END = ("~", b"", b"")
"""Comes after every row."""


class Difference(_Fields):
    """A row that is not what the log says; a value is None where the row is missing."""

    __slots__ = ("expected", "key", "stored", "table")

    def __init__(
        self, table: str, key: bytes, stored: bytes | None, expected: bytes | None
    ) -> None:
        self.table = table
        self.key = key
        self.stored = stored
        self.expected = expected

    def __str__(self) -> str:
        """Name the row and what is wrong with it.

        >>> str(Difference("cards", b"k", None, b"v"))
        'cards 6b: missing'
        """
        what = "differs"
        if self.stored is None:
            what = "missing"
        elif self.expected is None:
            what = "should not be there"
        return f"{self.table} {self.key.hex()}: {what}"


def catch_up(
    log: EventLog, codec: Codec, views: ViewStore, progress: Progress | None = None
) -> int:
    """Fold what is new in the log into the views, and return the position they have reached.

    Several processes may do so at once. Killed at any instant, each view stays at the end of a
    transaction. Views that are damaged, or were made from another log, are made anew.
    `codec` should keep custom types that it does not know.

    Raises:
        ProjectionStoppedError: an event cannot be read; other views have gone on.
        StoreReadOnlyError: the views cannot be written.

    """
    try:
        return fold(log, codec, views, progress)
    except DamagedLogError:
        raise  # no reason to throw the views away
    except (StoreCorruptError, OtherLogError):
        views.discard()
    return fold(log, codec, views, progress)


def ask(
    log: EventLog,
    codec: Codec,
    views: ViewStore,
    question: Callable[[ViewReader], T],
    *,
    report: Callable[[ProjectionStoppedError], None] | None = None,
    progress: Progress | None = None,
) -> T:
    """Catch up, then return what `question` answers from the views, as of one moment.

    Damaged views are made anew, and the question is asked again. Where a view has stopped, its
    error is given to `report` and the answer comes from what it has; without `report` it is
    raised.
    """
    _refresh(log, codec, views, report, progress)
    try:
        with views.read() as reader:
            return question(reader)
    except StoreCorruptError:
        views.discard()
    _refresh(log, codec, views, report, progress)
    with views.read() as reader:
        return question(reader)


def rebuild(log: EventLog, codec: Codec, views: ViewStore, progress: Progress | None = None) -> int:
    """Make all views anew from the log, swap them in, and return the position they have reached.

    Until then everybody reads the old ones; killed at any instant, the old ones stay.

    Raises ProjectionStoppedError as `catch_up` does; the old views then stay.
    """
    with views.rebuilding() as fresh:
        return fold(log, codec, fresh, progress)


def check(
    log: EventLog, codec: Codec, views: ViewStore, progress: Progress | None = None
) -> list[Difference]:
    """Return where the views are not what the log says: at most 1,000 rows, none when all is well.

    The views are caught up first; then they are made anew beside, and compared byte by byte.
    """
    catch_up(log, codec, views)
    with views.read() as stored:
        position = _reached(stored)
    with views.scratch() as fresh:
        fold(log, codec, fresh, progress, position)
        with views.read() as stored:
            # Others may have gone on since: the two are compared at the same position.
            fold(log, codec, fresh, progress, _reached(stored))
            with fresh.read() as expected:
                return _compare(stored.rows(), expected.rows())


def lag(log: EventLog, views: Views) -> dict[str, int]:
    """Return how many events of the log each view lacks."""
    with views.read() as reader:
        marks = {name: reader.mark(name) for name in PROJECTIONS}
    head = log.head().position
    return {name: max(0, head - mark.position) for name, mark in marks.items()}


def _refresh(
    log: EventLog,
    codec: Codec,
    views: ViewStore,
    report: Callable[[ProjectionStoppedError], None] | None,
    progress: Progress | None,
) -> None:
    """Catch up; a view that has stopped is reported, or raises where nobody takes reports."""
    try:
        catch_up(log, codec, views, progress)
    except ProjectionStoppedError as error:
        if report is None:
            raise
        report(error)


def _reached(reader: ViewReader) -> int:
    return min(reader.mark(name).position for name in PROJECTIONS)


def _compare(
    stored: Iterator[tuple[str, bytes, bytes]], expected: Iterator[tuple[str, bytes, bytes]]
) -> list[Difference]:
    """Walk two contents in their common order and return where they differ."""
    found: list[Difference] = []
    left, right = next(stored, _END), next(expected, _END)
    while (left is not _END or right is not _END) and len(found) < MOST_DIFFERENCES:
        if left[:2] < right[:2]:
            found.append(Difference(*left, None))
            left = next(stored, _END)
        elif right[:2] < left[:2]:
            found.append(Difference(right[0], right[1], None, right[2]))
            right = next(expected, _END)
        else:
            if left[2] != right[2]:
                found.append(Difference(*left, right[2]))
            left, right = next(stored, _END), next(expected, _END)
    return found
