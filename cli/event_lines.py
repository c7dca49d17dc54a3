"""Events as lines, for people and as JSON, and the loop that follows new ones."""

from __future__ import annotations

import contextlib
import sys
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

from tachograph.cli.jsonable import jsonable
from tachograph.cli.options import UsageError
from tachograph.cli.tables import shown
from tachograph.domain import event_types
from tachograph.domain.errors import TachographError
from tachograph.tailing import Selection, follow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tachograph.bootstrap import Services
    from tachograph.cli.output import Output
    from tachograph.domain.records import Record

POLL_SECONDS = 0.1
"""Between two looks whether any process has written; a look takes microseconds."""
BRIEF = 100
"""Characters of a value in a line for people; `--json` has all of it."""
_SELDOM = 10
"""Looks between two judgements whether the owner is alive, which cost more."""


def topic(text: str) -> str:
    """Return the topic that a person means, with or without `run.` or `queue.`.

    Raises UsageError.
    """
    for found in (text, *(prefix + text for prefix in event_types.PREFIXES)):
        if event_types.find(found) is not None:
            return found
    from difflib import get_close_matches

    known = [name.removeprefix(event_types.RUN) for name in event_types.all_types()]
    near = get_close_matches(text.removeprefix(event_types.RUN), known, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(known)}."
    raise UsageError(f"There is no event type {text!r}. {hint}")


def show(
    services: Services,
    out: Output,
    run_id: str | None,
    topics: list[str],
    *,
    limit: int | None,
    reverse: bool,
    follow: bool,
    until_finished: bool,
) -> None:
    """Print the newest `limit` events (all when None), and go on when asked to `follow`."""
    selection = Selection(services.log, run_id, topics)
    printer = _Printer(services, out, run_id)
    end = selection.end()
    printer.print(_chosen(selection, end, limit, reverse=reverse))
    if follow:
        ended = _Ended(services, run_id) if run_id is not None and until_finished else _never
        with contextlib.suppress(KeyboardInterrupt):
            printer.print(_new(services, selection, end, ended))


def line(services: Services, record: Record, out: Output, *, of_one_run: bool) -> str:
    """Return an event as one line that fits the terminal, with its run unless that is clear."""
    place = record.version if of_one_run else record.position
    what = record.topic.removeprefix(event_types.RUN)
    run = "" if of_one_run else f"{record.stream}  "
    text = details(fields_of(services, record))
    when = out.when(record.time_us, "iso")
    width = out.width()
    whole = shown(f"{place:>6}  {when}  {run}{what:<20}  {text}".rstrip())
    return whole if width is None else cut_end(whole, width)


def fields_of(services: Services, record: Record) -> dict[str, Any] | None:
    """Return an event's fields as of today's version; None when they cannot be read."""
    try:
        if record.absent or record.topic.startswith(event_types.RUN):
            return dict(services.repository.fields(record))
        return event_types.upcast(record.topic, dict(services.packing.unpack(record.body)))
    except (TachographError, KeyError, TypeError, ValueError):
        return None


def details(fields: dict[str, Any] | None) -> str:
    """Return an event's own fields in one line, without what every event has.

    >>> details({"phase": "parse", "index": 3, "output": None, "by": []})
    'phase=parse index=3'
    """
    if fields is None:
        return "(cannot be read)"
    common = ("originator_id", "originator_version", "time_us", "by")
    own = {name: value for name, value in fields.items() if name not in common}
    return " ".join(f"{name}={brief(value)}" for name, value in own.items() if value is not None)


def brief(value: Any) -> str:
    """Return a value as short text.

    >>> brief("a b"), brief("ab"), brief({"a": [1]}), brief(b"1")
    ('"a b"', 'ab', '{"a": [1]}', '{"$bytes": "MQ=="}')
    """
    import json

    if isinstance(value, str) and value and value.isprintable() and " " not in value:
        return value
    return cut_end(json.dumps(jsonable(value), ensure_ascii=False), BRIEF)


class _Printer:
    """Prints records one by one, so that a follower sees each at once."""

    def __init__(self, services: Services, out: Output, run_id: str | None) -> None:
        self._services = services
        self._out = out
        self._run_id = run_id

    def print(self, records: Iterable[Record]) -> None:
        """Print records as they come."""
        for record in records:
            if self._out.json:
                from tachograph import storekeeping

                self._out.document_line(storekeeping.event_line(self._services, record))
            else:
                of_one_run = self._run_id is not None
                text = line(self._services, record, self._out, of_one_run=of_one_run)
                self._out.line(text)
            sys.stdout.flush()


def cut_end(text: str, width: int) -> str:
    """Return a text of at most `width` characters, marked where it was cut.

    >>> cut_end("abcdef", 4), cut_end("abc", 4)
    ('abc…', 'abc')
    """
    return text if len(text) <= width else text[: width - 1] + "…"


class _Ended:
    """Whether a run has ended, or its owner has: nothing more will come then."""

    def __init__(self, services: Services, run_id: str) -> None:
        self._services = services
        self._run_id = run_id
        self._transaction = -1
        self._looks = 0

    def __call__(self) -> bool:
        """Say so; looks closely only when something was written, or now and then."""
        now = self._services.log.last_transaction()
        self._looks += 1
        if now == self._transaction and self._looks % _SELDOM:
            return False
        self._transaction = now
        run = self._services.repository.get(self._run_id)
        return run is None or not run.attempt_open or self._services.liveness(run).state == "gone"


def _never() -> bool:
    return False


def _chosen(
    selection: Selection, end: int, limit: int | None, *, reverse: bool
) -> Iterator[Record]:
    if reverse:
        return islice(selection.newest(end), limit)
    if limit is None:
        return selection.after(0, end)
    return reversed(list(islice(selection.newest(end), limit)))


def _new(services: Services, selection: Selection, place: int, ended: Any) -> Iterator[Record]:
    def pause() -> None:
        time.sleep(POLL_SECONDS)

    return follow(services.log, selection, place, pause=pause, ended=ended)
