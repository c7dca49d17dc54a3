"""The events of the log for whoever looks at them: a part of them, or all as they come in.

Reads records, decodes none, keeps no transaction open between two of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from tachograph.domain.records import Record
    from tachograph.ports import EventLog

CHUNK = 1000


class Selection:
    """Which events are wanted: of one run or (None) of all, of some types or of any."""

    __slots__ = ("_log", "_run_id", "_topics")

    def __init__(self, log: EventLog, run_id: str | None, topics: Collection[str] = ()) -> None:
        self._log = log
        self._run_id = run_id
        self._topics = frozenset(topics)

    def place(self, record: Record) -> int:
        """Return what counts the events of this selection: versions of a run, else positions."""
        return record.position if self._run_id is None else record.version

    def after(self, place: int, up_to: int | None = None) -> Iterator[Record]:
        """Yield the events after a place, oldest first, as far as there are any."""
        while records := self._read(place, up_to, reverse=False):
            yield from filter(self._wants, records)
            place = self.place(records[-1])

    def newest(self, up_to: int | None = None) -> Iterator[Record]:
        """Yield the events backwards from a place, newest first."""
        while records := self._read(0, up_to, reverse=True):
            yield from filter(self._wants, records)
            up_to = self.place(records[-1]) - 1

    def end(self) -> int:
        """Return the place of the last event, whatever its type; 0 when there is none."""
        if self._run_id is None:
            return self._log.head().position
        return self._log.stream_version(self._run_id)

    def _wants(self, record: Record) -> bool:
        return not self._topics or record.topic in self._topics

    def _read(self, after: int, up_to: int | None, *, reverse: bool) -> list[Record]:
        if self._run_id is not None:
            return self._log.read_stream(
                self._run_id, after=after, up_to=up_to, limit=CHUNK, reverse=reverse
            )
        return self._log.read(
            after=after, up_to=up_to, limit=CHUNK, reverse=reverse, topics=self._topics
        )


def follow(
    log: EventLog,
    selection: Selection,
    place: int,
    *,
    pause: Callable[[], None],
    ended: Callable[[], bool],
) -> Iterator[Record]:
    """Yield the events after a place, and those that any process adds, until `ended` says so.

    `pause` waits a moment between two looks, each of which costs microseconds. What was added
    before `ended` became true is yielded.
    """
    seen = -1
    while True:
        over = ended()
        now = log.last_transaction()
        if now != seen:
            seen = now
            end = selection.end()
            for record in selection.after(place):
                place = selection.place(record)
                yield record
            place = max(place, end)
        if over:
            return
        pause()
