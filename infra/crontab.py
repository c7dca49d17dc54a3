"""The watchdog's lines in a crontab, as bytes: every other byte stays. Runs no program."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tachograph.domain.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

MINUTE, HOUR, DAY = 60, 3_600, 86_400
_MINUTES = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)
_HOURS = (1, 2, 3, 4, 6, 8, 12)
INTERVALS = (*(MINUTE * n for n in _MINUTES), *(HOUR * n for n in _HOURS), DAY)
"""Seconds between calls that cron keeps to, at every hour and midnight too."""


def schedule(interval_seconds: int) -> str:
    """Return the five fields of an interval. Raises InvalidValueError, naming those nearest.

    >>> schedule(60), schedule(900), schedule(7200), schedule(86400)
    ('* * * * *', '*/15 * * * *', '0 */2 * * *', '0 0 * * *')
    """
    if interval_seconds not in INTERVALS:
        lower = [f"{each} s" for each in INTERVALS if each < interval_seconds][-1:]
        upper = [f"{each} s" for each in INTERVALS if each > interval_seconds][:1]
        nearest = " and ".join(lower + upper)
        raise InvalidValueError(
            "--interval",
            f"{interval_seconds} s",
            f"cron knows no such interval; near are {nearest}",
        )
    if interval_seconds == DAY:
        return "0 0 * * *"
    if interval_seconds >= HOUR:
        return f"0 {_every(interval_seconds // HOUR)} * * *"
    return f"{_every(interval_seconds // MINUTE)} * * * *"


def _every(number: int) -> str:
    return "*" if number == 1 else f"*/{number}"


def lines(
    mark: str, store: str, interval_seconds: int, command: Sequence[str], path: str | None
) -> list[str]:
    """Return the marker comment and the line. Raises InvalidValueError for what cron cannot do."""
    _check_words(store)
    made_by = f"made by `tacho watchdog install` for {store}"
    return lines_at(mark, made_by, schedule(interval_seconds), command, path)


def lines_at(
    mark: str,
    made_by: str,
    fields: str,
    command: Sequence[str],
    path: str | None,
    folder: str | None = None,
) -> list[str]:
    """Return the marker comment and the line for five fields; `folder` is gone into first.

    Raises InvalidValueError for words that a crontab cannot hold.
    """
    _check_words(*command, path or "", folder or "", made_by)
    words = shlex.join(command)
    if path is not None:
        words = f"PATH={shlex.quote(path)} {words}"
    if folder is not None:
        words = f"cd {shlex.quote(folder)} && {words}"
    # cron takes a bare % for a line break and everything behind it for stdin.
    words = words.replace("%", "\\%")
    return [f"# {mark}: {made_by}", f"{fields} {words} # {mark}"]


def _check_words(*words: str) -> None:
    for word in words:
        if "\n" in word or "\0" in word:
            raise InvalidValueError("the command", word, "a line of a crontab cannot hold it")


def with_lines(crontab: bytes, mark: str, new: Sequence[str]) -> bytes:
    """Return a crontab with our lines replaced in place, or appended; no lines remove them."""
    text = b"".join(f"{line}\n".encode("utf-8", "surrogateescape") for line in new)
    before, found = bytearray(), False
    for line in crontab.splitlines(keepends=True):
        if not _holds(line, mark):
            before += line
        elif not found:
            found = True
            before += text
    if not found and text:
        if before and not before.endswith(b"\n"):  # cron would not read its last line either
            before += b"\n"
        before += text
    return bytes(before)


def holds(crontab: bytes, mark: str) -> bool:
    """Say whether the crontab has lines of ours."""
    return any(_holds(line, mark) for line in crontab.splitlines())


def marks(crontab: bytes, prefix: str) -> list[str]:
    """Return the marks in a crontab that begin so."""
    beginning = prefix.encode("ascii")
    found = (
        word.decode("ascii", "replace")
        for line in crontab.splitlines()
        for word in line.replace(b":", b" ").split()
        if word.startswith(beginning)
    )
    return list(dict.fromkeys(found))


def _holds(line: bytes, mark: str) -> bool:
    words = line.replace(b":", b" ").split()
    return mark.encode("ascii") in words
