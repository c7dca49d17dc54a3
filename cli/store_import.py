"""`tacho store import`: bring a store to the end of an export file."""

from __future__ import annotations

from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Restore an export into an empty store, or into one that has its beginning already.",
    Argument("file", "What `tacho store export` wrote.", complete="path"),
    details="The whole file is checked before the first write, and the events are written in one "
    "piece: all of them or none. Run it again, or with a later export of the same log, and only "
    "what is new is written. The digest of the last event is the same afterwards.",
)


def run(params: Params, out: Output) -> None:
    """Import the file, into a new store where there is none."""
    from tachograph import storekeeping
    from tachograph.cli.bars import Bar

    services = open_store(out, create=True)
    with Bar(out, "import") as bar:
        done = storekeeping.import_file(services, params.file, bar)
    anchor = f"{done.head.position}:{done.head.digest.hex()}"
    if out.json:
        out.document(
            {
                "store": services.folder,
                "imported": done.events,
                "known": done.known,
                "blobs": done.blobs,
                "missingBlobs": done.missing,
                "lostBodies": done.lost,
                "anchor": anchor,
            }
        )
    else:
        out.line(f"{done.events} events imported, {done.known} were there already")
        out.line(f"anchor {anchor}")
    if done.missing:
        out.warn(f"{done.missing} payloads were missing when this was exported.")
    if done.lost:
        out.warn(
            f"{done.lost} bodies of events were lost with their archives when this was exported. "
            "Put the files into the archive folder of this store if they are found."
        )
