"""`tacho watchdog uninstall`: remove what `watchdog install` made for this store."""

from __future__ import annotations

from tachograph.cli.options import Spec
from tachograph.cli.watchdog_install import DRY_RUN, KIND, as_json, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Let the machine no longer call the watchdog for this store.",
    KIND,
    DRY_RUN,
    details="""Removes the systemd timer and the crontab lines that `tacho watchdog install`
made for this store, and nothing else. The store itself may be gone already.""",
)


def run(params: Params, out: Output) -> None:
    """Remove it, and say what was removed."""
    import os

    from tachograph.bootstrap import find
    from tachograph.infra import timers

    store, _ = find(out.store)
    changes = timers.uninstall(params.kind, os.environ, store=store, dry_run=params.dry_run)
    if out.json:
        out.document({"changes": [as_json(each, dry_run=params.dry_run) for each in changes]})
        return
    for change in changes:
        tell(change, out, dry_run=params.dry_run)
