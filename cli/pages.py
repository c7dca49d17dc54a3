"""Write an explanation as a page of HTML, to a file or to stdout."""

from __future__ import annotations

from pathlib import Path

from tachograph.audit_page import page
from tachograph.cli.timeline_lines import line
from tachograph.domain.errors import PageUnwritableError
from tachograph.infra.writing import write_atomically

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tachograph.cli.output import Output

    Fields = dict[str, Any]

STDOUT = "-"


def write_page(audit: Fields, timeline: Iterable[Fields], target: str, out: Output) -> None:
    """Write the page, whole or not at all. Raises PageUnwritableError."""
    # A lone surrogate, of a file name that is no text, has no form in UTF-8.
    text = page(audit, [line(entry, out) for entry in timeline])
    plain = text.encode("utf-8", "backslashreplace").decode()
    if target == STDOUT:
        out.line(plain)
        return
    path = Path(target)
    try:
        write_atomically(path, plain)
    except OSError as error:
        raise PageUnwritableError(target, error.strerror or str(error)) from error
    out.note(f"{path.absolute()}: {len(plain.encode())} bytes")
