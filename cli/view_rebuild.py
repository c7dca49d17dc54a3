"""`tacho view rebuild`: make all views and snapshots anew from the log."""

from __future__ import annotations

from tachograph.cli.opening import open_store
from tachograph.cli.options import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Make all views anew from the log, and every snapshot that is not what the log says.",
    details="Until it is done, everybody reads the old ones. Killed at any moment, the old ones "
    "stay. The index of the queues is made anew as well: whoever wants a job meanwhile waits for "
    "it, or makes the rest. The events are read, never changed.",
)


def run(_params: Params, out: Output) -> None:
    """Rebuild, and say up to where."""
    from tachograph import storekeeping
    from tachograph.cli.bars import Bar

    services = open_store(out)
    with Bar(out, "rebuild") as bar:
        position = storekeeping.rebuild(services, bar)
    with Bar(out, "snapshots") as bar:
        mended = storekeeping.mend_snapshots(services, bar)
    index = storekeeping.rebuild_queue_index(services)
    if out.json:
        found = {"position": position, "snapshotsMended": mended, "queueIndexRebuilt": index}
        out.document(found)
    else:
        out.line(f"All views are made anew, up to position {position}.")
        if index:
            out.line("The index of the queues is made anew as well.")
        if mended:
            out.line(f"{mended} snapshots were not what the events say, and are now.")
