"""Fold the log into the views: catch up, rebuild, check. Never changes the log, never skips an event.

Views are disposable (G8): what they hold depends on the log alone, whoever folds it and in
whatever portions.
"""

from __future__ import annotations

from tachograph.domain.errors import StoreCorruptError, StoreError, TachographError
from tachograph.domain.events import EVENT_TYPES, upcast
from tachograph.domain.records import _Fields
from tachograph.projections.folding import ERASED, PREFIX, RUN_TOPICS, unknown
from tachograph.projections.views import PROJECTIONS, Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    from tachograph.domain.records import Record
    from tachograph.ports import Codec, EventLog, Progress
    from tachograph.projections.views import Views, ViewReader, ViewStore, ViewWriter

    T = TypeVar("T")

CHUNK = 2000
"""Events in memory at a time."""
CHUNKS = 5
"""Portions folded in one transaction: what is done again after a kill."""
MOST_DIFFERENCES = 1000
_UPCAST = frozenset(topic for topic, kind in EVENT_TYPES.items() if kind.class_version > 1)
_UNREADABLE = (
    TachographError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What an event that cannot be read or folded raises."""


class ProjectionStoppedError(StoreError):
    """A view cannot go past an event."""

    template = (
        "The view {0!r} stopped at position {1}: {2}, version {3} of {4!r}, cannot be read: {5} "
        "The view has all events before it and none after it, and goes on by itself once this "
        "one can be read. If a newer Tachograph wrote it, update Tachograph; else run "
        "`tacho store verify` to see whether it is damaged."
    )


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
    portion. Views that are damaged, or were made from another log, are made anew.
    `codec` should keep custom types that it does not know.

    Raises:
        ProjectionStoppedError: an event cannot be read; other views have gone on.
        StoreReadOnlyError: the views cannot be written.
    """
    try:
        return _fold(log, codec, views, progress)
    except _DamagedLogError:
        raise  # no reason to throw the views away
    except (StoreCorruptError, _OtherLogError):
        views.discard()
    return _fold(log, codec, views, progress)


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
    for attempt in (1, 2):
        try:
            catch_up(log, codec, views, progress)
        except ProjectionStoppedError as error:
            if report is None:
                raise
            report(error)
        try:
            with views.read() as reader:
                return question(reader)
        except StoreCorruptError:
            if attempt == 2:
                raise
            views.discard()
    raise AssertionError("unreachable: the second attempt returns or raises")


def rebuild(log: EventLog, codec: Codec, views: ViewStore, progress: Progress | None = None) -> int:
    """Make all views anew from the log, swap them in, and return the position they have reached.

    Until then everybody reads the old ones; killed at any instant, the old ones stay.

    Raises ProjectionStoppedError as `catch_up` does; the old views then stay.
    """
    with views.rebuilding() as fresh:
        return _fold(log, codec, fresh, progress)


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
        _fold(log, codec, fresh, progress, position)
        with views.read() as stored:
            # Others may have gone on since: the two are compared at the same position.
            _fold(log, codec, fresh, progress, _reached(stored))
            with fresh.read() as expected:
                return _compare(stored.rows(), expected.rows())


def lag(log: EventLog, views: Views) -> dict[str, int]:
    """Return how many events of the log each view lacks."""
    with views.read() as reader:
        marks = {name: reader.mark(name) for name in PROJECTIONS}
    head = log.head().position
    return {name: max(0, head - mark.position) for name, mark in marks.items()}


# How it works.


class _UnreadableError(Exception):
    """An event cannot be read, or not be folded into some views."""

    def __init__(self, record: Record, views: Sequence[str], cause: Exception) -> None:
        super().__init__(record.position)
        self.record = record
        self.views = views
        self.cause = cause

    def of(self, name: str) -> ProjectionStoppedError:
        record, cause = self.record, self.cause
        reason = str(cause) if isinstance(cause, TachographError) else f"{cause!r}."
        error = ProjectionStoppedError(
            name, record.position, record.topic, record.version, str(record.stream), reason
        )
        error.__cause__ = cause
        return error


class _OtherLogError(Exception):
    """The views were made from another log than this one."""


class _DamagedLogError(StoreCorruptError):
    """The log is damaged, not the views."""


def _fold(
    log: EventLog,
    codec: Codec,
    views: Views,
    progress: Progress | None = None,
    up_to: int | None = None,
) -> int:
    """Fold portion after portion until all views are at the head, or at `up_to`."""
    folding = _Folding(log, codec, views)
    head = log.head()
    with views.read() as reader:
        marks = [reader.mark(name) for name in PROJECTIONS]
    if any(mark.position != head.position or mark.digest != head.digest for mark in marks):
        while folding.advance(up_to):
            if progress is not None:
                progress(folding.position, max(head.position, folding.position))
    if folding.stopped:
        raise min(folding.stopped.values(), key=lambda error: error.args[1])
    return max(folding.position, head.position if up_to is None else 0)


class _Folding:
    """Folds portions; leaves out the views that have stopped."""

    def __init__(self, log: EventLog, codec: Codec, views: Views) -> None:
        self.stopped: dict[str, ProjectionStoppedError] = {}
        self.position = 0
        """Where the views that go on are."""
        self._log = log
        self._codec = codec
        self._views = views

    def advance(self, up_to: int | None) -> bool:
        """Fold the next portions; False when there are no more."""
        try:
            return self._views.update(lambda writer: self._portions(writer, up_to))
        except _UnreadableError as unreadable:
            before = unreadable.record.position - 1
        # Nothing of that transaction was kept: fold what comes before the event.
        self._views.update(lambda writer: self._portions(writer, before))
        self.stopped.update({name: unreadable.of(name) for name in unreadable.views})
        return True

    def _portions(self, writer: ViewWriter, up_to: int | None) -> bool:
        return all(self._portion(writer, up_to) for _ in range(CHUNKS))

    def _portion(self, writer: ViewWriter, up_to: int | None) -> bool:
        """Fold the next portion into the views that are furthest behind."""
        marks = {name: writer.mark(name) for name in PROJECTIONS if name not in self.stopped}
        if not marks:
            return False
        mark = min(marks.values(), key=lambda mark: mark.position)
        self.position = mark.position
        names = [name for name in marks if marks[name].position == mark.position]
        ends = [other.position for other in marks.values() if other.position > mark.position]
        records = self._read(mark, min(ends + ([] if up_to is None else [up_to]), default=None))
        if not records:
            return False
        self._apply(records, {name: PROJECTIONS[name](writer) for name in names})
        reached = Mark(records[-1].position, records[-1].digest)
        for name in names:
            writer.put_mark(name, reached)
        self.position = reached.position
        return True

    def _read(self, mark: Mark, up_to: int | None) -> list[Record]:
        """Return the records after a mark, once the one at the mark has proved to be the same."""
        if up_to is not None and up_to <= mark.position:
            return []
        seen = 1 if mark.position else 0
        try:
            records = self._log.read(after=mark.position - seen, up_to=up_to, limit=CHUNK + seen)
        except StoreCorruptError as error:
            raise _DamagedLogError(*error.args) from error
        if seen and (not records or records[0].digest != mark.digest):
            raise _OtherLogError
        return records[seen:]

    def _apply(self, records: list[Record], projections: dict[str, Any]) -> None:
        folds = [(name, projection.fold) for name, projection in projections.items()]
        unpack = self._codec.unpack
        for record in records:
            topic = record.topic
            if topic not in RUN_TOPICS and not topic.startswith(PREFIX):
                continue  # of another application
            try:
                fields = _fields(record, unpack)
            except _UNREADABLE as error:
                raise _UnreadableError(record, list(projections), error) from error
            for name, fold in folds:
                try:
                    fold(topic, fields, record.position, record.stream)
                except StoreCorruptError:
                    raise  # a view is damaged, not the event
                except _UNREADABLE as error:
                    raise _UnreadableError(record, [name], error) from error
        for projection in projections.values():
            projection.flush()


def _fields(record: Record, unpack: Callable[[bytes], Any]) -> dict[str, Any]:
    """Return an event's fields as of today's version, with its place in its run."""
    topic = record.topic
    if topic not in RUN_TOPICS:
        raise unknown(topic, record.position)
    if type(record.stream) is not str:
        raise TypeError(f"the stream of a run is a text, not {record.stream!r}")
    if record.absent:
        return {
            ERASED: True,
            "time_us": record.time_us,
            "originator_version": record.version,
        }
    fields: dict[str, Any] = unpack(record.body)
    fields["originator_version"] = record.version
    if topic in _UPCAST or "class_version" in fields:
        upcast(topic, fields)
    return fields


def _reached(reader: ViewReader) -> int:
    return min(reader.mark(name).position for name in PROJECTIONS)


def _compare(
    stored: Iterator[tuple[str, bytes, bytes]], expected: Iterator[tuple[str, bytes, bytes]]
) -> list[Difference]:
    """Walk two contents in their common order and return where they differ."""
    found: list[Difference] = []
    left, right = next(stored, None), next(expected, None)
    while (left or right) and len(found) < MOST_DIFFERENCES:
        if right is None or (left is not None and left[:2] < right[:2]):
            assert left is not None
            found.append(Difference(left[0], left[1], left[2], None))
            left = next(stored, None)
        elif left is None or right[:2] < left[:2]:
            found.append(Difference(right[0], right[1], None, right[2]))
            right = next(expected, None)
        else:
            if left[2] != right[2]:
                found.append(Difference(left[0], left[1], left[2], right[2]))
            left, right = next(stored, None), next(expected, None)
    return found
