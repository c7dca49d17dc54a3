"""Plain tables for people: aligned, and cut to the terminal. Knows no terminal and no colour names.

`run list` must start as fast as a script, so this stands where rich would.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

GAP = "  "
NARROWEST = 8
"""A column is not cut below this many cells."""


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    width: int | None = None,
    bold: bool = False,
    whole: Collection[str] = (),
) -> Iterator[str]:
    r"""Yield the lines of a table, the head first.

    A table wider than `width` has its widest columns cut in the middle, where ids differ least,
    but for those in `whole`.
    Control characters are shown as escapes, so that no stored text can move the cursor.

    >>> list(table(("RUN", "STATE"), [("job-a", "running"), ("b", "failed\n")]))
    ['RUN    STATE', 'job-a  running', 'b      failed\\n']
    """
    body = [[shown(cell) for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(columns, *body, strict=True)]
    if width is not None:
        _narrow(widths, width, [name not in whole for name in columns])
    head = _line(columns, widths)
    yield f"\033[1m{head}\033[0m" if bold else head
    for row in body:
        yield _line(row, widths)


def shown(text: str) -> str:
    r"""Return a text with control characters as escapes.

    >>> shown("a\tb\x1b[2J"), shown("ä ok")
    ('a\\tb\\x1b[2J', 'ä ok')
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes.

    >>> cells("abc"), cells("日本"), cells("e\u0301")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    wide = sum(east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(bool(combining(letter)) for letter in text)


def cut(text: str, width: int) -> str:
    """Return a text of at most `width` cells, with `…` in place of what is left out.

    >>> cut("job-code-report-0dc845e1", 12), cut("short", 12)
    ('job-co…845e1', 'short')
    """
    if cells(text) <= width:
        return text
    tail_width = max(0, (width - 1) // 2)
    head, tail = "", ""
    for letter in reversed(text):
        if cells(letter + tail) > tail_width:
            break
        tail = letter + tail
    for letter in text:
        if cells(head + letter) > width - 1 - cells(tail):
            break
        head += letter
    return f"{head}…{tail}"


def _narrow(widths: list[int], width: int, may_be_cut: Sequence[bool]) -> None:
    """Take from the widest column that may be cut until the table fits, in place."""
    spare = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while spare > 0:
        there = [cells for cells, cut_it in zip(widths, may_be_cut, strict=True) if cut_it]
        widest = max(there, default=0)
        if widest <= NARROWEST:
            return
        place = next(
            place for place, cells in enumerate(widths) if cells == widest and may_be_cut[place]
        )
        widths[place] -= 1
        spare -= 1


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    fitted = [cut(cell, width) for cell, width in zip(row, widths, strict=True)]
    padded = [
        cell + " " * (width - cells(cell)) for cell, width in zip(fitted, widths, strict=True)
    ]
    return GAP.join(padded).rstrip()
