"""What a command prints: data on stdout, all else on stderr. Decides no content.

For people by default; `--json` prints stable shapes (see `shapes`), with camelCase names.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any, Protocol

    class Closable(Protocol):
        """Something that has to be closed when the command ends."""

        def close(self) -> None:
            """Release what it holds."""


class Output:
    """The streams of one command, and how it was asked to write to them.

    `store` is the text of `--store`, None when it was not given. `json` and `quiet` are the
    flags; `time` is `relative`, `iso` or `raw`, None when the command may choose.
    """

    __slots__ = ("_closables", "json", "quiet", "store", "time")

    def __init__(
        self,
        *,
        store: str | None = None,
        json: bool = False,
        quiet: bool = False,
        time: str | None = None,
    ) -> None:
        self.store = store
        self.json = json
        self.quiet = quiet
        self.time = time
        self._closables: list[Closable] = []

    # Data.

    def line(self, text: str = "") -> None:
        """Print a line of data."""
        sys.stdout.write(text + "\n")

    def raw(self, data: bytes) -> None:
        """Print bytes as they are."""
        sys.stdout.flush()
        sys.stdout.buffer.write(data)

    def flush(self) -> None:
        """Let everything printed so far be seen, before another process prints."""
        sys.stdout.flush()

    def document(self, value: Any) -> None:
        """Print a value as JSON."""
        self.line(to_json(value, indent=2))

    def document_line(self, value: Any) -> None:
        """Print a value as one line of JSON, for streams of them."""
        self.line(to_json(value))

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        whole: Collection[str] = (),
    ) -> None:
        """Print a table for people; it fits the terminal, but for columns that stay `whole`."""
        from tachograph.cli.tables import table

        for line in table(columns, rows, width=self.width(), bold=self.styled(), whole=whole):
            self.line(line)

    def when(self, time_us: int | None, style: str = "relative") -> str:
        """Return a time as `--time` asks for, by `style` when it does not; "-" for None."""
        from tachograph.cli.times import when

        return when(time_us, self.time or style)

    def styled(self) -> bool:
        """Say whether stdout is a terminal that may be given colours (see no-color.org)."""
        return (
            not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
            and sys.stdout.isatty()
        )

    def width(self) -> int | None:
        """Return the columns of the terminal; None when stdout is none and COLUMNS unset."""
        columns = os.environ.get("COLUMNS", "")
        if columns.isdecimal() and int(columns):
            return int(columns)
        try:
            return os.get_terminal_size(1).columns or None
        except OSError:
            return None

    # All else.

    def note(self, text: str) -> None:
        """Tell a person something that is no data; `--quiet` leaves it out."""
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """Tell a person something that must not be missed."""
        sys.stdout.flush()
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    # Things that are open.

    def keep(self, closable: Closable) -> None:
        """Close something when the command ends, however it ends."""
        self._closables.append(closable)

    def close(self) -> None:
        """Close what was kept, the last first."""
        while self._closables:
            self._closables.pop().close()


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON; what JSON has no form for becomes text or an object."""
    import json

    from tachograph.cli.jsonable import jsonable

    # With backslashreplace on a UTF-8 stream a lone surrogate comes out as its JSON escape.
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return json.dumps(jsonable(value), ensure_ascii=plain, indent=indent, allow_nan=False)


def use_plain_streams() -> None:
    """Let stdout and stderr print any text, undecodable file names included."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
