"""A progress bar on stderr, for long work at a terminal. Never writes where nobody would see it."""

from __future__ import annotations

import sys
import time

from tachograph.cli.times import span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from tachograph.cli.output import Output

WIDTH = 24
"""Cells of the bar itself."""
_SILENT_SECONDS = 0.5
"""Work that ends before shows no bar."""
_PAUSE_SECONDS = 0.1


class Bar:
    """Show how far work is while in the `with` block; the object is a `Progress` to call."""

    __slots__ = ("_label", "_shown", "_start", "_visible")

    def __init__(self, out: Output, label: str) -> None:
        self._label = label
        self._visible = not out.quiet and sys.stderr.isatty()
        self._start = time.monotonic()
        self._shown = self._start + _SILENT_SECONDS - _PAUSE_SECONDS

    def __call__(self, done: int, total: int | None) -> None:
        """Take the work done so far and the whole, where it is known."""
        now = time.monotonic()
        if self._visible and now - self._shown >= _PAUSE_SECONDS:
            self._shown = now
            sys.stderr.write(f"\r\033[K{picture(self._label, done, total, now - self._start)}")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._visible and self._shown > self._start + _SILENT_SECONDS:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def picture(label: str, done: int, total: int | None, seconds: float) -> str:
    """Return the bar as text, with the time that is left where it can be told.

    >>> picture("verify", 6, 24, 30.0)
    'verify  ######..................   25%  6 of 24  1m30s left'
    >>> picture("verify", 6, None, 30.0)
    'verify  6'
    """
    if not total:
        return f"{label}  {done}"
    share = min(1.0, done / total)
    bar = ("#" * int(share * WIDTH)).ljust(WIDTH, ".")
    left = f"  {span(int(seconds * (1 - share) / share * 1_000_000))} left" if share else ""
    return f"{label}  {bar}  {share:4.0%}  {done} of {total}{left}"
