"""`tacho store verify`: whether everything in the store is whole."""

from __future__ import annotations

from tachograph.cli.exit_codes import CORRUPT, OK
from tachograph.cli.options import Option, Spec, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.anchoring import Anchor
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.records import Head, Problem

SPEC = Spec(
    "Check that everything in the store is whole.",
    Option(
        "--anchor",
        "A position and its digest that were noted elsewhere, or a file of anchors.",
        metavar="POSITION:DIGEST|FILE",
        complete="path",
    ),
    Option(
        "--public-key",
        "The anchors must be signed with this key.",
        metavar="FILE",
        complete="path",
    ),
    details="Reports every changed, missing, moved or added event, every payload that is missing "
    "or damaged, bodies that an archive has lost or that were erased without record, what is there "
    "of runs that were erased, events that cannot be read, and damaged pages. "
    "An anchor, which `tacho store anchor` and `tacho store info` print, also tells whether the "
    "end of the log was cut off, or all of it written anew; of a file with many, each is compared "
    "at its own position. A signature is checked wherever there is one. Repairs nothing.",
)


ADVICE = {
    "signature": "Find out who signed the anchors so: they say nothing of the log.",
    "anchor-file": "Look at the file of anchors: that says nothing of the log.",
    "archive": "Put the archives back from a backup.",
    "surplus": "Destroy what was put back: `tacho store erase RUN --reason … --apply`.",
}
"""What to do about problems that no backup of the log mends."""


def run(params: Params, out: Output) -> int:
    """Print every problem; exit code 4 when there is one."""
    from tachograph import storekeeping
    from tachograph.anchorkeeping import signature_problems
    from tachograph.cli.bars import Bar

    store = storekeeping.find_existing(out.store)
    head, anchors, problems = _anchors(params)
    problems += signature_problems(anchors, params.public_key)
    with Bar(out, "verify") as bar:
        problems += storekeeping.verify(store, anchor=head, anchors=anchors, progress=bar)
    if out.json:
        found = [
            {"kind": each.kind, "position": each.position, "detail": each.detail}
            for each in problems
        ]
        compared = len(anchors) + (head is not None)
        out.document(
            {"store": store, "whole": not problems, "anchors": compared, "problems": found}
        )
    else:
        for each in problems:
            place = f"position {each.position}: " if each.position else ""
            out.line(f"{each.kind}  {place}{each.detail}")
    if anchors:
        newest = max(each.head.position for each in anchors)
        out.note(f"{len(anchors)} anchors compared, the newest at position {newest}.")
    if problems:
        out.note(f"{len(problems)} problems in {store}. {_advice(problems)}")
        return CORRUPT
    out.note(f"{store} is whole.")
    return OK


def _advice(problems: list[Problem]) -> str:
    kinds = {each.kind for each in problems}
    said = [text for kind, text in ADVICE.items() if kind in kinds]
    return " ".join(said if kinds <= ADVICE.keys() else [*said, "Restore it from a backup."])


def _anchors(params: Params) -> tuple[Head | None, list[Anchor], list[Problem]]:
    """Return the head that was given as text, or the anchors of a file and what is wrong there.

    Raises InvalidAnchorError for what is neither, and UsageError for a file that cannot be read.
    """
    from pathlib import Path

    from tachograph import anchorkeeping
    from tachograph.verifying import parse_anchor

    if params.anchor is None:
        if params.public_key is not None:
            raise UsageError("--public-key goes with --anchor FILE.")
        return None, [], []
    if not params.anchor or not Path(params.anchor).exists():
        head = parse_anchor(params.anchor)
        if params.public_key is not None:
            raise UsageError("--public-key goes with a file of anchors: a text has no signature.")
        return head, [], []
    try:
        return None, *anchorkeeping.read(params.anchor)
    except OSError as error:
        raise UsageError(f"--anchor {params.anchor}: {error.strerror}.") from error
