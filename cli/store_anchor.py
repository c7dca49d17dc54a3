"""`tacho store anchor`: state where the log ends, to be kept elsewhere."""

from __future__ import annotations

from tachograph.cli.opening import open_store
from tachograph.cli.options import Option, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "State where the log ends: keep that elsewhere, and nobody can change the log unseen.",
    Option("--sign", "Sign it with the Ed25519 key in this file.", metavar="KEYFILE",
           complete="path"),
    Option("--append", "Append it to this file, as a line of JSON.", metavar="FILE",
           complete="path"),
    details="""Prints the number of events, the digest of the last one and the time. `tacho store
verify --anchor FILE` then tells whether the log was shortened, replaced or written anew. A file
may hold any number of anchors; keep it, or a copy of it, where who can write to the store cannot.
`tacho store anchor-key` makes a key; signing needs `pip install 'tachograph[signing]'`.""",
)  # fmt: skip


def run(params: Params, out: Output) -> None:
    """Print the anchor."""
    from tachograph import anchoring, anchorkeeping
    from tachograph.cli.cards import card

    services = open_store(out, read_only=True)
    anchor = anchorkeeping.make(services, params.sign)
    if params.append is not None:
        anchorkeeping.append(anchor, params.append)
    if out.json:
        out.document(anchoring.to_fields(anchor))
        return
    signed = None if anchor.public_key is None else anchor.public_key.hex()
    rows = [
        ("Anchor", anchoring.text_of(anchor.head)),
        ("Events", str(anchor.head.position)),
        ("Time", out.when(anchor.time_us, "iso")),
        ("Signed with", signed or "no key"),
        ("Appended to", params.append),
    ]
    card(out, [row for row in rows if row[1] is not None])
