"""Fold the log into views, portion by portion. Never skips an event or holds all in memory."""

from __future__ import annotations

from tachograph.domain import event_types
from tachograph.domain.bodies import ERASED, LOST
from tachograph.domain.errors import (
    BodyLostError,
    StoreCorruptError,
    StoreError,
    TachographError,
)
from tachograph.domain.events import EVENT_TYPES, upcast
from tachograph.projections.folding import PREFIX, RUN_TOPICS, unknown
from tachograph.projections.views import FAMILIES, PROJECTIONS, Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tachograph.domain.records import Record
    from tachograph.ports import Codec, EventLog, Progress
    from tachograph.projections.folding import Projection
    from tachograph.projections.views import Views, ViewWriter

    Folds = list[tuple[str, Callable[[str, dict[str, Any], int, str], None]]]
    """Name of a view, and what applies an event to it."""

CHUNK = 2000
"""Events in memory at a time."""
CHUNKS = 5
"""Portions folded in one transaction: what is done again after a kill."""
_UPCAST = frozenset(topic for topic, kind in EVENT_TYPES.items() if kind.class_version > 1)
_newest: dict[str, int] = {}
"""The version of each event that is of no run, of those that were met."""
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


class OtherLogError(Exception):
    """The views were made from another log than this one."""


class DamagedLogError(StoreCorruptError):
    """The log is damaged, not the views."""


def fold(
    log: EventLog,
    codec: Codec,
    views: Views,
    progress: Progress | None = None,
    up_to: int | None = None,
) -> int:
    """Fold portion after portion until all views are at the head, or at `up_to`."""
    folding = _Folding(log, codec, views)
    try:
        head = log.head()
    except StoreCorruptError as error:
        raise DamagedLogError(*error.args) from error
    with views.read() as reader:
        marks = [reader.mark(name) for name in PROJECTIONS]
    if any(mark.position != head.position or mark.digest != head.digest for mark in marks):
        more, shown = True, -1
        while more:
            more = folding.advance(up_to)
            if progress is not None and folding.position != shown:
                shown = folding.position
                progress(shown, max(head.position, shown))
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
        except _UnreadableError as error:
            unreadable = error
        # Nothing of that transaction was kept: fold what comes before the event.
        before = unreadable.record.position - 1
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
        self._apply(records, names, writer)
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
            raise DamagedLogError(*error.args) from error
        if seen and (not records or records[0].digest != mark.digest):
            raise OtherLogError
        return records[seen:]

    def _apply(self, records: list[Record], names: list[str], writer: ViewWriter) -> None:
        """Fold records into the views of these names; those without an event of theirs rest."""
        made: list[Projection] = []
        met: dict[str, Folds] = {}
        unpack = self._codec.unpack
        for record in records:
            topic = record.topic
            prefix = PREFIX if topic in RUN_TOPICS else topic[: topic.find(".") + 1]
            folds = met.get(prefix)
            if folds is None:
                folds = met[prefix] = _folds(prefix, names, writer, made)
            if not folds:
                continue  # of another application, or of views that are elsewhere
            try:
                fields = _fields(record, unpack)
            except _UNREADABLE as error:
                raise _UnreadableError(record, [name for name, _ in folds], error) from error
            stream = fields.get("originator_id") or str(record.stream)
            for name, fold in folds:
                try:
                    fold(topic, fields, record.position, stream)
                except StoreCorruptError:
                    raise  # a view is damaged, not the event
                except _UNREADABLE as error:
                    raise _UnreadableError(record, [name], error) from error
        for projection in made:
            projection.flush()


def _folds(prefix: str, names: list[str], writer: ViewWriter, made: list[Projection]) -> Folds:
    """Make what folds events whose topics begin so into these views, and add it to `made`."""
    folds: Folds = []
    for name in FAMILIES.get(prefix, ()):
        if name in names:
            made.append(PROJECTIONS[name](writer))
            folds.append((name, made[-1].fold))
    return folds


def _fields(record: Record, unpack: Callable[[bytes], Any]) -> dict[str, Any]:
    """Return an event's fields as of today's version, with its place in its stream."""
    topic = record.topic
    if topic not in RUN_TOPICS:
        return _other_fields(record, unpack)
    if type(record.stream) is not str:
        raise TypeError(f"the stream of a run is a text, not {record.stream!r}")
    fields = _stored(record, unpack)
    if "class_version" in fields or (topic in _UPCAST and ERASED not in fields):
        upcast(topic, fields)
    return fields


def _other_fields(record: Record, unpack: Callable[[bytes], Any]) -> dict[str, Any]:
    """Return the fields of an event that is of no run."""
    topic = record.topic
    newest = _newest.get(topic)
    if newest is None:
        kind = event_types.find(topic)
        if kind is None:
            raise unknown(topic, record.position)
        newest = _newest[topic] = kind.class_version
    if topic.startswith(event_types.QUEUE) and type(record.stream) is str:
        raise TypeError(f"the stream of a job is a UUID, not {record.stream!r}")
    fields = _stored(record, unpack)
    if "class_version" in fields or (newest > 1 and ERASED not in fields):
        event_types.upcast(topic, fields)
    fields["originator_id"] = str(record.stream)
    return fields


def _stored(record: Record, unpack: Callable[[bytes], Any]) -> dict[str, Any]:
    """Return the fields as they were stored; what is known without the body where it is gone."""
    if record.absent:
        return _gone(record)
    try:
        body = record.body
    except BodyLostError:
        return {**_gone(record), LOST: True}  # all other runs stay readable
    fields: dict[str, Any] = unpack(body)
    fields["originator_version"] = record.version
    return fields


def _gone(record: Record) -> dict[str, Any]:
    """Return what is known of an event whose body is not there."""
    return {ERASED: True, "time_us": record.time_us, "originator_version": record.version}
