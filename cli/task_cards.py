"""The card files of a workspace follow what a command did to its tasks. Changes no run."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tachograph.bootstrap import Services
    from tachograph.cli.output import Output


def follow(services: Services, run_ids: Iterable[str], out: Output) -> None:
    """Write the card files of these runs, where the store is that of a workspace with cards.

    A store that is none costs one look at a folder. What could not be written is told.
    """
    beside = os.path.join(os.path.dirname(services.folder), "task-runs")  # noqa: PTH118, PTH120
    if not (os.path.isdir(beside) or os.environ.get("OPENCLAW_WORKSPACE")):  # noqa: PTH112
        return
    from tachograph.dropin.places import of_store
    from tachograph.dropin.syncing import sync_cards

    workspace = of_store(services.folder, os.environ)
    if workspace is not None and workspace.cards.is_dir():
        for problem in sync_cards(services, workspace, run_ids):
            out.warn(problem)
