"""`tacho config show`: the settings in force, and where each comes from."""

from __future__ import annotations

from tachograph.cli.options import Spec, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Show the settings in force.",
    flag("--origin", "Show where each comes from, and by which rule the store is found."),
    details="Environment variables TACHO_… go before the store's `config` file, that before the "
    "user's config.toml, that before the default. `tacho config path` names the files.",
)


def run(params: Params, out: Output) -> None:
    """Print every setting with its value."""
    from tachograph import storekeeping
    from tachograph.cli.event_lines import brief

    found = storekeeping.configuration(out.store)
    if out.json:
        out.document(found)
        return
    columns = ("SETTING", "VALUE", "FROM", "WHAT IT IS FOR")
    rows = [("store", found["store"], found["storeOrigin"], "Folder of the store.")]
    rows += [
        (each["name"], brief(each["value"]), each["origin"], each["meaning"])
        for each in found["settings"]
    ]
    if params.origin:
        out.table(columns, rows)
    else:
        out.table(columns[:2], [row[:2] for row in rows])
