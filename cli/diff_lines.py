"""A comparison of two runs, for people and as JSON. Decides no content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph.cli.event_lines import brief
from tachograph.cli.tables import shown
from tachograph.differing import STEP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.cli.output import Output
    from tachograph.differing import Comparison, Divergence, Piece, PieceDifference
    from tachograph.domain.changes import Change
    from tachograph.histories import Happening, History

    Timings = dict[str, float | None]

MOST_ROWS = 50
"""Differences that people are shown; the JSON has more."""
ABSENT = "-"
"""Stands for what one of the runs does not have."""


def show(found: Comparison, out: Output) -> None:
    """Print a comparison as tables and lines."""
    left, right = found.left, found.right
    if found.same:
        out.line(f"{left.run_id} and {right.run_id} did the same and were judged the same.")
    elif found.differences:
        rows = [_row(change) for change in found.differences[:MOST_ROWS]]
        out.table(("WHAT", left.run_id, right.run_id), rows)
        more = len(found.differences) - len(rows) + found.omitted
        if more:
            out.line(f"… and {more} more; --json names up to {len(found.differences)}.")
    for line in _piece_lines(found):
        out.line(shown(line))
    for line in _divergence_lines(found.divergence, left, right):
        out.line(shown(line))
    for text in found.unknown:
        out.line(shown(f"Not compared: {text}."))
    out.line()
    rows = [
        (name or "(whole run)", _seconds(one, name), _seconds(other, name))
        for name, one, other in _times(found)
    ]
    out.table(("TIME", left.run_id, right.run_id), rows)


def _row(change: Change) -> tuple[str, str, str]:
    return change.path, _said(change.old), _said(change.new)


def _said(value: Any) -> str:
    return ABSENT if value is None else brief(value)


def _piece_lines(found: Comparison) -> Iterator[str]:
    for (kind, name), count in found.pieces.items():
        of = f" of phase {name!r}" if name else ""
        plural = "es" if kind != STEP else "s"
        what = kind if count == 1 else kind + plural
        yield f"{count} {what}{of} came to something else."
    first = found.first_piece
    if first is not None:
        where = f"step {first.name!r}" if first.kind == STEP else f"batch {first.index}"
        yield f"First of them: {where}, {_piece(first.left)} against {_piece(first.right)}."


def _piece(piece: Piece) -> str:
    inputs, parsed = piece.counts
    counts = "" if inputs is None and parsed is None else f" ({parsed} of {inputs} items)"
    return f"{brief(piece.shown)}{counts} at version {piece.place[0]}"


def _divergence_lines(
    divergence: Divergence | None, left: History, right: History
) -> Iterator[str]:
    if divergence is None:
        return
    yield "Their histories part here:"
    pairs = ((left, divergence.left), (right, divergence.right))
    for history, happening in pairs:
        yield f"  {history.run_id}: {_happening(happening, divergence)}"
    for change in divergence.differences:
        _, old, new = _row(change)
        yield f"    {change.path}: {old} against {new}"


def _happening(happening: Happening | None, divergence: Divergence) -> str:
    if happening is None:
        return "has no further event"
    what = happening.topic.removeprefix("run.")
    place = f"version {happening.version}, position {happening.position}: {what}"
    if divergence.differences or not happening.fields:
        return place
    own = " ".join(
        f"{name}={brief(value)}" for name, value in happening.fields.items() if value is not None
    )
    return f"{place} {own}"


def _times(found: Comparison) -> Iterator[tuple[str, Timings, Timings]]:
    """Yield each phase that has a time, the whole run first under the empty name."""
    one, other = found.left.timings(), found.right.timings()
    for name in dict.fromkeys((*one, *other)):
        yield name, one, other


def _seconds(side: Timings, name: str) -> str:
    if name not in side:
        return ABSENT
    seconds = side[name]
    return "not ended" if seconds is None else f"{seconds:.3f} s"


# JSON.


def shape(found: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON."""
    return {
        "left": _side(found.left),
        "right": _side(found.right),
        "same": found.same,
        "differences": [_change(change) for change in found.differences],
        "differencesOmitted": found.omitted,
        "differing": [
            {"kind": kind, "phase": name or None, "count": count}
            for (kind, name), count in found.pieces.items()
        ],
        "firstDiffering": _first(found.first_piece),
        "firstDivergence": _diverging(found.divergence),
        "timings": [
            {"phase": name or None, "left": one.get(name), "right": other.get(name)}
            for name, one, other in _times(found)
        ],
        "notCompared": found.unknown,
    }


def _side(history: History) -> dict[str, Any]:
    return {
        "jobRunId": history.run_id,
        "events": history.events,
        "eventsUnread": history.unread,
        "semanticOutcome": history.run.outcome,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "path": change.path,
        "kind": change.kind,
        "left": change.old,
        "right": change.new,
    }


def _first(first: PieceDifference | None) -> dict[str, Any] | None:
    if first is None:
        return None
    sides = {"left": _piece_shape(first.left), "right": _piece_shape(first.right)}
    return {"kind": first.kind, "name": first.name, "index": first.index, **sides}


def _piece_shape(piece: Piece) -> dict[str, Any]:
    return {
        "version": piece.place[0],
        "position": piece.place[1],
        "inputs": piece.counts[0],
        "parsed": piece.counts[1],
        "digest": piece.digest,
        "output": piece.shown,
    }


def _diverging(divergence: Divergence | None) -> dict[str, Any] | None:
    if divergence is None:
        return None
    return {
        "left": _happening_shape(divergence.left),
        "right": _happening_shape(divergence.right),
        "differences": [_change(change) for change in divergence.differences],
    }


def _happening_shape(happening: Happening | None) -> dict[str, Any] | None:
    if happening is None:
        return None
    return {
        "version": happening.version,
        "position": happening.position,
        "type": happening.topic,
        "data": happening.fields,
    }
