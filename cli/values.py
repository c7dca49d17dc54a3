"""Values that are written on the command line: texts, files, JSON and pairs. Records nothing."""

from __future__ import annotations

import os
import sys

from tachograph.cli.options import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def read_text(text: str) -> str:
    """Return a text, or the content of the file that `@file` names; `@-` is standard input.

    `@@` at its start stands for one `@`.

    >>> read_text("plain"), read_text("@@ada")
    ('plain', '@ada')
    """
    if not text.startswith("@"):
        return text
    if text.startswith("@@"):
        return text[1:]
    if text == "@-":
        return sys.stdin.read()
    path = os.path.expanduser(text[1:])  # noqa: PTH111  # pathlib costs 10 ms
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            return file.read()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def read_json(text: str, what: str) -> Any:
    """Return the value of a JSON text or file. Raises UsageError, naming `what`."""
    import json

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON number")

    written = read_text(text)
    try:
        return json.loads(written, parse_constant=refuse)
    except ValueError as error:
        raise UsageError(f"{what} is not JSON: {error}. Given: {written[:60]!r}.") from error


def pairs(texts: Sequence[str], what: str) -> dict[str, Any]:
    """Return `key=text` and `key:=json` as a dict; a later key replaces an earlier one.

    >>> pairs(["root=/data", "days:=3", "odd=a=b"], "--input")
    {'root': '/data', 'days': 3, 'odd': 'a=b'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        typed = key.endswith(":")
        key = key.removesuffix(":")
        if not equals or not key:
            raise UsageError(f"{what} is {text!r}: write key=text, or key:=json for other values.")
        found[key] = read_json(value, f"{what} {key}") if typed else value
    return found


def counters(texts: Sequence[str]) -> dict[str, int]:
    """Return `key=number` as a dict of whole numbers. Raises UsageError for anything else.

    >>> counters(["kept=12", "dropped=0"])
    {'kept': 12, 'dropped': 0}
    """
    found: dict[str, int] = {}
    for text in texts:
        key, _, value = text.partition("=")
        if not key or not value.removeprefix("-").isdecimal():
            raise UsageError(f"--counter is {text!r}: write key=number.")
        found[key] = int(value)
    return found
