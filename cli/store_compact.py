"""`tacho store compact`: give free pages and payloads that nobody needs back to the disk."""

from __future__ import annotations

from tachograph.cli.options import Spec, flag
from tachograph.cli.sizes import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Give free pages, and payloads that no event refers to, back to the disk.",
    flag("--dry-run", "Only say what it would give back."),
    details="Removes no event. The views are removed, and made anew when somebody next looks. "
    "Refused while another process has the store open; jobs that start meanwhile wait. Killed at "
    "any moment, it leaves the store whole.",
)


def run(params: Params, out: Output) -> None:
    """Compact the store, or say what that would do."""
    from tachograph import storekeeping

    store = storekeeping.find_existing(out.store)
    done = storekeeping.compact(store, dry_run=params.dry_run)
    if out.json:
        out.document(
            {
                "store": store,
                "dryRun": params.dry_run,
                "logBytesBefore": done.before_bytes,
                "logBytesAfter": done.after_bytes,
                "removedBlobs": done.blobs,
                "removedBlobBytes": done.blob_bytes,
            }
        )
        return
    verb = "would go" if params.dry_run else "went"
    out.line(f"The log {verb} from {size(done.before_bytes)} to {size(done.after_bytes)}.")
    verb = "would be" if params.dry_run else "were"
    out.line(f"{done.blobs} payloads ({size(done.blob_bytes)}) {verb} removed.")
