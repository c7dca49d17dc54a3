"""`tacho store backup`: copy the store to safety while jobs write to it."""

from __future__ import annotations

from tachograph.cli.exit_codes import CORRUPT, OK
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Copy the store to a new folder, while jobs write to it, and verify the copy.",
    Argument("dest", "The new folder; it must not exist, or be empty.", complete="path"),
    details="The copy is a store: use it with --store. Never overwrites anything.",
)


def run(params: Params, out: Output) -> int:
    """Make the backup; exit code 4 when it has the damage that the store has."""
    from tachograph import storekeeping
    from tachograph.cli.bars import Bar

    services = open_store(out, read_only=True)
    with Bar(out, "backup") as bar:
        made = storekeeping.backup(services, params.dest, bar)
    anchor = f"{made.head.position}:{made.head.digest.hex()}"
    if out.json:
        out.document(
            {
                "backup": params.dest,
                "events": made.head.position,
                "anchor": anchor,
                "blobs": made.blobs,
                "problems": [each.detail for each in made.problems],
            }
        )
    else:
        out.line(f"{params.dest}: {made.head.position} events, {made.blobs} payloads")
        out.line(f"anchor {anchor}")
    for each in made.problems:
        out.warn(f"{each.kind}: {each.detail}")
    if made.problems:
        out.warn("The store is damaged, and so is the copy. It was kept.")
        return CORRUPT
    return OK
