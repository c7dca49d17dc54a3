"""`tacho queue status --watch`: the state of the queues, again and again, in its place."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING, Any

from tachograph.cli.limits import check_time_limit
from tachograph.cli.queue_lines import block
from tachograph.cli.queue_status import look

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

    Show = Callable[[dict[str, Any]], None]


def watch(services: Services, params: Params, seconds: float, out: Output) -> None:
    """Show the queues every so many seconds until Ctrl-C, which is its ordinary end.

    At a terminal each look takes the place of the one before; elsewhere they follow each other,
    with --json one line for each.
    """
    check_time_limit("--interval", seconds)
    try:
        with _screen(out) as show:
            while True:
                show(look(services, params, out))
                sleep(seconds)
    except KeyboardInterrupt:
        return


@contextmanager
def _screen(out: Output) -> Iterator[Show]:
    if out.json:
        yield lambda document: _json_line(document, out)
    elif sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        with Live(console=Console(), auto_refresh=False) as live:

            def redraw(document: dict[str, Any]) -> None:
                text = "\n".join([*_lines(document, out), "", "Ctrl-C ends this."])
                live.update(Text.from_ansi(text), refresh=True)

            yield redraw
    else:
        yield lambda document: _block(document, out)


def _json_line(document: dict[str, Any], out: Output) -> None:
    out.document_line(document)
    out.flush()


def _block(document: dict[str, Any], out: Output) -> None:
    for line in [f"{document['timestamp']}", *_lines(document, out), ""]:
        out.line(line)
    out.flush()


def _lines(document: dict[str, Any], out: Output) -> list[str]:
    return list(block(document, styled=out.styled(), width=out.width()))
