"""Split the text of a ledger or a log into lines. Knows nothing of what they say."""

from __future__ import annotations

BLANKS = " \t\r\n"


def text_lines(text: str) -> list[str]:
    r"""Return the lines of a text: they end at a line feed, with a carriage return before or not.

    `str.splitlines` also splits at form feeds and at U+2028, which a program may print within a
    line: one row of a ledger would be two then.

    >>> text_lines("a\r\nb\x0cc\n")
    ['a', 'b\x0cc']
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def words_of(line: str) -> list[str]:
    r"""Return the words of a line: blanks are between them, and nothing else that is invisible.

    >>> words_of(" a\tb\u2028c  d\r\n")
    ['a', 'b\u2028c', 'd']
    """
    for blank in BLANKS[1:]:
        line = line.replace(blank, " ")
    return [word for word in line.split(" ") if word]
