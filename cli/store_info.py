"""`tacho store info`: what is in the store, how large it is, who reads it."""

from __future__ import annotations

from tachograph.cli.cards import card
from tachograph.cli.opening import open_store
from tachograph.cli.options import Spec
from tachograph.cli.sizes import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Show what is in the store, how large it is, and who reads it.",
    details="Keep the anchor elsewhere: `tacho store verify --anchor` then tells whether the end "
    "of the log was cut off. `tacho store anchor` writes it to a file, and signs it.",
)


def run(_params: Params, out: Output) -> None:
    """Print the measures of the store."""
    from tachograph import storekeeping

    services = open_store(out, read_only=True)
    found = storekeeping.describe(services)
    if out.json:
        out.document(found)
    else:
        card(out, _rows(found, out))


def _jobs(counts: dict[str, int] | None) -> str | None:
    """Return how many jobs there are, by their state; None for a store that never had one."""
    if counts is None:
        return None
    told = [f"{count} {state}" for state, count in counts.items() if count]
    return ", ".join(told) or "none"


def _rows(found: dict[str, Any], out: Output) -> list[tuple[str, str | None]]:
    sizes = found["sizes"]
    readers = [f"process {row['pid']}" for row in found["readers"]]
    events = f"{found['events']} in {found['runs']} runs, of {found['eventTypes']} types"
    return [
        ("Store", found["store"]),
        ("Found by", found["origin"]),
        ("Format", str(found["format"])),
        ("Events", events),
        ("Jobs", _jobs(found["jobs"])),
        ("Last event", out.when(found["lastWriteUs"])),
        ("Anchor", found["anchor"]),
        ("Log", f"{size(sizes['log'])}, in a memory map of {size(found['mapSize'])}"),
        ("Payloads", f"{size(sizes['blobs'])} in {found['blobs']} files"),
        ("Archives", size(sizes["archive"])),
        ("Views", size(sizes["views"])),
        ("Presence", size(sizes["presence"])),
        ("Snapshots", str(found["snapshots"])),
        ("Readers", ", ".join(readers) or "none"),
    ]
