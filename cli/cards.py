"""Named values, one a line, for people. Decides no content."""

from __future__ import annotations

from tachograph.cli.tables import cells, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tachograph.cli.output import Output


def lines(rows: Iterable[tuple[str, str | None]], *, bold: bool = False) -> Iterator[str]:
    """Yield a line for each name and value; rows without a value are left out.

    A row without a name goes on with the one before.

    >>> list(lines([("Run", "job-a"), ("Outcome", "success"), ("Title", None), ("", "well done")]))
    ['Run      job-a', 'Outcome  success', '         well done']
    """
    kept = [(name, value) for name, value in rows if value is not None]
    width = max((cells(name) for name, _ in kept), default=0)
    for name, value in kept:
        head = name + " " * (width - cells(name))
        if bold and name:
            head = f"\033[1m{head}\033[0m"
        yield f"{head}  {shown(value)}"


def card(out: Output, rows: Iterable[tuple[str, str | None]]) -> None:
    """Print named values."""
    for line in lines(rows, bold=out.styled()):
        out.line(line)
