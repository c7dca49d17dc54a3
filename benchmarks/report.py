"""Show figures as a table for people and as JSON for programs. Names no host, user or folder."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import ABSENT, MISSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness import Figure

HEADINGS = ("figure", "ours", "compared with", "peer", "ratio", "min … max", "target", "verdict")
RIGHT = frozenset({1, 3, 4, 5, 6})
CHECKOUT = Path(__file__).parent.parent
FORMAT = 1
"""Raised whenever the meaning of the JSON changes."""


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as lines of text, with the notes below."""
    rows = [HEADINGS, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = [f"{figure.name}: {figure.note}" for figure in figures if figure.note]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def summary(figures: Sequence[Figure]) -> str:
    """Say how many targets are met, and which are not."""
    aimed = [figure for figure in figures if figure.target is not None]
    missed = [figure for figure in aimed if figure.verdict in {MISSED, ABSENT}]
    text = f"{len(aimed) - len(missed)} of {len(aimed)} targets met."
    for figure in missed:
        text += f"\n{figure.verdict}: {figure.name}, beside {figure.peer}"
        if figure.pairs:
            text += f": {figure.ratio:.2f}, target {_target(figure)}"
    return text


def document(figures: Sequence[Figure], facts: dict[str, Any], *, quick: bool) -> dict[str, Any]:
    """Return everything that was measured as plain values."""
    return {
        "format": FORMAT,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": facts,
        "figures": [_fields(figure) for figure in figures],
    }


def write(folder: Path, measured: dict[str, Any]) -> Path:
    """Write a document beside the earlier ones and return its path."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{measured['time'].replace(':', '').removesuffix('+0000')}.json"
    path.write_text(json.dumps(measured, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _row(figure: Figure) -> tuple[str, ...]:
    if not figure.pairs:
        return (figure.name, "", figure.peer, "", "", "", _target(figure), figure.verdict)
    low, high = figure.ratios[0], figure.ratios[-1]
    return (
        figure.name,
        _quantity(figure.ours, figure.unit),
        figure.peer,
        _quantity(figure.peers, figure.unit),
        f"{figure.ratio:.2f}",
        f"{low:.2f} … {high:.2f}",
        _target(figure),
        figure.verdict,
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        text.rjust(width) if column in RIGHT else text.ljust(width)
        for column, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _quantity(value: float, unit: str) -> str:
    digits = 0 if value >= 1000 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}".replace(" /s", "/s")


def _target(figure: Figure) -> str:
    return "" if figure.target is None else f"{figure.relation} {figure.target:g}"


def _fields(figure: Figure) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "theme": figure.theme,
        "figure": figure.name,
        "peer": figure.peer,
        "unit": figure.unit,
        "target": None
        if figure.target is None
        else {"relation": figure.relation, "ratio": figure.target},
        "verdict": figure.verdict,
        "note": figure.note.replace(str(CHECKOUT), "."),
        "rounds": [[pair.ours, pair.peer] for pair in figure.pairs],
    }
    if figure.pairs:
        ratios = figure.ratios
        fields["ours"] = figure.ours
        fields["peers"] = figure.peers
        fields["ratio"] = {"min": ratios[0], "median": figure.ratio, "max": ratios[-1]}
    return fields
