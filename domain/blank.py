"""What counts as no output although something was handed over: whitespace and placeholders."""

from __future__ import annotations

PLACEHOLDERS = frozenset(
    {
        "(no text output)",
        "(no output)",
        "(no response)",
        "(no content)",
        "(empty)",
        "(empty response)",
        "[no output]",
        "[no response]",
        "[empty]",
        "<no output>",
        "<empty>",
        "no output",
        "no text output",
        "no response",
        "null",
        "none",
        "undefined",
    }
)
"""Texts, in lower case, that programs put where an answer is missing. A number or a word that can
be an answer, such as "0" or "n/a", is not among them."""
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"  # of no width, and no whitespace to Python
LONGEST = 64
"""Characters of the longest text that is looked up: a placeholder is short."""


def is_blank(value: object) -> bool:
    r"""Say whether a value is no output: nothing, an empty container, a blank or placeholder text.

    >>> is_blank(" \n"), is_blank("(No text output)"), is_blank("0"), is_blank([]), is_blank(0)
    (True, True, False, True, False)
    """
    if value is None:
        return True
    if isinstance(value, str | bytes):
        return is_placeholder(value)
    if isinstance(value, list | tuple | dict | set | frozenset):
        return not value
    return False


def says_nothing(value: object) -> bool:
    """Say whether an output that is there holds no output: a blank, or a list of nothing else.

    >>> says_nothing(["", "(no output)"]), says_nothing({"text": " "}), says_nothing([])
    (True, True, False)
    """
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return bool(value) and all(is_placeholder(each) for each in value)
    return is_placeholder(value)


def is_placeholder(value: object) -> bool:
    """Say whether a value is a text that says nothing."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace") if len(value) <= 4 * LONGEST else "text"
    if not isinstance(value, str):
        return False
    text = value.strip().strip(_INVISIBLE).strip()
    return not text or (len(text) <= LONGEST and text.lower() in PLACEHOLDERS)
