"""`tacho store verify`: whether everything in the store is whole."""

from __future__ import annotations

from tachograph.cli.exit_codes import CORRUPT, OK
from tachograph.cli.options import Option, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Check that everything in the store is whole.",
    Option(
        "--anchor",
        "A position and its digest that were noted elsewhere.",
        metavar="POSITION:DIGEST",
    ),
    details="Reports every changed, missing, moved or added event, every payload that is missing "
    "or damaged, events that cannot be read, and damaged pages. An anchor, which `tacho store "
    "info` prints, also tells whether the end of the log was cut off. Repairs nothing.",
)


def run(params: Params, out: Output) -> int:
    """Print every problem; exit code 4 when there is one."""
    from tachograph import storekeeping
    from tachograph.cli.bars import Bar
    from tachograph.verifying import parse_anchor

    store = storekeeping.find_existing(out.store)
    anchor = None if params.anchor is None else parse_anchor(params.anchor)
    with Bar(out, "verify") as bar:
        problems = list(storekeeping.verify(store, anchor=anchor, progress=bar))
    if out.json:
        found = [
            {"kind": each.kind, "position": each.position, "detail": each.detail}
            for each in problems
        ]
        out.document({"store": store, "whole": not problems, "problems": found})
    else:
        for each in problems:
            place = f"position {each.position}: " if each.position else ""
            out.line(f"{each.kind}  {place}{each.detail}")
    if problems:
        out.note(f"{len(problems)} problems in {store}. Restore it from a backup.")
        return CORRUPT
    out.note(f"{store} is whole.")
    return OK
