"""`tacho config path`: where the store and the configuration files are, or would be."""

from __future__ import annotations

from tachograph.cli.cards import card
from tachograph.cli.options import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

LABELS = {
    "store": "Store",
    "storeConfig": "Its configuration",
    "userConfig": "Your configuration",
}

SPEC = Spec("Show where the store and the configuration files are, or would be.")


def run(_params: Params, out: Output) -> None:
    """Print the paths."""
    from tachograph import storekeeping

    found = storekeeping.paths(out.store)
    if out.json:
        out.document(found)
        return
    rows: list[tuple[str, str | None]] = []
    for name, label in LABELS.items():
        path, exists = found[name]["path"], found[name]["exists"]
        rows.append((label, path if exists else f"{path}  (not there)"))
    card(out, rows)
