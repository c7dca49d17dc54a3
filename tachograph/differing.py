"""Compare two runs, and find where their histories part. Reads the log alone, in bounded memory.

Both streams are read once, side by side. Batches and steps are compared by digest, whatever order
they came in, as long as the orders are not too different.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from tachograph.domain.changes import Change, changes, same
from tachograph.domain.errors import RunNotFoundError
from tachograph.domain.records import _Fields
from tachograph.histories import History, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tachograph.histories import Happening
    from tachograph.payloads import Payloads
    from tachograph.ports import Progress
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]
    Key = tuple[str, str, Any]
    Pair = tuple[Happening | None, Happening | None]

MOST_DIFFERENCES = 1_000
"""Places named; further ones are counted."""
MOST_WAITING = 20_000
"""Batches and steps that only one side has finished so far, and whose digests are kept."""
BATCH, STEP = "batch", "step"
_FINISHED = {
    "run.batch-completed": (BATCH, "phase", "index", "output"),
    "run.step-completed": (STEP, "key", None, "result"),
}


class Piece:
    """A finished batch or step of one run."""

    __slots__ = ("counts", "digest", "place", "shown")

    def __init__(self, place: tuple[int, int], fields: Fields, values: Values, name: str) -> None:
        self.place = place
        """Version and position of its event."""
        self.digest = values.digest(fields[name])
        self.counts = (fields.get("inputs"), fields.get("parsed"))
        self.shown = values.shown(fields[name])

    def is_like(self, other: Piece) -> bool:
        """Say whether the two came to the same."""
        return (self.digest, self.counts) == (other.digest, other.counts)


class PieceDifference(_Fields):
    """The first batch or step, by its place in the left run, of which the output differs."""

    __slots__ = ("index", "kind", "left", "name", "right")

    def __init__(self, key: Key, left: Piece, right: Piece) -> None:
        self.kind, self.name, self.index = key
        self.left = left
        self.right = right


class Divergence(_Fields):
    """Where two histories part: the event on each side, None where a history has ended.

    `differences` are the fields that differ when both are of one type.
    """

    __slots__ = ("differences", "left", "right")

    def __init__(self, left: Happening | None, right: Happening | None, values: Values) -> None:
        self.left = left
        self.right = right
        self.differences: list[Change] = []
        if left is not None and right is not None and left.topic == right.topic:
            found = changes(left.fields or {}, right.fields or {})
            self.differences = [_shown(change, values) for change in found]
        for each in (left, right):
            if each is not None and each.fields is not None:
                each.fields = {name: values.shown(value) for name, value in each.fields.items()}


class Comparison:
    """How two runs differ.

    `left` and `right` are their histories, read to the end. `differences` are places of what they
    came to, values as they are to be shown; `pieces` counts the batches of each phase, and the
    steps, that came to something else; `unknown` says what could not be compared.
    """

    def __init__(self, left: History, right: History) -> None:
        self.left = left
        self.right = right
        self.differences: list[Change] = []
        self.omitted = 0
        self.pieces: dict[tuple[str, str], int] = {}
        self.first_piece: PieceDifference | None = None
        self.divergence: Divergence | None = None
        self.unknown: list[str] = []

    @property
    def same(self) -> bool | None:
        """Whether nothing differs; None when that cannot be told."""
        if self.differences or self.omitted or self.pieces or self.divergence is not None:
            return False
        return None if self.unknown else True


def compare(
    repository: RunRepository,
    payloads: Payloads,
    left_id: str,
    right_id: str,
    progress: Progress | None = None,
) -> Comparison:
    """Return how two runs differ. Raises RunNotFoundError.

    Runs may be unfinished, and their bodies in an archive; of erased ones only the types and the
    order of their events are compared.
    """
    for run_id in (left_id, right_id):
        if not repository.log.stream_version(run_id):
            raise RunNotFoundError(run_id, "")
    values = Values(repository, payloads)
    ids = (left_id, right_id)
    step = _steps(progress, sum(map(repository.log.stream_version, ids)))
    histories = [History(repository, values, each, step) for each in ids]
    found = Comparison(*histories)
    pieces = _Pieces(values)
    divergence: Pair | None = None
    for left, right in _side_by_side(found):
        if divergence is None and not _alike(left, right):
            divergence = left, right
        pieces.take(left, right)
    if divergence is not None:
        found.divergence = Divergence(*divergence, values)
    pieces.conclude(found)
    _compare_portraits(found, values)
    for each in histories:
        if each.why is not None:
            found.unknown.append(
                f"{each.run_id}: {each.why}; of {each.unread} events only types and order count"
            )
    return found


def _steps(progress: Progress | None, total: int) -> Callable[[], None]:
    """Return what is called for each event that was read."""
    done = count(1)
    return (lambda: None) if progress is None else (lambda: progress(next(done), total))


def _side_by_side(found: Comparison) -> Iterator[Pair]:
    left, right = found.left.happenings(), found.right.happenings()
    while True:
        pair = next(left, None), next(right, None)
        if pair == (None, None):
            return
        yield pair


def _alike(left: Happening | None, right: Happening | None) -> bool:
    if left is None or right is None or left.topic != right.topic:
        return False
    return left.fields is None or right.fields is None or same(left.fields, right.fields)


def _compare_portraits(found: Comparison, values: Values) -> None:
    left, right = found.left.portrait(), found.right.portrait()
    if left is None or right is None:
        outcomes = [{"outcome": side.run.outcome} for side in (found.left, found.right)]
        found.differences = list(changes(outcomes[0], outcomes[1], path="outcome"))
        return
    for change in changes(left, right):
        if len(found.differences) == MOST_DIFFERENCES:
            found.omitted += 1
            continue
        found.differences.append(_shown(change, values))


def _shown(change: Change, values: Values) -> Change:
    """Return a change with large values replaced by their digests."""
    return Change(change.path, change.kind, values.shown(change.old), values.shown(change.new))


class _Pieces:
    """Finds the batches and steps whose outputs differ, in whatever order they were finished."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._waiting: tuple[dict[Key, Piece], dict[Key, Piece]] = ({}, {})
        self._different: dict[tuple[str, str], int] = {}
        self._first: PieceDifference | None = None
        self._overflown = False

    def take(self, left: Happening | None, right: Happening | None) -> None:
        """Take one event of each side."""
        for side, happening in enumerate((left, right)):
            if happening is not None and happening.fields is not None:
                names = _FINISHED.get(happening.topic)
                if names is not None and happening.fields[names[1]] is not None:
                    self._finished(side, happening, *names)

    def _finished(
        self, side: int, happening: Happening, kind: str, name: str, index: str | None, value: str
    ) -> None:
        fields = happening.fields or {}
        key = (kind, fields[name], None if index is None else fields[index])
        piece = Piece((happening.version, happening.position), fields, self._values, value)
        other = self._waiting[1 - side].pop(key, None)
        if other is not None:
            self._match(key, *((piece, other) if side == 0 else (other, piece)))
        elif sum(map(len, self._waiting)) < MOST_WAITING:
            self._waiting[side][key] = piece
        else:
            self._overflown = True

    def _match(self, key: Key, left: Piece, right: Piece) -> None:
        if left.is_like(right):
            return
        group = (key[0], key[1] if key[0] == BATCH else "")
        self._different[group] = self._different.get(group, 0) + 1
        if self._first is None or left.place < self._first.left.place:
            self._first = PieceDifference(key, left, right)

    def conclude(self, found: Comparison) -> None:
        """Put what was found into the comparison."""
        found.pieces, found.first_piece = self._different, self._first
        if self._overflown:
            found.unknown.append(
                f"batches and steps: the two runs finished them in too different an order, so that "
                f"beyond {MOST_WAITING} only some outputs were compared"
            )
